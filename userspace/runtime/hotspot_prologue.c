// SPDX-License-Identifier: Apache-2.0
/*
 * Where in compiled code the frame is made and taken down, by the few
 * instructions with which the compilers do so on x86-64 (OpenJDK,
 * macroAssembler_x86.cpp: verified_entry; c1_MacroAssembler_x86.cpp: build_frame;
 * sharedRuntime_x86_64.cpp): push rbp and sub rsp, or sub rsp and a store of rbp;
 * add rsp, pop rbp, perhaps a check of the stack's reserved part and a poll, ret; of native methods and what calls native
 * code, leave and ret.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"
#include "unwind/x86_insn.h"

#define PROLOGUE_MAX 512
#define UNSAFE_PROLOGUE_MAX 16u /* of a blob whose frame is never safe */
#define SCAN_MAX     (256u << 10)
#define PIECE	     4096u
#define OVERLAP	     256u /* an epilogue is shorter */
#define RETURN_INSNS 8u	  /* from the pop of the frame pointer to the return, on the usual way */
#define RESERVED_MAX 160u /* bytes of what is passed over there */

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
	if (at[2] == 0x2c && at[3] == 0x24)
		return 4;
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

#define EPILOGUES_MAX (RUNTIME_CODE_MORE / 4) /* other ranges need room, too */

struct epilogues {
	struct runtime_code_made *made; /* borrowed */
	uint32_t nr;
};

/* cmp rsp, [r15 + n] */
static bool is_compare_of_stack(const uint8_t *code, size_t left)
{
	static const uint8_t compare[] = {0x49, 0x3b, 0xa7};

	return left >= sizeof(compare) && !memcmp(code, compare, sizeof(compare));
}

static bool is_jump_if_below(const uint8_t *code, size_t left)
{
	return left >= 2 && (code[0] == 0x72 || (code[0] == 0x0f && code[1] == 0x82));
}

/*
 * Where what follows a pop rbp ends: its return, or a jump to code that has the caller's frame too; from, where neither is
 * near. Since 9, methods that may use the stack's reserved part pass over a call that ends that (macroAssembler_x86.cpp,
 * reserved_stack_check): ret_passed.
 */
static uint32_t hotspot_return_end(const uint8_t *code, size_t len, uint32_t from, struct hotspot_range *ret_passed)
{
	bool compared = false;
	uint32_t at = from;
	struct x86_insn i;

	for (uint32_t n = 0; n < RETURN_INSNS && at < len && !x86_decode(code + at, len - at, &i); n++) {
		const bool passes = compared && is_jump_if_below(code + at, len - at) && i.n > 0 && i.n <= RESERVED_MAX;

		compared = is_compare_of_stack(code + at, len - at);
		at += i.len;
		if (i.kind == INSN_RET || i.kind == INSN_JUMP || i.kind == INSN_END)
			return at;
		if (!passes)
			continue;
		*ret_passed = (struct hotspot_range){.from = at, .end = at + (uint32_t)i.n, .words = HOTSPOT_RANGE_UNKNOWN};
		at = ret_passed->end;
	}
	return from;
}

/* Without an add, a pop rbp counts where a return follows, or the poll of 16 and later, or the check. */
static bool is_pop_and_return(const uint8_t *code, size_t len, uint32_t i)
{
	if (code[i] != 0x5d || i + 4 > len)
		return false;
	return code[i + 1] == 0xc3 || is_compare_of_stack(code + i + 1, len - i - 1);
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

static void hotspot_epilogue_add(struct epilogues *e, const struct hotspot_range *r, const struct hotspot_range *passed)
{
	if (e->nr++ >= EPILOGUES_MAX) {
		hotspot_range_untold(&e->made->code, r->from, true);
		return;
	}
	if (passed->end) /* in what is not known, and in the other one: the first counts */
		hotspot_range_add(e->made, passed);
	hotspot_range_add(e->made, r);
}

static void hotspot_epilogues_in(const uint8_t *code, size_t len, size_t stop, uint32_t offset, uint64_t frame,
				 struct epilogues *e)
{
	uint32_t down;

	for (uint32_t i = 0; i < stop && hotspot_ranges_are_told(&e->made->code); i++) {
		struct hotspot_range r = {.left = hotspot_is_leave(code, len, i)}, passed = {0};

		if (r.left) {
			r.from = i + 1;
			r.end = i + 2;
		} else if (hotspot_is_epilogue(code, len, i, frame, &down)) {
			r.from = down;
			r.end = hotspot_return_end(code, len, down + 1, &passed);
		} else {
			continue;
		}
		r.from += offset;
		r.end += offset;
		passed.from += offset;
		passed.end += passed.end ? offset : 0;
		hotspot_epilogue_add(e, &r, &passed);
	}
}

static void hotspot_epilogues(struct memory *m, uint64_t code, size_t size, uint64_t frame, struct runtime_code_made *made)
{
	struct epilogues e = {.made = made};
	struct runtime_code *c = &made->code;
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

void hotspot_frame_words(struct memory *m, uint64_t code, uint64_t complete, uint64_t frame, struct runtime_code_made *made)
{
	struct runtime_code *c = &made->code;
	size_t size = MIN(c->end - code, (uint64_t)SCAN_MAX), len = MIN(MIN(complete, (uint64_t)PROLOGUE_MAX), size);
	uint8_t bytes[PROLOGUE_MAX];

	c->word[HOTSPOT_FRAME] = frame;
	c->word[HOTSPOT_MADE] = c->word[HOTSPOT_SAVED] = complete;
	if (len && !memory_read(m, code, bytes, len))
		hotspot_prologue(bytes, len, frame, c);
	hotspot_epilogues(m, code, size, frame, made);
}

/* Where the stack pointer is moved next, by an add or a sub. */
static uint32_t hotspot_next_move(const uint8_t *code, size_t len, uint32_t at)
{
	struct x86_insn i;

	while (at < len && !x86_decode(code + at, len - at, &i) && i.kind != INSN_SP_ADD)
		at += i.len;
	return at;
}

void hotspot_frame_words_of_callers(struct memory *m, uint64_t code, uint64_t frame, struct runtime_code_made *ret)
{
	struct runtime_code *c = &ret->code;
	const size_t len = MIN(c->end - code, (uint64_t)PROLOGUE_MAX);
	uint8_t bytes[PROLOGUE_MAX];
	uint32_t made, down = 0;

	c->word[HOTSPOT_FRAME] = frame;
	if (len && !memory_read(m, code, bytes, len))
		hotspot_prologue(bytes, MIN(len, (size_t)UNSAFE_PROLOGUE_MAX), frame, c);
	made = (uint32_t)c->word[HOTSPOT_MADE];
	if (made)
		down = hotspot_next_move(bytes, len, made);
	hotspot_range_add(ret, &(struct hotspot_range){.end = MAX(made, 1u), .words = HOTSPOT_RANGE_UNKNOWN});
	hotspot_range_untold(c, down + 1, true);
}
