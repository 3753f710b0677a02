/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops in which every register that they do not need holds REG_KEY plus its
 * DWARF number: in user code, and in read() as fast as it goes. By processor.
 */
#ifndef OTP_TESTS_GUEST_PROBE_LOOP_H
#define OTP_TESTS_GUEST_PROBE_LOOP_H

#include <stdint.h>

#include "probe.h"

#if defined(__x86_64__)
#define PROBE_ARCH  OTP_ARCH_X86_64
#define PROBE_REGS  OTP_REGS_X86_64
#define PROBE_SP    7
#define PROBE_PC    16
#define PROBE_KNOWN 0xf748ULL /* rbx rbp r8 r9 r10 r12 to r15: what a system call leaves alone */
#elif defined(__aarch64__)
#define PROBE_ARCH  OTP_ARCH_ARM64
#define PROBE_REGS  OTP_REGS_ARM64
#define PROBE_SP    31
#define PROBE_PC    32
#define PROBE_KNOWN 0x7ffffe00ULL /* x9 to x30 */
#endif

/* fp: the frame pointer, where it is not 0. */
_Noreturn void spin_user(uint64_t sp, uint64_t fp);
_Noreturn void spin_kernel(uint64_t sp, uint64_t fp, uint64_t fd, uint64_t buf, uint64_t len);
extern const char spin_user_loop[], spin_user_end[], spin_kernel_loop[], spin_kernel_end[];

/* 32-bit code in a loop, with stage filled in; returns where the processor has none. */
void spin_compat(struct stage *stage, uint64_t (*make_stack)(struct stage *stage, int flags));

#endif
