/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64 instructions, as far as unwinding needs them: the length of each, and
 * what it does (insn.h), with the processor's own numbers of registers.
 *
 * Called by x86_64.c for epilogue.c. Encodings: Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 2, chapter 2 and appendix A.
 * Never reads beyond len bytes. Cost: some ten comparisons.
 */
#ifndef OTP_UNWIND_X86_INSN_H
#define OTP_UNWIND_X86_INSN_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/insn.h"

#define X86_INSN_MAX 15

enum x86_reg { X86_AX, X86_CX, X86_DX, X86_BX, X86_SP, X86_BP, X86_SI, X86_DI, X86_R8, X86_R15 = 15, X86_NONE = 16 };

struct x86_insn {
	uint8_t len;
	uint8_t kind; /* enum insn_kind */
	uint8_t reg;  /* enum x86_reg */
	uint8_t base;
	int64_t n;
};

/* 0, or -EBADMSG: no instruction, or not whole. */
int x86_decode(const uint8_t *code, size_t len, struct x86_insn *ret);

#endif
