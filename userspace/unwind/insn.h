/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an instruction does to the stack pointer, to the registers that a call
 * preserves, and to the flow of control, in terms common to all processors. All
 * else is INSN_OTHER.
 *
 * Made by each processor's decoder, read by epilogue*.c and prologue.c. Registers have their
 * DWARF numbers here; those of x86_insn.h are the processor's own.
 */
#ifndef OTP_UNWIND_INSN_H
#define OTP_UNWIND_INSN_H

#include <stdbool.h>
#include <stdint.h>

#define INSN_NO_REG	0xff
#define INSN_WRITES_ALL UINT32_MAX /* it is not told which */

enum insn_kind {
	INSN_OTHER,
	INSN_PUSH,    /* n bytes, reg or none */
	INSN_POP,     /* n bytes, reg or none */
	INSN_SP_ADD,  /* the stack pointer moves by n */
	INSN_SP_SET,  /* it becomes reg + n */
	INSN_SP_LOAD, /* it becomes what lies at base + n */
	INSN_SP_COPY, /* reg becomes the stack pointer + n */
	INSN_LOAD,    /* reg becomes what lies at base + n, 8 bytes; pair the next 8 bytes */
	INSN_STORE,   /* the other way round */
	INSN_COPY,    /* reg becomes base + n; neither is the stack pointer */
	INSN_ADD,     /* n is added to reg, which is not the stack pointer; 0: what is added is not known */
	INSN_LEAVE,
	INSN_CALL,
	INSN_JUMP,    /* by n from where jumps are counted from */
	INSN_BRANCH,  /* the same, on a condition */
	INSN_RET,     /* arm64: to reg */
	INSN_END,     /* control leaves for an unknown place: n of enum insn_end */
	INSN_SP_LOST, /* the stack pointer becomes unknown; n: it keeps these bits alone, 0: it may become anything */
};

enum insn_end { INSN_TRAP, INSN_BY_VARIABLE, INSN_BY_REGISTER }; /* variable: at an address that the code holds */

struct insn {
	uint8_t len;
	uint8_t kind; /* enum insn_kind */
	uint8_t reg, pair, base;
	uint32_t writes; /* x86-64: bit per register that may have another value afterwards */
	int64_t n;
	int64_t before; /* LOAD, STORE: the stack pointer moves by this first */
	int64_t after;  /* and by this afterwards */
};

/* Whether the stack pointer stays, and control goes on to the next instruction. */
static inline bool insn_keeps_stack(uint8_t kind)
{
	return kind == INSN_OTHER || kind == INSN_SP_COPY || kind == INSN_LOAD || kind == INSN_STORE || kind == INSN_COPY ||
	       kind == INSN_ADD;
}

/* Bit per register that may have another value afterwards; where it is not told which, all but the frame pointer, fp. */
static inline uint64_t insn_writes(const struct insn *i, uint8_t fp)
{
	return i->writes == INSN_WRITES_ALL ? ~(1ULL << fp) : i->writes;
}

#endif
