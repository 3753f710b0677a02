// SPDX-License-Identifier: Apache-2.0
#include "unwind/x86_insn.h"

#include <errno.h>
#include <string.h>

const uint8_t x86_dwarf[X86_NONE + 1] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, INSN_NO_REG};

#define REX_B 1
#define REX_X 2
#define REX_R 4
#define REX_W 8

enum map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A, MAP_OTHER };

struct decoder {
	const uint8_t *at, *end;
	const uint8_t *start;
	bool broken;
	bool opsize, addrsize, segment;
	bool has_rex;
	uint8_t rex;
	uint8_t map; /* enum map */
	uint8_t opcode;
	bool vector;   /* of VEX, EVEX or XOP: opcodes with a meaning of their own */
	uint8_t stands_for; /* of VEX and EVEX, the prefix: none, 66, F3, F2 */
	uint8_t xop;   /* bytes of immediate that its map has */
	uint8_t mod, reg, rm; /* extended by REX */
	bool memory;
	uint8_t base; /* enum x86_reg; X86_NONE with an index or relative to the instruction */
	uint8_t indexed; /* likewise, of memory with an index */
	int64_t disp;
	int64_t imm;
};

static uint8_t next_byte(struct decoder *d)
{
	if (d->at == d->end) {
		d->broken = true;
		return 0;
	}
	return *d->at++;
}

static int64_t next_int(struct decoder *d, unsigned size)
{
	uint64_t v = 0;

	if ((size_t)(d->end - d->at) < size) {
		d->broken = true;
		return 0;
	}
	memcpy(&v, d->at, size);
	d->at += size;
	if (size && size < 8 && v >> (8 * size - 1))
		v |= ~0ULL << (8 * size);
	return (int64_t)v;
}

/* --- prefixes --- */

static bool is_prefix(uint8_t b)
{
	return b == 0x66 || b == 0x67 || b == 0xf0 || b == 0xf2 || b == 0xf3 || b == 0x2e || b == 0x36 || b == 0x3e ||
	       b == 0x26 || b == 0x64 || b == 0x65;
}

static uint8_t prefixes(struct decoder *d)
{
	uint8_t b = next_byte(d);

	while (!d->broken && is_prefix(b)) {
		d->opsize |= b == 0x66;
		d->addrsize |= b == 0x67;
		d->segment |= b == 0x64 || b == 0x65;
		b = next_byte(d);
	}
	if ((b & 0xf0) == 0x40) {
		d->rex = b & 15;
		d->has_rex = true;
		b = next_byte(d);
	}
	return b;
}

static uint8_t map_number(unsigned n)
{
	return n >= 1 && n <= 3 ? (uint8_t)(MAP_0F + n - 1) : MAP_OTHER;
}

/* VEX, EVEX and XOP: vector instructions; none of them touches the stack pointer. */
static bool vector_prefix(struct decoder *d, uint8_t b)
{
	uint8_t first;

	if (b == 0xc5) {
		d->stands_for = next_byte(d) & 3;
		d->map = MAP_0F;
	} else if (b == 0xc4) {
		d->map = map_number(next_byte(d) & 31);
		d->stands_for = next_byte(d) & 3;
	} else if (b == 0x62) {
		first = next_byte(d);
		d->map = map_number(first & 7);
		d->stands_for = next_byte(d) & 3;
		next_byte(d);
	} else if (b == 0x8f && d->at < d->end && (*d->at & 31) >= 8) {
		first = next_byte(d) & 31;
		next_byte(d);
		d->map = MAP_OTHER;
		d->xop = first == 8 ? 1 : first == 10 ? 4 : 0;
	} else {
		return false;
	}
	d->opcode = next_byte(d);
	return true;
}

static void legacy_opcode(struct decoder *d, uint8_t b)
{
	d->map = MAP_ONE;
	if (b == 0x0f) {
		b = next_byte(d);
		d->map = MAP_0F;
		if (b == 0x38 || b == 0x3a) {
			d->map = b == 0x38 ? MAP_0F38 : MAP_0F3A;
			b = next_byte(d);
		}
	}
	d->opcode = b;
}

