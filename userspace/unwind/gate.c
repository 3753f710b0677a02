// SPDX-License-Identifier: Apache-2.0
/*
 * From code that a runtime's compiler made, which has no tables, to the function
 * of the runtime that entered it. Such code is small and keeps few bytes on the
 * stack, so the way back lies close above its stack pointer. There are two ways to
 * enter:
 *   - A call: the first return address of a call in one of the functions.
 *   - A jump: the code runs in the function's own frame, some words lower. The
 *     function's table says how far above its stack pointer the return address
 *     lies; the depth at which a call of the function precedes it is the right one.
 *     Where the table goes by the frame pointer, the code leaves that alone.
 * The address that was found is tested, but bytes of former calls remain on stacks:
 * the frame is marked as a guess.
 */
#include "base/cleanup.h"
#include "unwind/cursor.h"

#define GATE_WORDS 48 /* of its stack that compiled code uses at most */
#define GATE_PLACES 8
#define GATE_FRAME_MAX 65536 /* of the function that entered it */

static struct binary *gate_binary(const struct mapping *m)
{
	return m && m->file->state == MAPPED_READY ? m->file->binary : NULL;
}

/* Shared memory has the offset of its segment; private memory has none, or its address. */
static bool gate_fits(const struct cursor *c, const struct unwind_gate *g)
{
	return !g->shared || (c->map->offset && c->map->offset != c->map->start);
}

/* Whether a call precedes the address, one that may have been of target if that is not NULL. */
static bool gate_is_call(const struct cursor *c, uint64_t pc, const uint64_t *target)
{
	const struct mapping *m = space_find(c->in->space, pc - 1);
	struct binary *b = gate_binary(m);
	uint64_t bias;
	struct code code;

	if (!b || b->machine != c->arch->machine)
		return false;
	bias = pc - 1 - mapping_address(m, pc - 1);
	code_read(b, pc - 1 - bias, &code);
	return target ? c->arch->may_call(&code, pc - bias, *target - bias) : c->arch->after_call(&code);
}

/* A frame pointer that the compiled code has left alone: it leads to a return address above the stack pointer. */
static bool gate_keeps_fp(struct cursor *c, uint64_t sp)
{
	uint64_t fp = c->reg[c->arch->fp], pc;

	return cursor_is_valid(c, c->arch->fp) && fp >= sp && fp % 8 == 0 && fp - sp < GATE_FRAME_MAX &&
	       cursor_load(c, fp + 8, &pc) == 0 && gate_is_call(c, pc & c->arch->address_mask, NULL);
}

static int gate_enter(struct cursor *c, uint64_t sp, uint64_t pc)
{
	c->valid &= gate_keeps_fp(c, sp) ? REG(c->arch->fp) : 0;
	cursor_set(c, c->arch->sp, sp);
	cursor_set(c, c->arch->pc, pc);
	c->low = sp - c->arch->leaf_slack;
	c->exact = false;
	c->guess = FRAME_BY_SCAN;
	return 1;
}

/* The way back may lie beyond the copy; where the stack itself ends, there is none. */
static int gate_cut(struct cursor *c)
{
	return c->fault == UNWIND_UNREADABLE ? STEP_NOTHING : cursor_cut(c, c->fault);
}

/* --- entered by a call --- */

/* Any call counts: the function may call another one that goes on to the compiled code by a jump. */
static bool gate_called_from(const struct cursor *c, uint64_t pc)
{
	for (uint32_t i = 0; i < c->in->nr_gates; i++) {
		const struct unwind_gate *g = &c->in->gates[i];

		if (!g->jumps && gate_fits(c, g) && pc > g->start && pc <= g->end)
			return gate_is_call(c, pc, NULL);
	}
	return false;
}

static int gate_called(struct cursor *c)
{
	uint64_t sp = c->reg[c->arch->sp], pc;

	for (uint32_t i = 0; i < GATE_WORDS; i++) {
		if (cursor_load(c, sp + 8 * i, &pc) < 0)
			return gate_cut(c);
		if (gate_called_from(c, pc & c->arch->address_mask))
			return gate_enter(c, sp + 8 * i + 8, pc & c->arch->address_mask);
	}
	return STEP_NOTHING;
}

/* --- entered by a jump --- */

/* The places of a function where its row is looked at. */
static uint64_t gate_place(const struct unwind_gate *g, uint32_t i)
{
	return g->start + (g->end - g->start) * (i + 1) / (GATE_PLACES + 1);
}

static bool gate_rows_agree(const struct packed *a, const struct packed *b)
{
	return a->state == PACKED_ROW && b->state == PACKED_ROW && a->cfa_kind == PACKED_CFA_REG &&
	       b->cfa_kind == PACKED_CFA_REG && a->cfa_reg == b->cfa_reg && a->cfa_n == b->cfa_n;
}

