// SPDX-License-Identifier: Apache-2.0
#include "unwind/epilogue.h"

#include <errno.h>

#include "base/cleanup.h"
#include "unwind/code_follow.h"
#include "unwind/epilogue_way.h"

#define NONE	  UINT16_MAX
#define NESTED	  2 /* calls of functions that only return because what they call does */
#define CALL_LEN  5 /* a direct one's, where return addresses are on the stack */
#define ASKED_MAX 2 /* ways of which it is asked whether what they call returns */
#define ASKED_INSNS 512

/* Instructions up to a branch or a call, or to one that control does not pass. */
struct block {
	uint16_t from; /* the block before it on the way from the start */
	uint16_t next; /* in a list; then on the way to a return */
};

struct walk {
	struct code_window window;
	struct code_blocks seen; /* the first one is the start */
	struct way now;
	unsigned insns;		/* decoded, */
	unsigned insns_max;	/* and how many may be */
	unsigned asked;
	uint16_t ready;		/* lists of those that are not read yet, */
	uint16_t later;		/* of those that one more call lies before, */
	uint16_t last;		/* and of those behind a jump to an unknown place */
	struct block blocks[CODE_BLOCKS];
};

static int epilogue_fetch(struct walk *w, uint64_t at, struct insn *ret)
{
	return w->insns++ >= w->insns_max ? -ENOENT : code_window_insn(&w->window, at, ret);
}

/* --- blocks that can be reached --- */

static void epilogue_reach(struct walk *w, uint64_t at, uint16_t from, uint16_t *list)
{
	const int number = code_blocks_add(&w->seen, at);

	if (number < 0)
		return;
	w->blocks[number] = (struct block){.from = from, .next = *list};
	*list = (uint16_t)number;
}

static bool epilogue_ends_block(uint8_t kind)
{
	return kind == INSN_RET || kind == INSN_END || kind == INSN_JUMP || kind == INSN_BRANCH || kind == INSN_CALL ||
	       kind == INSN_SP_LOST;
}

/* true: the block ends with a return. */
static bool epilogue_read_block(struct walk *w, uint16_t number)
{
	uint64_t at = w->seen.at[number];
	struct insn i;

	while (epilogue_fetch(w, at, &i) == 0) {
		at += i.len;
		if (i.kind == INSN_JUMP || i.kind == INSN_BRANCH)
			epilogue_reach(w, at + (uint64_t)i.n, number, &w->ready);
		if (i.kind == INSN_BRANCH)
			epilogue_reach(w, at, number, &w->ready);
		if (i.kind == INSN_CALL || i.kind == INSN_SP_LOST)
			epilogue_reach(w, at, number, &w->later);
		if (i.kind == INSN_END && i.n == INSN_BY_REGISTER)
			epilogue_reach(w, at, number, &w->last);
		if (epilogue_ends_block(i.kind))
			return i.kind == INSN_RET;
	}
	return false;
}

static uint16_t epilogue_take_list(uint16_t *list)
{
	const uint16_t first = *list;

	*list = NONE;
	return first;
}

/* NONE: all are read. */
static uint16_t epilogue_next_block(struct walk *w)
{
	const uint16_t number = w->ready != NONE ? w->ready : epilogue_take_list(w->later != NONE ? &w->later : &w->last);

	w->ready = number != NONE ? w->blocks[number].next : NONE;
	return number;
}

/* --- the way to a return --- */

/* What the block does to the registers; *ret: its last instruction. */
static bool epilogue_follow_block(struct walk *w, uint16_t number, struct insn *ret)
{
	uint64_t at = w->seen.at[number];

	do {
		if (epilogue_fetch(w, at, ret) < 0)
			return false;
		at += ret->len;
		w->now.at = at;
		if (!way_apply(&w->now, w->window.arch, ret))
			return false;
	} while (!epilogue_ends_block(ret->kind));
	return true;
}

/* From the start to the block that ends with a return. */
static enum way_worth epilogue_follow(struct walk *w, uint16_t last, struct row *row)
{
	struct insn i;
	uint16_t n = 0;

	for (uint16_t to = last; to; to = w->blocks[to].from, w->insns++)
		w->blocks[w->blocks[to].from].next = to;
	while (epilogue_follow_block(w, n, &i)) {
		if (n == last)
			return way_row(&w->now, w->window.arch, i.reg, row);
		n = w->blocks[n].next;
	}
	return WAY_WRONG;
}

static void epilogue_begin(struct walk *w, const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr,
			   unsigned insns_max)
{
	w->window.arch = arch;
	w->window.binary = b;
	w->window.at = w->window.len = 0;
	w->insns = w->asked = 0;
	w->insns_max = insns_max;
	w->ready = w->later = w->last = NONE;
	code_blocks_begin(&w->seen);
	epilogue_reach(w, vaddr, 0, &w->ready);
}

static enum way_worth epilogue_try(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, bool called,
				   unsigned nested, struct row *ret);

/* Whether all that was called with no frame returns; nested: so many calls further in this is not asked. */
static bool epilogue_callees_return(struct walk *w, unsigned nested)
{
	struct row row;

	if (!nested || w->now.nr_callees > WAY_CALLEES || w->asked++ >= ASKED_MAX)
		return false;
	for (unsigned i = 0; i < w->now.nr_callees; i++)
		if (epilogue_try(w->window.arch, w->window.binary, w->now.callees[i], false, nested - 1, &row) == WAY_WRONG)
			return false;
	return true;
}

/* A direct call's target, by what it returns to. */
static uint64_t epilogue_callee_before(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr)
{
	uint8_t code[CALL_LEN];
	struct insn i;

	if (!arch->on_stack || vaddr < sizeof(code) ||
	    binary_read_vaddr(b, vaddr - sizeof(code), code, sizeof(code)) != (ssize_t)sizeof(code) ||
	    arch->decode(code, sizeof(code), &i) < 0 || i.kind != INSN_CALL || i.len != sizeof(code))
		return 0;
	return vaddr + (uint64_t)i.n;
}

static enum way_worth epilogue_try_way(struct walk *w, uint16_t last, bool called, uint64_t callee, unsigned nested,
				       struct row *ret)
{
	enum way_worth worth;

	way_begin(&w->now, w->window.arch);
	if (called)
		way_call(&w->now, w->window.arch, callee);
	worth = epilogue_follow(w, last, ret);
	if (worth == WAY_IF_BACK)
		return epilogue_callees_return(w, nested) ? WAY_ODD : WAY_WRONG;
	return worth;
}

static enum way_worth epilogue_try(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, bool called,
				   unsigned nested, struct row *ret)
{
	const uint64_t callee = called ? epilogue_callee_before(arch, b, vaddr) : 0;
	enum way_worth found = WAY_WRONG, worth;
	struct row row;
	struct walk w;

	epilogue_begin(&w, arch, b, vaddr, nested == NESTED ? EPILOGUE_INSNS : ASKED_INSNS);
	for (uint16_t n = epilogue_next_block(&w); n != NONE && found != WAY_SOUND; n = epilogue_next_block(&w)) {
		if (!epilogue_read_block(&w, n))
			continue;
		worth = epilogue_try_way(&w, n, called, callee, nested, &row);
		if (worth > found)
			*ret = row;
		found = MAX(found, worth);
	}
	return found;
}

int epilogue_find(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, bool called, struct row *ret)
{
	return epilogue_try(arch, b, vaddr, called, NESTED, ret) == WAY_WRONG ? -ENOENT : 0;
}
