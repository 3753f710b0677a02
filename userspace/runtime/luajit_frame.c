// SPDX-License-Identifier: Apache-2.0
/*
 * What the words of a walked frame mean, next to the frames within and without.
 * The link of a frame tells where its caller is, so a frame's own place is in the
 * next inner one; that of the innermost is in a register, or where the
 * interpreter saved it before it called C code.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/luajit.h"

#define TAG_SHIFT 47
#define TAG_FUNCTION 0x1fff7u /* ~LUAJIT_FUNCTION, in the bits above an address */
#define FFID(head)  ((uint32_t)((head) >> 16 & 0xff)) /* 0: of Lua */
#define LINES_FIRST(lines) ((uint32_t)(lines))

static uint64_t luajit_word(const struct runtime_words *w, int64_t index, enum luajit_word word)
{
	return w->word[(index - (int64_t)w->index) * (int64_t)(w->count + 1) + word];
}

static bool luajit_misses(const struct runtime_words *w, int64_t index, uint32_t sub)
{
	return w->word[(index - (int64_t)w->index) * (int64_t)(w->count + 1) - 1] & OTP_WALK_MISSING(sub);
}

static int64_t luajit_frames(const struct runtime_words *w)
{
	return (int64_t)w->index + 1 + w->nr_outer;
}

/* --- one frame --- */

static bool luajit_is_function(const struct runtime_words *w, int64_t i)
{
	return luajit_word(w, i, LUAJIT_FN) >> TAG_SHIFT == TAG_FUNCTION && !luajit_misses(w, i, 0) &&
	       (luajit_word(w, i, LUAJIT_HEAD) >> 8 & 0xff) == LUAJIT_FUNCTION;
}

static bool luajit_is_lua(const struct runtime_words *w, int64_t i)
{
	return luajit_is_function(w, i) && !FFID(luajit_word(w, i, LUAJIT_HEAD)) && !luajit_misses(w, i, 1) &&
	       (luajit_word(w, i, LUAJIT_SIZE) >> 8 & 0xff) == LUAJIT_PROTO;
}

static uint32_t luajit_type(const struct runtime_words *w, int64_t i)
{
	return luajit_word(w, i, LUAJIT_LINK) & OTP_WALK_SLOT_TYPE;
}

/* The number of instructions that a function's prototype has. */
static uint32_t luajit_sizebc(const struct runtime_words *w, int64_t i)
{
	return (uint32_t)(luajit_word(w, i, LUAJIT_SIZE) >> 32);
}

/* The index of the instruction before pc; UINT32_MAX: it is not in the function. */
static uint32_t luajit_index(const struct runtime_words *w, int64_t i, uint64_t pc)
{
	uint64_t offset = pc - luajit_word(w, i, LUAJIT_PC);

	if (!luajit_is_lua(w, i) || offset % LUAJIT_BC_BYTES || offset > (uint64_t)LUAJIT_BC_BYTES * luajit_sizebc(w, i))
		return UINT32_MAX;
	return offset ? (uint32_t)(offset / LUAJIT_BC_BYTES - 1) : 0;
}

/* --- its place --- */

/*
 * The interpreter has not entered the innermost function yet, or has left it: its place is still, or again, where the
 * caller goes on.
 */
static bool luajit_is_between(const struct runtime_words *w)
{
	return (w->root[LUAJIT_ROOT_AT] & OTP_WALK_FROM_MASK) == OTP_WALK_FROM_REGISTER &&
	       luajit_word(w, 0, LUAJIT_LINK) == w->root[LUAJIT_ROOT_PLACE];
}

