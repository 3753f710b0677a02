// SPDX-License-Identifier: Apache-2.0
#include "unwind/epilogue.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "unwind/epilogue_way.h"

#define BLOCKS	  2048 /* of some four instructions each */
#define SLOTS	  4096
#define NONE	  UINT16_MAX
#define NESTED	  2 /* calls of functions that only return because what they call does */
#define CALL_LEN  5 /* a direct one's, where return addresses are on the stack */
#define ASKED_MAX 2 /* ways of which it is asked whether what they call returns */
#define ASKED_INSNS 512

/* Instructions up to a branch or a call, or to one that control does not pass. */
struct block {
	uint64_t at;
	uint16_t from; /* the block before it on the way from the start */
	uint16_t next; /* in a list; then on the way to a return */
};

struct walk {
	const struct epilogue_arch *arch;
	struct binary *binary;
	struct way now;
	unsigned insns;		/* decoded, */
	unsigned insns_max;	/* and how many may be */
	unsigned asked;
	uint16_t nr;		/* of blocks; the first one is the start */
	uint16_t ready;		/* lists of those that are not read yet, */
	uint16_t later;		/* of those that one more call lies before, */
	uint16_t last;		/* and of those behind a jump to an unknown place */
	uint16_t slots[SLOTS];	/* blocks by address; 0: empty, else the number + 1 */
	struct block blocks[BLOCKS];
	uint64_t window_at;
	size_t window_len;
	uint8_t window[256];
};

/* Whether the window holds all bytes of an instruction at in; a jump may lead to any address. */
static bool window_covers(const struct walk *w, uint64_t in)
{
	return in < w->window_len && w->window_len - in >= w->arch->insn_max;
}

static int fetch(struct walk *w, uint64_t at, struct insn *ret)
{
	uint64_t in = at - w->window_at;
	ssize_t n;

	if (w->insns++ >= w->insns_max)
		return -ENOENT;
	if (!window_covers(w, in)) {
		n = binary_read_vaddr(w->binary, at, w->window, sizeof(w->window));
		if (n <= 0)
			return -ENOENT;
		w->window_at = at;
		w->window_len = (size_t)n;
		in = 0;
	}
	return w->arch->decode(w->window + in, w->window_len - in, ret) < 0 ? -ENOENT : 0;
}

/* --- blocks that can be reached --- */

/* Its slot, or the empty one where it belongs. */
static uint16_t *block_slot(struct walk *w, uint64_t at)
{
	size_t i = (size_t)hash_u64(at ^ hash_seed) % SLOTS;

	while (w->slots[i] && w->blocks[w->slots[i] - 1].at != at)
		i = (i + 1) % SLOTS;
	return &w->slots[i];
}

static void reach(struct walk *w, uint64_t at, uint16_t from, uint16_t *list)
{
	uint16_t *slot = block_slot(w, at);

	if (*slot || w->nr == BLOCKS)
		return;
	w->blocks[w->nr] = (struct block){.at = at, .from = from, .next = *list};
	*list = w->nr++;
	*slot = w->nr;
}

static bool ends_block(uint8_t kind)
{
	return kind == INSN_RET || kind == INSN_END || kind == INSN_JUMP || kind == INSN_BRANCH || kind == INSN_CALL ||
	       kind == INSN_SP_LOST;
}

/* true: the block ends with a return. */
static bool read_block(struct walk *w, uint16_t number)
{
	uint64_t at = w->blocks[number].at;
	struct insn i;

	while (fetch(w, at, &i) == 0) {
		at += i.len;
		if (i.kind == INSN_JUMP || i.kind == INSN_BRANCH)
			reach(w, at + (uint64_t)i.n, number, &w->ready);
		if (i.kind == INSN_BRANCH)
			reach(w, at, number, &w->ready);
		if (i.kind == INSN_CALL || i.kind == INSN_SP_LOST)
			reach(w, at, number, &w->later);
		if (i.kind == INSN_END && i.n == INSN_BY_REGISTER)
			reach(w, at, number, &w->last);
		if (ends_block(i.kind))
			return i.kind == INSN_RET;
	}
	return false;
}

static uint16_t take_list(uint16_t *list)
{
	const uint16_t first = *list;

	*list = NONE;
	return first;
}

