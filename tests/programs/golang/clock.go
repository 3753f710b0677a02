// SPDX-License-Identifier: Apache-2.0

// The thread's own CPU clock, which is the truth of the programs beside it.
package main

import (
	"syscall"
	"unsafe"
)

const threadClock = 3

func now() uint64 {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadClock, uintptr(unsafe.Pointer(&t)), 0)
	return uint64(t.Sec)*1000000000 + uint64(t.Nsec)
}
