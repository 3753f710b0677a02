// SPDX-License-Identifier: Apache-2.0
/*
 * Out of generated code that no runtime describes: a library's kernels and
 * patterns, closures, queries. Nothing is known of it but where it lies, and
 * its bytes cannot be read. What called it can be: generated code is entered by
 * a call through a register or a variable, by one from code of its own region, or
 * by a jump through a register from the end of a function that was called.
 *   - The frame pointer, where a return address of such a call lies behind it.
 *     It may still be the caller's, if the generated code leaves the register
 *     alone: then the call leads to the caller's function, not here; or the
 *     caller, whose table names this very frame, lies right above the stack pointer.
 *   - A stack pointer on a page has a buffer there, in which the former one is kept.
 *   - Else the first word of the stack that is a return address of such a call,
 *     and from which unwinding goes on: each next return address lies behind a
 *     call that leads to the function before it. What calls main is none: where a
 *     program begins, its first call through a pointer is that of main, in a file.
 * Stacks keep addresses of former calls, and the tests are there to tell these
 * apart. The frame is marked as a guess all the same.
 * Bounds: SEARCH_WORDS and SEARCH_TRIALS a frame, SEARCHES_MAX a stack; each trial
 * TRIAL_FRAMES; all trials of a stack together SEARCH_WORK, after which no more hold,
 * and SEARCH_SCAN.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "unwind/calls.h"
#include "unwind/cursor.h"

#define SEARCH_WORDS  1536 /* QEMU's translated code keeps 1.2 KiB; GEMM kernels have their frame in a page of its own */
#define SEARCH_TRIALS 128 /* former calls fill the frame, each fails soon */
#define SEARCHES_MAX  8
#define TRIAL_FRAMES  48
#define TRIAL_ENOUGH  4 /* frames: then a trial holds that has left what is searched, and knows the frame pointer */
#define OWNER_WORDS   20  /* above the stack pointer, for a caller whose frame pointer was left alone: 19 in a query */
#define SAVED_WORDS   8	  /* below a return address, where registers are saved first */
#define FRAME_FAR     (1 << 20)
#define BUFFER_ALIGNED 4096
#define BUFFER_HEAD   32 /* words at its begin */
#define WORK_FRAME    16    /* of SEARCH_WORK, for a trial's frame */

/* What may have entered the generated code, by the word that would be its return address. */
enum search_word {
	WORD_NO_CALL,
	WORD_UNKNOWN,  /* no mapping has it */
	WORD_ENTERS,   /* a call that may lead here */
	WORD_ELSEWHERE /* a call that leads to another function */
};

struct search {
	struct rules *rules;
	struct calls *calls;
	struct cursor *c; /* in the generated code */
	uint64_t from;	  /* the lowest word that is searched: at the stack pointer, but for a buffer's frame */
	unsigned trials;
	bool by_pointer; /* of the trial: one of its frames was called through a pointer */
};

/* The tables' code at a return address. 0, -ENOENT, -EAGAIN: its file is not open yet. */
static int search_mapping(struct cursor *c, uint64_t pc, const struct mapping **ret)
{
	const struct mapping *m = space_find(c->in->space, pc - 1);
	int err = !m || mapping_is_generated(m, pc - 1) ? -ENOENT : cursor_wants_file(c, m);

	if (!err)
		*ret = m;
	return err;
}

/* The word as a return address into generated code's caller; -EAGAIN. */
static int search_word(const struct search *s, uint64_t pc)
{
	struct cursor *c = s->c;
	const struct code_range here = {c->map->start, c->map->end, c->map};
	const struct mapping *m;
	uint64_t target = 0;
	int err;

	if (pc < 4096 || pc >= c->arch->address_end)
		return WORD_NO_CALL;
	err = search_mapping(c, pc, &m);
	if (err < 0)
		return err == -EAGAIN ? err : WORD_NO_CALL;
	switch (calls_kind(c, m, pc, &target)) {
	case CALL_INDIRECT:
	case CALL_SLOT:
		return WORD_ENTERS;
	case CALL_DIRECT:
		return code_range_contains(&here, target) || calls_jump_away(s->calls, c, target) ? WORD_ENTERS : WORD_ELSEWHERE;
	default:
		return WORD_NO_CALL;
	}
}

