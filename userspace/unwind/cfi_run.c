// SPDX-License-Identifier: Apache-2.0
/*
 * The call frame program of one CIE and FDE, run up to an address (DWARF 5,
 * section 6.4.2). Each operation eats at least a byte, so the FDE's length
 * bounds the time; remembered states have a bound of their own.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/cfi.h"
#include "unwind/dwarf.h"

#define REMEMBER_MAX 8

struct run {
	const struct fde *fde;
	struct cfi_reader r;
	struct row row;
	struct row initial; /* after the CIE's part: what restore goes back to */
	struct row remembered[REMEMBER_MAX];
	unsigned depth;
	unsigned nr_regs;
	uint64_t loc, target;
	bool in_fde;
	bool past; /* the next row begins beyond the target */
};

static void fail(struct run *run)
{
	if (!run->r.error)
		run->r.error = -EBADMSG;
}

/*
 * Columns beyond those we follow (vector registers, flags) are read and
 * dropped: nothing that we compute depends on them.
 */
static void set_rule(struct run *run, uint64_t reg, enum rule_kind kind, int64_t n, uint32_t len)
{
	if (reg < run->nr_regs)
		run->row.reg[reg] = (struct rule){.n = n, .len = len, .kind = (uint8_t)kind};
}

static int64_t factored(const struct run *run, int64_t n)
{
	int64_t v;

	/* A product that does not fit is nonsense, and so is what comes of it. */
	return __builtin_mul_overflow(n, run->fde->cie.data_align, &v) ? INT64_MIN : v;
}

static void advance(struct run *run, uint64_t delta)
{
	uint64_t bytes, next;

	if (!run->in_fde)
		return;
	if (__builtin_mul_overflow(delta, run->fde->cie.code_align, &bytes) ||
	    __builtin_add_overflow(run->loc, bytes, &next))
		next = UINT64_MAX;
	if (next > run->target)
		run->past = true;
	else
		run->loc = next;
}

static void set_loc(struct run *run)
{
	uint64_t next = reader_encoded(&run->r, run->fde->cie.encoding, 0);

	if (!run->in_fde || next < run->loc)
		fail(run);
	else if (next > run->target)
		run->past = true;
	else
		run->loc = next;
}

/* Leaves the reader behind the block; false if it is too long to be evaluated. */
static bool block(struct run *run, uint64_t *ret_at, uint32_t *ret_len)
{
	uint64_t len = reader_uleb(&run->r);

	*ret_at = run->r.pos;
	reader_skip(&run->r, len);
	if (run->r.error || len > UINT16_MAX) {
		fail(run);
		return false;
	}
	*ret_len = (uint32_t)len;
	return true;
}

static void rule_expression(struct run *run, enum rule_kind kind)
{
	uint64_t reg = reader_uleb(&run->r), at;
	uint32_t len;

	if (block(run, &at, &len))
		set_rule(run, reg, kind, (int64_t)at, len);
}

static void def_cfa(struct run *run, uint64_t reg, int64_t n)
{
	if (reg >= run->nr_regs) {
		fail(run);
		return;
	}
	run->row.cfa_kind = CFA_REG;
	run->row.cfa_reg = (uint8_t)reg;
	run->row.cfa_n = n;
}

static void def_cfa_register(struct run *run)
{
	uint64_t reg = reader_uleb(&run->r);

	if (run->row.cfa_kind != CFA_REG)
		fail(run);
	else
		def_cfa(run, reg, run->row.cfa_n);
}

static void def_cfa_offset(struct run *run, int64_t n)
{
	if (run->row.cfa_kind != CFA_REG)
		fail(run);
	else
		run->row.cfa_n = n;
}

static void def_cfa_expression(struct run *run)
{
	uint64_t at;
	uint32_t len;

	if (!block(run, &at, &len))
		return;
	run->row.cfa_kind = CFA_EXPR;
	run->row.cfa_n = (int64_t)at;
	run->row.cfa_len = len;
}

static void restore(struct run *run, uint64_t reg)
{
	if (reg < run->nr_regs)
		run->row.reg[reg] = run->initial.reg[reg];
}

static void remember_state(struct run *run)
{
	if (run->depth == REMEMBER_MAX)
		fail(run);
	else
		run->remembered[run->depth++] = run->row;
}

static void restore_state(struct run *run)
{
	if (!run->depth)
		fail(run);
	else
		run->row = run->remembered[--run->depth];
}

static void rule_operation(struct run *run, uint8_t op)
{
	struct cfi_reader *r = &run->r;
	uint64_t reg = reader_uleb(r);

	switch (op) {
	case CFA_OFFSET_EXTENDED:
		set_rule(run, reg, RULE_OFFSET, factored(run, (int64_t)reader_uleb(r)), 0);
		break;
	case CFA_OFFSET_EXTENDED_SF:
		set_rule(run, reg, RULE_OFFSET, factored(run, reader_sleb(r)), 0);
		break;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		set_rule(run, reg, RULE_OFFSET, factored(run, -(int64_t)(reader_uleb(r) & INT32_MAX)), 0);
		break;
	case CFA_VAL_OFFSET:
		set_rule(run, reg, RULE_VAL_OFFSET, factored(run, (int64_t)reader_uleb(r)), 0);
		break;
	case CFA_VAL_OFFSET_SF:
		set_rule(run, reg, RULE_VAL_OFFSET, factored(run, reader_sleb(r)), 0);
		break;
	case CFA_UNDEFINED:
		set_rule(run, reg, RULE_UNDEFINED, 0, 0);
		break;
	case CFA_SAME_VALUE:
		set_rule(run, reg, RULE_SAME, 0, 0);
		break;
	case CFA_REGISTER:
		set_rule(run, reg, RULE_REGISTER, (int64_t)reader_uleb(r), 0);
		break;
	case CFA_RESTORE_EXTENDED:
		restore(run, reg);
		break;
	default:
		fail(run);
	}
}

