// SPDX-License-Identifier: Apache-2.0
/*
 * Where in compiled code the frame is made and taken down, by the few
 * instructions with which the compilers do so on x86-64 (OpenJDK,
 * macroAssembler_x86.cpp: verified_entry; c1_MacroAssembler_x86.cpp: build_frame;
 * sharedRuntime_x86_64.cpp): push rbp and sub rsp, or sub rsp and a store of rbp;
 * add rsp, pop rbp, perhaps a poll, ret; of native methods and what calls native
 * code, leave and ret.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"

#define PROLOGUE_MAX 512
#define SCAN_MAX     (256u << 10)
#define PIECE	     4096u
#define OVERLAP	     64u /* an epilogue is shorter */
#define RETURN_MAX   40u

/* sub rsp or add rsp (modrm), n: its length, 0: it is not there. */
static uint32_t move_of_stack(const uint8_t *at, size_t left, uint8_t modrm, uint64_t *ret)
{
	uint32_t wide;

	if (left >= 4 && at[0] == 0x48 && at[1] == 0x83 && at[2] == modrm) {
		*ret = (uint64_t)(int64_t)(int8_t)at[3];
		return 4;
	}
	if (left >= 7 && at[0] == 0x48 && at[1] == 0x81 && at[2] == modrm) {
		memcpy(&wide, at + 3, sizeof(wide));
		*ret = wide;
		return 7;
	}
	return 0;
}

/* mov [rsp + n], rbp */
static uint32_t store_of_rbp(const uint8_t *at, size_t left)
{
	if (left < 5 || at[0] != 0x48 || at[1] != 0x89)
		return 0;
	if (at[2] == 0x6c && at[3] == 0x24)
		return 5;
	return at[2] == 0xac && at[3] == 0x24 ? 8 : 0;
}

/* Where a frame of so many bytes is made that begins with push rbp at i; 0: it does not. */
static uint32_t made_behind_push(const uint8_t *code, size_t len, uint32_t i, uint64_t frame)
{
	static const uint8_t mov_rbp_rsp[] = {0x48, 0x8b, 0xec}, mov_rbp_rsp_2[] = {0x48, 0x89, 0xe5};
	uint32_t next = i + 1, sub;
	uint64_t n;

	if (code[i] != 0x55)
		return 0;
	if (next + 3 <= len && (!memcmp(code + next, mov_rbp_rsp, 3) || !memcmp(code + next, mov_rbp_rsp_2, 3)))
		next += 3;
	if (frame == 16)
		return next;
	sub = move_of_stack(code + next, len - next, 0xec, &n);
	return sub && n == frame - 16 ? next + sub : 0;
}

/* Where it is found: else the frame counts as made from complete on. */
static void hotspot_prologue(const uint8_t *code, size_t len, uint64_t frame, struct runtime_code *c)
{
	for (uint32_t i = 0; i < len; i++) {
		uint32_t made = made_behind_push(code, len, i, frame), sub;
		uint64_t n;

		if (made) {
			c->word[HOTSPOT_PUSHED] = i + 1;
			c->word[HOTSPOT_MADE] = c->word[HOTSPOT_SAVED] = made;
			return;
		}
		sub = move_of_stack(code + i, len - i, 0xec, &n);
		if (sub && n == frame - 8) {
			c->word[HOTSPOT_MADE] = i + sub;
			c->word[HOTSPOT_SAVED] = i + sub + store_of_rbp(code + i + sub, len - i - sub);
			return;
		}
	}
}

/* --- epilogues --- */

#define EPILOGUES_MAX 16 /* other ranges need room, too */

struct epilogues {
	struct runtime_code *code; /* borrowed */
	uint32_t nr;
};

/* Where the return behind a pop rbp ends. */
static uint32_t hotspot_return_end(const uint8_t *code, size_t len, uint32_t from)
{
	for (uint32_t i = from; i < len && i < from + RETURN_MAX; i++)
		if (code[i] == 0xc3)
			return i + 1;
	return from;
}

/* Without an add, a pop rbp counts where a return follows, or the poll of 16 and later: cmp rsp, [r15 + n]. */
static bool is_pop_and_return(const uint8_t *code, size_t len, uint32_t i)
{
	static const uint8_t poll[] = {0x49, 0x3b, 0xa7};

	if (code[i] != 0x5d || i + 4 > len)
		return false;
	return code[i + 1] == 0xc3 || !memcmp(code + i + 1, poll, sizeof(poll));
}

/* add rsp, frame - 16; pop rbp: ret_down is behind the add. */
static bool hotspot_is_epilogue(const uint8_t *code, size_t len, uint32_t i, uint64_t frame, uint32_t *ret_down)
{
	uint64_t n;
	uint32_t add = move_of_stack(code + i, len - i, 0xc4, &n);

	*ret_down = i;
	if (frame == 16 && is_pop_and_return(code, len, i))
		return true;

	if (!add || n != frame - 16 || i + add >= len || code[i + add] != 0x5d)
		return false;
	*ret_down = i + add;
	return true;
}

static bool hotspot_is_leave(const uint8_t *code, size_t len, uint32_t i)
{
	return i + 2 <= len && code[i] == 0xc9 && code[i + 1] == 0xc3;
}

static void hotspot_epilogues_in(const uint8_t *code, size_t len, size_t stop, uint32_t offset, uint64_t frame,
				 struct epilogues *e)
{
	struct hotspot_range r = {0};
	uint32_t down;

	for (uint32_t i = 0; i < stop && hotspot_ranges_are_told(e->code); i++) {
		r.left = hotspot_is_leave(code, len, i);
		if (r.left) {
			r.from = offset + i + 1;
			r.end = offset + i + 2;
		} else if (hotspot_is_epilogue(code, len, i, frame, &down)) {
			r.from = offset + down;
			r.end = offset + hotspot_return_end(code, len, down + 1);
		} else {
			continue;
		}
		if (e->nr++ < EPILOGUES_MAX)
			hotspot_range_add(e->code, &r);
		else
			hotspot_range_untold(e->code, r.from, true);
	}
}

static void hotspot_epilogues(struct memory *m, uint64_t code, size_t size, uint64_t frame, struct runtime_code *c)
{
	struct epilogues e = {.code = c};
	uint8_t bytes[PIECE];

	for (size_t at = 0; at < size && hotspot_ranges_are_told(c); at += PIECE - OVERLAP) {
		size_t len = MIN(size - at, (size_t)PIECE);

		if (memory_read(m, code + at, bytes, len))
			hotspot_range_untold(c, (uint32_t)at, true);
		else
			hotspot_epilogues_in(bytes, len, MIN(len, (size_t)(PIECE - OVERLAP)), (uint32_t)at, frame, &e);
	}
	if (c->end - code > size)
		hotspot_range_untold(c, (uint32_t)size, true);
}

void hotspot_frame_words(struct memory *m, uint64_t code, uint64_t complete, uint64_t frame, struct runtime_code *c)
{
	size_t size = MIN(c->end - code, (uint64_t)SCAN_MAX), len = MIN(MIN(complete, (uint64_t)PROLOGUE_MAX), size);
	uint8_t bytes[PROLOGUE_MAX];

	c->word[HOTSPOT_FRAME] = frame;
	c->word[HOTSPOT_MADE] = c->word[HOTSPOT_SAVED] = complete;
	if (len && !memory_read(m, code, bytes, len))
		hotspot_prologue(bytes, len, frame, c);
	hotspot_epilogues(m, code, size, frame, c);
}
