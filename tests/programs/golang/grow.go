// SPDX-License-Identifier: Apache-2.0

// A Go program that makes goroutines whose stacks grow again and again: each descends
// through functions with frames of a kilobyte, and ends. Usage: grow SECONDS.
package main

import (
	"os"
	"strconv"
	"time"
)

var sink byte
var done = make(chan bool)

//go:noinline
func deeper(depth int, from *[1000]byte) byte {
	var frame [1000]byte

	frame[depth] = from[depth]
	if depth == 0 {
		return frame[0]
	}
	return deeper(depth-1, &frame) + frame[depth]
}

func grow() {
	var frame [1000]byte

	sink = deeper(8, &frame)
	done <- true
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		for i := 0; i < 100; i++ {
			go grow() // without arguments, which would need a wrapper
			<-done
		}
	}
}
