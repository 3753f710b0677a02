// SPDX-License-Identifier: Apache-2.0
/*
 * Rows of data, one for each layout of a version of Lua. A new version is a row.
 */
#include "runtime/puclua.h"

#include "base/cleanup.h"

#define B(n)	    (1ULL << ((n) & 63))
#define TO(m, n)    (B(n) * 2 - B(m)) /* bits m to n */
#define NO	    PUCLUA_NO_OP

/* lopcodes.h (enum OpCode), lopcodes.c (testAMode). */
static const struct puclua_opcodes puclua_ops51 = {
	.number = {[PUCLUA_MOVE] = 0, [PUCLUA_LOADNIL] = 3, [PUCLUA_GETUPVAL] = 4, [PUCLUA_GETGLOBAL] = 5,
		   [PUCLUA_GETTABUP] = NO, [PUCLUA_GETTABLE] = 6, [PUCLUA_GETFIELD] = NO, [PUCLUA_SELF] = 11,
		   [PUCLUA_SETGLOBAL] = 7, [PUCLUA_SETTABUP] = NO, [PUCLUA_SETUPVAL] = 8, [PUCLUA_SETTABLE] = 9,
		   [PUCLUA_SETFIELD] = NO, [PUCLUA_JMP] = 22, [PUCLUA_CALL] = 28, [PUCLUA_TAILCALL] = 29,
		   [PUCLUA_FORCALL] = 33, [PUCLUA_CLOSURE] = 36},
	.keep_a = {TO(7, 9) | TO(22, 25) | B(30) | TO(33, 35)},
};
static const struct puclua_opcodes puclua_ops52 = {
	.number = {[PUCLUA_MOVE] = 0, [PUCLUA_LOADNIL] = 4, [PUCLUA_GETUPVAL] = 5, [PUCLUA_GETGLOBAL] = NO,
		   [PUCLUA_GETTABUP] = 6, [PUCLUA_GETTABLE] = 7, [PUCLUA_GETFIELD] = NO, [PUCLUA_SELF] = 12,
		   [PUCLUA_SETGLOBAL] = NO, [PUCLUA_SETTABUP] = 8, [PUCLUA_SETUPVAL] = 9, [PUCLUA_SETTABLE] = 10,
		   [PUCLUA_SETFIELD] = NO, [PUCLUA_JMP] = 23, [PUCLUA_CALL] = 29, [PUCLUA_TAILCALL] = 30,
		   [PUCLUA_FORCALL] = 34, [PUCLUA_CLOSURE] = 37},
	.keep_a = {TO(8, 10) | TO(23, 27) | B(31) | B(34) | B(36) | B(39)},
};
static const struct puclua_opcodes puclua_ops53 = {
	.number = {[PUCLUA_MOVE] = 0, [PUCLUA_LOADNIL] = 4, [PUCLUA_GETUPVAL] = 5, [PUCLUA_GETGLOBAL] = NO,
		   [PUCLUA_GETTABUP] = 6, [PUCLUA_GETTABLE] = 7, [PUCLUA_GETFIELD] = NO, [PUCLUA_SELF] = 12,
		   [PUCLUA_SETGLOBAL] = NO, [PUCLUA_SETTABUP] = 8, [PUCLUA_SETUPVAL] = 9, [PUCLUA_SETTABLE] = 10,
		   [PUCLUA_SETFIELD] = NO, [PUCLUA_JMP] = 30, [PUCLUA_CALL] = 36, [PUCLUA_TAILCALL] = 37,
		   [PUCLUA_FORCALL] = 41, [PUCLUA_CLOSURE] = 44},
	.keep_a = {TO(8, 10) | TO(30, 34) | B(38) | B(41) | B(43) | B(46)},
};
static const struct puclua_opcodes puclua_ops54 = {
	.number = {[PUCLUA_MOVE] = 0, [PUCLUA_LOADNIL] = 8, [PUCLUA_GETUPVAL] = 9, [PUCLUA_GETGLOBAL] = NO,
		   [PUCLUA_GETTABUP] = 11, [PUCLUA_GETTABLE] = 12, [PUCLUA_GETFIELD] = 14, [PUCLUA_SELF] = 20,
		   [PUCLUA_SETGLOBAL] = NO, [PUCLUA_SETTABUP] = 15, [PUCLUA_SETUPVAL] = 10, [PUCLUA_SETTABLE] = 16,
		   [PUCLUA_SETFIELD] = 18, [PUCLUA_JMP] = 56, [PUCLUA_CALL] = 68, [PUCLUA_TAILCALL] = 69,
		   [PUCLUA_FORCALL] = 76, [PUCLUA_CLOSURE] = 79},
	.keep_a = {B(10) | TO(15, 18) | TO(46, 48) | TO(54, 62) | B(63),
		   TO(64, 66) | TO(70, 72) | TO(75, 76) | B(78) | B(82)},
	.is_wide = true,
};

