/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64 instructions, as far as unwinding and code of runtimes need them: the
 * length of each, what it does (insn.h), and what it writes, with the
 * processor's own numbers of registers.
 *
 * Called by x86_64.c for epilogue.c, and by runtimes. Encodings: Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 2, chapter 2 and appendix A.
 * Never reads beyond len bytes. Cost: some ten comparisons.
 */
#ifndef OTP_UNWIND_X86_INSN_H
#define OTP_UNWIND_X86_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/insn.h"

#define X86_INSN_MAX 15

enum x86_reg { X86_AX, X86_CX, X86_DX, X86_BX, X86_SP, X86_BP, X86_SI, X86_DI, X86_R8, X86_R15 = 15, X86_NONE = 16 };
/* Their numbers in DWARF (System V ABI, AMD64 supplement, figure 3.36); of X86_NONE, INSN_NO_REG. */
extern const uint8_t x86_dwarf[X86_NONE + 1];

#define X86_WRITES_ALL	0xffff /* whatever is there: each register, and memory of any size */
#define X86_WRITTEN_MAX 16     /* bytes of memory that are written otherwise */

/* What the operand in memory is. That of instructions on strings is not told. */
struct x86_memory {
	uint8_t base; /* enum x86_reg; X86_NONE: there is none, or it is relative to the instruction */
	bool exact;   /* it is at base + disp: with an index or a segment, it is elsewhere */
	bool written;
	int32_t disp;
};

struct x86_insn {
	uint8_t len;
	uint8_t kind; /* enum insn_kind */
	uint8_t reg;  /* enum x86_reg; INSN_END by a register: that one */
	uint8_t base;
	int64_t n;
	/* Bit per register that has another value afterwards, or may have. Of the stack pointer, and of calls, kind tells. */
	uint16_t writes;
	bool nop;	 /* it fills space */
	struct x86_memory memory;
};

/* 0, or -EBADMSG: no instruction, or not whole. */
int x86_decode(const uint8_t *code, size_t len, struct x86_insn *ret);

#endif
