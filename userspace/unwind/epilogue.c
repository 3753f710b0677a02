// SPDX-License-Identifier: Apache-2.0
#include "unwind/epilogue.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define WAYS 16        /* branches kept for the case that the way straight on has no end */
#define SEEN 64        /* targets of jumps that were followed */
#define FRAME_MAX (1 << 24)

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
	uint64_t at;
	struct place sp;
	struct place fp;     /* the frame pointer, where it was made from the stack pointer */
	bool fp_known;
	int32_t times_lost;
	uint64_t saved;      /* bit per register: its value lies at from[] */
	uint64_t lost;
	uint64_t stored;     /* its value, as it was at the start, was put at to[] */
	struct place from[OTP_REGS_MAX];
	struct place to[OTP_REGS_MAX];
};

struct walk {
	const struct epilogue_arch *arch;
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

/* Whether the window holds all bytes of an instruction at in; a jump may lead to any address. */
static bool window_covers(const struct walk *w, uint64_t in)
{
	return in < w->window_len && w->window_len - in >= w->arch->insn_max;
}

static int fetch(struct walk *w, struct insn *ret)
{
	uint64_t in = w->now.at - w->window_at;
	ssize_t n;

	if (!window_covers(w, in)) {
		n = binary_read_vaddr(w->binary, w->now.at, w->window, sizeof(w->window));
		if (n <= 0)
			return -ENOENT;
		w->window_at = w->now.at;
		w->window_len = (size_t)n;
		in = 0;
	}
	return w->arch->decode(w->window + in, w->window_len - in, ret) < 0 ? -ENOENT : 0;
}

static struct place above(struct place p, int64_t n)
{
	p.n += n;
	return p;
}

static bool same_origin(const struct place *a, const struct place *b)
{
	return a->reg == b->reg && a->loaded == b->loaded && a->at == b->at;
}

static uint64_t bit(uint8_t reg)
{
	return reg < OTP_REGS_MAX ? 1ULL << reg : 0;
}

static bool is_untouched(const struct way *y, uint8_t reg)
{
	return !((y->saved | y->lost) & bit(reg));
}

static void forget(struct way *y, uint8_t reg)
{
	y->lost |= bit(reg);
	y->saved &= ~bit(reg);
}

/* What was put there on the way is the register as it is now; else it lay there before. */
static void restore(struct way *y, uint8_t reg, struct place from)
{
	if (!bit(reg))
		return;
	y->lost &= ~bit(reg);
	if (y->stored & bit(reg) && same_origin(&y->to[reg], &from) && y->to[reg].n == from.n) {
		y->saved &= ~bit(reg);
		return;
	}
	y->from[reg] = from;
	y->saved |= bit(reg);
}

/* The first time: later on it may hold something else. */
static void store(struct way *y, uint8_t reg, struct place to)
{
	if (!bit(reg) || !is_untouched(y, reg) || y->stored & bit(reg))
		return;
	y->to[reg] = to;
	y->stored |= bit(reg);
}

/* The stack pointer becomes a register: where that still has the value that it had at the start. */
static bool sp_from(const struct epilogue_arch *arch, struct way *y, uint8_t reg, int64_t n)
{
	if (reg == arch->sp) {
		y->sp.n += n;
		return true;
	}
	if (reg == arch->fp && y->fp_known) {
		y->sp = above(y->fp, n);
		return true;
	}
	if (!bit(reg) || !is_untouched(y, reg))
		return false;
	y->sp = (struct place){.reg = reg, .n = n};
	return true;
}

static bool sp_load(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	struct place from = i->base == arch->sp ? above(y->sp, i->n) : (struct place){.reg = i->base, .n = i->n};

	if (from.loaded || !bit(from.reg) || from.n < INT32_MIN || from.n > INT32_MAX || (i->base != arch->sp && !is_untouched(y, i->base)))
		return false;
	y->sp = (struct place){.reg = from.reg, .loaded = true, .at = (int32_t)from.n};
	return true;
}

static void sp_copy(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	forget(y, i->reg);
	if (i->reg != arch->fp)
		return;
	y->fp = above(y->sp, i->n);
	y->fp_known = true;
}

static void load(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	y->sp.n += i->before;
	if (i->base == arch->sp) {
		restore(y, i->reg, above(y->sp, i->n));
		restore(y, i->pair, above(y->sp, i->n + 8));
	} else {
		forget(y, i->reg);
		forget(y, i->pair);
	}
	if (i->reg == arch->fp || i->pair == arch->fp)
		y->fp_known = false;
	y->sp.n += i->after;
}

static void store_beside_sp(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	y->sp.n += i->before;
	if (i->base == arch->sp) {
		store(y, i->reg, above(y->sp, i->n));
		store(y, i->pair, above(y->sp, i->n + 8));
	}
	y->sp.n += i->after;
}

static void push(struct way *y, const struct insn *i)
{
	y->sp.n -= i->n;
	if (i->n == 8)
		store(y, i->reg, y->sp);
}

static void pop(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	restore(y, i->reg, y->sp);
	if (i->reg == arch->fp)
		y->fp_known = false;
	y->sp.n += i->n;
}

static bool leave(const struct epilogue_arch *arch, struct way *y)
{
	if (!sp_from(arch, y, arch->fp, 0))
		return false;
	restore(y, arch->fp, y->sp);
	y->fp_known = false;
	y->sp.n += 8;
	return true;
}

/* false: the stack pointer cannot be told any more. */
static bool apply(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	switch (i->kind) {
	case INSN_PUSH:
		push(y, i);
		return true;
	case INSN_POP:
		pop(arch, y, i);
		return i->reg != arch->sp;
	case INSN_SP_ADD:
		y->sp.n += i->n;
		return true;
	case INSN_SP_SET:
		return sp_from(arch, y, i->reg, i->n);
	case INSN_SP_LOAD:
		return sp_load(arch, y, i);
	case INSN_SP_COPY:
		sp_copy(arch, y, i);
		return true;
	case INSN_LOAD:
		load(arch, y, i);
		return true;
	case INSN_STORE:
		store_beside_sp(arch, y, i);
		return true;
	case INSN_LEAVE:
		return leave(arch, y);
	case INSN_CALL:
		if (!arch->on_stack)
			forget(y, arch->ra);
		return true;
	case INSN_SP_LOST:
		y->sp = (struct place){.reg = INSN_NO_REG, .at = ++y->times_lost};
		return true;
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

static enum outcome step(struct walk *w, const struct insn *i)
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
		return apply(w->arch, &w->now, i) && w->now.sp.n < FRAME_MAX && w->now.sp.n > -FRAME_MAX ? GOES_ON : DEAD_END;
	}
}

/* false: the return address is not where a row can say. */
static bool return_address(const struct epilogue_arch *arch, const struct way *y, uint8_t reg, int64_t cfa,
			   struct row *row)
{
	row->ra = arch->on_stack ? arch->ra : reg;
	if (arch->on_stack) {
		row->reg[row->ra] = (struct rule){.kind = RULE_OFFSET, .n = y->sp.n - cfa};
		return true;
	}
	return bit(reg) && row->reg[reg].kind != RULE_UNDEFINED;
}

static void saved_registers(const struct epilogue_arch *arch, const struct way *y, int64_t cfa, struct row *row)
{
	for (uint8_t i = 0; i < ARRAY_SIZE(y->from); i++) {
		if (i == arch->sp)
			continue;
		if (y->saved & bit(i) && same_origin(&y->from[i], &y->sp))
			row->reg[i] = (struct rule){.kind = RULE_OFFSET, .n = y->from[i].n - cfa};
		else if (!is_untouched(y, i))
			row->reg[i] = (struct rule){.kind = RULE_UNDEFINED};
	}
}

/* At the return: reg is the register that it goes to, where it goes to one. */
static int row_of(const struct epilogue_arch *arch, const struct way *y, uint8_t reg, struct row *row)
{
	int64_t cfa = y->sp.n + (arch->on_stack ? 8 : 0);

	if (!bit(y->sp.reg))
		return -ENOENT;
	memset(row, 0, sizeof(*row));
	row->flags = ROW_GUESS;
	row->cfa_kind = y->sp.loaded ? CFA_DEREF : CFA_REG;
	row->cfa_reg = y->sp.reg;
	row->cfa_n = y->sp.loaded ? y->sp.at : cfa;
	row->cfa_add = y->sp.loaded ? (int32_t)cfa : 0;
	saved_registers(arch, y, cfa, row);
	return return_address(arch, y, reg, cfa, row) ? 0 : -ENOENT;
}

int epilogue_find(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, struct row *ret)
{
	struct walk w = {.arch = arch, .binary = b, .now = {.at = vaddr, .sp = {.reg = arch->sp}}};
	struct insn insn;
	enum outcome o;

	for (unsigned n = 0; n < EPILOGUE_INSNS; n++) {
		o = fetch(&w, &insn) < 0 ? DEAD_END : step(&w, &insn);
		if (o == RETURNS && row_of(arch, &w.now, insn.reg, ret) == 0)
			return 0;
		if (o != GOES_ON && !another_way(&w))
			break;
	}
	return -ENOENT;
}
