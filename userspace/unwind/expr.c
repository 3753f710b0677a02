// SPDX-License-Identifier: Apache-2.0
#include "unwind/expr.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/dwarf.h"

struct machine {
	const struct expr_env *env;
	const uint8_t *code;
	size_t len, at;
	uint64_t stack[EXPR_STACK];
	unsigned depth;
	int error; /* the first one sticks */
};

static void fail(struct machine *m, int error)
{
	if (!m->error)
		m->error = error;
}

static void push(struct machine *m, uint64_t v)
{
	if (m->depth == EXPR_STACK)
		fail(m, -EBADMSG);
	else
		m->stack[m->depth++] = v;
}

static uint64_t pop(struct machine *m)
{
	if (!m->depth) {
		fail(m, -EBADMSG);
		return 0;
	}
	return m->stack[--m->depth];
}

static uint64_t peek(struct machine *m, uint64_t below_top)
{
	if (below_top >= m->depth) {
		fail(m, -EBADMSG);
		return 0;
	}
	return m->stack[m->depth - 1 - below_top];
}

static uint64_t operand(struct machine *m, unsigned size)
{
	uint64_t v = 0;

	if (size > m->len - m->at) {
		fail(m, -EBADMSG);
		m->at = m->len;
		return 0;
	}
	memcpy(&v, m->code + m->at, size);
	m->at += size;
	return v;
}

static uint64_t sign_extend(uint64_t v, unsigned bits)
{
	return bits < 64 && (v >> (bits - 1)) & 1 ? v | ~0ULL << bits : v;
}

