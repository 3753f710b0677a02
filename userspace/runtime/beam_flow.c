// SPDX-License-Identifier: Apache-2.0
/*
 * For each instruction, which registers and words of the frame hold the place and
 * the stack pointer, on every way that leads there: copies are followed until
 * their register is given another value. Where BEAM's instructions begin, both
 * are in rbx and r13. What is behind a jump that nothing is known to lead to, as
 * cases of a switch, has them nowhere; there, and where the place was computed
 * anew, the jump to BEAM's next instruction tells: by the register that holds it.
 * An instruction that calls has the next one's code in a register long before it
 * jumps there: it is such a jump if that was loaded from what is in rbx by then.
 */
#include "runtime/beam_flow.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/x86_insn.h"

#define SWEEPS_MAX  32
#define ADVANCE_MAX 64 /* bytes of an instruction of BEAM */
#define AHEAD_MAX   24 /* instructions up to the jump to the next one */
#define AHEADS_MAX  8192 /* times that the jump is looked for */
#define REGS	    16
#define STACK_REG   (X86_R8 + 5) /* REG_stop */
#define CALLEE	    ((1u << X86_BX) | (1u << X86_BP) | 0xf000u)

/* Of a value: who holds it. */
struct holders { uint64_t slots; uint32_t regs; };
/*
 * top_kept: as of struct beam_flow_run.
 * next: registers of one value, perhaps the next instruction's place; code: those with what it leads to, as it was
 * loaded. Where several ways meet, the values may be other ones on each.
 */
struct beam_flow_state { struct holders place, stack; uint32_t next, code; bool top_kept; };

static const struct beam_flow_state unreached = {{UINT64_MAX, UINT32_MAX}, {UINT64_MAX, UINT32_MAX}, UINT32_MAX,
						 UINT32_MAX, true};
static const struct beam_flow_state unknown;
static const struct beam_flow_state begun = {.place = {0, 1u << X86_BX}, .stack = {0, 1u << STACK_REG}, .top_kept = true};

static int beam_flow_decode(const struct beam_flow_code *c, uint32_t offset, struct x86_insn *i)
{
	return offset >= c->len ? -EBADMSG : x86_decode(c->code + offset, c->len - offset, i);
}

/* --- what an instruction does to one value's holders --- */

static void holders_drop(struct holders *h, unsigned reg)
{
	h->regs &= ~(1u << reg);
}

static bool holders_have(const struct holders *h, unsigned reg)
{
	return h->regs >> reg & 1;
}

static void holders_set(struct holders *h, unsigned reg, bool holds)
{
	h->regs = (h->regs & ~(1u << reg)) | (uint32_t)holds << reg;
}

/* The word of the frame that memory is; -1: none of those that are followed. */
static int beam_flow_slot(const struct x86_memory *m)
{
	if (!m->exact || m->base != X86_SP || m->disp < 0 || m->disp % 8 || m->disp / 8 >= BEAM_FLOW_SLOTS)
		return -1;
	return m->disp / 8;
}

/* An instruction may write several words. */
static void holders_overwrite(struct holders *h, const struct x86_memory *m)
{
	if (m->base != X86_SP)
		return;
	if (!m->exact || m->disp < 0 || m->disp / 8 + X86_WRITTEN_MAX / 8 >= BEAM_FLOW_SLOTS)
		h->slots = 0;
	else
		h->slots &= ~(7ULL << m->disp / 8);
}

static void holders_store(struct holders *h, const struct x86_insn *i)
{
	int slot = beam_flow_slot(&i->memory);

	holders_overwrite(h, &i->memory);
	if (slot >= 0 && holders_have(h, i->reg))
		h->slots |= 1ULL << slot;
}

static bool holders_load(const struct holders *h, const struct x86_insn *i)
{
	int slot = beam_flow_slot(&i->memory);

	return slot >= 0 && h->slots >> slot & 1;
}

static void holders_write(struct holders *h, const struct x86_insn *i)
{
	h->regs &= ~(uint32_t)i->writes;
	if (i->writes == X86_WRITES_ALL)
		h->slots = 0;
	else if (i->memory.written)
		holders_overwrite(h, &i->memory);
}

/* --- of an instruction --- */