static void cfa_operation(struct run *run, uint8_t op)
{
	struct cfi_reader *r = &run->r;
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA:
		reg = reader_uleb(r);
		def_cfa(run, reg, (int64_t)reader_uleb(r));
		break;
	case CFA_DEF_CFA_SF:
		reg = reader_uleb(r);
		def_cfa(run, reg, factored(run, reader_sleb(r)));
		break;
	case CFA_DEF_CFA_REGISTER:
		def_cfa_register(run);
		break;
	case CFA_DEF_CFA_OFFSET:
		def_cfa_offset(run, (int64_t)reader_uleb(r));
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		def_cfa_offset(run, factored(run, reader_sleb(r)));
		break;
	default:
		def_cfa_expression(run);
	}
}

static void plain_operation(struct run *run, uint8_t op)
{
	struct cfi_reader *r = &run->r;

	switch (op) {
	case CFA_NOP:
		break;
	case CFA_SET_LOC:
		set_loc(run);
		break;
	case CFA_ADVANCE_LOC1:
		advance(run, reader_uint(r, 1));
		break;
	case CFA_ADVANCE_LOC2:
		advance(run, reader_uint(r, 2));
		break;
	case CFA_ADVANCE_LOC4:
		advance(run, reader_uint(r, 4));
		break;
	case CFA_MIPS_ADVANCE_LOC8:
		advance(run, reader_uint(r, 8));
		break;
	case CFA_REMEMBER_STATE:
		remember_state(run);
		break;
	case CFA_RESTORE_STATE:
		restore_state(run);
		break;
	case CFA_DEF_CFA:
	case CFA_DEF_CFA_SF:
	case CFA_DEF_CFA_REGISTER:
	case CFA_DEF_CFA_OFFSET:
	case CFA_DEF_CFA_OFFSET_SF:
	case CFA_DEF_CFA_EXPRESSION:
		cfa_operation(run, op);
		break;
	case CFA_EXPRESSION:
		rule_expression(run, RULE_EXPR);
		break;
	case CFA_VAL_EXPRESSION:
		rule_expression(run, RULE_VAL_EXPR);
		break;
	case CFA_AARCH64_NEGATE_RA_STATE:
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		run->row.flags ^= ROW_SIGNED_RA;
		break;
	case CFA_GNU_ARGS_SIZE:
		reader_uleb(r); /* matters to landing pads only */
		break;
	default:
		rule_operation(run, op);
	}
}

static void operation(struct run *run)
{
	uint8_t op = (uint8_t)reader_uint(&run->r, 1), low = op & (uint8_t)~CFA_PRIMARY;

	switch (op & CFA_PRIMARY) {
	case CFA_ADVANCE_LOC:
		advance(run, low);
		break;
	case CFA_OFFSET:
		set_rule(run, low, RULE_OFFSET, factored(run, (int64_t)reader_uleb(&run->r)), 0);
		break;
	case CFA_RESTORE:
		restore(run, low);
		break;
	default:
		plain_operation(run, op);
	}
}

static int run_program(struct run *run, struct binary *b, uint64_t at, uint64_t end)
{
	reader_init(&run->r, b, run->fde->by_offset, at, end);
	while (!run->r.error && !run->past && run->r.pos < end)
		operation(run);
	return run->r.error;
}

static void run_begin(struct run *run, const struct fde *f, unsigned nr_regs, uint64_t vaddr)
{
	run->fde = f;
	memset(&run->row, 0, sizeof(run->row));
	run->row.ra = f->cie.ra;
	run->row.flags = (uint8_t)((f->cie.signal ? ROW_SIGNAL : 0) | (f->by_offset ? ROW_BY_OFFSET : 0));
	memset(&run->initial, 0, sizeof(run->initial));
	run->depth = 0;
	run->nr_regs = MIN(nr_regs, (unsigned)OTP_REGS_MAX);
	run->loc = f->start;
	run->target = vaddr;
	run->in_fde = false;
	run->past = false;
}

int cfi_run(struct binary *b, const struct fde *f, unsigned nr_regs, uint64_t vaddr, struct row *ret)
{
	struct run run; /* some KiB, set piece by piece */
	int err;

	run_begin(&run, f, nr_regs, vaddr);
	err = run_program(&run, b, f->cie.insn, f->cie.insn_end);
	if (err < 0)
		return err;
	run.initial = run.row;
	run.in_fde = true;
	err = run_program(&run, b, f->insn, f->insn_end);
	if (err < 0)
		return err;
	if (run.row.cfa_kind == CFA_NONE || run.row.ra >= run.nr_regs)
		return -EBADMSG;
	*ret = run.row;
	return 0;
}
