// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of the file by who calls them. Libraries hide most of Lua's symbols,
 * but unwind tables tell where functions begin and end.
 */
#include <string.h>

#include "base/cleanup.h"
#include "runtime/puclua.h"
#include "unwind/cfi.h"

#define JUMP_BYTES 5u /* call or jmp with 32 bits */

void puclua_functions_add(struct puclua_functions *c, uint64_t vaddr)
{
	struct fde f;

	for (uint32_t i = 0; i < c->nr; i++)
		if (c->start[i] == vaddr)
			return;
	if (c->nr == PUCLUA_FUNCTIONS_MAX || !binary_is_code(c->binary, vaddr) || cfi_find(c->binary, vaddr, &f) < 0 ||
	    f.start != vaddr)
		return;
	c->start[c->nr] = vaddr;
	c->size[c->nr++] = f.end - f.start;
}

uint32_t puclua_functions_code(const struct puclua_functions *c, uint32_t i, uint8_t to[PUCLUA_FUNCTION_BYTES])
{
	uint64_t size = c->size[i];

	if (size > PUCLUA_FUNCTION_BYTES || binary_read_vaddr(c->binary, c->start[i], to, size) != (ssize_t)size)
		return 0;
	return (uint32_t)size;
}

void puclua_functions_called_by(struct puclua_functions *c, uint32_t i)
{
	uint8_t code[PUCLUA_FUNCTION_BYTES];
	uint32_t size = puclua_functions_code(c, i, code);
	int32_t distance;

	for (uint32_t at = 0; at + JUMP_BYTES <= size; at++) {
		if (code[at] != 0xe8 && code[at] != 0xe9)
			continue;
		memcpy(&distance, code + at + 1, sizeof(distance));
		puclua_functions_add(c, c->start[i] + at + JUMP_BYTES + (uint64_t)(int64_t)distance);
	}
}