static uint64_t leb(struct machine *m, bool is_signed)
{
	uint64_t v = 0, byte;
	unsigned shift = 0;

	do {
		byte = operand(m, 1);
		if (shift >= 64)
			fail(m, -EBADMSG);
		else
			v |= (byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && !m->error);
	return is_signed ? sign_extend(v, shift) : v;
}

static void push_register(struct machine *m, uint64_t reg)
{
	uint64_t offset = leb(m, true);

	if (reg >= m->env->nr_regs || !(m->env->valid >> reg & 1))
		fail(m, -ENODATA);
	else
		push(m, m->env->reg[reg] + offset);
}

static void deref(struct machine *m, unsigned size)
{
	uint64_t v, addr = pop(m);
	int err;

	if (!size || size > 8)
		fail(m, -EBADMSG);
	if (m->error)
		return;
	err = m->env->load(m->env->ctx, addr, &v);
	if (err < 0) {
		fail(m, err);
		return;
	}
	push(m, size == 8 ? v : v & ((1ULL << (8 * size)) - 1));
}

static void jump(struct machine *m, bool taken)
{
	int16_t delta = (int16_t)operand(m, 2);
	int64_t to = (int64_t)m->at + delta;

	if (!taken || m->error)
		return;
	if (to < 0 || (size_t)to > m->len)
		fail(m, -EBADMSG);
	else
		m->at = (size_t)to;
}

static uint64_t divide(struct machine *m, uint64_t a, uint64_t b)
{
	/* The one quotient that does not fit would trap. */
	if (!b || (b == ~0ULL && a == 1ULL << 63)) {
		fail(m, -EBADMSG);
		return 0;
	}
	return (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t shift_arithmetic(uint64_t v, uint64_t by)
{
	bool negative = v >> 63;

	if (by >= 63)
		return negative ? ~0ULL : 0;
	return negative ? ~(~v >> by) : v >> by;
}

static uint64_t modulo(struct machine *m, uint64_t a, uint64_t b)
{
	if (b)
		return a % b;
	fail(m, -EBADMSG);
	return 0;
}

/* a lies below b on the stack. false: no such operation. */
static bool binary_operation(struct machine *m, uint8_t op, uint64_t a, uint64_t b, uint64_t *ret)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (op) {
	case OP_AND: *ret = a & b; return true;
	case OP_OR: *ret = a | b; return true;
	case OP_XOR: *ret = a ^ b; return true;
	case OP_PLUS: *ret = a + b; return true;
	case OP_MINUS: *ret = a - b; return true;
	case OP_MUL: *ret = a * b; return true;
	case OP_DIV: *ret = divide(m, a, b); return true;
	case OP_MOD: *ret = modulo(m, a, b); return true;
	case OP_SHL: *ret = b < 64 ? a << b : 0; return true;
	case OP_SHR: *ret = b < 64 ? a >> b : 0; return true;
	case OP_SHRA: *ret = shift_arithmetic(a, b); return true;
	case OP_EQ: *ret = x == y; return true;
	case OP_NE: *ret = x != y; return true;
	case OP_GE: *ret = x >= y; return true;
	case OP_GT: *ret = x > y; return true;
	case OP_LE: *ret = x <= y; return true;
	case OP_LT: *ret = x < y; return true;
	default: return false;
	}
}

static void compute(struct machine *m, uint8_t op)
{
	uint64_t b = pop(m), a = pop(m), v = 0;

	if (!m->error && !binary_operation(m, op, a, b, &v))
		fail(m, -EBADMSG);
	push(m, v);
}

static void rotate(struct machine *m)
{
	uint64_t a = pop(m), b = pop(m), c = pop(m);

	push(m, a);
	push(m, c);
	push(m, b);
}

static void swap(struct machine *m)
{
	uint64_t a = pop(m), b = pop(m);

	push(m, a);
	push(m, b);
}

static void constant(struct machine *m, uint8_t op)
{
	unsigned size = 1U << ((op - OP_CONST1U) / 2);
	uint64_t v = operand(m, size);

	push(m, (op - OP_CONST1U) % 2 ? sign_extend(v, 8 * size) : v);
}

static void absolute(struct machine *m)
{
	uint64_t v = pop(m);

	push(m, v >> 63 ? 0 - v : v);
}

static void other_operation(struct machine *m, uint8_t op)
{
	switch (op) {
	case OP_ADDR: push(m, operand(m, 8)); break;
	case OP_DEREF: deref(m, 8); break;
	case OP_DEREF_SIZE: deref(m, (unsigned)operand(m, 1)); break;
	case OP_CONSTU: push(m, leb(m, false)); break;
	case OP_CONSTS: push(m, leb(m, true)); break;
	case OP_DUP: push(m, peek(m, 0)); break;
	case OP_DROP: pop(m); break;
	case OP_OVER: push(m, peek(m, 1)); break;
	case OP_PICK: push(m, peek(m, operand(m, 1))); break;
	case OP_SWAP: swap(m); break;
	case OP_ROT: rotate(m); break;
	case OP_ABS: absolute(m); break;
	case OP_NEG: push(m, 0 - pop(m)); break;
	case OP_NOT: push(m, ~pop(m)); break;
	case OP_PLUS_UCONST: push(m, pop(m) + leb(m, false)); break;
	case OP_SKIP: jump(m, true); break;
	case OP_BRA: jump(m, pop(m) != 0); break;
	case OP_BREGX: push_register(m, leb(m, false)); break;
	case OP_NOP: break;
	default: compute(m, op);
	}
}

static void operation(struct machine *m)
{
	uint8_t op = (uint8_t)operand(m, 1);

	if (op >= OP_LIT0 && op <= OP_LIT31)
		push(m, op - OP_LIT0);
	else if (op >= OP_BREG0 && op <= OP_BREG31)
		push_register(m, op - OP_BREG0);
	else if (op >= OP_CONST1U && op <= OP_CONST8S)
		constant(m, op);
	else
		other_operation(m, op);
}

int expr_eval(const uint8_t *code, size_t len, const struct expr_env *env, const uint64_t *cfa, uint64_t *ret)
{
	struct machine m; /* its stack is filled as it grows */
	unsigned steps = 0;

	m.env = env;
	m.code = code;
	m.len = len;
	m.at = 0;
	m.depth = 0;
	m.error = 0;
	if (cfa)
		push(&m, *cfa);
	while (!m.error && m.at < m.len) {
		if (++steps > EXPR_STEPS)
			return -EBADMSG;
		operation(&m);
	}
	if (m.error)
		return m.error;
	if (!m.depth)
		return -EBADMSG;
	*ret = m.stack[m.depth - 1];
	return 0;
}