/* --- trials --- */

enum { TRIAL_FAILS, TRIAL_HOLDS, TRIAL_GOES_ON, TRIAL_NEEDS_FP };

/* Addresses of former calls lie in the generated code's own frame, which the search may not leave. */
static bool trial_left_search(const struct search *s, const struct cursor *t)
{
	return t->reg[t->arch->sp] - s->from > 8 * SEARCH_WORDS;
}

/* Further out, a stack that ends in whatever way is the thread's own. */
static int trial_if_far(const struct search *s, const struct cursor *t)
{
	return trial_left_search(s, t) ? TRIAL_HOLDS : TRIAL_FAILS;
}

/* A root. If it is the program's start, and no pointer led to any of the frames, the generated code would be main. */
static int trial_at_root(struct search *s, const struct cursor *t)
{
	const struct mapping *m = t->map;
	const uint64_t entry = m->file->binary->entry;
	struct code_range root;

	if (s->by_pointer || !entry || !calls_function(s->calls, m, t->reg[t->arch->pc] - 1, &root))
		return TRIAL_HOLDS;
	return mapping_address(m, root.start) <= entry && entry < mapping_address(m, root.start) + (root.end - root.start)
		       ? TRIAL_FAILS
		       : TRIAL_HOLDS;
}

/* The step did not lead to a caller. Zeros are everywhere on stacks: one at the first frames is no sign of a root. */
static int trial_ended(struct search *s, const struct cursor *t)
{
	switch (t->out->end) {
	case UNWIND_ROOT:
		return trial_at_root(s, t);
	case UNWIND_ROOT_LISTED:
	case UNWIND_SHORT:
		return trial_if_far(s, t);
	case UNWIND_REGISTER:
		return cursor_is_valid(t, t->arch->fp) ? TRIAL_FAILS : TRIAL_NEEDS_FP;
	default:
		return TRIAL_FAILS;
	}
}

/* By the frame's own table. */
static int trial_by_row(struct search *s, struct cursor *t, unsigned frames)
{
	const unsigned leaves = ROW_SIGNAL | ROW_SWITCHED | ROW_PROVES | ROW_PROVES_BELOW | ROW_RETURNS | ROW_GUESS | ROW_CLONE;
	struct binary *b = t->map->file->binary;
	bool hit;
	const struct found f = rules_find(s->rules, t->arch, b, mapping_address(t->map, t->reg[t->arch->pc] - 1), &hit);
	int step;

	if (f.packed->state == PACKED_ROOT)
		return frames ? trial_at_root(s, t) : TRIAL_FAILS;
	if (f.packed->state == PACKED_NONE)
		return trial_if_far(s, t);
	if (f.packed->state == PACKED_BAD)
		return TRIAL_FAILS;
	if (packed_has(f.packed, leaves))
		return frames ? TRIAL_HOLDS : TRIAL_FAILS;
	step = f.wide ? step_row(t, b, f.wide) : step_packed(t, f.packed);
	return step > 0 ? TRIAL_GOES_ON : trial_ended(s, t);
}

static bool trial_is_enough(const struct search *s, const struct cursor *t, unsigned frames)
{
	return frames >= TRIAL_ENOUGH && cursor_is_valid(t, t->arch->fp) && trial_left_search(s, t);
}

/* What was stepped to: code that called the function that was left, and that is called by code in turn. */
static int trial_arrived(struct search *s, struct cursor *t, const struct code_range *callee, unsigned frames)
{
	const uint64_t pc = t->reg[t->arch->pc];
	const struct mapping *left = t->map, *m = space_find(t->in->space, pc - 1);
	uint64_t target;
	bool hit;
	int err;

	/* Nothing proves a call from there: former ones of generated code look the same. */
	if (m && mapping_is_generated(m, pc - 1))
		return trial_if_far(s, t);
	if (!m)
		return TRIAL_FAILS; /* no code: a word of the stack that is no return address */
	err = search_mapping(t, pc, &m);
	if (err < 0)
		return err == -EAGAIN ? err : trial_if_far(s, t);
	t->map = m;
	if (m->file != left->file)
		t->valid &= t->arch->survive;
	s->by_pointer = s->by_pointer || calls_kind(s->c, m, pc, &target) == CALL_INDIRECT;
	if (calls_lead_to(s->calls, s->c, m, pc, callee, frames == 0))
		return trial_is_enough(s, t, frames) ? TRIAL_HOLDS : TRIAL_GOES_ON;
	return rules_find(s->rules, t->arch, m->file->binary, mapping_address(m, pc - 1), &hit).packed->state == PACKED_ROOT
		       ? trial_at_root(s, t)
		       : TRIAL_FAILS;
}

