// SPDX-License-Identifier: Apache-2.0
#include "unwind/epilogue_way.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define FRAME_MAX    (1 << 24)
#define CALL_ALIGNED 16 /* of a stack pointer at a call: System V ABI, AMD64 supplement, section 3.2.2 */

void way_begin(struct way *y, const struct epilogue_arch *arch)
{
	*y = (struct way){.sp = {.reg = arch->sp}};
}

static struct place place_above(struct place p, int64_t n)
{
	p.n += n;
	return p;
}

static bool place_has_same_origin(const struct place *a, const struct place *b)
{
	return a->reg == b->reg && a->loaded == b->loaded && a->at == b->at;
}

static bool place_is_same(const struct place *a, const struct place *b)
{
	return place_has_same_origin(a, b) && a->n == b->n;
}

static uint64_t way_bit(uint8_t reg)
{
	return reg < OTP_REGS_MAX ? 1ULL << reg : 0;
}

static bool way_is_untouched(const struct way *y, uint8_t reg)
{
	return !((y->saved | y->lost) & way_bit(reg));
}

static void way_forget(struct way *y, uint8_t reg)
{
	y->lost |= way_bit(reg);
	y->saved &= ~way_bit(reg);
}

/* From where it was put on the way: it is what it was then. */
static void way_take_back(struct way *y, uint8_t reg)
{
	const uint64_t bit = way_bit(reg);

	y->stored &= ~bit;
	y->saved = (y->saved & ~bit) | (y->held & bit);
	y->from[reg] = y->put[reg];
}

static void way_restore(struct way *y, uint8_t reg, struct place from)
{
	const uint64_t bit = way_bit(reg);

	if (!bit)
		return;
	y->lost &= ~bit;
	if (y->stored & bit && place_is_same(&y->to[reg], &from)) {
		way_take_back(y, reg);
		return;
	}
	y->from[reg] = from;
	y->saved |= bit;
}

/* Where it was put is given back, or overwritten. */
static bool way_is_stored(const struct way *y, uint8_t reg, const struct place *to)
{
	const struct place *at = &y->to[reg];

	if (!(y->stored & way_bit(reg)) || place_is_same(at, to))
		return false;
	return !place_has_same_origin(at, &y->sp) || at->n >= y->sp.n;
}

/*
 * The first time: later on it may hold something else. What a function has taken back is its caller's, and saved anew by
 * one that is jumped to for the rest.
 */
static void way_store(struct way *y, uint8_t reg, struct place to)
{
	const uint64_t bit = way_bit(reg);

	if (!bit || y->lost & bit || way_is_stored(y, reg, &to))
		return;
	y->to[reg] = to;
	y->stored |= bit;
	y->held = (y->held & ~bit) | (y->saved & bit);
	y->put[reg] = y->from[reg];
}

/* By the frame pointer of the start: what was stored since lies below it, and is not taken back. */
static void way_sp_leave(struct way *y, struct place sp)
{
	if (!y->copied)
		y->stored = 0;
	y->sp = sp;
}

/* The stack pointer becomes a register: where that still has the value that it had at the start. */
static bool way_sp_from(const struct epilogue_arch *arch, struct way *y, uint8_t reg, int64_t n)
{
	if (reg == arch->sp) {
		y->sp.n += n;
		return true;
	}
	if (y->copied & way_bit(reg)) {
		y->sp = place_above(y->copy[reg], n);
		return true;
	}
	if (!way_bit(reg) || !way_is_untouched(y, reg))
		return false;
	way_sp_leave(y, (struct place){.reg = reg, .n = n});
	return true;
}

static bool way_sp_load(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	struct place from = i->base == arch->sp ? place_above(y->sp, i->n) : (struct place){.reg = i->base, .n = i->n};

	if (from.loaded || !way_bit(from.reg) || from.n < INT32_MIN || from.n > INT32_MAX ||
	    (i->base != arch->sp && !way_is_untouched(y, i->base)))
		return false;
	way_sp_leave(y, (struct place){.reg = from.reg, .loaded = true, .at = (int32_t)from.n});
	return true;
}

static void way_sp_copy(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	way_forget(y, i->reg);
	if (!way_bit(i->reg) || (i->reg != arch->fp && !arch->tells_writes))
		return;
	y->copy[i->reg] = place_above(y->sp, i->n);
	y->copied |= way_bit(i->reg);
}

static void way_load(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	y->sp.n += i->before;
	if (i->base == arch->sp) {
		way_restore(y, i->reg, place_above(y->sp, i->n));
		way_restore(y, i->pair, place_above(y->sp, i->n + 8));
	} else {
		way_forget(y, i->reg);
		way_forget(y, i->pair);
	}
	y->copied &= ~(way_bit(i->reg) | way_bit(i->pair));
	y->sp.n += i->after;
}

static void way_store_beside_sp(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	y->sp.n += i->before;
	if (i->base == arch->sp) {
		way_store(y, i->reg, place_above(y->sp, i->n));
		way_store(y, i->pair, place_above(y->sp, i->n + 8));
	}
	y->sp.n += i->after;
}

static void way_push(struct way *y, const struct insn *i)
{
	y->sp.n -= i->n;
	if (i->n == 8)
		way_store(y, i->reg, y->sp);
}

static void way_pop(struct way *y, const struct insn *i)
{
	way_restore(y, i->reg, y->sp);
	y->sp.n += i->n;
}

static bool way_leave(const struct epilogue_arch *arch, struct way *y)
{
	if (!way_sp_from(arch, y, arch->fp, 0))
		return false;
	way_restore(y, arch->fp, y->sp);
	y->copied &= ~way_bit(arch->fp);
	y->sp.n += 8;
	return true;
}

