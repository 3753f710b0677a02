// SPDX-License-Identifier: Apache-2.0
/*
 * Where compiled code takes the process' stack pointer from when C code has
 * returned: mov stop(%r13),%rsp, or else mov %rbp,%rsp (beam_asm.hpp,
 * emit_leave_runtime). All bytes are searched for the first one, but it counts
 * only directly behind a return address, or behind the reading of the code index
 * in force there, without the second one in between, with which a fragment of
 * shared code ends: the same bytes elsewhere do no harm. Where mov %rax,%r13 is
 * directly behind it, another process was chosen (do_schedule): there is no caller.
 * An emulator that keeps frame pointers has the pointer in the process always:
 * of it, only that choice is sought.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam.h"

#define PIECE	  4096u
#define FETCH_LEN 4u
#define INDEX_LEN 22u /* movabs $index,%rdi; mov $3,%esi; mov (%rdi),%r12d; cmovne %rsi,%r12 */
#define LEAVE_LEN 3u
#define OVERLAP	  (BEAM_FETCH_NEAR + LEAVE_LEN + INDEX_LEN + FETCH_LEN - 1)
#define BYTES_MAX (256u << 10) /* longer functions are not searched: their callers are unknown */

/* A mark: reach << 24 | offset + 1. Calls that return as many bytes before the offset, or fewer, are before this fetch. */
#define REACH_SHIFT 24
#define OFFSET_MASK ((1u << REACH_SHIFT) - 1)
_Static_assert(BYTES_MAX < OFFSET_MASK && BEAM_FETCH_NEAR < 1u << 5, "a mark has room for both, beneath BEAM_FRAME");

static bool beam_add_fetch(struct runtime_code *c, uint32_t *n, uint64_t offset, uint64_t reach)
{
	uint64_t last = *n ? runtime_code_half(c, *n - 1) & OFFSET_MASK : 0;

	/* Those in the overlap of two pieces are met twice. */
	if (last >= offset + 1)
		return true;
	if (*n == BEAM_MARKS)
		return false;
	runtime_code_set_half(c, *n, (uint32_t)(reach << REACH_SHIFT | (offset + 1)));
	++*n;
	return true;
}

/* How many bytes before a fetch read the code index. */
static uint32_t beam_index_before(const uint8_t *bytes, size_t i)
{
	return i >= INDEX_LEN && bytes[i - INDEX_LEN] == 0x48 && bytes[i - INDEX_LEN + 1] == 0xbf ? INDEX_LEN : 0;
}

/* mov %rbp,%rsp, in either encoding. */
static bool beam_is_leave(const uint8_t *at)
{
	return at[0] == 0x48 && ((at[1] == 0x89 && at[2] == 0xec) || (at[1] == 0x8b && at[2] == 0xe5));
}

/* What returns before the pointer is taken from rbp ends there: the fetch behind that is of another call, or fragment. */
static uint32_t beam_fetch_reach(const uint8_t *bytes, size_t i)
{
	for (uint32_t reach = 0; reach < BEAM_FETCH_NEAR && i >= reach + LEAVE_LEN; reach++)
		if (beam_is_leave(bytes + i - reach - LEAVE_LEN))
			return reach;
	return BEAM_FETCH_NEAR;
}

static bool beam_fetches_in(const uint8_t *bytes, size_t len, uint8_t stop, uint64_t at, struct runtime_code *c, uint32_t *n)
{
	const uint8_t fetch[FETCH_LEN] = {0x49, 0x8b, 0x65, stop};

	for (size_t i = 0; i + FETCH_LEN <= len; i++) {
		size_t from = i - beam_index_before(bytes, i);

		if (!memcmp(bytes + i, fetch, FETCH_LEN) && !beam_add_fetch(c, n, at + from, beam_fetch_reach(bytes, from)))
			return false;
	}
	return true;
}

/* Only code that all modules share chooses processes. */
static void beam_find_choice(const uint8_t *bytes, size_t len, struct runtime_code *c)
{
	static const uint8_t choice[] = {0x49, 0x89, 0xc5};
	const uint8_t *at = c->kind == BEAM_SHARED ? memmem(bytes, len, choice, sizeof(choice)) : NULL;

	if (at)
		c->word[BEAM_CHOICE_WORD] = (uint64_t)(at - bytes) + 1;
}

int beam_fetches(const struct beam *b, struct memory *m, struct runtime_code *c)
{
	/* What is behind a call at the end of a piece of shared code is in the next one. */
	uint64_t len = c->end - c->start + (c->kind == BEAM_SHARED ? BEAM_FETCH_NEAR + OVERLAP : 0), size;
	uint8_t bytes[PIECE];
	uint32_t n = 0;
	bool all = len <= BYTES_MAX;

	if (!beam_rows[b->row].erts || (b->framed && c->kind != BEAM_SHARED))
		return 0;
	/* An instruction may lie across pieces. */
	for (uint64_t at = 0; all && at < len; at = at + size < len ? at + size - OVERLAP : len) {
		size = MIN(len - at, (uint64_t)PIECE);
		if (memory_read(m, c->start + at, bytes, size))
			return -EFAULT;
		all = beam_fetches_in(bytes, size, (uint8_t)beam_rows[b->row].stop, at, c, &n);
		beam_find_choice(bytes, size, c);
	}
	if (!all)
		c->word[BEAM_CROWDED_WORD] |= BEAM_CROWDED_FETCHES;
	return 0;
}

bool beam_is_choice(const struct runtime_code *c, uint64_t pc)
{
	return c->word[BEAM_CHOICE_WORD] && pc == c->start + c->word[BEAM_CHOICE_WORD] - 1;
}

bool beam_is_fetched(const struct runtime_code *c, uint64_t pc)
{
	for (uint32_t i = 0; i < BEAM_MARKS; i++) {
		uint32_t mark = runtime_code_half(c, i);
		uint64_t fetch = c->start + (mark & OFFSET_MASK) - 1;

		if (!mark || mark & BEAM_FRAME)
			break;
		if (fetch >= pc && fetch - pc <= mark >> REACH_SHIFT)
			return true;
	}
	return false;
}
