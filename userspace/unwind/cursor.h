/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of unwinding one stack: the registers of the current frame, and the
 * progress. Private to unwind/; lives on the caller's stack for one sample.
 *
 * The functions that make a step return one of
 *   1   the registers are now the caller's
 *   0   the stack ended: out->end is the reason
 *  <0   an errno that unwind_user returns (-EAGAIN)
 */
#ifndef OTP_UNWIND_CURSOR_H
#define OTP_UNWIND_CURSOR_H

#include <errno.h>

#include "unwind/arch.h"
#include "unwind/rules.h"
#include "unwind/unwind.h"

/* Which bytes of the stack unwinding has needed; read and missed are counted from stack_addr up. */
struct reach {
	uint64_t read;     /* end of the highest bytes that were needed and had been copied */
	uint64_t missed;   /* end of the highest bytes that were needed and had not been copied */
	uint64_t base_low; /* the lowest address read of the base */
};

#define SEARCH_WORK 65536 /* of a stack, in names that are compared: some milliseconds at most */
#define SEARCH_SCAN (1 << 20) /* bytes of files that are looked through for an address, of a stack */

struct cursor {
	const struct unwind_input *in;
	struct unwind_stack *out;
	const struct arch *arch;
	struct unwind_stats *stats;
	uint64_t valid; /* bit per register */
	uint64_t reg[OTP_REGS_MAX];
	uint64_t low;  /* the next CFA must lie above: stacks only shrink towards the root */
	uint64_t callee_sp; /* of the frame before */
	struct reach reach;
	const struct mapping *map; /* of the current frame */
	const struct mapped_file *file;
	const struct mapping *wait; /* -EAGAIN: the mapping whose file a frame pointer's step needs; NULL */
	bool exact;   /* the registers are this frame's own: pc is not a return address */
	enum frame_guess guess; /* how this frame was found */
	bool final;
	uint8_t signals; /* signal trampolines passed */
	uint8_t searches; /* made by search.c */
	uint32_t search_left; /* of the work that its searches may make */
	uint32_t scan_left; /* of the files that they may look through */
	enum unwind_end fault; /* why the last load failed */
	uint64_t fault_addr;
	bool left;    /* the frames are on the stack that the thread left: likewise */
	bool based;   /* the frames are in the base copy now: such a jump is allowed once */
	uint32_t part; /* the frames are in this part of those in the heap, from 1 on; more than there are: no more */
	struct { uint64_t valid, pc, sp, fp, low; } home; /* the frame on the stack that leads there */
	bool data;    /* pc is in data that an interpreter runs: no mapping need cover it, and only its runtime knows it */
};

static inline bool cursor_is_valid(const struct cursor *c, unsigned reg)
{
	return c->valid >> reg & 1;
}

static inline void cursor_set(struct cursor *c, unsigned reg, uint64_t value)
{
	c->reg[reg] = value;
	c->valid |= REG(reg);
}

/* Ends the stack here. Always 0. */
int cursor_cut(struct cursor *c, enum unwind_end end);

/* 8 bytes of the copied stack. 0, or -EFAULT with fault set. */
int cursor_load(struct cursor *c, uint64_t addr, uint64_t *ret);

/* Whether cfa may be the next one: stacks only shrink towards the root, but for one jump into the base copy. */
bool cursor_climbs(struct cursor *c, uint64_t cfa);

/* Whether 8 bytes at addr are in the copy of the stack that the thread left. */
bool cursor_in_other(const struct cursor *c, uint64_t addr);

/* frozen.c: the copy of frames in the heap that has 8 bytes at addr; NULL: none. */
const struct unwind_part *frozen_part(const struct cursor *c, uint64_t addr);
/* Whether the current frame may lead there, and whether it is there. */
bool frozen_may_begin(const struct cursor *c);
bool frozen_is_frame(const struct cursor *c);
/* To the innermost frame of the next part, or from the last one back to the stack. 1 or 0. */
int step_frozen(struct cursor *c);
/* What is in the heap is not the callers of these frames. */
void frozen_ignore(struct cursor *c);
/* From a frame in the heap whose caller is not found, to the frame that led there, as if nothing had been copied. */
void frozen_give_up(struct cursor *c);

/* memory.c: stores in out which bytes of the copies were needed and read. */
void cursor_report_used(const struct cursor *c);

#define STEP_NOTHING 2

/* step.c: to the caller by a row. */
int step_packed(struct cursor *c, const struct packed *p);
int step_row(struct cursor *c, struct binary *b, const struct row *row);

/* step.c: out of code that in->code describes; STEP_NOTHING: it does not know this code. */
int step_code(struct cursor *c);

/* stg.c: out of Haskell code; STEP_NOTHING: it is none, the cursor is unchanged. */
int step_stg(struct cursor *c);

/*
 * fp.c: to the caller by the frame pointer. STEP_NOTHING: no plausible frame
 * record; the cursor is unchanged.
 */
int step_fp(struct cursor *c);

/*
 * gate.c: from generated code to the function that entered it (struct unwind_gate). 1, 0 where the copy is too short,
 * or STEP_NOTHING.
 */
int step_gate(struct rules *rules, struct cursor *c);
/* A chain of frame pointers that was followed up to here ends in zero: a root. */
static inline bool cursor_chain_ended(const struct cursor *c)
{
	return c->guess == FRAME_BY_FRAME_POINTER && cursor_is_valid(c, c->arch->fp) && !c->reg[c->arch->fp];
}

/* Whether m's file can be asked for tables and code: 0, -ENOENT, or -EAGAIN with c->wait: it is not open yet. */
static inline int cursor_wants_file(struct cursor *c, const struct mapping *m)
{
	const struct mapped_file *f = m->file;

	if (f->state != MAPPED_READY && f->state != MAPPED_FAILED && !c->final) {
		c->wait = m;
		return -EAGAIN;
	}
	return f->state == MAPPED_READY && f->binary && f->binary->machine == c->arch->machine ? 0 : -ENOENT;
}

/* gate.c: whether one enters generated code such as this frame's. */
bool gate_leads_here(const struct cursor *c);

/*
 * search.c: from generated code that nothing describes to what called it, by the frame pointer or by a search of the
 * stack. As of step_fp.
 */
struct calls;
int step_search(struct rules *rules, struct calls *calls, struct cursor *c);

/* scan.c: to a listed root that lies a little way up the stack. 1 or STEP_NOTHING. */
int step_scan(struct cursor *c);

#endif