static void beam_flow_call(struct beam_flow_state *s)
{
	s->place.regs &= CALLEE;
	s->stack.regs &= CALLEE;
}

/*
 * A frame begins, or ends: the stack pointer moves in its register, and copies are of before. Elsewhere it is no copy any
 * more.
 */
static void beam_flow_move_stack(struct beam_flow_state *s, unsigned reg)
{
	if (reg == STACK_REG && holders_have(&s->stack, reg))
		s->stack = (struct holders){.regs = 1u << reg};
	else
		holders_drop(&s->stack, reg);
}

static void beam_flow_copy(struct beam_flow_state *s, const struct x86_insn *i)
{
	holders_set(&s->place, i->reg, holders_have(&s->place, i->base) && i->n >= 0 && i->n <= ADVANCE_MAX);
	if (i->n && i->reg == i->base)
		beam_flow_move_stack(s, i->reg);
	else
		holders_set(&s->stack, i->reg, holders_have(&s->stack, i->base) && !i->n);
}

/* What lies at the stack pointer is where to return to. A process has its stack pointer while C code runs. */
static void beam_flow_load(struct beam_flow_state *s, const struct beam_flow_code *c, const struct x86_insn *i)
{
	const bool returns = i->memory.exact && !i->n && holders_have(&s->stack, i->base);
	const bool stop = i->memory.exact && i->base != X86_SP && i->n == c->stop && i->reg == STACK_REG;

	s->top_kept &= !returns && !stop;
	holders_set(&s->place, i->reg, holders_load(&s->place, i) || returns);
	holders_set(&s->stack, i->reg, holders_load(&s->stack, i) || stop);
}

static void beam_flow_add(struct beam_flow_state *s, const struct x86_insn *i)
{
	if (i->n <= 0 || i->n > ADVANCE_MAX)
		holders_drop(&s->place, i->reg);
	beam_flow_move_stack(s, i->reg);
}

/* The words of the frame have other distances then. */
static bool beam_flow_moves_sp(const struct x86_insn *i)
{
	switch (i->kind) {
	case INSN_PUSH:
	case INSN_POP:
	case INSN_SP_ADD:
	case INSN_SP_SET:
	case INSN_SP_LOST:
	case INSN_SP_LOAD:
	case INSN_LEAVE:
		return true;
	default:
		return false;
	}
}

/* A return address is put at the stack pointer, or that moves down to what a former call has left there. */
static void beam_flow_put(struct beam_flow_state *s, const struct x86_insn *i)
{
	const struct x86_memory *m = &i->memory;
	const bool moves = i->kind == INSN_ADD || (i->kind == INSN_COPY && i->reg == i->base);

	if (i->writes == X86_WRITES_ALL || (moves && i->n <= 0 && holders_have(&s->stack, i->reg)) ||
	    (m->written && (!m->exact || m->disp <= 0) && holders_have(&s->stack, m->base)))
		s->top_kept = false;
}

/* What rbx is made a copy of, or a word is loaded by, may be the next place: rbx has it first. */
static void beam_flow_expect(struct beam_flow_state *s, const struct x86_insn *i)
{
	const uint32_t next = s->next, code = s->code, keeps = i->kind == INSN_CALL ? CALLEE : ~(uint32_t)i->writes;
	const bool copies = i->kind == INSN_COPY && !i->n, loads = i->kind == INSN_LOAD && !i->n && i->memory.exact;

	s->next &= keeps;
	s->code &= keeps;
	if (!copies && !loads)
		return;
	if (next >> i->base & 1) {
		*(loads ? &s->code : &s->next) |= 1u << i->reg;
	} else if (copies && code >> i->base & 1) {
		s->code |= 1u << i->reg;
	} else if (copies ? i->reg == X86_BX : !(next >> X86_BX & 1)) {
		s->next = 1u << i->base | (uint32_t)copies << i->reg;
		s->code = (uint32_t)loads << i->reg;
		if (loads && i->base == i->reg)
			s->next = 0;
	}
}