/* --- operands --- */

static bool one_has_modrm(uint8_t op)
{
	if (op < 0x40)
		return (op & 7) < 4;
	if (op >= 0x80 && op <= 0x8f)
		return true;
	return op == 0x63 || op == 0x69 || op == 0x6b || op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 ||
	       (op >= 0xd0 && op <= 0xd3) || (op >= 0xd8 && op <= 0xdf) || op == 0xf6 || op == 0xf7 || op >= 0xfe;
}

static bool two_has_modrm(uint8_t op)
{
	return !(op == 0x05 || op == 0x06 || op == 0x07 || op == 0x08 || op == 0x09 || op == 0x0b || op == 0x0e ||
		 (op >= 0x30 && op <= 0x37) || op == 0x77 || (op >= 0x80 && op <= 0x8f) ||
		 (op >= 0xa0 && op <= 0xa2) || (op >= 0xa8 && op <= 0xaa) || (op >= 0xc8 && op <= 0xcf));
}

static void sib(struct decoder *d)
{
	uint8_t b = next_byte(d), base = b & 7;

	if (d->mod == 0 && base == 5) {
		d->disp = next_int(d, 4);
		return;
	}
	base |= d->rex & REX_B ? 8 : 0;
	/* Index 4 without its REX bit is no index. */
	if (((b >> 3) & 7) == 4 && !(d->rex & REX_X))
		d->base = base;
	else
		d->indexed = base;
}

static void modrm(struct decoder *d)
{
	uint8_t b = next_byte(d), rm = b & 7;

	d->mod = b >> 6;
	d->reg = (uint8_t)(((b >> 3) & 7) | (d->rex & REX_R ? 8 : 0));
	d->rm = (uint8_t)(rm | (d->rex & REX_B ? 8 : 0));
	d->memory = d->mod != 3;
	d->base = d->rm;
	if (!d->memory)
		return;
	if (rm == 4) {
		d->base = X86_NONE;
		sib(d);
	} else if (d->mod == 0 && rm == 5) {
		d->base = X86_NONE;
		d->disp = next_int(d, 4);
	}
	if (d->mod == 1)
		d->disp = next_int(d, 1);
	else if (d->mod == 2)
		d->disp = next_int(d, 4);
}

static unsigned one_immediate(const struct decoder *d)
{
	uint8_t op = d->opcode;
	unsigned word = d->opsize && !(d->rex & REX_W) ? 2 : 4;

	if (op < 0x40)
		return (op & 7) == 4 ? 1 : (op & 7) == 5 ? word : 0;
	if (op == 0x68 || op == 0x69 || op == 0x81 || op == 0xa9 || op == 0xc7)
		return word;
	if (op >= 0xb8 && op <= 0xbf)
		return d->rex & REX_W ? 8 : word;
	if (op == 0xe8 || op == 0xe9)
		return 4;
	if (op >= 0xa0 && op <= 0xa3)
		return d->addrsize ? 4 : 8;
	if (op == 0xc2 || op == 0xca)
		return 2;
	if (op == 0xc8)
		return 3;
	if (op == 0xf6)
		return (d->reg & 7) < 2;
	if (op == 0xf7)
		return (d->reg & 7) < 2 ? word : 0;
	return op == 0x6a || op == 0x6b || (op >= 0x70 && op <= 0x80) || op == 0x82 || op == 0x83 || op == 0xa8 ||
	       (op >= 0xb0 && op <= 0xb7) || op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xcd ||
	       (op >= 0xe0 && op <= 0xe7) || op == 0xeb;
}

