// SPDX-License-Identifier: Apache-2.0
/*
 * From a frame's registers to its caller's, by a row of its table.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/cfi.h"
#include "unwind/cursor.h"
#include "unwind/expr.h"

/* Few signals nest; more means a trampoline that leads to itself. */
#define SIGNALS_MAX 32

/* The address in a return address, which may be signed. */
static uint64_t step_address(const struct cursor *c, uint64_t v)
{
	return v & c->arch->address_mask;
}

static int step_enter_caller(struct cursor *c, uint64_t cfa, uint64_t pc)
{
	pc = step_address(c, pc);
	if (!pc)
		return cursor_cut(c, UNWIND_ROOT_LISTED);
	c->low = cfa;
	c->exact = false;
	c->guess = FRAME_SURE;
	cursor_set(c, c->arch->pc, pc);
	return 1;
}

/* --- packed rows --- */

static uint64_t step_plt_depth(const struct cursor *c, int32_t from)
{
	return (int64_t)(c->reg[c->arch->pc] & 15) >= from ? 16 : 8;
}

/* 0, -ENODATA: a register is unknown, -EFAULT. */
static int step_packed_cfa(struct cursor *c, const struct packed *p, uint64_t *ret)
{
	uint64_t base;

	if (p->cfa_kind == PACKED_CFA_PLT) {
		*ret = c->reg[c->arch->sp] + step_plt_depth(c, p->cfa_n);
		return cursor_is_valid(c, c->arch->sp) ? 0 : -ENODATA;
	}
	if (!cursor_is_valid(c, p->cfa_reg))
		return -ENODATA;
	base = c->reg[p->cfa_reg] + (uint64_t)(int64_t)p->cfa_n;
	if (p->cfa_kind != PACKED_CFA_DEREF) {
		*ret = base;
		return 0;
	}
	if (cursor_load(c, base, ret) < 0)
		return -EFAULT;
	*ret += 8 * (uint64_t)(int64_t)p->cfa_add;
	return 0;
}

static int step_packed_ra(struct cursor *c, const struct packed *p, uint64_t cfa, uint64_t *ret)
{
	if (p->ra_kind == RULE_OFFSET)
		return cursor_load(c, cfa + 8 * (uint64_t)(int64_t)p->ra_n, ret);
	*ret = c->reg[c->arch->ra];
	return cursor_is_valid(c, c->arch->ra) ? 0 : -ENODATA;
}

static int step_cut_by(struct cursor *c, int err)
{
	switch (err) {
	case -EFAULT:
		return cursor_cut(c, c->fault);
	case -ENODATA:
		return cursor_cut(c, UNWIND_REGISTER);
	default:
		return cursor_cut(c, UNWIND_BAD_CFI);
	}
}

/* A saved register that cannot be loaded only becomes unknown: most stacks never need it. */
static void step_restore(struct cursor *c, unsigned reg, uint64_t addr)
{
	if (cursor_load(c, addr, &c->reg[reg]) < 0)
		c->valid &= ~REG(reg);
	else
		c->valid |= REG(reg);
}

int step_packed(struct cursor *c, const struct packed *p)
{
	uint64_t cfa, pc;
	int err;

	if (p->ra_kind == RULE_UNDEFINED)
		return cursor_cut(c, UNWIND_ROOT);
	err = step_packed_cfa(c, p, &cfa);
	if (err < 0)
		return step_cut_by(c, err);
	if (!cursor_climbs(c, cfa))
		return cursor_cut(c, UNWIND_LOOP);
	err = step_packed_ra(c, p, cfa, &pc);
	if (err < 0)
		return step_cut_by(c, err);
	for (unsigned i = 0; i < p->nr; i++)
		step_restore(c, p->reg[i], cfa + 8 * (uint64_t)(int64_t)p->n[i]);
	if (p->ra_kind == RULE_OFFSET && c->arch->ra != c->arch->pc)
		cursor_set(c, c->arch->ra, step_address(c, pc));
	cursor_set(c, c->arch->sp, cfa);
	return step_enter_caller(c, cfa, pc);
}

/* --- whole rows --- */

static int step_load_for_expr(void *ctx, uint64_t addr, uint64_t *ret)
{
	return cursor_load(ctx, addr, ret);
}

static int step_evaluate(struct cursor *c, struct binary *b, const struct row *row, uint64_t at, uint32_t len,
			 const uint64_t *cfa, uint64_t *ret)
{
	struct expr_env env = {
		.valid = c->valid,
		.reg = c->reg,
		.nr_regs = c->arch->nr_regs,
		.load = step_load_for_expr,
		.ctx = c,
	};
	uint8_t code[EXPR_MAX];
	ssize_t n;

	if (!b || len > sizeof(code))
		return -EBADMSG;
	n = cfi_read(b, row->flags & ROW_BY_OFFSET, at, code, len);
	if (n != (ssize_t)len)
		return -EBADMSG;
	return expr_eval(code, len, &env, cfa, ret);
}

static int step_row_cfa(struct cursor *c, struct binary *b, const struct row *row, uint64_t *ret)
{
	if (row->cfa_kind == CFA_EXPR)
		return step_evaluate(c, b, row, (uint64_t)row->cfa_n, row->cfa_len, NULL, ret);
	if (!cursor_is_valid(c, row->cfa_reg))
		return -ENODATA;
	*ret = c->reg[row->cfa_reg] + (uint64_t)row->cfa_n;
	if (row->cfa_kind == CFA_REG)
		return 0;
	if (cursor_load(c, *ret, ret) < 0)
		return -EFAULT;
	*ret += (uint64_t)(int64_t)row->cfa_add;
	return 0;
}