static void beam_flow_run(struct beam_flow_state *s, const struct beam_flow_code *c, const struct x86_insn *i)
{
	beam_flow_expect(s, i);
	beam_flow_put(s, i);
	if (beam_flow_moves_sp(i))
		s->place.slots = s->stack.slots = 0;
	switch (i->kind) {
	case INSN_CALL:
		beam_flow_call(s);
		break;
	case INSN_COPY:
		beam_flow_copy(s, i);
		break;
	case INSN_LOAD:
		beam_flow_load(s, c, i);
		break;
	case INSN_STORE:
		holders_store(&s->place, i);
		holders_store(&s->stack, i);
		break;
	case INSN_ADD:
		beam_flow_add(s, i);
		break;
	default:
		holders_write(&s->place, i);
		holders_write(&s->stack, i);
	}
}

/* --- of all --- */

static bool beam_flow_meet(struct beam_flow_state *to, const struct beam_flow_state *with)
{
	const struct beam_flow_state before = *to;

	to->place.regs &= with->place.regs;
	to->place.slots &= with->place.slots;
	to->stack.regs &= with->stack.regs;
	to->stack.slots &= with->stack.slots;
	to->next &= with->next;
	to->code &= with->code;
	to->top_kept &= with->top_kept;
	return memcmp(&before, to, sizeof(before)) != 0;
}

static bool beam_flow_is_unreached(const struct beam_flow_state *s)
{
	return s->place.regs == UINT32_MAX && s->stack.regs == UINT32_MAX;
}

struct beam_flow {
	const struct beam_flow_code *code;
	struct beam_flow_state *at; /* for each byte, of what jumps there */
	bool strict; /* what is not reached so far holds neither */
	bool changed;
	struct beam_flow_run *runs; /* made in the last sweep */
	uint32_t nr, max;
	uint32_t looked_ahead; /* so often */
};

static bool beam_flow_begins(const struct beam_flow_code *c, uint32_t offset)
{
	return c->entry[offset / 8] >> offset % 8 & 1;
}

static void beam_flow_jump(struct beam_flow *f, const struct x86_insn *i, uint32_t end, const struct beam_flow_state *s)
{
	int64_t to = (int64_t)end + i->n;

	if (to >= 0 && to < f->code->len && !beam_flow_is_unreached(s))
		f->changed |= beam_flow_meet(&f->at[to], s);
}

/* What holds before an instruction. */
static void beam_flow_step(struct beam_flow *f, uint32_t offset, const struct x86_insn *i, struct beam_flow_state *s)
{
	beam_flow_meet(s, &f->at[offset]);
	if (beam_flow_begins(f->code, offset))
		beam_flow_meet(s, &begun);
	if (beam_flow_is_unreached(s) && f->strict && !i->nop)
		*s = unknown;
}

static void beam_flow_leave(struct beam_flow *f, uint32_t end, const struct x86_insn *i, struct beam_flow_state *s)
{
	if (beam_flow_is_unreached(s))
		return;
	beam_flow_run(s, f->code, i);
	if (i->kind == INSN_JUMP || i->kind == INSN_BRANCH)
		beam_flow_jump(f, i, end, s);
	if (i->kind == INSN_JUMP || i->kind == INSN_END || i->kind == INSN_RET)
		*s = unreached;
}

/* Of several holders, those that calls preserve first. */
static uint32_t beam_flow_choose(const struct holders *h)
{
	static const uint8_t order[] = {X86_BX, 13, X86_BP, 12, 14, 15};

	if (h->regs == UINT32_MAX)
		return BEAM_FLOW_NOWHERE;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (holders_have(h, order[i]))
			return BEAM_FLOW_REGISTER + x86_dwarf[order[i]];
	if (h->slots)
		return BEAM_FLOW_SLOT + (uint32_t)__builtin_ctzll(h->slots);
	for (unsigned i = 0; i < REGS; i++)
		if (holders_have(h, i))
			return BEAM_FLOW_REGISTER + x86_dwarf[i];
	return BEAM_FLOW_NOWHERE;
}

/* The register that has BEAM's next place at an instruction that jumps there; X86_NONE: it is none. */
static unsigned beam_flow_jumps_by(const struct beam_flow_state *s, const struct x86_insn *i)
{
	if (i->kind != INSN_END)
		return X86_NONE;
	if (i->memory.exact && i->memory.disp >= -ADVANCE_MAX && i->memory.disp <= ADVANCE_MAX)
		return i->memory.base;
	return i->reg != X86_NONE && s->code >> i->reg & s->next >> X86_BX & 1 ? X86_BX : X86_NONE;
}