static unsigned two_immediate(uint8_t op)
{
	if (op >= 0x80 && op <= 0x8f)
		return 4;
	return (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
	       (op >= 0xc4 && op <= 0xc6) || op == 0x0f;
}

static unsigned immediate_size(const struct decoder *d)
{
	switch (d->map) {
	case MAP_ONE:
		return one_immediate(d);
	case MAP_0F:
		return two_immediate(d->opcode);
	case MAP_0F3A:
		return 1;
	default:
		return d->xop;
	}
}

static bool has_modrm(const struct decoder *d)
{
	if (d->map == MAP_ONE)
		return one_has_modrm(d->opcode);
	if (d->map == MAP_0F)
		return d->vector ? d->opcode != 0x77 : two_has_modrm(d->opcode);
	return true;
}

static int parse(struct decoder *d)
{
	uint8_t b = prefixes(d);
	unsigned size;

	d->vector = !d->has_rex && vector_prefix(d, b);
	if (!d->vector)
		legacy_opcode(d, b);
	if (has_modrm(d))
		modrm(d);
	size = immediate_size(d);
	d->imm = next_int(d, size == 3 ? 2 : size);
	if (size == 3) /* enter */
		next_byte(d);
	return d->broken || d->at - d->start > X86_INSN_MAX ? -EBADMSG : 0;
}

/* --- meaning --- */

static void say(struct x86_insn *i, enum insn_kind kind, uint8_t reg, int64_t n)
{
	i->kind = (uint8_t)kind;
	i->reg = reg;
	i->n = n;
}

static uint8_t low_register(const struct decoder *d)
{
	return (uint8_t)((d->opcode & 7) | (d->rex & REX_B ? 8 : 0));
}

/* Group 1: add, or, adc, sbb, and, sub, xor, cmp with an immediate. */
static void group_1(const struct decoder *d, struct x86_insn *i)
{
	unsigned op = d->reg & 7;

	if (d->memory || !(d->rex & REX_W) || op == 7)
		return;
	if (d->rm != X86_SP) {
		if (op == 0 || op == 5)
			say(i, INSN_ADD, d->rm, op ? -d->imm : d->imm);
		return;
	}
	if (op == 0 || op == 5)
		say(i, INSN_SP_ADD, X86_SP, op ? -d->imm : d->imm);
	else
		say(i, INSN_SP_LOST, X86_SP, op == 4 ? d->imm : 0);
}

/* Group 5: inc, dec, call, far call, jmp, far jmp, push. */
static void group_5(const struct decoder *d, struct x86_insn *i)
{
	unsigned op = d->reg & 7;

	if (op == 2 || op == 3)
		say(i, INSN_CALL, X86_NONE, 0);
	else if (op == 4 || op == 5)
		say(i, INSN_END, d->memory ? X86_NONE : d->rm,
		    d->memory && d->base == X86_NONE ? INSN_BY_VARIABLE : INSN_BY_REGISTER);
	else if (op == 6)
		say(i, INSN_PUSH, d->memory ? X86_NONE : d->rm, d->opsize ? 2 : 8);
}

/* lea, 8 bytes wide */
static void address(const struct decoder *d, struct x86_insn *i)
{
	uint8_t to = d->reg;

	if (to == X86_SP && d->base == X86_SP) {
		say(i, INSN_SP_ADD, X86_SP, d->disp);
	} else if (to == X86_SP) {
		say(i, d->base == X86_NONE ? INSN_SP_LOST : INSN_SP_SET, d->base, d->disp);
	} else if (d->base == X86_SP) {
		say(i, INSN_SP_COPY, to, d->disp);
	} else if (d->base != X86_NONE) {
		i->base = d->base;
		say(i, INSN_COPY, to, d->disp);
	} else if (d->indexed == to) {
		say(i, INSN_ADD, to, 0);
	}
}

static void move_register(struct x86_insn *i, uint8_t to, uint8_t from)
{
	if (to == X86_SP) {
		say(i, INSN_SP_SET, from, 0);
	} else if (from == X86_SP) {
		say(i, INSN_SP_COPY, to, 0);
	} else {
		i->base = from;
		say(i, INSN_COPY, to, 0);
	}
}

/* mov, 8 bytes wide */
static void move(const struct decoder *d, struct x86_insn *i)
{
	bool from_rm = d->opcode == 0x8b;
	uint8_t to = from_rm ? d->reg : d->rm;

	if (d->opcode == 0x89 && d->memory) {
		i->base = d->base;
		say(i, INSN_STORE, d->reg, d->disp);
		return;
	}
	if (!d->memory) {
		move_register(i, to, from_rm ? d->rm : d->reg);
		return;
	}
	if (d->base == X86_NONE) {
		if (to == X86_SP)
			say(i, INSN_SP_LOST, X86_SP, 0);
		return;
	}
	i->base = d->base;
	say(i, to == X86_SP ? INSN_SP_LOAD : INSN_LOAD, to, d->disp);
}

/* mov, xchg, add and sub that give the stack pointer a value from elsewhere. */
static bool moves_sp(const struct decoder *d)
{
	switch (d->opcode) {
	case 0xbc:
	case 0x94:
		return low_register(d) == X86_SP;
	case 0x87:
		return d->reg == X86_SP || (!d->memory && d->rm == X86_SP);
	case 0x01:
	case 0x29:
		return !d->memory && d->rm == X86_SP;
	case 0x03:
	case 0x2b:
		return d->reg == X86_SP;
	default:
		return false;
	}
}

static void meaning_one(const struct decoder *d, struct x86_insn *i)
{
	uint8_t op = d->opcode;

	if (op >= 0x50 && op <= 0x57)
		say(i, INSN_PUSH, low_register(d), d->opsize ? 2 : 8);
	else if (op >= 0x58 && op <= 0x5f)
		say(i, INSN_POP, low_register(d), d->opsize ? 2 : 8);
	else if (op == 0x68 || op == 0x6a || op == 0x9c)
		say(i, INSN_PUSH, X86_NONE, d->opsize ? 2 : 8);
	else if (op == 0x9d || op == 0x8f)
		say(i, INSN_POP, op == 0x8f && !d->memory ? d->rm : X86_NONE, d->opsize ? 2 : 8);
	else if (op == 0x81 || op == 0x83)
		group_1(d, i);
	else if ((op == 0x89 || op == 0x8b) && d->rex & REX_W)
		move(d, i);
	else if (op == 0x8d && d->rex & REX_W)
		address(d, i);
	else if (op == 0xff)
		group_5(d, i);
	else if (op == 0xc9)
		say(i, INSN_LEAVE, X86_BP, 0);
	else if (op == 0xc3 || op == 0xc2)
		say(i, INSN_RET, X86_NONE, op == 0xc2 ? d->imm & 0xffff : 0);
	else if (op == 0xe8)
		say(i, INSN_CALL, X86_NONE, d->imm);
	else if (op == 0xe9 || op == 0xeb)
		say(i, INSN_JUMP, X86_NONE, d->imm);
	else if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3))
		say(i, INSN_BRANCH, X86_NONE, d->imm);
	else if (op == 0xf4 || op == 0xcc || op == 0xcb || op == 0xca || op == 0xcf)
		say(i, INSN_END, X86_NONE, 0);
	else if (moves_sp(d) || op == 0xc8) /* the last: enter */
		say(i, INSN_SP_LOST, X86_SP, 0);
	else if (d->rex & REX_W && (op == 0x03 || op == 0x2b || ((op == 0x01 || op == 0x29) && !d->memory)))
		say(i, INSN_ADD, op & 2 ? d->reg : d->rm, 0);
}

