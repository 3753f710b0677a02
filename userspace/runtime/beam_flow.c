// SPDX-License-Identifier: Apache-2.0
/*
 * For each instruction, which registers and words of the frame hold the place and
 * the stack pointer, on every way that leads there: copies are followed until
 * their register is given another value. Where BEAM's instructions begin, both
 * are in rbx and r13. What is behind a jump that nothing is known to lead to, as
 * cases of a switch, has them nowhere; there, and where the place was computed
 * anew, the jump to BEAM's next instruction tells: by the register that holds it.
 * Encodings: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.
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
struct flow_state { struct holders place, stack; };

static const struct flow_state unreached = {{UINT64_MAX, UINT32_MAX}, {UINT64_MAX, UINT32_MAX}};
static const struct flow_state begun = {{0, 1u << X86_BX}, {0, 1u << STACK_REG}};

/* An instruction with what of its encoding counts here. */
struct flow_insn {
	struct x86_insn x;
	uint8_t op, mod, reg, rm; /* op: with 0x0f before it, or of a vector's prefix, none is told apart */
	bool wide, two, vector, has_modrm, nop;
	uint8_t base; /* of memory: enum x86_reg; X86_NONE: relative to the instruction */
	bool indexed;
	int32_t disp;
	int32_t number; /* of a group with one: what is added, compared */
	bool high;	/* its registers have 8 bits, and those of numbers 4 to 7 are the second bytes of 0 to 3 */
};

/* --- decoding --- */

static bool flow_is_prefix(uint8_t b)
{
	return b == 0x66 || b == 0x67 || b == 0xf0 || b == 0xf2 || b == 0xf3 || b == 0x2e || b == 0x36 || b == 0x3e ||
	       b == 0x26 || b == 0x64 || b == 0x65;
}

/* The instruction is whole: what follows its opcode is, too. */
static void flow_modrm(struct flow_insn *i, const uint8_t *at, uint8_t rex)
{
	uint8_t mod = at[0] >> 6, rm = at[0] & 7, sib = at[1];

	i->mod = mod;
	i->reg = (uint8_t)((at[0] >> 3 & 7) | (rex & 4 ? 8 : 0));
	i->rm = i->base = (uint8_t)(rm | (rex & 1 ? 8 : 0));
	if (mod == 3)
		return;
	at++;
	if (rm == 4) {
		at++;
		i->base = (uint8_t)((sib & 7) | (rex & 1 ? 8 : 0));
		i->indexed = (sib >> 3 & 7) != 4 || rex & 2;
		if (mod == 0 && (sib & 7) == 5)
			i->base = X86_NONE;
	} else if (mod == 0 && rm == 5) {
		i->base = X86_NONE;
	}
	if (mod == 1)
		i->disp = (int8_t)at[0];
	else if (mod == 2)
		memcpy(&i->disp, at, sizeof(i->disp));
}

static bool flow_one_has_modrm(uint8_t op)
{
	return (op < 0x40 && (op & 7) < 4) || (op >= 0x80 && op <= 0x8f) || op == 0x63 || op == 0x69 || op == 0x6b ||
	       op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op <= 0xd3) ||
	       (op >= 0xd8 && op <= 0xdf) || op == 0xf6 || op == 0xf7 || op >= 0xfe;
}

/* Whether its registers have 8 bits. */
static bool flow_is_of_bytes(const struct flow_insn *i)
{
	if (i->two)
		return (i->op >= 0x90 && i->op <= 0x9f) || i->op == 0xb0 || i->op == 0xc0;
	if (!i->has_modrm)
		return i->op >= 0xb0 && i->op <= 0xb7;
	return !(i->op & 1) && i->op != 0x8c && i->op != 0x8e;
}

/* At the end of the instruction. */
static int32_t flow_number(const struct flow_insn *i, const uint8_t *end)
{
	int32_t v = 0;

	if (!i->two && i->op == 0x83)
		return (int8_t)end[-1];
	if (!i->two && i->op == 0x81)
		memcpy(&v, end - sizeof(v), sizeof(v));
	return v;
}

