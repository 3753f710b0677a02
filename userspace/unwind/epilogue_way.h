/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the instructions of a way through code, from an address to a return, do to
 * the stack pointer and the saved registers; at its end, the row of that address,
 * and what it is worth.
 *
 * Private to epilogue*.c. No side effects, no memory of its own; a struct way is
 * 2.5 KiB, its caller's. Cost: some 10 ns an instruction.
 */
#ifndef OTP_UNWIND_EPILOGUE_WAY_H
#define OTP_UNWIND_EPILOGUE_WAY_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/epilogue.h"
#include "unwind/insn.h"
#include "unwind/row.h"

#define WAY_CALLEES 2

/*
 * A place in the stack: n bytes from a register as it was at the start, or from
 * what lies there. INSN_NO_REG: from where the stack pointer went the at-th
 * time that it could not be told.
 */
struct place {
	uint8_t reg;
	bool loaded; /* from what lies at reg + at */
	int32_t at;
	int64_t n;
};

struct way {
	uint64_t at; /* behind the instruction that is applied */
	struct place sp;
	struct place called; /* the stack pointer at a call: the one furthest out */
	bool has_called;
	bool odd;	     /* not all calls were aligned alike */
	uint8_t nr_callees;  /* of the calls furthest out; more than there is room for: one is not known */
	uint64_t callees[WAY_CALLEES];
	uint64_t copied;     /* bit per register: it was made from the stack pointer, and is copy[] */
	int32_t times_lost;
	uint64_t saved;      /* bit per register: its value lies at from[] */
	uint64_t lost;
	uint64_t stored;     /* its value was put at to[] */
	uint64_t held;	     /* and what was put there was not the value at the start, but that which lies at put[] */
	struct place from[OTP_REGS_MAX];
	struct place to[OTP_REGS_MAX];
	struct place put[OTP_REGS_MAX];
	struct place copy[OTP_REGS_MAX];
};

enum way_worth { WAY_WRONG, WAY_IF_BACK, WAY_ODD, WAY_SOUND };

void way_begin(struct way *y, const struct epilogue_arch *arch);
/* A call was made, or is: of callee, 0: it is not known which function that is. */
void way_call(struct way *y, const struct epilogue_arch *arch, uint64_t callee);
/* An instruction; y->at is behind it. false: the stack pointer cannot be told any more. */
bool way_apply(struct way *y, const struct epilogue_arch *arch, const struct insn *i);
/* At the return, to reg where it goes to a register. row is undefined where the way is wrong. */
enum way_worth way_row(const struct way *y, const struct epilogue_arch *arch, uint8_t reg, struct row *row);

#endif
