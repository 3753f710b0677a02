/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions as call frame information uses them: a small stack machine
 * over registers and memory (DWARF 5, section 2.5).
 * Called by rules.c and step.c. Bounds: EXPR_STACK values, EXPR_STEPS
 * operations, jumps only within the expression.
 * Failure: -EBADMSG: broken, or an operation not allowed in frame rules;
 * -ENODATA: a register is unknown; the error of load.
 */
#ifndef OTP_UNWIND_EXPR_H
#define OTP_UNWIND_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPR_MAX 512 /* bytes */
#define EXPR_STACK 64
#define EXPR_STEPS 1024

struct expr_env {
	uint64_t valid; /* bit per register */
	const uint64_t *reg;
	unsigned nr_regs;
	/* Loads 8 bytes; 0 or negative errno. */
	int (*load)(void *ctx, uint64_t addr, uint64_t *ret);
	void *ctx;
};

/* cfa: the first value on the stack, as register rules want it; NULL: none. */
int expr_eval(const uint8_t *code, size_t len, const struct expr_env *env, const uint64_t *cfa, uint64_t *ret);

#endif