/* NONE: all are read. */
static uint16_t next_block(struct walk *w)
{
	const uint16_t number = w->ready != NONE ? w->ready : take_list(w->later != NONE ? &w->later : &w->last);

	w->ready = number != NONE ? w->blocks[number].next : NONE;
	return number;
}

/* --- the way to a return --- */

/* What the block does to the registers; *ret: its last instruction. */
static bool follow_block(struct walk *w, uint16_t number, struct insn *ret)
{
	uint64_t at = w->blocks[number].at;

	do {
		if (fetch(w, at, ret) < 0)
			return false;
		at += ret->len;
		w->now.at = at;
		if (!way_apply(&w->now, w->arch, ret))
			return false;
	} while (!ends_block(ret->kind));
	return true;
}

/* From the start to the block that ends with a return. */
static enum way_worth follow(struct walk *w, uint16_t last, struct row *row)
{
	struct insn i;
	uint16_t n = 0;

	for (uint16_t to = last; to; to = w->blocks[to].from, w->insns++)
		w->blocks[w->blocks[to].from].next = to;
	while (follow_block(w, n, &i)) {
		if (n == last)
			return way_row(&w->now, w->arch, i.reg, row);
		n = w->blocks[n].next;
	}
	return WAY_WRONG;
}

static void walk_init(struct walk *w, const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr,
		      unsigned insns_max)
{
	w->arch = arch;
	w->binary = b;
	w->insns = w->asked = 0;
	w->insns_max = insns_max;
	w->nr = 0;
	w->window_at = w->window_len = 0;
	w->ready = w->later = w->last = NONE;
	memset(w->slots, 0, sizeof(w->slots));
	reach(w, vaddr, 0, &w->ready);
}

static enum way_worth find(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, bool called, unsigned nested,
		       struct row *ret);

/* Whether all that was called with no frame returns; nested: so many calls further in this is not asked. */
static bool callees_return(struct walk *w, unsigned nested)
{
	struct row row;

	if (!nested || w->now.nr_callees > WAY_CALLEES || w->asked++ >= ASKED_MAX)
		return false;
	for (unsigned i = 0; i < w->now.nr_callees; i++)
		if (find(w->arch, w->binary, w->now.callees[i], false, nested - 1, &row) == WAY_WRONG)
			return false;
	return true;
}

/* A direct call's target, by what it returns to. */
static uint64_t callee_before(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr)
{
	uint8_t code[CALL_LEN];
	struct insn i;

	if (!arch->on_stack || vaddr < sizeof(code) ||
	    binary_read_vaddr(b, vaddr - sizeof(code), code, sizeof(code)) != (ssize_t)sizeof(code) ||
	    arch->decode(code, sizeof(code), &i) < 0 || i.kind != INSN_CALL || i.len != sizeof(code))
		return 0;
	return vaddr + (uint64_t)i.n;
}

static enum way_worth find_way(struct walk *w, uint16_t last, bool called, uint64_t callee, unsigned nested,
			   struct row *ret)
{
	enum way_worth worth;

	way_begin(&w->now, w->arch);
	if (called)
		way_call(&w->now, w->arch, callee);
	worth = follow(w, last, ret);
	if (worth == WAY_IF_BACK)
		return callees_return(w, nested) ? WAY_ODD : WAY_WRONG;
	return worth;
}

static enum way_worth find(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, bool called, unsigned nested,
		       struct row *ret)
{
	const uint64_t callee = called ? callee_before(arch, b, vaddr) : 0;
	enum way_worth found = WAY_WRONG, worth;
	struct row row;
	struct walk w;

	walk_init(&w, arch, b, vaddr, nested == NESTED ? EPILOGUE_INSNS : ASKED_INSNS);
	for (uint16_t n = next_block(&w); n != NONE && found != WAY_SOUND; n = next_block(&w)) {
		if (!read_block(&w, n))
			continue;
		worth = find_way(&w, n, called, callee, nested, &row);
		if (worth > found)
			*ret = row;
		found = MAX(found, worth);
	}
	return found;
}

int epilogue_find(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, bool called, struct row *ret)
{
	return find(arch, b, vaddr, called, NESTED, ret) == WAY_WRONG ? -ENOENT : 0;
}
