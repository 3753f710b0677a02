// SPDX-License-Identifier: Apache-2.0
#include "unwind/epilogue.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/x86_insn.h"

#define WAYS 16        /* branches kept for the case that the way straight on has no end */
#define SEEN 64        /* targets of jumps that were followed */
#define FRAME_MAX (1 << 24)

enum { DWARF_BP = 6, DWARF_SP = 7, DWARF_PC = 16 };

/* Intel's numbers of registers to DWARF's (System V ABI, AMD64 supplement, figure 3.36). */
static const uint8_t dwarf_of[] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

/* A place in the stack: n bytes from a register as it was at the start, or from what lies there. */
struct place {
	uint8_t reg; /* DWARF */
	bool loaded; /* from what lies at reg + at */
	int32_t at;
	int64_t n;
};

struct way {
	uint64_t at;
	struct place sp;
	uint16_t saved; /* bit per DWARF register: its value lies at from[] */
	uint16_t lost;
	struct place from[16];
};

struct walk {
	struct binary *binary;
	struct way now;
	struct way ways[WAYS];
	unsigned nr_ways;
	uint64_t seen[SEEN];
	unsigned nr_seen;
	uint64_t window_at;
	size_t window_len;
	uint8_t window[256];
};

static int fetch(struct walk *w, struct x86_insn *ret)
{
	uint64_t in = w->now.at - w->window_at;
	ssize_t n;

	if (w->now.at < w->window_at || in + X86_INSN_MAX > w->window_len) {
		n = binary_read_vaddr(w->binary, w->now.at, w->window, sizeof(w->window));
		if (n <= 0)
			return -ENOENT;
		w->window_at = w->now.at;
		w->window_len = (size_t)n;
		in = 0;
	}
	return x86_decode(w->window + in, w->window_len - in, ret) < 0 ? -ENOENT : 0;
}

static struct place above(struct place p, int64_t n)
{
	p.n += n;
	return p;
}

static void forget(struct way *y, unsigned reg)
{
	y->lost |= (uint16_t)(1u << reg);
	y->saved &= (uint16_t)~(1u << reg);
}

static void restore(struct way *y, uint8_t reg, struct place from)
{
	y->from[reg] = from;
	y->saved |= (uint16_t)(1u << reg);
	y->lost &= (uint16_t)~(1u << reg);
}

/* The stack pointer becomes a register: where that still has the value that it had at the start. */
static bool sp_from(struct way *y, uint8_t reg, int64_t n)
{
	if (reg == DWARF_SP) {
		y->sp.n += n;
		return true;
	}
	if ((y->saved | y->lost) >> reg & 1)
		return false;
	y->sp = (struct place){.reg = reg, .n = n};
	return true;
}

static bool sp_load(struct way *y, const struct x86_insn *i)
{
	uint8_t reg = dwarf_of[i->base];
	struct place from = reg == DWARF_SP ? above(y->sp, i->n) : (struct place){.reg = reg, .n = i->n};

	if (from.loaded || from.n < INT32_MIN || from.n > INT32_MAX || (reg != DWARF_SP && (y->saved | y->lost) >> reg & 1))
		return false;
	y->sp = (struct place){.reg = from.reg, .loaded = true, .at = (int32_t)from.n};
	return true;
}

static void load(struct way *y, const struct x86_insn *i)
{
	uint8_t to = dwarf_of[i->reg];

	if (i->base == X86_SP)
		restore(y, to, above(y->sp, i->n));
	else
		forget(y, to);
}

static void pop(struct way *y, const struct x86_insn *i)
{
	if (i->reg != X86_NONE)
		restore(y, dwarf_of[i->reg], y->sp);
	y->sp.n += i->n;
}

static bool leave(struct way *y)
{
	if (!sp_from(y, DWARF_BP, 0))
		return false;
	restore(y, DWARF_BP, y->sp);
	y->sp.n += 8;
	return true;
}