#define PROTO_54                                                                                                 \
	{.tag = 10, .bytes = 120, .k = 56, .code = 64, .p = 72, .upvalues = 80, .lineinfo = 88, .abslineinfo = 96, \
	 .locvars = 104, .source = 112, .sizeupvalues = 16, .sizek = 20, .sizecode = 24, .sizelineinfo = 28,       \
	 .sizep = 32, .sizelocvars = 36, .sizeabslineinfo = 40, .linedefined = 44, .lastlinedefined = 48}
#define PROTO_53                                                                                                  \
	{.tag = 9, .bytes = 112, .k = 48, .code = 56, .p = 64, .lineinfo = 72, .locvars = 80, .upvalues = 88,     \
	 .source = 104, .sizeupvalues = 16, .sizek = 20, .sizecode = 24, .sizelineinfo = 28, .sizep = 32,         \
	 .sizelocvars = 36, .linedefined = 40, .lastlinedefined = 44}
#define PROTO_52                                                                                                   \
	{.tag = 9, .bytes = 112, .k = 16, .code = 24, .p = 32, .lineinfo = 40, .locvars = 48, .upvalues = 56,      \
	 .source = 72, .sizeupvalues = 80, .sizek = 84, .sizecode = 88, .sizelineinfo = 92, .sizep = 96,           \
	 .sizelocvars = 100, .linedefined = 104, .lastlinedefined = 108}
#define PROTO_51                                                                                                   \
	{.tag = 9, .bytes = 120, .k = 16, .code = 24, .p = 32, .lineinfo = 40, .locvars = 48, .upvalues = 56,      \
	 .source = 64, .sizeupvalues = 72, .sizek = 76, .sizecode = 80, .sizelineinfo = 84, .sizep = 88,           \
	 .sizelocvars = 92, .linedefined = 96, .lastlinedefined = 100, .nups = 112}

/* CIST_C is bit 1 of 5.4's callstatus; CIST_LUA bit 1 of 5.3's, bit 0 of 5.2's. */
#define LUA_54 0x3333
#define LUA_53 0xcccc
#define LUA_52 0xaaaa

#define COMMON_54                                                                                              \
	.op = &puclua_ops54, .l_ci = 32, .ci_previous = 16, .ci_savedpc = 32, .ci_status = 56,    \
	.status_shift = 48, .status_lua = LUA_54, .saves_pc = 32, .tag_lua = 0x46, .closure_p = 24,     \
	.pt = PROTO_54, .upvalue_bytes = 16, .string_bytes = 24
#define COMMON_52                                                                                              \
	.op = &puclua_ops52, .l_ci = 32, .l_jump = 112, .ci_previous = 16, .ci_status = 32, .status_shift = 16, \
	.status_lua = LUA_52, .status_entry = 2, .entry = PUCLUA_ENTRY_UNLESS, .status_tail = 6,                \
	.tag_lua = 0x46, .closure_p = 24, .pt = PROTO_52, .upvalue_bytes = 16, .string_bytes = 24
#define COMMON_53                                                                                              \
	.op = &puclua_ops53, .l_ci = 32, .l_jump = 88, .ci_previous = 16, .ci_savedpc = 40, .ci_status = 64,    \
	.status_shift = 16, .status_lua = LUA_53, .status_entry = 3, .status_tail = 5, .tag_lua = 0x46,         \
	.closure_p = 24, .pt = PROTO_53, .upvalue_bytes = 16