static int flow_decode(const struct flow_code *c, uint32_t offset, struct flow_insn *i)
{
	uint8_t bytes[X86_INSN_MAX + 8] = {0}, rex = 0, *at = bytes;

	*i = (struct flow_insn){.base = X86_NONE};
	if (x86_decode(c->code + offset, c->len - offset, &i->x) || !i->x.len)
		return -EBADMSG;
	memcpy(bytes, c->code + offset, i->x.len);
	while (flow_is_prefix(*at))
		at++;
	if ((*at & 0xf0) == 0x40)
		rex = *at++;
	i->wide = rex & 8;
	i->two = *at == 0x0f;
	i->op = i->two ? *++at : *at;
	/* Of three bytes of opcode, too; system instructions write what others do not. */
	i->vector = i->two ? i->op == 0x38 || i->op == 0x3a || i->op == 0x01 || i->op == 0x05 :
			     !rex && (i->op == 0xc4 || i->op == 0xc5 || i->op == 0x62);
	i->nop = (i->two && i->op == 0x1f) || (!i->two && !(rex & 1) && i->op == 0x90);
	i->has_modrm = i->two ? !((i->op >= 0x80 && i->op <= 0x8f) || (i->op >= 0xc8 && i->op <= 0xcf)) : flow_one_has_modrm(i->op);
	if (i->has_modrm)
		flow_modrm(i, at + 1, rex);
	else
		i->rm = (uint8_t)((i->op & 7) | (rex & 1 ? 8 : 0));
	i->number = flow_number(i, bytes + i->x.len);
	i->high = !rex && flow_is_of_bytes(i);
	return 0;
}

/* --- what an instruction does to one value's holders --- */

static void holders_drop(struct holders *h, unsigned reg)
{
	h->regs &= ~(1u << reg);
}