static int step_from_register(const struct cursor *c, uint64_t reg, uint64_t *ret)
{
	if (reg >= c->arch->nr_regs || !cursor_is_valid(c, (unsigned)reg))
		return -ENODATA;
	*ret = c->reg[reg];
	return 0;
}

/* The caller's value of one register, from this frame's. */
static int step_row_value(struct cursor *c, struct binary *b, const struct row *row, unsigned reg, uint64_t cfa,
			  uint64_t *ret)
{
	const struct rule *rule = &row->reg[reg];
	uint64_t addr;
	int err;

	switch (rule->kind) {
	case RULE_UNSPECIFIED:
	case RULE_SAME:
		return step_from_register(c, reg, ret);
	case RULE_REGISTER:
		return step_from_register(c, (uint64_t)rule->n, ret);
	case RULE_OFFSET:
		return cursor_load(c, cfa + (uint64_t)rule->n, ret);
	case RULE_VAL_OFFSET:
		*ret = cfa + (uint64_t)rule->n;
		return 0;
	case RULE_EXPR:
		err = step_evaluate(c, b, row, (uint64_t)rule->n, rule->len, &cfa, &addr);
		return err < 0 ? err : cursor_load(c, addr, ret);
	case RULE_VAL_EXPR:
		return step_evaluate(c, b, row, (uint64_t)rule->n, rule->len, &cfa, ret);
	default:
		return -ENODATA;
	}
}

static void step_row_registers(struct cursor *c, struct binary *b, const struct row *row, uint64_t cfa)
{
	uint64_t next[OTP_REGS_MAX], valid = 0, sp = REG(c->arch->sp);

	for (unsigned i = 0; i < c->arch->nr_regs; i++)
		if (step_row_value(c, b, row, i, cfa, &next[i]) == 0)
			valid |= REG(i);
		else
			next[i] = 0;
	if (row->reg[c->arch->sp].kind == RULE_UNSPECIFIED || !(valid & sp)) {
		next[c->arch->sp] = cfa;
		valid |= sp;
	}
	memcpy(c->reg, next, c->arch->nr_regs * sizeof(next[0]));
	c->valid = valid;
}

/* The interrupted code: all its registers are valid, and its stack may be another one. */
static int step_enter_interrupted(struct cursor *c, uint64_t pc)
{
	if (++c->signals > SIGNALS_MAX)
		return cursor_cut(c, UNWIND_LOOP);
	cursor_set(c, c->arch->pc, step_address(c, pc));
	c->low = c->reg[c->arch->sp] - c->arch->leaf_slack;
	c->exact = true;
	c->guess = FRAME_SURE;
	return 1;
}

int step_row(struct cursor *c, struct binary *b, const struct row *row)
{
	bool signal = row->flags & ROW_SIGNAL;
	uint64_t cfa, pc;
	int err;

	if (row->reg[row->ra].kind == RULE_UNDEFINED)
		return cursor_cut(c, UNWIND_ROOT);
	/* A return address that is in pc itself would lead to the same frame again. */
	if (row->ra == c->arch->pc && row->reg[row->ra].kind <= RULE_SAME)
		return cursor_cut(c, UNWIND_BAD_CFI);
	err = step_row_cfa(c, b, row, &cfa);
	if (err < 0)
		return step_cut_by(c, err);
	if (!signal && !cursor_climbs(c, cfa))
		return cursor_cut(c, UNWIND_LOOP);
	err = step_row_value(c, b, row, row->ra, cfa, &pc);
	if (err < 0)
		return step_cut_by(c, err);
	step_row_registers(c, b, row, cfa);
	return signal ? step_enter_interrupted(c, pc) : step_enter_caller(c, cfa, pc);
}

/* --- code that a runtime describes --- */

static int step_out_of_code(struct cursor *c, const struct unwind_code_step *s)
{
	c->out->heap_left_out |= !!(s->flags & UNWIND_CODE_LEFT_OUT);
	if (s->flags & UNWIND_CODE_MOVES)
		frozen_ignore(c);
	if (s->flags & UNWIND_CODE_FROZEN)
		return step_frozen(c);
	if (s->flags & UNWIND_CODE_ROOT)
		return cursor_cut(c, UNWIND_ROOT);
	if (!cursor_climbs(c, s->cfa))
		return cursor_cut(c, UNWIND_LOOP);
	c->valid &= s->flags & UNWIND_CODE_SAME ? c->arch->survive : 0;
	c->valid &= ~REG(c->arch->fp);
	if (s->flags & UNWIND_CODE_FP)
		cursor_set(c, c->arch->fp, s->fp);
	cursor_set(c, c->arch->sp, s->sp);
	c->data = s->flags & UNWIND_CODE_DATA;
	return step_enter_caller(c, s->cfa, s->pc);
}

int step_code(struct cursor *c)
{
	const struct unwind_code_frame f = {
		.index = c->out->count - 1,
		.arch = c->in->arch,
		.pc = c->reg[c->arch->pc],
		.exact = c->exact,
		.leads_to_heap = frozen_may_begin(c),
		.in_heap = frozen_is_frame(c),
		.data = c->data,
		.valid = c->valid,
		.reg = c->reg,
		.load = step_load_for_expr,
		.ctx = c,
	};
	struct unwind_code_step s = {0};
	const struct reach reach = c->reach;
	int err = c->in->code->step(c->in->code->ctx, &f, c->final, &s, &c->wait);

	switch (err) {
	case 0:
		return step_out_of_code(c, &s);
	case -EAGAIN:
		c->out->code_pending = !c->wait;
		return err;
	case -EFAULT:
		return cursor_cut(c, c->fault);
	case -ENODATA:
		c->reach = reach;
		return cursor_cut(c, UNWIND_NO_RULE);
	default:
		c->reach = reach; /* what was of no use must not enlarge the copy */
		return STEP_NOTHING;
	}
}