/* Where in it the frame is, as the next inner one, its callee, says. 0: it does not. */
static uint64_t luajit_place(const struct runtime_words *w)
{
	int64_t inner = (int64_t)w->index - 1;

	if (inner < 0)
		return w->root[LUAJIT_ROOT_PLACE];
	switch (luajit_type(w, inner)) {
	case LUAJIT_FRAME_LUA:
		return luajit_word(w, inner, LUAJIT_LINK);
	case LUAJIT_FRAME_CONT:
		return luajit_word(w, inner, LUAJIT_LINK) & LUAJIT_FRAME_PROTECTED ? 0 : luajit_word(w, inner, LUAJIT_CONTPC);
	default:
		return 0;
	}
}

/* --- who called it --- */

/* A function with variable arguments has two frames: the outer one holds the link to the caller. */
static bool luajit_is_variable(const struct runtime_words *w, int64_t i)
{
	return (luajit_word(w, i, LUAJIT_LINK) & OTP_WALK_SLOT_TYPES) == LUAJIT_FRAME_VARG;
}

static void luajit_called(const struct runtime_words *w, struct runtime_frame *ret)
{
	int64_t i = w->index, outermost = luajit_frames(w) - 1;

	if (luajit_is_variable(w, i))
		i++;
	while (outermost > i && !luajit_is_lua(w, outermost))
		outermost--;
	if (outermost >= w->index && luajit_is_lua(w, outermost))
		ret->cookie[LUAJIT_COOKIE_MAIN] = luajit_word(w, outermost, LUAJIT_PC) - LUAJIT_PT_BYTES;
	if (i + 1 >= luajit_frames(w) || luajit_type(w, i) != LUAJIT_FRAME_LUA ||
	    luajit_index(w, i + 1, luajit_word(w, i, LUAJIT_LINK)) == UINT32_MAX)
		return;
	ret->cookie[LUAJIT_COOKIE_CALL] = luajit_cookie_call(luajit_word(w, i, LUAJIT_LINK), luajit_sizebc(w, i + 1));
	ret->cookie[LUAJIT_COOKIE_CALLER] = luajit_word(w, i + 1, LUAJIT_PC) - LUAJIT_PT_BYTES;
}

/* --- all --- */

static void luajit_lua(const struct runtime_words *w, struct runtime_frame *ret)
{
	uint32_t index = luajit_index(w, w->index, luajit_place(w));

	ret->key = luajit_word(w, w->index, LUAJIT_PC) - LUAJIT_PT_BYTES;
	ret->cookie[LUAJIT_COOKIE_SIZE] = luajit_cookie_size(luajit_sizebc(w, w->index),
							     LINES_FIRST(luajit_word(w, w->index, LUAJIT_LINES)));
	ret->cookie[LUAJIT_COOKIE_CHUNK] = luajit_cookie_chunk(luajit_word(w, w->index, LUAJIT_CHUNK),
							       luajit_word(w, w->index, LUAJIT_CHUNK_HEAD));
	luajit_called(w, ret);
	/* 0 is no instruction that runs: the function's head. */
	ret->position = index == UINT32_MAX ? UINT32_MAX : index;
	if (!w->index && w->position && (w->root[LUAJIT_ROOT_AT] & OTP_WALK_FROM_MASK) == OTP_WALK_FROM_COMPILED)
		ret->position = w->position;
}

/* Called from C: a loop of its own runs it. */
static bool luajit_is_entry(const struct runtime_words *w)
{
	return luajit_type(w, w->index) == LUAJIT_FRAME_C;
}

int luajit_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret)
{
	bool outer_of_two;

	if (w->count != LUAJIT_WORDS || w->nr_root != LUAJIT_ROOT_WORDS)
		return -EBADMSG;
	if (luajit_is_entry(w))
		ret->flags |= RUNTIME_ENTRY;
	outer_of_two = w->index && luajit_is_variable(w, (int64_t)w->index - 1);
	/* C functions are on the native stack; fast functions are the interpreter itself. */
	if (!luajit_is_lua(w, w->index) || outer_of_two || (!w->index && luajit_is_between(w)))
		ret->flags |= RUNTIME_HIDDEN;
	else
		luajit_lua(w, ret);
	return 0;
}
