// SPDX-License-Identifier: Apache-2.0

// A Go program whose goroutines have two creators and labels: two values of one key, made anew on the heap for each
// piece of work while memory is collected, and a key with ever new values. The thread's CPU clock is the truth.
// It turns without labels until a line of its standard input; Usage: labels SECONDS.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync/atomic"
)

const long = "a value of more bytes than are kept of one, which therefore ends early: "

var sinks [2]uint64
var kept [2][]byte
var spent [2]uint64
var seconds int
var begin int32
var done = make(chan bool)

//go:noinline
func workEven(part int) {
	for i := 0; i < 200000; i++ {
		sinks[part] = sinks[part]*6364136223846793005 + 1442695040888963407
	}
}

//go:noinline
func workOdd(part int) {
	for i := 0; i < 200000; i++ {
		sinks[part] = sinks[part]*2862933555777941757 + 3037000493
	}
}

// A string that nothing else has, and that is garbage soon.
func fresh(text string) string {
	return string(append([]byte(nil), text...))
}

//go:noinline
func rounds(part int, work func(int), which string) {
	for i, first := 0, now(); now()-first < uint64(seconds)*1000000000; i++ {
		labels := pprof.Labels(fresh("which"), fresh(which), "round", strconv.Itoa(part*1000000+i), "long", fresh(long+which))
		start := now()
		pprof.Do(context.Background(), labels, func(context.Context) {
			for k := 0; k < 20; k++ {
				kept[part] = make([]byte, 10000)
				work(part)
			}
		})
		spent[part] += now() - start
	}
}

func worker(part int, work func(int), which string) {
	runtime.LockOSThread()
	for atomic.LoadInt32(&begin) == 0 {
		work(part)
	}
	rounds(part, work, which)
	done <- true
}

//go:noinline
func spawnFirst() {
	go worker(0, workEven, "even")
}

//go:noinline
func spawnSecond() {
	go worker(1, workOdd, "odd")
}

func main() {
	seconds, _ = strconv.Atoi(os.Args[1])
	spawnFirst()
	spawnSecond()
	bufio.NewReader(os.Stdin).ReadString('\n')
	atomic.StoreInt32(&begin, 1)
	<-done
	<-done
	fmt.Printf("{\"even\": %d, \"odd\": %d}\n", spent[0], spent[1])
}
