// SPDX-License-Identifier: Apache-2.0
/*
 * Where compiled code takes the process' stack pointer from when C code has
 * returned: mov stop(%r13),%rsp, or else mov %rbp,%rsp (beam_asm.hpp,
 * emit_leave_runtime). All bytes are searched for the first one, but it counts
 * only directly behind a return address: the same bytes elsewhere do no harm.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam.h"

#define PIECE	  4096u
#define FETCH_LEN 4u
#define BYTES_MAX (256u << 10) /* of a longer function nothing is known */

static bool beam_add_fetch(struct runtime_code *c, uint32_t *n, uint64_t offset)
{
	if (*n == BEAM_FETCHES)
		return false;
	c->word[*n / 2] |= (offset + 1) << *n % 2 * 32;
	++*n;
	return true;
}

static bool beam_fetches_in(const uint8_t *bytes, size_t len, uint8_t stop, uint64_t at, struct runtime_code *c, uint32_t *n)
{
	const uint8_t fetch[FETCH_LEN] = {0x49, 0x8b, 0x65, stop};

	for (size_t i = 0; i + FETCH_LEN <= len; i++)
		if (!memcmp(bytes + i, fetch, FETCH_LEN) && !beam_add_fetch(c, n, at + i))
			return false;
	return true;
}

int beam_fetches(const struct beam *b, struct memory *m, struct runtime_code *c)
{
	uint64_t len = c->end - c->start, size;
	uint8_t bytes[PIECE];
	uint32_t n = 0;
	bool all = len <= BYTES_MAX;

	if (!beam_rows[b->row].erts)
		return 0;
	/* An instruction may lie across pieces. */
	for (uint64_t at = 0; all && at < len; at += size - (FETCH_LEN - 1)) {
		size = MIN(len - at, (uint64_t)PIECE);
		if (size < FETCH_LEN)
			break;
		if (memory_read(m, c->start + at, bytes, size))
			return -EFAULT;
		all = beam_fetches_in(bytes, size, (uint8_t)beam_rows[b->row].stop, at, c, &n);
	}
	if (!all)
		c->word[BEAM_CROWDED_WORD] = 1;
	return 0;
}

bool beam_is_fetched(const struct runtime_code *c, uint64_t pc)
{
	for (uint32_t i = 0; i < BEAM_FETCHES; i++) {
		uint64_t offset = (uint32_t)(c->word[i / 2] >> i % 2 * 32);

		if (!offset)
			break;
		if (c->start + offset - 1 >= pc && c->start + offset - 1 - pc <= BEAM_FETCH_NEAR)
			return true;
	}
	return false;
}