/* The place whose row is that of more than half of them: of the function's body. GATE_PLACES: there is none. */
static uint32_t gate_usual(const struct packed *row)
{
	for (uint32_t i = 0; i < GATE_PLACES; i++) {
		uint32_t alike = 0;

		for (uint32_t k = 0; k < GATE_PLACES; k++)
			alike += gate_rows_agree(&row[i], &row[k]);
		if (alike > GATE_PLACES / 2)
			return i;
	}
	return GATE_PLACES;
}

/* An address in the function's body, and its row, which leads to the caller by the stack or the frame pointer. */
static bool gate_body(struct rules *rules, const struct cursor *c, const struct unwind_gate *g, uint64_t *ret_pc,
		      struct packed *ret)
{
	const struct mapping *m = space_find(c->in->space, g->start);
	struct packed row[GATE_PLACES];
	bool hit;
	uint32_t i;

	if (!gate_binary(m))
		return false;
	for (i = 0; i < GATE_PLACES; i++) {
		uint64_t at = mapping_address(m, gate_place(g, i));

		row[i] = *rules_find(rules, c->arch, m->file->binary, at, &hit).packed;
	}
	i = gate_usual(row);
	if (i == GATE_PLACES || row[i].ra_kind != RULE_OFFSET)
		return false;
	*ret = row[i];
	*ret_pc = gate_place(g, i) + 1;
	return true;
}

/* The function is not called from itself: what lies there is of another one that it called. */
static bool gate_was_called(const struct cursor *c, const struct unwind_gate *g, uint64_t pc)
{
	return !(pc > g->start && pc <= g->end) && gate_is_call(c, pc, &g->start);
}

/* The function has a frame pointer, and the code that it jumped to leaves it alone. */
static int gate_jumped_by_fp(struct cursor *c, const struct unwind_gate *g, const struct packed *row, uint64_t body)
{
	uint64_t sp = c->reg[c->arch->sp], fp = c->reg[c->arch->fp], pc;

	if (!gate_keeps_fp(c, sp) ||
	    cursor_load(c, fp + (uint64_t)(int64_t)row->cfa_n + 8 * (uint64_t)(int64_t)row->ra_n, &pc) < 0 ||
	    !gate_was_called(c, g, pc & c->arch->address_mask))
		return STEP_NOTHING;
	return gate_enter(c, sp, body);
}

static int gate_jumped(struct rules *rules, struct cursor *c, const struct unwind_gate *g)
{
	uint64_t sp = c->reg[c->arch->sp], body, pc, at;
	struct packed row;

	if (!gate_body(rules, c, g, &body, &row))
		return STEP_NOTHING;
	if (row.cfa_reg != c->arch->sp)
		return row.cfa_reg == c->arch->fp ? gate_jumped_by_fp(c, g, &row, body) : STEP_NOTHING;
	at = sp + (uint64_t)(int64_t)row.cfa_n + 8 * (uint64_t)(int64_t)row.ra_n;
	for (uint32_t i = 0; i < GATE_WORDS; i++) {
		if (cursor_load(c, at + 8 * i, &pc) < 0)
			return gate_cut(c);
		if (gate_was_called(c, g, pc & c->arch->address_mask))
			return gate_enter(c, sp + 8 * i, body);
	}
	return STEP_NOTHING;
}

static int gate_try(struct rules *rules, struct cursor *c)
{
	bool calls = false;

	for (uint32_t i = 0; i < c->in->nr_gates; i++) {
		const struct unwind_gate *g = &c->in->gates[i];
		int step = g->jumps && gate_fits(c, g) ? gate_jumped(rules, c, g) : STEP_NOTHING;

		if (step != STEP_NOTHING)
			return step;
		calls |= !g->jumps && gate_fits(c, g);
	}
	return calls ? gate_called(c) : STEP_NOTHING;
}

bool gate_leads_here(const struct cursor *c)
{
	for (uint32_t i = 0; i < c->in->nr_gates; i++)
		if (gate_fits(c, &c->in->gates[i]))
			return true;
	return false;
}

int step_gate(struct rules *rules, struct cursor *c)
{
	struct reach reach = c->reach;
	int step;

	if (!c->in->nr_gates || !cursor_is_valid(c, c->arch->sp) || c->reg[c->arch->sp] % 8)
		return STEP_NOTHING;
	step = gate_try(rules, c);
	if (step == STEP_NOTHING)
		c->reach = reach; /* a failed search must not enlarge the copy */
	return step;
}
