// SPDX-License-Identifier: Apache-2.0

// A Go program that knows its CPU shares: a leaf without a frame, an inlined
// leaf, one that calls through a closure; below them 20 frames of recursion, on a
// goroutine whose thread's CPU clock is the truth. Usage: shares SECONDS.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
)

var sink uint64
var spent [3]uint64
var seconds int
var done = make(chan bool)

// No calls and no locals that need a stack: no frame.
//
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
func workHalf(n int) {
	sink = spin(sink|1, n)
}

// Small enough to be inlined by every version.
func mix(x uint64) uint64 {
	return x*6364136223846793005 + 1442695040888963407
}

//go:noinline
func workThird(n int) {
	x := sink
	for i := 0; i < n; i++ {
		x = mix(x)
	}
	sink = x
}

//go:noinline
func apply(f func(uint64) uint64, n int) {
	for i := 0; i < n; i++ {
		sink = f(sink)
	}
}

//go:noinline
func workFifth(n int) {
	var kept [64]uint64
	apply(func(x uint64) uint64 {
		for i := range kept {
			kept[i] = kept[i]*3 + x
		}
		return kept[x&63]
	}, n/64)
}

func timed(part int, ns uint64, work func(int)) {
	begin := now()
	end := begin
	for end-begin < ns {
		work(20000)
		end = now()
	}
	spent[part] += end - begin
}

//go:noinline
func rounds() {
	for begin := now(); now()-begin < uint64(seconds)*1000000000; {
		timed(0, 15000000, workHalf)
		timed(1, 10000000, workThird)
		timed(2, 6000000, workFifth)
	}
}

//go:noinline
func descend(depth int) {
	if depth == 1 {
		rounds()
	} else {
		descend(depth-1)
	}
	sink++
}

//go:noinline
func worker() {
	runtime.LockOSThread()
	descend(20)
	done <- true
}

func main() {
	seconds, _ = strconv.Atoi(os.Args[1])
	go worker() // without arguments, which would need a wrapper
	<-done
	fmt.Printf("{\"pid\": %d, \"half\": %d, \"third\": %d, \"fifth\": %d}\n", os.Getpid(), spent[0], spent[1], spent[2])
}