static void meaning(const struct decoder *d, struct x86_insn *i)
{
	if (d->map == MAP_ONE)
		meaning_one(d, i);
	else if (d->map == MAP_0F && d->opcode >= 0x80 && d->opcode <= 0x8f)
		say(i, INSN_BRANCH, X86_NONE, d->imm);
	else if (d->map == MAP_0F && d->opcode == 0x0b)
		say(i, INSN_END, X86_NONE, 0);
}

/* --- what is written --- */

enum { WRITES_REG = 1, WRITES_RM = 2, WRITES_ALL = 4, WRITES_MEMORY = 8 /* WRITES_RM where that is memory */ };

/* Whether its registers have 8 bits: without REX, those of numbers 4 to 7 are the second bytes of 0 to 3. */
static bool is_of_bytes(const struct decoder *d)
{
	uint8_t op = d->opcode;

	if (d->map == MAP_0F)
		return (op >= 0x90 && op <= 0x9f) || op == 0xb0 || op == 0xc0;
	if (!one_has_modrm(op))
		return op >= 0xb0 && op <= 0xb7;
	return !(op & 1) && op != 0x8c && op != 0x8e && !(op >= 0xd8 && op <= 0xdf);
}

static unsigned one_writes(const struct decoder *d)
{
	unsigned op = d->opcode, group = d->reg & 7;

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
	if ((op == 0xd9 || op == 0xdd) && group == 6 && d->memory) /* fnstenv, fnsave */
		return WRITES_ALL;
	return op == 0xff && group >= 2 ? 0 : WRITES_RM;
}

