// SPDX-License-Identifier: Apache-2.0
/*
 * The frame that luaD_rawrunprotected makes, by its code: what it writes to L's
 * errorJmp is the address of a struct on the stack, L itself is kept there as
 * well, as it is needed after setjmp, and its one call through a register leaves
 * the return address below. What is read of code that was compiled otherwise
 * leads to no state, as each call on a stack is proved by its state.
 *
 * Compiled as C++ it is inlined wherever it is called: a place that lua_pcall's copy
 * returns to is not one of lua_resume's, which enters coroutines.
 */
#include <string.h>

#include "base/cleanup.h"
#include "runtime/puclua.h"

#define CALLERS	  3u  /* of luaD_rawrunprotected, in two calls at most */
#define FAR_BYTES 24u /* from an address that is made to where it is written */

/* An instruction that moves a register to memory, or an address to a register, as far as it is understood (Intel SDM). */
struct puclua_move {
	uint8_t reg, base; /* numbers of registers; 4 as base: the stack pointer */
	int32_t distance;
	uint32_t bytes;
};

/* opcode: 0x89 (mov) or 0x8d (lea), of 64 bits, with a distance or none. */
static bool puclua_move_at(const uint8_t *code, uint32_t left, uint8_t opcode, struct puclua_move *ret)
{
	uint32_t at = 3, mode;
	int32_t distance = 0;

	if (left < 8 || (code[0] & 0xf8) != 0x48 || code[1] != opcode)
		return false;
	mode = code[2] >> 6;
	ret->reg = (uint8_t)((code[2] >> 3 & 7) | (code[0] & 4) << 1);
	ret->base = (uint8_t)((code[2] & 7) | (code[0] & 1) << 3);
	if ((code[2] & 7) == 4 && code[at++] != 0x24) /* an index, or another base */
		return false;
	if (mode == 3 || (!mode && (code[2] & 7) == 5))
		return false;
	if (mode == 1)
		distance = (int8_t)code[at++];
	if (mode == 2) {
		memcpy(&distance, code + at, sizeof(distance));
		at += sizeof(distance);
	}
	ret->distance = distance;
	ret->bytes = at;
	return true;
}

enum { REG_SP = 4, REG_ARGUMENT = 7 }; /* rsp; rdi: the first argument */

/* Where an address on the stack is made, and written to errorJmp soon after. */
static bool puclua_find_jump(const struct puclua_layout *l, const uint8_t *code, uint32_t size, struct puclua_call *ret,
			     uint32_t *ret_at)
{
	struct puclua_move made, written;

	for (uint32_t at = 0; at < size; at++) {
		if (!puclua_move_at(code + at, size - at, 0x8d, &made) || made.base != REG_SP)
			continue;
		for (uint32_t next = at + made.bytes; next < MIN(size, at + FAR_BYTES); next++)
			if (puclua_move_at(code + next, size - next, 0x89, &written) && written.reg == made.reg &&
			    written.distance == l->l_jump && written.base != REG_SP) {
				ret->jump = (int16_t)(made.distance + 8);
				*ret_at = next;
				return true;
			}
	}
	return false;
}

/* Where the first argument, L, is kept. */
static bool puclua_find_kept(const uint8_t *code, uint32_t size, struct puclua_call *ret)
{
	struct puclua_move m;

	for (uint32_t at = 0; at < size; at++)
		if (puclua_move_at(code + at, size - at, 0x89, &m) && m.reg == REG_ARGUMENT && m.base == REG_SP) {
			ret->kept = (int16_t)(m.distance + 8);
			return true;
		}
	return false;
}

/* Behind the call through a register: ff d0 to ff d7. */
static uint32_t puclua_find_back(const uint8_t *code, uint32_t from, uint32_t size)
{
	for (uint32_t at = from; at + 2 <= size; at++)
		if (code[at] == 0xff && (code[at + 1] & 0xf8) == 0xd0)
			return at + 2;
	return 0;
}

static bool puclua_is_protected(const struct puclua_functions *c, uint32_t i, const struct puclua_layout *l,
				struct puclua_call *ret)
{
	uint8_t code[PUCLUA_FUNCTION_BYTES];
	uint32_t size = puclua_functions_code(c, i, code), at, back;

	if (!puclua_find_jump(l, code, size, ret, &at) || !puclua_find_kept(code, at, ret))
		return false;
	back = puclua_find_back(code, at, size);
	ret->back = c->start[i] + back;
	return back;
}

/* Whether lua_resume makes such a frame itself: writes errorJmp. */
static bool puclua_writes_jump(const struct puclua_layout *l, const uint8_t *code, uint32_t size)
{
	struct puclua_move m;

	for (uint32_t at = 0; at < size; at++)
		if (puclua_move_at(code + at, size - at, 0x89, &m) && m.distance == l->l_jump && m.base != REG_SP)
			return true;
	return false;
}

bool puclua_call_is_resumes(struct binary *b, const struct puclua_layout *l, uint64_t resume, uint64_t back)
{
	struct puclua_functions c = {.binary = b};
	uint8_t code[PUCLUA_FUNCTION_BYTES];
	uint32_t size;

	puclua_functions_add(&c, resume);
	size = c.nr ? puclua_functions_code(&c, 0, code) : 0;
	if (!size || puclua_writes_jump(l, code, size))
		return false;
	puclua_functions_called_by(&c, 0);
	for (uint32_t i = 1; i < c.nr; i++)
		if (back - c.start[i] <= c.size[i])
			return true;
	return false;
}

bool puclua_find_protected(struct binary *b, const struct puclua_layout *l, struct puclua_call *ret)
{
	static const char *const callers[CALLERS] = {"lua_resume", "lua_pcallk", "lua_pcall"};
	struct puclua_functions c = {.binary = b};
	struct runtime_symbol s;
	uint32_t called;

	for (uint32_t i = 0; i < CALLERS; i++)
		if (runtime_symbol(b, callers[i], &s) == 0)
			puclua_functions_add(&c, s.value);
	called = c.nr;
	for (uint32_t from = 0, depth = 0; depth < 2; depth++, called = c.nr)
		for (; from < called; from++)
			puclua_functions_called_by(&c, from);
	for (uint32_t i = 0; i < c.nr; i++)
		if (puclua_is_protected(&c, i, l, ret))
			return true;
	return false;
}