/* t is in the caller that is tried. TRIAL_, or -EAGAIN; *frames: that were left. */
static int trial_run(struct search *s, struct cursor *t, unsigned *frames)
{
	int r = search_mapping(t, t->reg[t->arch->pc], &t->map);

	s->by_pointer = false;
	if (r < 0)
		return r == -EAGAIN ? r : TRIAL_FAILS;
	for (*frames = 0; *frames < TRIAL_FRAMES; ++*frames) {
		struct code_range callee;

		if (!calls_spend(s->c, WORK_FRAME))
			return TRIAL_FAILS;
		if (!calls_function(s->calls, t->map, t->reg[t->arch->pc] - 1, &callee))
			return trial_if_far(s, t);
		r = trial_by_row(s, t, *frames);
		if (r == TRIAL_GOES_ON)
			r = trial_arrived(s, t, &callee, *frames);
		if (!s->c->search_left)
			return TRIAL_FAILS; /* what is looked for may only not have been found */
		if (r != TRIAL_GOES_ON)
			return r;
	}
	return TRIAL_HOLDS;
}

/* --- the way out --- */

/* To the caller that pc returns to, with the stack pointer sp; fp 0: unknown. */
static void search_enter(struct cursor *c, uint64_t sp, uint64_t pc, uint64_t fp)
{
	c->valid = 0;
	cursor_set(c, c->arch->pc, pc);
	cursor_set(c, c->arch->sp, sp);
	if (fp)
		cursor_set(c, c->arch->fp, fp);
	c->low = sp - c->arch->leaf_slack;
	c->exact = false;
	c->guess = FRAME_BY_SEARCH;
}

/* The frame pointer, to go on: from within what is searched, or from beyond. */
enum search_lack { LACKS_NOTHING, LACKS_FP, LACKS_FP_FAR };

/* 1: the cursor is in the caller. 0: this is none, or a trial lacks something. -EAGAIN. */
static int search_try(struct search *s, uint64_t sp, uint64_t pc, uint64_t fp, enum search_lack *lack)
{
	struct cursor t = *s->c;
	unsigned frames;
	int r;

	search_enter(&t, sp, pc, fp);
	r = trial_run(s, &t, &frames);
	*lack = r != TRIAL_NEEDS_FP ? LACKS_NOTHING : trial_left_search(s, &t) ? LACKS_FP_FAR : LACKS_FP;
	if (r == -EAGAIN)
		s->c->wait = t.wait;
	if (r == TRIAL_HOLDS)
		search_enter(s->c, sp, pc, fp);
	return r < 0 ? r : r == TRIAL_HOLDS;
}

static bool search_may_be_fp(uint64_t fp, uint64_t sp)
{
	return fp % 8 == 0 && fp >= sp && fp - sp < FRAME_FAR;
}

/* Tried with the frame pointers that the caller may have: this frame's, or one saved below the return address. */
static int search_try_pointers(struct search *s, uint64_t sp, uint64_t pc)
{
	struct cursor *c = s->c;
	const uint64_t mine = c->reg[c->arch->fp];
	enum search_lack lack;
	uint64_t fp;
	int r = 0;

	if (cursor_is_valid(c, c->arch->fp) && search_may_be_fp(mine, sp))
		r = search_try(s, sp, pc, mine, &lack);
	for (uint64_t n = 2; !r && n <= SAVED_WORDS && sp - 8 * n >= s->from; n++)
		if (cursor_load(c, sp - 8 * n, &fp) == 0 && search_may_be_fp(fp, sp))
			r = search_try(s, sp, pc, fp, &lack);
	return r;
}

