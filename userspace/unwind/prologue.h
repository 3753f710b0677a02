/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The row of code without tables from which no way leads to a return (epilogue.h):
 * loops that never end, and what comes before a throw. The function's first
 * instruction is sought behind padding; the stack's depth is followed from there
 * up to the address, which must be reached.
 *
 * x86-64 only. Called by arch->returns, after epilogue_find. Bounds: PROLOGUE_BYTES
 * before the address, PROLOGUE_TRIES places, PROLOGUE_INSNS instructions in all,
 * which take some 0.2 ms; 80 KiB of stack.
 * -ENOENT: no such place, or the stack pointer is not known at the address.
 */
#ifndef OTP_UNWIND_PROLOGUE_H
#define OTP_UNWIND_PROLOGUE_H

#include "unwind/epilogue.h"

#define PROLOGUE_BYTES (64u << 10)
#define PROLOGUE_TRIES 4
#define PROLOGUE_INSNS 8192

/* called: as of epilogue_find. */
int prologue_find(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, bool called, struct row *ret);

#endif
