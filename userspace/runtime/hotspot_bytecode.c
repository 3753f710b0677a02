// SPDX-License-Identifier: Apache-2.0
/*
 * The loops of a method's bytecode. A compiled loop without a poll has no descriptor, so nothing says which line it is; where
 * nothing is inlined and the method has only one loop, or loops within each other, it is the innermost.
 * Opcodes and their lengths: The Java Virtual Machine Specification, chapter 6; those that HotSpot puts in place of others are
 * from OpenJDK, bytecodes.hpp and bytecodes.cpp, the same in 9 to 26.
 */
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"

#define CODE_MAX 8000 /* longer methods are not compiled (HugeMethodLimit) */

#define OP_IFEQ		153
#define OP_GOTO		167
#define OP_TABLESWITCH	170
#define OP_LOOKUPSWITCH 171
#define OP_WIDE		196
#define OP_IFNULL	198
#define OP_IFNONNULL	199
#define OP_GOTO_W	200
#define OP_LINEARSWITCH 228 /* in place of lookupswitch, of the same form */
#define OP_BINARYSWITCH 229
#define OP_IINC		132

struct bytecode { const uint8_t *code; uint32_t size; uint16_t version; };

/* Up to an opcode, those from the one before on have a length; 0: not fixed, or no opcode. */
static const struct { uint8_t last, length; } lengths[] = {
	{15, 1}, {16, 2}, {17, 3}, {18, 2}, {20, 3}, {25, 2}, {53, 1}, {58, 2}, {131, 1}, {132, 3}, {152, 1}, {168, 3},
	{169, 2}, {171, 0}, {177, 1}, {184, 3}, {186, 5}, {187, 3}, {188, 2}, {189, 3}, {191, 1}, {193, 3}, {195, 1},
	{196, 0}, {197, 4}, {199, 3}, {201, 5}, {202, 0}, {219, 3}, {220, 1}, {223, 4}, {224, 2}, {225, 4}, {226, 3},
	{227, 3}, {229, 0}, {230, 2}, {231, 3}, {232, 1}, {235, 3}, {236, 1}, {237, 2}, {255, 0},
};

/* In 8 a fast opcode is missing behind 212 that later versions have. */
static uint8_t bytecode_op(const struct bytecode *b, uint32_t at)
{
	uint8_t op = b->code[at];

	return (uint8_t)(op + (b->version < 9 && op >= 213 && op < 255));
}

static int32_t bytecode_s32(const struct bytecode *b, uint32_t at)
{
	uint32_t v;

	if (at > b->size - 4)
		return INT32_MAX;
	memcpy(&v, b->code + at, sizeof(v));
	return (int32_t)__builtin_bswap32(v);
}

static int32_t bytecode_s16(const struct bytecode *b, uint32_t at)
{
	return at > b->size - 2 ? 0 : (int16_t)(uint16_t)(b->code[at] << 8 | b->code[at + 1]);
}

/* 0: it is broken. */
static uint32_t bytecode_switch_length(const struct bytecode *b, uint32_t at, uint8_t op)
{
	uint32_t from = ALIGN_UP(at + 1, 4u);
	int64_t low = bytecode_s32(b, from + 4), nr;

	nr = op == OP_TABLESWITCH ? bytecode_s32(b, from + 8) - low + 1 : 2 * low;
	if (b->size < 12 || nr < 0 || nr > (int64_t)b->size)
		return 0;
	return from - at + (op == OP_TABLESWITCH ? 12 : 8) + 4 * (uint32_t)nr;
}

static uint32_t bytecode_length(const struct bytecode *b, uint32_t at, uint8_t op)
{
	uint32_t i = 0;

	if (op == OP_TABLESWITCH || op == OP_LOOKUPSWITCH || op == OP_LINEARSWITCH || op == OP_BINARYSWITCH)
		return bytecode_switch_length(b, at, op);
	if (op == OP_WIDE)
		return at + 1 < b->size && b->code[at + 1] == OP_IINC ? 6 : 4;
	while (lengths[i].last < op)
		i++;
	return lengths[i].length;
}

/* How far a jump goes; 0: it is none. */
static int32_t bytecode_jump(const struct bytecode *b, uint32_t at, uint8_t op)
{
	if ((op >= OP_IFEQ && op <= OP_GOTO) || op == OP_IFNULL || op == OP_IFNONNULL)
		return bytecode_s16(b, at + 1);
	return op == OP_GOTO_W ? bytecode_s32(b, at + 1) : 0;
}

struct bytecode_loop { uint32_t head, last; };

/* Adds a loop. false: it is beside the innermost so far, neither in it nor around it. */
static bool bytecode_take_loop(struct bytecode_loop *inner, uint32_t head, uint32_t last)
{
	bool none = !inner->last, within = head >= inner->head && last <= inner->last;

	if (!none && head == inner->head) {
		inner->last = MAX(inner->last, last);
		return true;
	}
	if (!none && !within)
		return head <= inner->head && last >= inner->last;
	*inner = (struct bytecode_loop){head, last};
	return true;
}

static bool bytecode_innermost(const struct bytecode *b, struct bytecode_loop *ret)
{
	uint32_t at = 0, length;

	for (; at < b->size; at += length) {
		uint8_t op = bytecode_op(b, at);
		int32_t by = bytecode_jump(b, at, op);

		length = bytecode_length(b, at, op);
		if (!length)
			return false;
		if (by < 0 && 0u - (uint32_t)by <= at && !bytecode_take_loop(ret, at + (uint32_t)by, at))
			return false;
	}
	return at == b->size && ret->last;
}

bool hotspot_loop(const struct hotspot *h, struct memory *m, const struct hotspot_method *method, int32_t *ret_bci)
{
	uint8_t code[CODE_MAX];
	const struct bytecode b = {.code = code, .size = method->code_size, .version = h->version};
	struct bytecode_loop loop = {0};

	if (b.size < 4 || b.size > CODE_MAX || memory_read(m, method->code, code, b.size) || !bytecode_innermost(&b, &loop))
		return false;
	/* Of its lines, the one in the middle. */
	*ret_bci = (int32_t)(loop.head + (loop.last - loop.head) / 2);
	return true;
}
