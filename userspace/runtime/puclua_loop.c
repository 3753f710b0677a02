// SPDX-License-Identifier: Apache-2.0
/*
 * luaV_execute, which runs Lua's code. Libraries hide its symbol, but it is the
 * largest of the functions that lua_call leads to in a few direct calls: three
 * times the next one in every build of 5.1 to 5.4 that was looked at.
 */
#include <string.h>

#include "base/cleanup.h"
#include "runtime/puclua.h"
#include "unwind/cfi.h"

#define LOOP_BYTES_MIN 3072u /* of luaV_execute; functions as large are not looked into */
#define CALLED_MAX     64u
#define CALLED_DEPTH   3u
#define JUMP_BYTES     5u /* call or jmp with 32 bits */

struct puclua_called {
	struct binary *binary;
	uint32_t nr;
	uint64_t start[CALLED_MAX], size[CALLED_MAX];
};

/* Adds the function that begins there, if one does. */
static void puclua_called_add(struct puclua_called *c, uint64_t vaddr)
{
	struct fde f;

	for (uint32_t i = 0; i < c->nr; i++)
		if (c->start[i] == vaddr)
			return;
	if (c->nr == CALLED_MAX || !binary_is_code(c->binary, vaddr) || cfi_find(c->binary, vaddr, &f) < 0 || f.start != vaddr)
		return;
	c->start[c->nr] = vaddr;
	c->size[c->nr++] = f.end - f.start;
}

/* Those that it calls, or jumps to, by what looks like such an instruction of x86-64. */
static void puclua_called_by(struct puclua_called *c, uint32_t i)
{
	uint8_t code[LOOP_BYTES_MIN];
	uint64_t size = c->size[i];
	int32_t distance;

	if (size > sizeof(code) || binary_read_vaddr(c->binary, c->start[i], code, size) != (ssize_t)size)
		return;
	for (uint64_t at = 0; at + JUMP_BYTES <= size; at++) {
		if (code[at] != 0xe8 && code[at] != 0xe9)
			continue;
		memcpy(&distance, code + at + 1, sizeof(distance));
		puclua_called_add(c, c->start[i] + at + JUMP_BYTES + (uint64_t)(int64_t)distance);
	}
}

static uint32_t puclua_called_largest(const struct puclua_called *c)
{
	uint32_t largest = 0;

	for (uint32_t i = 1; i < c->nr; i++)
		if (c->size[i] > c->size[largest])
			largest = i;
	return largest;
}

bool puclua_add_loop(const struct runtime_file *file, struct runtime_attached *ret)
{
	struct puclua_called c = {.binary = file->binary};
	struct runtime_symbol call;
	uint32_t from = 0, largest;

	runtime_add_loop(file, "luaV_execute", ret);
	if (ret->nr_loops)
		return true;
	if (runtime_symbol(file->binary, "lua_callk", &call) < 0 && runtime_symbol(file->binary, "lua_call", &call) < 0)
		return false;
	puclua_called_add(&c, call.value);
	for (uint32_t depth = 0; depth < CALLED_DEPTH; depth++)
		for (uint32_t end = c.nr; from < end; from++)
			puclua_called_by(&c, from);
	largest = puclua_called_largest(&c);
	if (!c.nr || c.size[largest] < LOOP_BYTES_MIN)
		return false;
	runtime_add_loop_at(file, c.start[largest], c.size[largest], ret);
	return true;
}
