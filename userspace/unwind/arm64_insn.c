// SPDX-License-Identifier: Apache-2.0
#include "unwind/arm64_insn.h"

#include <stdbool.h>

enum { X30 = 30, SP = 31 };

static int64_t field(uint32_t word, unsigned low, unsigned bits)
{
	return word >> low & ((1u << bits) - 1);
}

static int64_t signed_field(uint32_t word, unsigned low, unsigned bits)
{
	int64_t v = field(word, low, bits);

	return v >> (bits - 1) ? v - (1LL << bits) : v;
}

static uint8_t rd(uint32_t word)
{
	return (uint8_t)field(word, 0, 5);
}

static uint8_t rn(uint32_t word)
{
	return (uint8_t)field(word, 5, 5);
}

static void say(struct insn *i, enum insn_kind kind, uint8_t reg, int64_t n)
{
	i->kind = (uint8_t)kind;
	i->reg = reg;
	i->n = n;
}

/* --- control --- */

static void jump(struct insn *i, enum insn_kind kind, uint32_t word, unsigned low, unsigned bits)
{
	say(i, kind, INSN_NO_REG, signed_field(word, low, bits) * 4 - ARM64_INSN_LEN);
}

/* br, blr, ret, and those that authenticate what they go to. */
static void by_register(struct insn *i, uint32_t word)
{
	unsigned what = (unsigned)field(word, 21, 2);
	bool authenticates = word & 1u << 11;

	if (what == 0)
		say(i, INSN_END, INSN_NO_REG, field(word, 23, 1) ? INSN_TRAP : INSN_BY_REGISTER); /* eret, br */
	else if (what == 1)
		say(i, INSN_CALL, INSN_NO_REG, 0);
	else if (what == 2)
		say(i, INSN_RET, authenticates ? X30 : rn(word), 0);
	else
		say(i, INSN_END, INSN_NO_REG, INSN_TRAP);
}

static bool control(struct insn *i, uint32_t word)
{
	if ((word & 0xfc000000) == 0x14000000)
		jump(i, INSN_JUMP, word, 0, 26);
	else if ((word & 0xfc000000) == 0x94000000)
		jump(i, INSN_CALL, word, 0, 26);
	else if ((word & 0xff000000) == 0x54000000 || (word & 0x7e000000) == 0x34000000)
		jump(i, INSN_BRANCH, word, 5, 19); /* b.cond, cbz, cbnz */
	else if ((word & 0x7e000000) == 0x36000000)
		jump(i, INSN_BRANCH, word, 5, 14); /* tbz, tbnz */
	else if ((word & 0xfe000000) == 0xd6000000)
		by_register(i, word);
	else if (!(word & 0xffff0000) || (word & 0xffe0001f) == 0xd4200000 || (word & 0xffe0001f) == 0xd4400000)
		say(i, INSN_END, INSN_NO_REG, INSN_TRAP); /* udf, brk, hlt */
	else
		return false;
	return true;
}

/* --- memory --- */

/* As data, register 31 is the one that is always zero. */
static uint8_t general(uint8_t reg)
{
	return reg == SP ? INSN_NO_REG : reg;
}

/* Loads and stores beside the stack pointer; how: 1 post-index, 3 pre-index, else none. */
static void access(struct insn *i, uint32_t word, bool load, unsigned how, int64_t n)
{
	bool by_sp = rn(word) == SP;

	i->base = rn(word);
	say(i, load ? INSN_LOAD : INSN_STORE, general(rd(word)), how & 1 ? 0 : n);
	if (by_sp && how == 3)
		i->before = n;
	if (by_sp && how == 1)
		i->after = n;
}

/* Anything but whole general registers: only the stack pointer counts. */
static void writeback(struct insn *i, uint32_t word, unsigned how, int64_t n)
{
	if (rn(word) == SP && how & 1)
		say(i, INSN_SP_ADD, SP, n);
}

static void pair(struct insn *i, uint32_t word)
{
	unsigned opc = (unsigned)field(word, 30, 2), how = (unsigned)field(word, 23, 2);
	bool vector = word & 1u << 26;
	int64_t n = signed_field(word, 15, 7) * (vector ? 4 << opc : opc == 2 ? 8 : 4);

	if (vector || opc != 2) {
		writeback(i, word, how, n);
		return;
	}
	access(i, word, word & 1u << 22, how, n);
	i->pair = general((uint8_t)field(word, 10, 5));
}

static bool is_whole(uint32_t word)
{
	return field(word, 30, 2) == 3 && !(word & 1u << 26) && field(word, 22, 2) < 2;
}

static bool memory(struct insn *i, uint32_t word)
{
	unsigned how = (unsigned)field(word, 10, 2);

	if ((word & 0x3a000000) == 0x28000000) {
		pair(i, word);
	} else if ((word & 0x3b200000) == 0x38000000) {
		if (is_whole(word) && how != 2)
			access(i, word, word & 1u << 22, how, signed_field(word, 12, 9));
		else
			writeback(i, word, how, signed_field(word, 12, 9));
	} else if ((word & 0x3b000000) == 0x39000000) {
		if (is_whole(word))
			access(i, word, word & 1u << 22, 0, field(word, 10, 12) * 8);
	} else {
		return false;
	}
	return true;
}

/* --- the stack pointer in arithmetic --- */

static void add_immediate(struct insn *i, uint32_t word)
{
	int64_t n = field(word, 10, 12) << (word & 1u << 22 ? 12 : 0);

	if (word & 1u << 30)
		n = -n;
	if (rd(word) == SP)
		say(i, rn(word) == SP ? INSN_SP_ADD : INSN_SP_SET, rn(word), n);
	else if (rn(word) == SP)
		say(i, INSN_SP_COPY, rd(word), n);
}

static void arithmetic(struct insn *i, uint32_t word)
{
	bool logical = (word & 0x9f800000) == 0x92000000 && (word & 0x60000000) != 0x60000000;

	if ((word & 0xbf800000) == 0x91000000)
		add_immediate(i, word);
	else if (rd(word) == SP && (logical || (word & 0xbfe00000) == 0x8b200000))
		say(i, INSN_SP_LOST, SP, 0); /* and, orr, eor; add and sub of a register */
}

void arm64_decode(uint32_t word, struct insn *ret)
{
	*ret = (struct insn){.len = ARM64_INSN_LEN, .reg = INSN_NO_REG, .pair = INSN_NO_REG, .base = INSN_NO_REG};
	if (!control(ret, word) && !memory(ret, word))
		arithmetic(ret, word);
}
