// SPDX-License-Identifier: Apache-2.0
/*
 * The last resort, for code without tables that does not return, such as musl's
 * start of a thread, which ends in pthread_exit: searches a little way up the
 * stack for the address of a listed root in the same file. A root's code is
 * compared byte by byte, so an accidental match is unlikely; the frame is
 * marked as a guess all the same.
 */
#include "base/cleanup.h"
#include "unwind/cursor.h"

#define SCAN_WORDS 64

static bool scan_is_root(const struct cursor *c, uint64_t pc)
{
	struct code code;

	if (pc <= c->map->start || pc > c->map->end)
		return false;
	code_read(c->file->binary, mapping_address(c->map, pc - 1), &code);
	return c->arch->after_call(&code) && c->arch->thread_start(&code);
}

static void scan_enter(struct cursor *c, uint64_t at, uint64_t pc)
{
	c->valid = 0;
	cursor_set(c, c->arch->pc, pc);
	cursor_set(c, c->arch->sp, at + 8);
	c->low = at + 8 - c->arch->leaf_slack;
	c->exact = false;
	c->guess = FRAME_BY_SCAN;
}

int step_scan(struct cursor *c)
{
	uint64_t from = ALIGN_UP(c->low, 8ULL), word;
	struct reach reach = c->reach;

	if (!c->map || !c->file || !c->file->binary || !c->file->binary->is_elf)
		return STEP_NOTHING;
	for (uint64_t at = from; at < from + 8 * SCAN_WORDS; at += 8) {
		if (cursor_load(c, at, &word) < 0)
			break;
		word &= c->arch->address_mask;
		if (scan_is_root(c, word)) {
			scan_enter(c, at, word);
			return 1;
		}
	}
	c->reach = reach; /* a failed search must not enlarge the copy */
	return STEP_NOTHING;
}