/* MMX and SSE: operands are registers of vectors, but of movd to a register and vmread. */
static bool two_is_of_vectors(uint8_t op)
{
	if (op == 0x78 || op == 0x79 || op == 0x7e)
		return false;
	return (op >= 0x10 && op <= 0x17) || (op >= 0x28 && op <= 0x2b) || (op >= 0x51 && op <= 0x7f) || op == 0xc2 ||
	       op == 0xc4 || op == 0xc6 || op >= 0xd0;
}

/* System instructions, xsave and the like write what others do not. */
static unsigned two_writes(const struct decoder *d)
{
	uint8_t op = d->opcode;

	if (op == 0x01 || op == 0x05 || op == 0xae || op == 0xc7)
		return WRITES_ALL;
	if ((op >= 0x40 && op <= 0x4f) || op == 0xaf || (op >= 0xb6 && op <= 0xb8) || (op >= 0xbc && op <= 0xbf) || op == 0x2c ||
	    op == 0x2d || op == 0x50 || op == 0xd7 || op == 0xc5 || op == 0x02 || op == 0x03)
		return WRITES_REG;
	if (op == 0xc0 || op == 0xc1 || op == 0xb2 || op == 0xb4 || op == 0xb5) /* the last: lss, lfs, lgs */
		return WRITES_REG | WRITES_RM;
	if (op == 0xa3 || op == 0x18 || op == 0x1f || op == 0x2e || op == 0x2f || (op == 0xba && (d->reg & 7) == 4))
		return 0;
	return two_is_of_vectors(op) ? WRITES_MEMORY : WRITES_RM;
}

#define BIT(reg) (1u << (reg))

/* Registers that are written, but not named by an operand. */
static unsigned one_implied(const struct decoder *d)
{
	unsigned op = d->opcode;

	if (op < 0x40)
		return (op & 0x38) != 0x38 && ((op & 7) == 4 || (op & 7) == 5) ? BIT(X86_AX) : 0;
	if (op >= 0x91 && op <= 0x97)
		return BIT(X86_AX) | BIT(low_register(d));
	if (op == 0x90)
		return d->rex & REX_B ? BIT(X86_AX) | BIT(X86_R8) : 0;
	if (op >= 0x58 && op <= 0x5f)
		return BIT(low_register(d));
	if (op == 0xf6 || op == 0xf7)
		return (d->reg & 7) >= 4 ? BIT(X86_AX) | BIT(X86_DX) : 0;
	if ((op >= 0x6c && op <= 0x6f) || (op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf))
		return BIT(X86_AX) | BIT(X86_CX) | BIT(X86_SI) | BIT(X86_DI);
	if (op >= 0xe0 && op <= 0xe2)
		return BIT(X86_CX);
	if (op == 0xc8 || op == 0xc9)
		return BIT(X86_BP);
	if (op == 0x98 || op == 0x9f || op == 0xa0 || op == 0xa1 || op == 0xd7 || op == 0xe4 || op == 0xe5 || op == 0xec || op == 0xed)
		return BIT(X86_AX);
	return op == 0x99 ? BIT(X86_DX) : 0;
}