/*
 * By the jump to the next instruction of BEAM, whose code is at what its place leads to: the register that the place is in
 * there, if it has it here already.
 */
static uint32_t beam_flow_ahead(const struct beam_flow_code *c, uint32_t offset, const struct beam_flow_state *here)
{
	struct holders from[REGS]; /* of each register's value here: who holds it */
	struct beam_flow_state now = *here;
	struct x86_insn i;

	for (unsigned r = 0; r < REGS; r++)
		from[r] = (struct holders){.regs = 1u << r};
	for (unsigned n = 0; n < AHEAD_MAX && !beam_flow_decode(c, offset, &i); n++, offset += i.len) {
		unsigned by = beam_flow_jumps_by(&now, &i);

		for (unsigned r = 0; by != X86_NONE && r < REGS; r++)
			if (r != X86_SP && holders_have(&from[r], by))
				return beam_flow_choose(&(struct holders){.regs = 1u << r});
		if (i.kind == INSN_JUMP && offset + i.len + i.n < c->len)
			offset = (uint32_t)(offset + i.n);
		else if (i.kind == INSN_JUMP || i.kind == INSN_END || i.kind == INSN_RET)
			break;
		beam_flow_run(&now, c, &i);
		for (unsigned r = 0; r < REGS; r++) {
			struct beam_flow_state s = {.place = from[r]};

			beam_flow_run(&s, c, &i);
			from[r] = s.place;
		}
	}
	return BEAM_FLOW_NOWHERE;
}

static void beam_flow_note(struct beam_flow *f, uint32_t offset, const struct x86_insn *i,
			   const struct beam_flow_state *s)
{
	struct beam_flow_run here = {.start = offset, .end = offset + i->len, .place = beam_flow_choose(&s->place),
				     .stack = beam_flow_choose(&s->stack)};
	struct beam_flow_run *last = f->nr ? &f->runs[f->nr - 1] : NULL;

	here.top_kept = s->top_kept && here.place != BEAM_FLOW_NOWHERE;
	if (here.place == BEAM_FLOW_NOWHERE && f->looked_ahead++ < AHEADS_MAX)
		here.place = beam_flow_ahead(f->code, offset, beam_flow_is_unreached(s) ? &unknown : s);
	if (last && last->end == offset && last->place == here.place && last->stack == here.stack && last->top_kept == here.top_kept)
		last->end = here.end;
	else if (f->nr < f->max)
		f->runs[f->nr++] = here;
}

static void beam_flow_sweep(struct beam_flow *f, bool last)
{
	struct beam_flow_state s = unknown;
	struct x86_insn i;

	f->changed = false;
	for (uint32_t offset = 0; offset < f->code->len; offset += i.len) {
		if (beam_flow_decode(f->code, offset, &i)) {
			i.len = 1;
			s = unknown;
			continue;
		}
		beam_flow_step(f, offset, &i, &s);
		if (last)
			beam_flow_note(f, offset, &i, &s);
		beam_flow_leave(f, offset + i.len, &i, &s);
	}
}

static int beam_flow_settle(struct beam_flow *f)
{
	for (unsigned i = 0; i < SWEEPS_MAX; i++) {
		beam_flow_sweep(f, false);
		if (!f->changed && f->strict)
			return 0;
		f->strict |= !f->changed;
	}
	return -EBADMSG;
}

static int beam_flow_read_all(struct beam_flow *f)
{
	for (uint32_t i = 0; i < f->code->len; i++)
		f->at[i] = unreached;
	if (beam_flow_settle(f))
		return -EBADMSG;
	beam_flow_sweep(f, true);
	return 0;
}

int beam_flow_read(const struct beam_flow_code *c, struct beam_flow_run *ret, uint32_t max)
{
	struct beam_flow f = {.code = c, .runs = ret, .max = max};
	int err;

	if (!c->len || c->len > BEAM_FLOW_CODE_MAX)
		return -EBADMSG;
	f.at = malloc(c->len * sizeof(*f.at));
	if (!f.at)
		return -ENOMEM;
	err = beam_flow_read_all(&f);
	free(f.at);
	return err ? err : (int)f.nr;
}
