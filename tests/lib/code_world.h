/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of runtimes whose frames lie on the native stack share, over the
 * memory of world.h, which comes before it.
 */
#ifndef OTP_TESTS_CODE_WORLD_H
#define OTP_TESTS_CODE_WORLD_H

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/runtime.h"

/* For struct runtime_place: the stack is in the world, too. */
static inline int word_of_world(void *ctx, uint64_t addr, uint64_t *ret)
{
	return memory_of_world(ctx, addr, ret, sizeof(*ret));
}

/* The keys of the functions at pc, from the innermost out; at most 4. Returns how many. */
static inline uint32_t code_chain(const struct runtime_code_made *c, uint64_t pc, bool caller, uint64_t to[4])
{
	uint32_t node = runtime_code_node_at(&c->code, c->rows, pc, caller), n = 0;

	while (node != RUNTIME_NO_NODE && n < 4) {
		to[n++] = c->functions[c->nodes[node].function].key;
		node = c->nodes[node].outer ? c->nodes[node].outer - 1u : RUNTIME_NO_NODE;
	}
	return n;
}

/* For fuzzers. A piece of input is laid over the world: where, in units of 4 bytes, how many bytes, the bytes. Returns its length. */
static inline size_t world_lay(const uint8_t *data, size_t size)
{
	uint32_t at;
	size_t len;

	if (size < 4)
		return size;
	at = (uint32_t)(data[0] | data[1] << 8) * 4u % (WORLD_BYTES - 256);
	len = MIN((size_t)data[2], size - 3);
	memcpy(world + at, data + 3, len);
	return 3 + len;
}

/* For fuzzers. What decode made of hostile memory is within its bounds. */
static inline void world_decode(const struct runtime_ops *ops, const struct runtime_attached *a, const struct runtime_frame *f)
{
	static struct runtime_function function;

	memset(&function, 0, sizeof(function));
	memory_question(&memory);
	ops->decode(a, &memory, f, &function);
	if (strnlen(function.name, sizeof(function.name)) == sizeof(function.name) ||
	    strnlen(function.file, sizeof(function.file)) == sizeof(function.file) || function.nr_lines > RUNTIME_LINES_MAX)
		abort();
}

#endif