/* The word below sp is a return address to the caller. */
static int search_caller(struct search *s, uint64_t sp, uint64_t pc)
{
	enum search_lack lack;
	int r;

	if (s->trials++ >= SEARCH_TRIALS)
		return 0;
	r = search_try(s, sp, pc, 0, &lack);
	if (r || lack == LACKS_NOTHING)
		return r;
	r = search_try_pointers(s, sp, pc);
	if (r || lack != LACKS_FP_FAR)
		return r;
	/* The first frames fit; a later one cannot be left without the register. */
	search_enter(s->c, sp, pc, 0);
	return 1;
}

/* The first caller among the words up to end. */
static int search_words(struct search *s, uint64_t end)
{
	struct cursor *c = s->c;
	const uint64_t from = c->reg[c->arch->sp];
	uint64_t word;
	int r;

	for (uint64_t at = from; at < end && at - from < 8 * SEARCH_WORDS; at += 8) {
		if (cursor_load(c, at, &word) < 0)
			return c->fault == UNWIND_UNREADABLE ? STEP_NOTHING : cursor_cut(c, c->fault);
		word &= c->arch->address_mask;
		r = search_word(s, word);
		if (r == WORD_ENTERS)
			r = search_caller(s, at + 8, word);
		else if (r > 0)
			r = 0;
		if (r)
			return r;
	}
	return STEP_NOTHING;
}

/* The outermost bytes of the thread's stack can be copied besides. */
static bool search_may_be_in_base(const struct cursor *c, uint64_t addr)
{
	return addr < c->in->stack_end && c->in->stack_end - addr <= OTP_BASE_LIMIT;
}

/* The first return address among the words from s->from on, above the registers that were saved. */
static int search_above_saved(struct search *s, uint64_t *missing)
{
	struct cursor *c = s->c;
	uint64_t word;
	int r;

	for (uint64_t at = s->from; at < s->from + 8 * SAVED_WORDS; at += 8) {
		if (cursor_load(c, at, &word) < 0) {
			if (search_may_be_in_base(c, at) || (c->fault == UNWIND_SHORT && !*missing))
				*missing = at;
			return STEP_NOTHING;
		}
		word &= c->arch->address_mask;
		r = search_word(s, word);
		if (r == WORD_ENTERS)
			r = search_caller(s, at + 8, word);
		else if (r >= 0)
			continue;
		return r ? r : STEP_NOTHING;
	}
	return STEP_NOTHING;
}

/* What may be kept in the buffer's head is tried; *missing: bytes that one of these leads to, and that were not copied. */
static int search_head(struct search *s, uint64_t *missing)
{
	struct cursor *c = s->c;
	const uint64_t sp = c->reg[c->arch->sp], head = sp + 8 * BUFFER_HEAD;
	int r = STEP_NOTHING;

	for (uint64_t at = sp; at < head && r == STEP_NOTHING; at += 8) {
		if (cursor_load(c, at, &s->from) < 0)
			break;
		if (s->from % 8 == 0 && ((s->from >= head && s->from - head < FRAME_FAR) || search_may_be_in_base(c, s->from)))
			r = search_above_saved(s, missing);
	}
	s->from = sp;
	return r;
}

/*
 * Out of a buffer of a size known only at run time, on a page of the stack or elsewhere: the former stack pointer is
 * kept near its begin. Former calls in it are not looked at. oneDNN, cpu/x64/gemm/f32/jit_avx512_common_gemm_f32.cpp:
 * ORIG_SP, 120 bytes up; a buffer on the stack, or of the heap where it would be large.
 */
static int search_buffer(struct search *s)
{
	struct cursor *c = s->c;
	const struct reach reach = c->reach;
	uint64_t missing = 0;
	int r = c->reg[c->arch->sp] % BUFFER_ALIGNED ? STEP_NOTHING : search_head(s, &missing);

	if (r == STEP_NOTHING)
		c->reach = reach;
	if (r != STEP_NOTHING || !missing)
		return r;
	return cursor_load(c, missing, &missing) < 0 ? cursor_cut(c, c->fault) : STEP_NOTHING;
}