/* false: the stack pointer cannot be told any more. */
static bool apply(struct way *y, const struct x86_insn *i)
{
	switch (i->kind) {
	case INSN_PUSH:
		y->sp.n -= i->n;
		return true;
	case INSN_POP:
		pop(y, i);
		return i->reg != X86_SP;
	case INSN_SP_ADD:
		y->sp.n += i->n;
		return true;
	case INSN_SP_SET:
		return sp_from(y, dwarf_of[i->reg], i->n);
	case INSN_SP_LOAD:
		return sp_load(y, i);
	case INSN_LOAD:
		load(y, i);
		return true;
	case INSN_LEAVE:
		return leave(y);
	case INSN_SP_LOST:
		return false;
	default:
		return true;
	}
}

static bool jump_is_new(struct walk *w, uint64_t to)
{
	for (unsigned i = 0; i < w->nr_seen; i++)
		if (w->seen[i] == to)
			return false;
	if (w->nr_seen == SEEN)
		return false;
	w->seen[w->nr_seen++] = to;
	return true;
}

static void keep_branch(struct walk *w, uint64_t to)
{
	if (w->nr_ways == WAYS || !jump_is_new(w, to))
		return;
	w->ways[w->nr_ways] = w->now;
	w->ways[w->nr_ways++].at = to;
}

/* On from a dead end: the branch met last. */
static bool another_way(struct walk *w)
{
	if (!w->nr_ways)
		return false;
	w->now = w->ways[--w->nr_ways];
	return true;
}

enum outcome { GOES_ON, RETURNS, DEAD_END };

static enum outcome step(struct walk *w, const struct x86_insn *i)
{
	uint64_t next = w->now.at + i->len;

	w->now.at = next;
	switch (i->kind) {
	case INSN_RET:
		return RETURNS;
	case INSN_END:
		return DEAD_END;
	case INSN_JUMP:
		w->now.at = next + (uint64_t)i->n;
		return jump_is_new(w, w->now.at) ? GOES_ON : DEAD_END;
	case INSN_BRANCH:
		keep_branch(w, next + (uint64_t)i->n);
		return GOES_ON;
	default:
		return apply(&w->now, i) && w->now.sp.n < FRAME_MAX && w->now.sp.n > -FRAME_MAX ? GOES_ON : DEAD_END;
	}
}

static bool same_origin(const struct place *a, const struct place *b)
{
	return a->reg == b->reg && a->loaded == b->loaded && a->at == b->at;
}

/* At the return the stack pointer is at the return address. */
static void row_of(const struct way *y, struct row *row)
{
	int64_t cfa = y->sp.n + 8;

	memset(row, 0, sizeof(*row));
	row->flags = ROW_GUESS;
	row->ra = DWARF_PC;
	row->cfa_kind = y->sp.loaded ? CFA_DEREF : CFA_REG;
	row->cfa_reg = y->sp.reg;
	row->cfa_n = y->sp.loaded ? y->sp.at : cfa;
	row->cfa_add = y->sp.loaded ? (int32_t)cfa : 0;
	row->reg[DWARF_PC] = (struct rule){.kind = RULE_OFFSET, .n = -8};
	for (unsigned i = 0; i < ARRAY_SIZE(y->from); i++) {
		if (i == DWARF_SP)
			continue;
		if (y->saved >> i & 1 && same_origin(&y->from[i], &y->sp))
			row->reg[i] = (struct rule){.kind = RULE_OFFSET, .n = y->from[i].n - cfa};
		else if ((y->saved | y->lost) >> i & 1)
			row->reg[i] = (struct rule){.kind = RULE_UNDEFINED};
	}
}

int x86_epilogue(struct binary *b, uint64_t vaddr, struct row *ret)
{
	struct walk w = {.binary = b, .now = {.at = vaddr, .sp = {.reg = DWARF_SP}}};
	struct x86_insn insn;
	enum outcome o;

	for (unsigned n = 0; n < EPILOGUE_INSNS; n++) {
		o = fetch(&w, &insn) < 0 ? DEAD_END : step(&w, &insn);
		if (o == RETURNS) {
			row_of(&w.now, ret);
			return 0;
		}
		if (o == DEAD_END && !another_way(&w))
			break;
	}
	return -ENOENT;
}
