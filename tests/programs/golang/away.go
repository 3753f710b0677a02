// SPDX-License-Identifier: Apache-2.0

// A Go program whose thread is often on another stack than its goroutine's: in C
// code, in the vDSO, and in the runtime's systemstack, below 10 frames of recursion and a large one.
// The thread's CPU clock is the truth. It turns without that until a line of its
// standard input; Usage: away SECONDS [DEEP]. DEEP: the frames of the recursion are large, too.
package main

// static unsigned long turn(unsigned long x, unsigned long n)
// {
//	while (n--)
//		x = x * 6364136223846793005 + 1442695040888963407;
//	return x;
// }
// unsigned long in_c(unsigned long x, unsigned long n);
// unsigned long in_c(unsigned long x, unsigned long n) { return turn(x, n); }
import "C"

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

var sink uint64
var kept []byte
var spent [3]uint64
var seconds int
var begin int32
var done = make(chan bool)

//go:noinline
func workC() {
	sink += uint64(C.in_c(C.ulong(sink), 200000))
}

//go:noinline
func workTime() {
	for i := 0; i < 4000; i++ {
		sink += uint64(time.Now().UnixNano())
	}
}

// Large objects come from the heap's own lists, by way of systemstack.
//
//go:noinline
func workAlloc() {
	for i := 0; i < 8; i++ {
		kept = make([]byte, 40000+i)
	}
}

func timed(part int, ns uint64, work func()) {
	first := now()
	last := first
	for last-first < ns {
		work()
		last = now()
	}
	spent[part] += last - first
}

// It waits where it works, so that by then it is known how deep that is.
//
//go:noinline
func rounds() {
	wait()
	for first := now(); now()-first < uint64(seconds)*1000000000; {
		timed(0, 15000000, workC)
		timed(1, 10000000, workTime)
		timed(2, 6000000, workAlloc)
	}
}

//go:noinline
func descend(depth int) {
	if depth == 1 {
		rounds()
	} else {
		descend(depth - 1)
	}
	sink++
}

//go:noinline
func descendDeep(depth int) {
	var room [2000]byte

	room[depth]++
	if depth == 1 {
		rounds()
	} else {
		descendDeep(depth - 1)
	}
	sink += uint64(room[depth])
}

//go:noinline
func wait() {
	for atomic.LoadInt32(&begin) == 0 {
		for i := uint64(0); i < 1000000; i++ {
			sink = sink*3 + i
		}
	}
}

// A frame larger than what is copied of a goroutine's stack.
//
//go:noinline
func worker() {
	var room [20000]byte

	runtime.LockOSThread()
	room[seconds]++
	if len(os.Args) > 2 {
		descendDeep(10)
	} else {
		descend(10)
	}
	sink += uint64(room[seconds])
	done <- true
}

func main() {
	seconds, _ = strconv.Atoi(os.Args[1])
	go worker()
	bufio.NewReader(os.Stdin).ReadString('\n')
	atomic.StoreInt32(&begin, 1)
	<-done
	fmt.Printf("{\"c\": %d, \"time\": %d, \"alloc\": %d}\n", spent[0], spent[1], spent[2])
}
