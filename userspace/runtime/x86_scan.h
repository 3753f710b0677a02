/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions of code in a process, one after the other. A byte that begins none is passed over, as are five zeros behind
 * a jump of five bytes: they are the rest of a number that is not known yet, and the jump lies where its instruction began
 * (OpenJDK, c1_CodeStubs_x86.cpp, PatchingStub).
 *
 * Called by decoders. Bounded by size, and by the budget of the question (memory.h). Units: bytes from the start of the code.
 */
#ifndef OTP_RUNTIME_X86_SCAN_H
#define OTP_RUNTIME_X86_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/memory.h"
#include "unwind/x86_insn.h"

/* An instruction, borrowed for the call, that ends at an offset. false: enough. */
typedef bool x86_scan_fn(void *ctx, const struct x86_insn *i, uint32_t end);

/* From an offset at which one begins, up to size. 0; -ECANCELED: take had enough; an error of memory_read. */
int x86_scan(struct memory *m, uint64_t code, uint32_t from, uint32_t size, x86_scan_fn *take, void *ctx);

#endif