void way_call(struct way *y, const struct epilogue_arch *arch, uint64_t callee)
{
	const bool outer = !y->has_called || y->sp.n > y->called.n;

	if (!arch->on_stack)
		way_forget(y, arch->ra);
	y->odd |= y->has_called && place_has_same_origin(&y->called, &y->sp) && (y->sp.n - y->called.n) % CALL_ALIGNED;
	if (outer)
		y->nr_callees = 0;
	if (outer || y->sp.n == y->called.n) {
		if (callee && y->nr_callees < WAY_CALLEES)
			y->callees[y->nr_callees++] = callee;
		else
			y->nr_callees = WAY_CALLEES + 1;
	}
	if (outer)
		y->called = y->sp;
	y->has_called = true;
	y->copied &= way_bit(arch->fp);
}

/* false: the stack pointer cannot be told any more. */
static bool way_apply_kind(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	switch (i->kind) {
	case INSN_PUSH:
		way_push(y, i);
		return true;
	case INSN_POP:
		way_pop(y, i);
		return i->reg != arch->sp;
	case INSN_SP_ADD:
		y->sp.n += i->n;
		return true;
	case INSN_SP_SET:
		return way_sp_from(arch, y, i->reg, i->n);
	case INSN_SP_LOAD:
		return way_sp_load(arch, y, i);
	case INSN_SP_COPY:
		way_sp_copy(arch, y, i);
		return true;
	case INSN_LOAD:
		way_load(arch, y, i);
		return true;
	case INSN_STORE:
		way_store_beside_sp(arch, y, i);
		return true;
	case INSN_LEAVE:
		return way_leave(arch, y);
	case INSN_CALL:
		way_call(y, arch, i->n ? y->at + (uint64_t)i->n : 0);
		return true;
	case INSN_SP_LOST:
		y->sp = (struct place){.reg = INSN_NO_REG, .at = ++y->times_lost};
		return true;
	default:
		return true;
	}
}

/* false: the return address is not where a row can say. */
static bool way_return_address(const struct epilogue_arch *arch, const struct way *y, uint8_t reg, int64_t cfa,
			       struct row *row)
{
	row->ra = arch->on_stack ? arch->ra : reg;
	if (arch->on_stack) {
		row->reg[row->ra] = (struct rule){.kind = RULE_OFFSET, .n = y->sp.n - cfa};
		return true;
	}
	return way_bit(reg) && row->reg[reg].kind != RULE_UNDEFINED;
}

static void way_saved_registers(const struct epilogue_arch *arch, const struct way *y, int64_t cfa, struct row *row)
{
	for (uint8_t i = 0; i < ARRAY_SIZE(y->from); i++) {
		if (i == arch->sp)
			continue;
		if (y->saved & way_bit(i) && place_has_same_origin(&y->from[i], &y->sp))
			row->reg[i] = (struct rule){.kind = RULE_OFFSET, .n = y->from[i].n - cfa};
		else if (!way_is_untouched(y, i))
			row->reg[i] = (struct rule){.kind = RULE_UNDEFINED};
	}
}

/* At the return: reg is the register that it goes to, where it goes to one. */
static int way_row_of(const struct epilogue_arch *arch, const struct way *y, uint8_t reg, struct row *row)
{
	int64_t cfa = y->sp.n + (arch->on_stack ? 8 : 0);

	if (!way_bit(y->sp.reg))
		return -ENOENT;
	memset(row, 0, sizeof(*row));
	row->flags = ROW_GUESS;
	row->cfa_kind = y->sp.loaded ? CFA_DEREF : CFA_REG;
	row->cfa_reg = y->sp.reg;
	row->cfa_n = y->sp.loaded ? y->sp.at : cfa;
	row->cfa_add = y->sp.loaded ? (int32_t)cfa : 0;
	way_saved_registers(arch, y, cfa, row);
	return way_return_address(arch, y, reg, cfa, row) ? 0 : -ENOENT;
}

/*
 * A call that never comes back may be the last instruction of a function, and the way goes on in the next one: to a
 * return address that lies no further out than the call's own, or to a frame with which calls are not aligned. Some
 * compilers do not align calls within a file. Assembly may call with no frame at all: only where what it calls does
 * come back.
 */
static enum way_worth way_worth_of(const struct epilogue_arch *arch, const struct way *y, uint8_t reg)
{
	const struct place *ra = arch->on_stack ? &y->sp : &y->from[reg];

	if (!y->has_called || !place_has_same_origin(&y->called, ra) || (!arch->on_stack && !(y->saved & way_bit(reg))))
		return WAY_SOUND;
	if (arch->on_stack && ra->n == y->called.n)
		return WAY_IF_BACK;
	if (ra->n < y->called.n)
		return WAY_WRONG;
	return arch->on_stack && (y->odd || (ra->n + 8 - y->called.n) % CALL_ALIGNED) ? WAY_ODD : WAY_SOUND;
}

static void way_written(const struct epilogue_arch *arch, struct way *y, const struct insn *i)
{
	if (i->kind != INSN_LEAVE) /* it reads what it writes */
		y->copied &= ~insn_writes(i, arch->fp);
}

bool way_apply(struct way *y, const struct epilogue_arch *arch, const struct insn *i)
{
	way_written(arch, y, i);
	return way_apply_kind(arch, y, i) && y->sp.n < FRAME_MAX && y->sp.n > -FRAME_MAX;
}

enum way_worth way_row(const struct way *y, const struct epilogue_arch *arch, uint8_t reg, struct row *row)
{
	return way_row_of(arch, y, reg, row) == 0 ? way_worth_of(arch, y, reg) : WAY_WRONG;
}
