// SPDX-License-Identifier: Apache-2.0
/*
 * Where compiled code takes the process' stack pointer from when C code has
 * returned: mov stop(%r13),%rsp, or else mov %rbp,%rsp (beam_asm.hpp,
 * emit_leave_runtime). Between lea n(%rbx),%rsp (emit_enter_runtime), which takes
 * the thread's own stack, and this, there may be several calls of C code: a
 * binary is made by one for each of its parts (emit_i_bs_create_bin,
 * instr_bs.cpp). So all from where a stack was last taken up to the first one
 * belongs to that. All bytes are searched for these instructions: the same bytes
 * elsewhere do no harm but in between. Where mov %rax,%r13 is directly behind a
 * call, another process was chosen (do_schedule): there is no caller.
 * An emulator that keeps frame pointers has the pointer in the process always:
 * of it, only that choice is sought.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam.h"

#define PIECE	  4096u
#define FETCH_LEN 4u
#define TAKE_LEN  3u
#define OVERLAP	  (FETCH_LEN - 1)
#define BYTES_MAX (256u << 10) /* longer functions are not searched: their callers are unknown */
#define SHARED_AHEAD 256u      /* bytes behind a piece of shared code: the way back of a call at its end is there */

/* A mark: reach << 19 | offset + 1. The process' stack is left, by a fetch, from as many bytes before the offset on. */
#define REACH_SHIFT 19
#define REACH_MAX   4095u
#define OFFSET_MASK ((1u << REACH_SHIFT) - 1)
_Static_assert(BYTES_MAX < OFFSET_MASK && REACH_MAX < 1u << (31 - REACH_SHIFT), "a mark has room for both, beneath BEAM_FRAME");

static bool beam_add_fetch(struct runtime_code *c, uint32_t *n, uint64_t offset, uint64_t reach)
{
	if (*n == BEAM_MARKS)
		return false;
	runtime_code_set_half(c, *n, (uint32_t)(reach << REACH_SHIFT | (offset + 1)));
	++*n;
	return true;
}

/* From one offset to another, by as many marks as that takes. */
static bool beam_add_fetches(struct runtime_code *c, uint32_t *n, uint64_t from, uint64_t to)
{
	for (; to - from > REACH_MAX; from += REACH_MAX)
		if (!beam_add_fetch(c, n, from + REACH_MAX, REACH_MAX))
			return false;
	return beam_add_fetch(c, n, to, to - from);
}

/* mov %rbp,%rsp, in either encoding; lea n(%rbx),%rsp. */
static bool beam_takes_stack(const uint8_t at[TAKE_LEN])
{
	if (at[0] != 0x48)
		return false;
	return (at[1] == 0x89 && at[2] == 0xec) || (at[1] == 0x8b && at[2] == 0xe5) ||
	       (at[1] == 0x8d && (at[2] == 0x63 || at[2] == 0xa3));
}

/* from: the end of the last instruction that takes a stack, which may be in a former piece. */
static bool beam_fetches_in(const uint8_t *bytes, size_t len, uint8_t stop, uint64_t at, struct runtime_code *c, uint32_t *n,
			    uint64_t *from)
{
	const uint8_t fetch[FETCH_LEN] = {0x49, 0x8b, 0x65, stop};

	for (size_t i = 0; i + FETCH_LEN <= len; i++) {
		if (at + i < *from)
			continue;
		if (!memcmp(bytes + i, fetch, FETCH_LEN)) {
			if (!beam_add_fetches(c, n, *from, at + i))
				return false;
			*from = at + i + FETCH_LEN;
		} else if (beam_takes_stack(bytes + i)) {
			*from = at + i + TAKE_LEN;
		}
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
	uint64_t len = c->end - c->start + (c->kind == BEAM_SHARED ? SHARED_AHEAD : 0), size, from = 0;
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
		all = beam_fetches_in(bytes, size, (uint8_t)beam_rows[b->row].stop, at, c, &n, &from);
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