/* What an instruction writes. */
static void holders_drop_operand(struct holders *h, const struct flow_insn *i, unsigned reg)
{
	holders_drop(h, reg);
	if (i->high && reg >= 4 && reg < 8)
		holders_drop(h, reg - 4);
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
static int flow_slot(const struct flow_insn *i)
{
	return i->has_modrm && i->mod != 3 && i->base == X86_SP && !i->indexed && i->disp >= 0 && i->disp % 8 == 0 &&
			       i->disp / 8 < FLOW_SLOTS ? i->disp / 8 : -1;
}

/* What is written to memory may be more than a word. */
static void holders_overwrite(struct holders *h, const struct flow_insn *i)
{
	if (i->mod == 3 || i->base != X86_SP)
		return;
	if (i->indexed || i->disp < 0 || i->disp / 8 + 1 >= FLOW_SLOTS)
		h->slots = 0;
	else
		h->slots &= ~(3ULL << i->disp / 8);
}

static void holders_store(struct holders *h, const struct flow_insn *i)
{
	int slot = flow_slot(i);

	holders_overwrite(h, i);
	if (slot >= 0 && i->wide && holders_have(h, i->reg))
		h->slots |= 1ULL << slot;
}

static bool flow_load(const struct holders *h, const struct flow_insn *i)
{
	int slot = flow_slot(i);

	return slot >= 0 && i->wide && h->slots >> slot & 1;
}

/* Which operands of its encoding it writes, as registers of numbers: not those of vectors. */
enum { WRITES_REG = 1, WRITES_RM = 2 };

static unsigned flow_two_writes(const struct flow_insn *i)
{
	const uint8_t op = i->op;

	if ((op >= 0x40 && op <= 0x4f) || op == 0xaf || (op >= 0xb6 && op <= 0xb8) || (op >= 0xbc && op <= 0xbf) || op == 0x2c ||
	    op == 0x2d || op == 0x50 || op == 0xd7 || op == 0xc5 || op == 0x02 || op == 0x03)
		return WRITES_REG;
	if (op == 0xc0 || op == 0xc1)
		return WRITES_REG | WRITES_RM;
	if (op == 0xa3 || op == 0x18 || op == 0x1f || op == 0x2e || op == 0x2f || (op == 0xba && (i->reg & 7) == 4))
		return 0;
	return WRITES_RM; /* or memory */
}

static unsigned flow_one_writes(const struct flow_insn *i)
{
	const unsigned op = i->op, group = i->reg & 7;

	if (op < 0x40)
		return (op & 0x38) == 0x38 ? 0 : (op & 7) < 2 ? WRITES_RM : WRITES_REG;
	if (op == 0x84 || op == 0x85 || (op >= 0x80 && op <= 0x83 && group == 7))
		return 0;
	if (op == 0x63 || op == 0x69 || op == 0x6b || op == 0x8a || op == 0x8b || op == 0x8d)
		return WRITES_REG;
	if (op == 0x86 || op == 0x87)
		return WRITES_REG | WRITES_RM;
	if (op == 0xf6 || op == 0xf7)
		return group == 2 || group == 3 ? WRITES_RM : 0;
	return op == 0xff && group >= 2 ? 0 : WRITES_RM;
}

static void holders_write(struct holders *h, const struct flow_insn *i)
{
	unsigned writes = i->two ? flow_two_writes(i) : flow_one_writes(i);

	if (writes & WRITES_REG)
		holders_drop_operand(h, i, i->reg);
	if (writes & WRITES_RM && i->mod == 3)
		holders_drop_operand(h, i, i->rm);
	if (writes & WRITES_RM)
		holders_overwrite(h, i);
}

/* Those that write registers which their encoding does not name. */
static uint32_t flow_implied(const struct flow_insn *i)
{
	const uint32_t ax = 1u << X86_AX, cx = 1u << X86_CX, dx = 1u << X86_DX;
	unsigned group = i->reg & 7;

	if (i->two && i->op == 0xc7)
		return ax | dx;
	if (i->two)
		return i->op == 0xb0 || i->op == 0xb1 ? ax : (i->op == 0xa2 || i->op == 0x31 ? ax | cx | dx | 1u << X86_BX : 0);
	if (i->op >= 0x90 && i->op <= 0x97)
		return i->nop ? 0 : ax;
	if (i->op < 0x40)
		return (i->op & 7) == 4 || (i->op & 7) == 5 ? ax : 0;
	if (i->op == 0xf6 || i->op == 0xf7)
		return group >= 4 ? ax | dx : 0;
	if (i->op >= 0xa4 && i->op <= 0xaf && i->op != 0xa8 && i->op != 0xa9)
		return ax | cx | 1u << X86_SI | 1u << X86_DI;
	return i->op == 0x98 ? ax : i->op == 0x99 ? dx : 0;
}

/* add, sub: to which register; X86_NONE: another instruction. *ret: the number that is added; 0: it is none. */
static unsigned flow_adds_to(const struct flow_insn *i, int64_t *ret)
{
	const bool group = i->op == 0x81 || i->op == 0x83;

	*ret = 0;
	if (i->two || !i->wide || !i->has_modrm)
		return X86_NONE;
	if (i->op == 0x03 || i->op == 0x2b)
		return i->reg;
	if (i->mod != 3 || !(i->op == 0x01 || i->op == 0x29 || (group && ((i->reg & 7) == 0 || (i->reg & 7) == 5))))
		return X86_NONE;
	if (group)
		*ret = (i->reg & 7) == 5 ? -(int64_t)i->number : i->number;
	return i->rm;
}

/* mov and lea between registers, and from the frame; *ret_to: what becomes a copy. */
static bool flow_copies(const struct flow_insn *i, unsigned *ret_to, unsigned *ret_from)
{
	if (i->two || !i->wide || !i->has_modrm)
		return false;
	*ret_to = i->op == 0x89 ? i->rm : i->reg;
	*ret_from = i->op == 0x89 ? i->reg : i->op == 0x8d ? i->base : i->rm;
	if (i->op == 0x8d)
		return i->base != X86_NONE && !i->indexed && i->base != X86_SP;
	return (i->op == 0x89 || i->op == 0x8b) && i->mod == 3;
}

/* --- of an instruction --- */

static void flow_call(struct flow_state *s)
{
	s->place.regs &= CALLEE;
	s->stack.regs &= CALLEE;
}

/* A frame begins, or ends: the stack pointer moves in its register, and copies are of before. Elsewhere it is no copy any more. */
static void flow_move_stack(struct flow_state *s, unsigned reg)
{
	if (reg == STACK_REG && holders_have(&s->stack, reg))
		s->stack = (struct holders){.regs = 1u << reg};
	else
		holders_drop(&s->stack, reg);
}

static void flow_copy(struct flow_state *s, const struct flow_insn *i, unsigned to, unsigned from)
{
	const int32_t disp = i->op == 0x8d ? i->disp : 0;

	holders_set(&s->place, to, holders_have(&s->place, from) && disp >= 0 && disp <= ADVANCE_MAX);
	if (disp && to == from)
		flow_move_stack(s, to);
	else
		holders_set(&s->stack, to, holders_have(&s->stack, from) && !disp);
}

/* What lies at the stack pointer is where to return to. A process has its stack pointer while C code runs. */
static void flow_load_word(struct flow_state *s, const struct flow_code *c, const struct flow_insn *i)
{
	const bool returns = i->wide && i->base != X86_NONE && !i->indexed && !i->disp && holders_have(&s->stack, i->base);
	const bool stop = i->wide && !i->indexed && i->base != X86_SP && i->base != X86_NONE && i->disp == c->stop &&
			  i->reg == STACK_REG;

	holders_set(&s->place, i->reg, flow_load(&s->place, i) || returns);
	holders_set(&s->stack, i->reg, flow_load(&s->stack, i) || stop);
}

static void flow_add(struct flow_state *s, unsigned to, int64_t number)
{
	if (number <= 0 || number > ADVANCE_MAX)
		holders_drop(&s->place, to);
	flow_move_stack(s, to);
}

/* pop, xchg with rax, mov of a number, bswap: the register is in the opcode. */
static bool flow_writes_low(const struct flow_insn *i)
{
	if (i->two)
		return i->op >= 0xc8 && i->op <= 0xcf;
	return (i->op >= 0x58 && i->op <= 0x5f) || (i->op >= 0x90 && i->op <= 0x97 && !i->nop) ||
	       (i->op >= 0xb0 && i->op <= 0xbf);
}

static void flow_other(struct flow_state *s, const struct flow_insn *i)
{
	const uint32_t implied = flow_implied(i);

	s->place.regs &= ~implied;
	s->stack.regs &= ~implied;
	if (i->vector)
		*s = (struct flow_state){0};
	if (i->has_modrm) {
		holders_write(&s->place, i);
		holders_write(&s->stack, i);
	}
	if (!i->has_modrm && flow_writes_low(i)) {
		holders_drop_operand(&s->place, i, i->rm);
		holders_drop_operand(&s->stack, i, i->rm);
	}
}

/* The words of the frame have other distances then. */
static bool flow_moves_sp(const struct flow_insn *i)
{
	switch (i->x.kind) {
	case INSN_PUSH:
	case INSN_POP:
	case INSN_SP_ADD:
	case INSN_SP_SET:
	case INSN_SP_LOST:
	case INSN_SP_LOAD:
		return true;
	default:
		return false;
	}
}

static void flow_run(struct flow_state *s, const struct flow_code *c, const struct flow_insn *i)
{
	unsigned to, from;
	int64_t number;

	if (flow_moves_sp(i))
		s->place.slots = s->stack.slots = 0;
	if (i->x.kind == INSN_CALL) {
		flow_call(s);
	} else if (flow_copies(i, &to, &from)) {
		flow_copy(s, i, to, from);
	} else if (!i->two && i->op == 0x8b && i->has_modrm && i->mod != 3) {
		flow_load_word(s, c, i);
	} else if (!i->two && i->op == 0x89 && i->has_modrm && i->mod != 3) {
		holders_store(&s->place, i);
		holders_store(&s->stack, i);
	} else if (!i->two && i->op == 0x8d && i->indexed && i->wide) {
		holders_drop(&s->place, i->reg);
		if (i->reg == i->base)
			flow_move_stack(s, i->reg);
		else
			holders_drop(&s->stack, i->reg);
	} else if ((to = flow_adds_to(i, &number)) != X86_NONE) {
		flow_add(s, to, number);
	} else {
		flow_other(s, i);
	}
}

/* --- of all --- */

static bool flow_meet(struct flow_state *to, const struct flow_state *with)
{
	const struct flow_state before = *to;

	to->place.regs &= with->place.regs;
	to->place.slots &= with->place.slots;
	to->stack.regs &= with->stack.regs;
	to->stack.slots &= with->stack.slots;
	return memcmp(&before, to, sizeof(before)) != 0;
}

static bool flow_is_unreached(const struct flow_state *s)
{
	return s->place.regs == UINT32_MAX && s->stack.regs == UINT32_MAX;
}

struct flow {
	const struct flow_code *code;
	struct flow_state *at; /* for each byte, of what jumps there */
	bool strict; /* what is not reached so far holds neither */
	bool changed;
	struct flow_run *runs; /* made in the last sweep */
	uint32_t nr, max;
	uint32_t looked_ahead; /* so often */
};

static bool flow_begins(const struct flow_code *c, uint32_t offset)
{
	return c->entry[offset / 8] >> offset % 8 & 1;
}

static void flow_jump(struct flow *f, const struct flow_insn *i, uint32_t end, const struct flow_state *s)
{
	int64_t to = (int64_t)end + i->x.n;

	if (to >= 0 && to < f->code->len && !flow_is_unreached(s))
		f->changed |= flow_meet(&f->at[to], s);
}

/* What holds before an instruction. */
static void flow_step(struct flow *f, uint32_t offset, const struct flow_insn *i, struct flow_state *s)
{
	flow_meet(s, &f->at[offset]);
	if (flow_begins(f->code, offset))
		flow_meet(s, &begun);
	if (flow_is_unreached(s) && f->strict && !i->nop)
		*s = (struct flow_state){0};
}

static void flow_leave(struct flow *f, uint32_t end, const struct flow_insn *i, struct flow_state *s)
{
	if (flow_is_unreached(s))
		return;
	flow_run(s, f->code, i);
	if (i->x.kind == INSN_JUMP || i->x.kind == INSN_BRANCH)
		flow_jump(f, i, end, s);
	if (i->x.kind == INSN_JUMP || i->x.kind == INSN_END || i->x.kind == INSN_RET)
		*s = unreached;
}

/* Of several holders, those that calls preserve first. */
static uint32_t flow_choose(const struct holders *h)
{
	static const uint8_t order[] = {X86_BX, 13, X86_BP, 12, 14, 15};
	static const uint8_t dwarf[REGS] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

	if (h->regs == UINT32_MAX)
		return FLOW_NOWHERE;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (holders_have(h, order[i]))
			return FLOW_REGISTER + dwarf[order[i]];
	if (h->slots)
		return FLOW_SLOT + (uint32_t)__builtin_ctzll(h->slots);
	for (unsigned i = 0; i < REGS; i++)
		if (holders_have(h, i))
			return FLOW_REGISTER + dwarf[i];
	return FLOW_NOWHERE;
}

/*
 * By the jump to the next instruction of BEAM, whose code is at what its place leads to: the register that the place is in
 * there, if it has it here already.
 */
static uint32_t flow_ahead(const struct flow_code *c, uint32_t offset)
{
	struct holders from[REGS]; /* of each register's value here: who holds it */
	struct flow_insn i;

	for (unsigned r = 0; r < REGS; r++)
		from[r] = (struct holders){.regs = 1u << r};
	for (unsigned n = 0; n < AHEAD_MAX && offset < c->len && !flow_decode(c, offset, &i); n++, offset += i.x.len) {
		if (i.x.kind == INSN_END && !i.two && i.op == 0xff && i.mod < 2 && i.base != X86_NONE && !i.indexed) {
			for (unsigned r = 0; r < REGS; r++)
				if (r != X86_SP && holders_have(&from[r], i.base))
					return flow_choose(&(struct holders){.regs = 1u << r});
			break;
		}
		if (i.x.kind == INSN_JUMP && offset + i.x.len + i.x.n < c->len)
			offset = (uint32_t)(offset + i.x.n);
		else if (i.x.kind == INSN_JUMP || i.x.kind == INSN_END || i.x.kind == INSN_RET)
			break;
		for (unsigned r = 0; r < REGS; r++) {
			struct flow_state s = {.place = from[r]};

			flow_run(&s, c, &i);
			from[r] = s.place;
		}
	}
	return FLOW_NOWHERE;
}

static void flow_note(struct flow *f, uint32_t offset, const struct flow_insn *i, const struct flow_state *s)
{
	struct flow_run here = {.start = offset, .end = offset + i->x.len, .place = flow_choose(&s->place),
				.stack = flow_choose(&s->stack)};
	struct flow_run *last = f->nr ? &f->runs[f->nr - 1] : NULL;

	if (here.place == FLOW_NOWHERE && f->looked_ahead++ < AHEADS_MAX)
		here.place = flow_ahead(f->code, offset);
	if (last && last->end == offset && last->place == here.place && last->stack == here.stack)
		last->end = here.end;
	else if (f->nr < f->max)
		f->runs[f->nr++] = here;
}

static void flow_sweep(struct flow *f, bool last)
{
	struct flow_state s = {0};
	struct flow_insn i;

	f->changed = false;
	for (uint32_t offset = 0; offset < f->code->len; offset += i.x.len) {
		if (flow_decode(f->code, offset, &i)) {
			i.x.len = 1;
			s = (struct flow_state){0};
			continue;
		}
		flow_step(f, offset, &i, &s);
		if (last)
			flow_note(f, offset, &i, &s);
		flow_leave(f, offset + i.x.len, &i, &s);
	}
}

static int flow_settle(struct flow *f)
{
	for (unsigned i = 0; i < SWEEPS_MAX; i++) {
		flow_sweep(f, false);
		if (!f->changed && f->strict)
			return 0;
		f->strict |= !f->changed;
	}
	return -EBADMSG;
}

static int flow_read(struct flow *f)
{
	for (uint32_t i = 0; i < f->code->len; i++)
		f->at[i] = unreached;
	if (flow_settle(f))
		return -EBADMSG;
	flow_sweep(f, true);
	return 0;
}

int beam_flow_read(const struct flow_code *c, struct flow_run *ret, uint32_t max)
{
	struct flow f = {.code = c, .runs = ret, .max = max};
	int err;

	if (!c->len || c->len > FLOW_CODE_MAX)
		return -EBADMSG;
	f.at = malloc(c->len * sizeof(*f.at));
	if (!f.at)
		return -ENOMEM;
	err = flow_read(&f);
	free(f.at);
	return err ? err : (int)f.nr;
}
