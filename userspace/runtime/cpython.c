// SPDX-License-Identifier: Apache-2.0
/*
 * CPython 3.6 to 3.15. Frames are a list from the thread's state outwards; a
 * frame has its code object and where it is in it. To 3.10 each Python function
 * runs in a native loop of its own; from 3.11 on a loop runs Python functions
 * that call each other, and frames say which of them entered it.
 */
#include <errno.h>
#include <string.h>

#include "runtime/cpython.h"

#define MINUS_ONE UINT32_MAX /* an index before the first instruction */

static const char *const cpython_markers[] = {"_PyRuntime", "_PyThreadState_Current", NULL};

/* The place of a bit among those that are set. */
static uint8_t plan_place(uint32_t mask, uint32_t bit)
{
	return (uint8_t)__builtin_popcount(mask & ((1u << bit) - 1));
}

static uint32_t plan_word(const struct cpython_layout *l, uint16_t at)
{
	return (uint32_t)(at - l->frame_copy) / 8;
}

/* What is kept of each frame: its code, its place there, and the word with its owner. */
static void plan_frame(struct cpython_layout *l, struct otp_walk *walk)
{
	uint32_t keep = 1u << plan_word(l, l->frame_code) | 1u << plan_word(l, l->frame_instr);

	if (l->entry != CPYTHON_ENTRY_EVERY)
		keep |= 1u << plan_word(l, l->frame_owner);
	walk->step = OTP_WALK_LINK;
	walk->below = l->entry != CPYTHON_ENTRY_EVERY; /* from 3.11 on frames lie on the thread's own stack of them */
	walk->link = (uint8_t)plan_word(l, l->frame_back);
	walk->copy_off = (int16_t)l->frame_copy;
	walk->keep = (uint16_t)keep;
	walk->frames_max = OTP_WALK_FRAMES;
	l->word_code = plan_place(keep, plan_word(l, l->frame_code));
	l->word_instr = plan_place(keep, plan_word(l, l->frame_instr));
	if (l->entry != CPYTHON_ENTRY_EVERY)
		l->word_owner = plan_place(keep, plan_word(l, l->frame_owner));
}

/* And of its code, which makes an object the one that it was: its first line, its name, its table of lines. */
static void plan_code(struct cpython_layout *l, struct otp_walk *walk)
{
	uint16_t off = l->code_first_line & ~7;
	uint32_t name = (uint32_t)(l->code_name - off) / 8, table = (uint32_t)(l->code_table - off) / 8;
	uint32_t keep = 1u | 1u << name | 1u << table, first = (uint32_t)__builtin_popcount(walk->keep);

	walk->nr_subs = 1;
	walk->sub[0] = (struct otp_walk_sub){.from = 0, .at = (uint8_t)plan_word(l, l->frame_code), .tag = l->tag,
					     .off = (int16_t)off, .keep = (uint16_t)keep};
	l->word_first = (uint8_t)first;
	l->word_name = (uint8_t)(first + plan_place(keep, name));
	l->word_table = (uint8_t)(first + plan_place(keep, table));
}

/* From the thread's state to its innermost frame. Of the state, its interpreter is kept. */
static void plan_chain(const struct cpython_layout *l, struct otp_walk *walk)
{
	walk->root_at = walk->nr_chain;
	walk->root_off = l->thread_interp;
	walk->root_keep = 1;
	if (l->thread_loop) {
		walk->chain[walk->nr_chain++] = l->thread_loop;
		walk->chain[walk->nr_chain++] = l->loop_frame;
	} else {
		walk->chain[walk->nr_chain++] = l->thread_frame;
	}
}