/* Whether, by its table, the caller at pc has its frame at the frame pointer: CFA is fp + 16. */
static bool search_has_frame_at_fp(struct search *s, uint64_t pc)
{
	const struct mapping *m;
	const struct packed *p;
	bool hit;

	if (search_mapping(s->c, pc, &m) < 0)
		return false;
	p = rules_find(s->rules, s->c->arch, m->file->binary, mapping_address(m, pc - 1), &hit).packed;
	return p->state == PACKED_ROW && p->cfa_kind == PACKED_CFA_REG && p->cfa_reg == s->c->arch->fp && p->cfa_n == 16;
}

/* A caller right above the stack pointer, whose frame pointer the generated code has left alone. */
static int search_owner(struct search *s)
{
	struct cursor *c = s->c;
	const uint64_t from = c->reg[c->arch->sp], fp = c->reg[c->arch->fp];
	enum search_lack lack;
	uint64_t word;

	for (uint64_t at = from; at < fp && at - from < 8 * OWNER_WORDS; at += 8) {
		int r = cursor_load(c, at, &word);

		if (r < 0)
			break;
		r = search_word(s, word);
		if (r == WORD_ENTERS)
			r = search_has_frame_at_fp(s, word) ? search_try(s, at + 8, word, fp, &lack) : 0;
		else if (r > 0)
			r = 0;
		if (r)
			return r;
	}
	return STEP_NOTHING;
}

/* The return address of the record that the frame pointer leads to. */
static int search_record(const struct search *s)
{
	struct cursor *c = s->c;
	const uint64_t fp = c->reg[c->arch->fp];
	const struct mapping *m;
	uint64_t pc;

	if (!cursor_is_valid(c, c->arch->fp) || fp % 8 || fp < c->low || cursor_load(c, fp + 8, &pc) < 0)
		return WORD_UNKNOWN;
	pc &= c->arch->address_mask;
	m = space_find(c->in->space, pc - 1);
	if (!m)
		return WORD_UNKNOWN;
	return mapping_is_generated(m, pc - 1) ? WORD_ENTERS : search_word(s, pc);
}

/* Where calls leave the return address in a register: of code that has made no call. */
static int search_leaf(struct search *s)
{
	struct cursor *c = s->c;
	const uint64_t pc = c->reg[c->arch->ra] & c->arch->address_mask;
	const uint64_t fp = cursor_is_valid(c, c->arch->fp) ? c->reg[c->arch->fp] : 0;
	enum search_lack lack;
	int r;

	if (c->arch->ra == c->arch->pc || !c->exact || !cursor_is_valid(c, c->arch->ra))
		return STEP_NOTHING;
	r = search_word(s, pc);
	if (r == WORD_ENTERS)
		r = search_try(s, c->reg[c->arch->sp], pc, fp, &lack);
	else if (r > 0)
		r = 0;
	return r ? r : STEP_NOTHING;
}

/* Return addresses lie right below the caller's stack pointer, and that is known. */
static bool search_is_possible(const struct cursor *c)
{
	return c->arch->ra == c->arch->pc && cursor_is_valid(c, c->arch->sp) && c->reg[c->arch->sp] % 8 == 0;
}

static int search_all(struct search *s)
{
	struct cursor *c = s->c;
	int record = search_record(s), r = record == -EAGAIN ? record : search_leaf(s);

	if (r != STEP_NOTHING)
		return r;
	if (search_is_possible(c)) {
		r = search_buffer(s);
		if (r == STEP_NOTHING && record == WORD_ENTERS)
			r = search_owner(s);
		else if (r == STEP_NOTHING)
			r = search_words(s, record == WORD_ELSEWHERE ? c->reg[c->arch->fp] : UINT64_MAX);
	}
	return r == STEP_NOTHING && record != WORD_NO_CALL ? step_fp(c) : r;
}

int step_search(struct rules *rules, struct calls *calls, struct cursor *c)
{
	struct search s = {.rules = rules, .calls = calls, .c = c, .from = c->reg[c->arch->sp]};
	const struct reach reach = c->reach;
	int step;

	if (!c->searches)
		calls_begin(calls);
	if (c->searches++ >= SEARCHES_MAX || cursor_chain_ended(c))
		return step_fp(c);
	step = search_all(&s);
	if (step == STEP_NOTHING)
		c->reach = reach; /* a failed search must not enlarge the copy */
	return step;
}
