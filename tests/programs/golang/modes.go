// SPDX-License-Identifier: Apache-2.0

// Go code for each build mode: a program, a plugin, an archive or a library of a C
// program (host.c). Go calls C, which calls Go, which works: in Go, with a leaf
// without a frame, and in C. The thread's CPU clock is the truth. It turns without
// that until a line of its standard input. As a program: modes SECONDS.
package main

// extern void goInner(void);
// static __attribute__((noinline)) void in_between(void)
// {
//	goInner();
//	__asm__ volatile("");
// }
// static __attribute__((noinline)) unsigned long in_c(unsigned long x, unsigned long n)
// {
//	while (n--)
//		x = x * 6364136223846793005 + 1442695040888963407;
//	return x;
// }
import "C"

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
)

var sink uint64
var spent [2]uint64
var seconds uint64
var begin int32
var done = make(chan bool)

//go:noinline
func spin(x uint64, n int) uint64 {
	for i := 0; i < n; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

//go:noinline
func workGo() {
	sink = spin(sink|1, 200000)
}

//go:noinline
func workC() {
	sink += uint64(C.in_c(C.ulong(sink), 200000))
}

//go:noinline
func timed(part int, ns uint64, work func()) {
	first := now()
	last := first
	for last-first < ns {
		work()
		last = now()
	}
	spent[part] += last - first
}

//go:noinline
func rounds() {
	for first := now(); now()-first < seconds*1000000000; {
		timed(0, 15000000, workGo)
		timed(1, 10000000, workC)
	}
}

//export goInner
func goInner() {
	rounds()
	sink++
}

//go:noinline
func descend(depth int) {
	if depth == 1 {
		C.in_between()
	} else {
		descend(depth - 1)
	}
	sink++
}

func read() {
	bufio.NewReader(os.Stdin).ReadString('\n')
	atomic.StoreInt32(&begin, 1)
}

//go:noinline
func wait() {
	go read()
	for atomic.LoadInt32(&begin) == 0 {
		spin(sink, 1000000)
	}
}

//go:noinline
func worker() {
	runtime.LockOSThread()
	wait()
	descend(10)
	done <- true
}

func truth() string {
	return fmt.Sprintf("{\"go\": %d, \"c\": %d}\n", spent[0], spent[1])
}

// Run is what a program that loads the plugin calls.
func Run(text string) string {
	n, _ := strconv.Atoi(text)
	seconds = uint64(n)
	go worker()
	<-done
	return truth()
}

// Of a C program's thread.
//
//export Enter
func Enter(n C.int) {
	seconds = uint64(n)
	wait()
	descend(10)
	os.Stdout.WriteString(truth())
}

func main() {
	os.Stdout.WriteString(Run(os.Args[1]))
}