static int cpython_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
			  char why[RUNTIME_WHY_MAX])
{
	struct cpython_layout l;
	int r;

	why[0] = '\0';
	r = cpython_layout_find(file, m, &l, ret->version, why);
	if (r == 0)
		r = cpython_root_find(file, m, &l, &ret->walk, why);
	if (r < 0)
		return r;
	plan_chain(&l, &ret->walk);
	plan_frame(&l, &ret->walk);
	plan_code(&l, &ret->walk);
	l.interp_main = cpython_interp_main(file, m, &l);
	cpython_layout_keep(ret, &l);
	runtime_add_loop(file, "_PyEval_EvalFrameDefault", ret);
	return 0;
}

/* Bytes of bytecode up to the instruction; before the first one there is nothing to tell but the beginning. */
static uint32_t frame_position(const struct cpython_layout *l, uint64_t code, uint64_t word)
{
	uint64_t offset;

	if (l->unit)
		return (uint32_t)word == MINUS_ONE ? 0 : (uint32_t)word * l->unit;
	offset = word - code - l->code_bytes;
	return (int64_t)offset < 0 || offset > INT32_MAX ? 0 : (uint32_t)offset;
}

static uint8_t frame_byte(const struct runtime_words *w, const struct cpython_layout *l)
{
	return (uint8_t)(w->word[l->word_owner] >> 8 * ((l->frame_owner - l->frame_copy) & 7));
}

/* A frame that the runtime puts around __init__ (3.12 on): its code, without a line, is part of the program itself. */
static bool frame_is_helper(const struct cpython_layout *l, uint64_t code, uint64_t first_word)
{
	uint32_t line = (uint32_t)(first_word >> 8 * (l->code_first_line & 7));

	return !line && code >= l->image && code < l->image_end;
}

/*
 * A thread that runs code in another interpreter has a state for each: its frames in the one that it came from are in no
 * list that begins here.
 */
static bool frame_is_inner(const struct cpython_layout *l, const struct runtime_words *w)
{
	return w->last && l->interp_main && w->nr_root && w->root[0] != l->interp_main;
}

static uint32_t frame_entry(const struct cpython_layout *l, const struct runtime_words *w)
{
	switch (l->entry) {
	case CPYTHON_ENTRY_EVERY:
		return RUNTIME_ENTRY;
	case CPYTHON_ENTRY_FLAG:
		return frame_byte(w, l) ? RUNTIME_ENTRY : 0;
	default:
		if (frame_byte(w, l) != l->shim)
			return 0;
		return l->base && w->last ? RUNTIME_HIDDEN : RUNTIME_ENTRY | RUNTIME_HIDDEN;
	}
}

static int cpython_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret)
{
	struct cpython_layout l;
	uint64_t code;

	if (!cpython_layout_of(a, &l) || w->count <= l.word_table || w->count <= l.word_owner || w->count <= l.word_instr ||
	    w->count <= l.word_code || w->count <= l.word_name || w->count <= l.word_first)
		return -EBADMSG;
	*ret = (struct runtime_frame){.flags = frame_entry(&l, w) | (frame_is_inner(&l, w) ? RUNTIME_INNER : 0)};
	if (ret->flags & RUNTIME_HIDDEN)
		return 0;
	code = w->word[l.word_code] & ~(uint64_t)l.tag;
	if (!code || w->missing & 1)
		return -EBADMSG;
	if (frame_is_helper(&l, code, w->word[l.word_first])) {
		ret->flags |= RUNTIME_HIDDEN;
		return 0;
	}
	ret->key = code;
	ret->cookie[0] = w->word[l.word_first];
	ret->cookie[1] = w->word[l.word_name];
	ret->cookie[2] = w->word[l.word_table];
	ret->position = frame_position(&l, code, w->word[l.word_instr]);
	return 0;
}

const struct runtime_ops runtime_cpython = {
	.name = "cpython",
	.label = "Python",
	.kind = KIND_CPYTHON,
	.markers = cpython_markers,
	.attach = cpython_attach,
	.decode = cpython_decode,
	.frame = cpython_frame,
	.knows_all = true,
	.code = cpython_code,
	.step = cpython_step,
};