static const struct puclua_layout puclua_layouts[] = {
	/* From 5.1 on nothing of this changed. */
	{.from = 50101, .to = 50199, .op = &puclua_ops51, .l_ci = 40, .l_jump = 168, .l_base_ci = 80, .ci_bytes = 40,
	 .ci_savedpc = 24, .ci_status = 32, .status_shift = 32, .entry = PUCLUA_ENTRY_BY_CALL, .saves_pc = 48,
	 .tag_lua = 6, .closure_is_c = 10, .closure_p = 32, .pt = PROTO_51, .upvalue_bytes = 8, .string_bytes = 24},
	/* 5.2.0 has CallInfo.extra elsewhere. */
	{.from = 50200, .to = 50200, COMMON_52, .ci_savedpc = 48},
	{.from = 50201, .to = 50299, COMMON_52, .ci_savedpc = 56},
	{.from = 50300, .to = 50300, COMMON_53, .entry = PUCLUA_ENTRY_UNLESS, .string_bytes = 32},
	{.from = 50301, .to = 50301, COMMON_53, .entry = PUCLUA_ENTRY_UNLESS, .string_bytes = 24},
	{.from = 50302, .to = 50399, COMMON_53, .entry = PUCLUA_ENTRY_IF, .string_bytes = 24},
	/* lua_State.oldpc went to its end with 5.4.1, tbclist came with 5.4.3. */
	{.from = 50400, .to = 50400, COMMON_54, .l_jump = 88, .entry = PUCLUA_ENTRY_EACH, .status_tail = 4},
	{.from = 50401, .to = 50401, COMMON_54, .l_jump = 80, .entry = PUCLUA_ENTRY_EACH, .status_tail = 4},
	{.from = 50402, .to = 50402, COMMON_54, .l_jump = 80, .entry = PUCLUA_ENTRY_IF, .status_entry = 2, .status_tail = 5},
	{.from = 50403, .to = 50499, COMMON_54, .l_jump = 88, .entry = PUCLUA_ENTRY_IF, .status_entry = 2, .status_tail = 5},
};

const struct puclua_layout *puclua_layout_find(uint32_t version)
{
	for (size_t i = 0; i < ARRAY_SIZE(puclua_layouts); i++)
		if (version >= puclua_layouts[i].from && version <= puclua_layouts[i].to)
			return &puclua_layouts[i];
	return NULL;
}

const struct puclua_layout *puclua_layout_at(uint64_t index)
{
	return index < ARRAY_SIZE(puclua_layouts) ? &puclua_layouts[index] : NULL;
}

uint32_t puclua_layout_index(const struct puclua_layout *l)
{
	return (uint32_t)(l - puclua_layouts);
}

static uint16_t puclua_bit(uint32_t offset)
{
	return (uint16_t)(1u << offset / 8);
}

void puclua_keep(const struct puclua_layout *l, uint16_t ret[PUCLUA_ROWS])
{
	ret[PUCLUA_ROW_CI] = puclua_bit(l->ci_savedpc) | puclua_bit(l->ci_status) |
			     (l->ci_bytes ? 0 : puclua_bit(l->ci_previous));
	ret[PUCLUA_ROW_VALUE] = puclua_bit(PUCLUA_VALUE_TAG);
	ret[PUCLUA_ROW_CLOSURE] = puclua_bit(l->closure_p) | (l->closure_is_c ? puclua_bit(l->closure_is_c) : 0);
	ret[PUCLUA_ROW_PROTO] = puclua_bit(l->pt.sizecode) | puclua_bit(l->pt.linedefined) | puclua_bit(l->pt.code) |
				puclua_bit(l->pt.source) | puclua_bit(l->pt.lineinfo) |
				(puclua_row_last_is_code(l) ? puclua_bit(l->pt.k) : 0);
	ret[PUCLUA_ROW_LAST] = 1;
}
