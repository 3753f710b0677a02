// SPDX-License-Identifier: Apache-2.0
/*
 * luaV_execute, which runs Lua's code. Libraries hide its symbol, but it is the
 * largest of the functions that lua_call leads to in a few direct calls: three
 * times the next one in every build of 5.1 to 5.4 that was looked at.
 */
#include "base/cleanup.h"
#include "runtime/puclua.h"

#define LOOP_BYTES_MIN 3072u
#define LOOP_BYTES_MAX 65536u
#define CALLED_DEPTH   3u

static uint32_t puclua_functions_largest(const struct puclua_functions *c)
{
	uint32_t largest = 0;

	for (uint32_t i = 1; i < c->nr; i++)
		if (c->size[i] > c->size[largest])
			largest = i;
	return largest;
}

static bool puclua_find_loop(struct binary *b, struct runtime_symbol *ret)
{
	struct puclua_functions c = {.binary = b};
	struct runtime_symbol call;
	uint32_t from = 0, largest;

	if (runtime_symbol(b, "lua_callk", &call) < 0 && runtime_symbol(b, "lua_call", &call) < 0)
		return false;
	puclua_functions_add(&c, call.value);
	for (uint32_t depth = 0; depth < CALLED_DEPTH; depth++)
		for (uint32_t end = c.nr; from < end; from++)
			puclua_functions_called_by(&c, from);
	largest = puclua_functions_largest(&c);
	if (!c.nr || c.size[largest] < LOOP_BYTES_MIN)
		return false;
	*ret = (struct runtime_symbol){.value = c.start[largest], .size = c.size[largest]};
	return true;
}

/* --- where it keeps its place --- */

/* The register that an instruction at code writes to memory at that distance of another one (mov r64 to m64); -1: none. */
static int puclua_stored(const uint8_t *code, uint8_t distance)
{
	uint8_t modrm = code[2];

	if ((code[0] & 0xfa) != 0x48 || code[1] != 0x89 || modrm >> 6 != 1 || (modrm & 7) == 4 || code[3] != distance)
		return -1;
	return (modrm >> 3 & 7) | (code[0] & 4) << 1;
}

/*
 * The register that the loop writes most often to where it saves its place. It is one that functions preserve, or not of
 * use: rbx, rbp, r12 to r15. As its number in DWARF and 1; 0: it is not clear.
 */
static uint64_t puclua_place_register(struct binary *b, uint64_t vaddr, uint64_t size, uint8_t saves_pc)
{
	static const uint8_t dwarf[16] = {[3] = 3 + 1, [5] = 6 + 1, [12] = 12 + 1, [13] = 13 + 1, [14] = 14 + 1, [15] = 15 + 1};
	uint32_t count[16] = {0}, most = 0, all = 0;
	uint8_t code[LOOP_BYTES_MAX];

	size = MIN(size, (uint64_t)sizeof(code));
	if (binary_read_vaddr(b, vaddr, code, size) != (ssize_t)size)
		return 0;
	for (uint64_t at = 0; at + 4 <= size; at++) {
		int reg = puclua_stored(code + at, saves_pc);

		if (reg < 0)
			continue;
		all++;
		count[reg]++;
		most = count[reg] > count[most] ? (uint32_t)reg : most;
	}
	return 2 * count[most] > all ? dwarf[most] : 0;
}

bool puclua_add_loop(const struct runtime_file *file, const struct puclua_layout *l, struct runtime_attached *ret)
{
	struct runtime_symbol loop;

	if (runtime_symbol(file->binary, "luaV_execute", &loop) == 0)
		runtime_add_loop(file, "luaV_execute", ret);
	else if (puclua_find_loop(file->binary, &loop))
		runtime_add_loop_at(file, loop.value, loop.size, ret);
	if (ret->nr_loops && l->saves_pc)
		ret->param[PUCLUA_PARAM_PLACE] = puclua_place_register(file->binary, loop.value, loop.size, l->saves_pc);
	return ret->nr_loops;
}