static unsigned two_implied(const struct decoder *d)
{
	uint8_t op = d->opcode;

	if (op == 0xb0 || op == 0xb1)
		return BIT(X86_AX);
	if (op == 0xa2 || (op >= 0x31 && op <= 0x37))
		return BIT(X86_AX) | BIT(X86_BX) | BIT(X86_CX) | BIT(X86_DX);
	return op >= 0xc8 && op <= 0xcf ? BIT(low_register(d)) : 0;
}

/* A register that an instruction names. */
static unsigned x86_named(const struct decoder *d, uint8_t reg)
{
	return BIT(is_of_bytes(d) && !d->has_rex && reg >= 4 && reg < 8 ? reg - 4 : reg);
}

/* VEX and EVEX: what has a vector for its destination, as its namesakes without them; those to memory may be longer. */
static bool only_a_vector_is_written(const struct decoder *d)
{
	const uint8_t op = d->opcode;
	const bool stores = op == 0x11 || op == 0x13 || op == 0x17 || op == 0x29 || op == 0x2b || op == 0x7f || op == 0xd6 || op == 0xe7;
	const bool movq = op == 0x7e && d->stands_for == 2; /* from a vector or memory; the others store */

	return d->vector && d->map == MAP_0F && (two_is_of_vectors(op) || movq) && op != 0xd7 && !(stores && d->memory);
}

/* Those of several prefixes and longer opcodes are mostly of vectors, and are hardly told apart. */
static void x86_written(const struct decoder *d, struct x86_insn *i)
{
	bool one = d->map == MAP_ONE;
	unsigned what = 0, regs;

	if (only_a_vector_is_written(d))
		return;
	if (d->vector || (!one && d->map != MAP_0F)) {
		i->writes = X86_WRITES_ALL;
		return;
	}
	regs = one ? one_implied(d) : two_implied(d);
	if (has_modrm(d))
		what = one ? one_writes(d) : two_writes(d);
	else if (one && d->opcode >= 0xb0 && d->opcode <= 0xbf)
		regs |= x86_named(d, low_register(d));
	else if (!one && d->opcode == 0x05)
		what = WRITES_ALL;
	if (what & WRITES_REG)
		regs |= x86_named(d, d->reg);
	if (what & WRITES_RM && !d->memory)
		regs |= x86_named(d, d->rm);
	i->memory.written = what & (WRITES_RM | WRITES_MEMORY) && d->memory;
	i->writes = (uint16_t)(what & WRITES_ALL ? X86_WRITES_ALL : regs);
}

static void x86_operands(const struct decoder *d, struct x86_insn *i)
{
	i->nop = !d->vector && ((d->map == MAP_0F && d->opcode == 0x1f) ||
				(d->map == MAP_ONE && d->opcode == 0x90 && !(d->rex & REX_B)));
	if (d->memory) {
		i->memory.base = d->base != X86_NONE ? d->base : d->indexed;
		i->memory.exact = d->base != X86_NONE && !d->segment && !d->addrsize;
		i->memory.disp = (int32_t)d->disp;
	}
	x86_written(d, i);
}

int x86_decode(const uint8_t *code, size_t len, struct x86_insn *ret)
{
	struct decoder d = {.at = code, .start = code, .end = code + (len < X86_INSN_MAX ? len : X86_INSN_MAX),
			    .base = X86_NONE, .indexed = X86_NONE};

	*ret = (struct x86_insn){.reg = X86_NONE, .base = X86_NONE, .memory.base = X86_NONE};
	if (parse(&d) < 0)
		return -EBADMSG;
	ret->len = (uint8_t)(d.at - d.start);
	if (!d.vector)
		meaning(&d, ret);
	x86_operands(&d, ret);
	return 0;
}
