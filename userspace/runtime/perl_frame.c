// SPDX-License-Identifier: Apache-2.0
/*
 * What the words of a context mean, next to the contexts around it: those within
 * hold the line, those without tell in which loop an eval runs.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/perl.h"

#define TYPE_MASK 0x0f
#define SUB_PATTERN 0x40 /* code in a regular expression */
#define SUB_FAKE    0x80 /* and it belongs to the sub around it, which stands here once more */
#define EVAL_REAL   0x20 /* of a string */
#define EVAL_BLOCK  0x40

#define ADDRESS_BITS 48 /* of arm64; x86-64 has 47 */
#define CONTEXT_MAX  128 /* no context is larger: its neighbour of the same array is nearer */

/* A word of any frame of the walk. Its address is before its first word. */
static uint64_t perl_word(const struct runtime_words *w, int64_t index, enum perl_word word)
{
	return w->word[(index - (int64_t)w->index) * (int64_t)(w->count + 1) + word];
}

static uint64_t perl_address(const struct runtime_words *w, int64_t index)
{
	return w->word[(index - (int64_t)w->index) * (int64_t)(w->count + 1) - 1] & OTP_WALK_ADDRESS;
}

static uint32_t perl_type(const struct runtime_words *w, int64_t index)
{
	return perl_word(w, index, PERL_TYPE) & TYPE_MASK;
}

static bool perl_has(const struct runtime_words *w, int64_t index, uint64_t flag)
{
	return perl_word(w, index, PERL_TYPE) & flag;
}

static bool perl_is_sub(const struct runtime_words *w, int64_t index)
{
	uint32_t type = perl_type(w, index);

	return (type == PERL_CX_SUB && !perl_has(w, index, SUB_FAKE)) || type == PERL_CX_FORMAT;
}

/* The file that perl was started with runs in the outermost context, which its first op enters. */
static bool perl_is_main(const struct runtime_words *w)
{
	return w->last && perl_type(w, w->index) == PERL_CX_BLOCK;
}

static int64_t perl_frames(const struct runtime_words *w)
{
	return (int64_t)w->index + 1 + w->nr_outer;
}

/* A context whose code has a name and lines of its own; a block's, or an eval {}'s, are those of the code around it. */
static bool perl_is_function(const struct runtime_words *w, int64_t index)
{
	if (perl_type(w, index) == PERL_CX_EVAL)
		return !perl_has(w, index, EVAL_BLOCK);
	return perl_is_sub(w, index);
}

/* --- a context that is being filled, or left --- */

static bool perl_calls_itself(const struct runtime_words *w)
{
	for (int64_t i = 1; i < perl_frames(w); i++)
		if (perl_is_function(w, i))
			return perl_is_sub(w, i) && perl_word(w, i, PERL_CV) == perl_word(w, 0, PERL_CV);
	return false;
}

/*
 * The topmost context counts before it is filled, and after its sub has returned.
 * In both cases the interpreter is at the COP of the call, as it is in a sub that
 * has not run its first statement; a sub that calls itself may be at it as well.
 * Before that, and for an instant of the return, there is no CV: returning takes it.
 */
static bool perl_is_unfinished(const struct runtime_words *w, int64_t index)
{
	if (index || !perl_is_sub(w, 0))
		return false;
	if (!perl_word(w, 0, PERL_CV))
		return true;
	return perl_word(w, 0, PERL_OLDCOP) == w->root[0] && !perl_calls_itself(w);
}

/* Without a CV, the topmost context does not tell whose COP the interpreter is at: the caller's, or still its own. */
static bool perl_leaf_is_known(const struct runtime_words *w)
{
	return !perl_is_unfinished(w, 0) || perl_word(w, 0, PERL_OLDCOP) == w->root[0];
}

/* --- which loop runs it --- */

/* Whether the next outer context is of the same array. */
static bool perl_is_stacked(const struct runtime_words *w, int64_t index)
{
	return index + 1 < perl_frames(w) && perl_address(w, index) - perl_address(w, index + 1) <= CONTEXT_MAX;
}

/* A sort has an array of its own; elsewhere, 0 is a context that was never used and is about to be. */
static bool perl_is_sort(const struct runtime_words *w, int64_t index)
{
	return perl_type(w, index) == PERL_CX_NULL && !perl_is_stacked(w, index);
}

/* Code that a loop runs without a sub: the block of a sort, of defer, code in a regular expression. */
static bool perl_is_bare(const struct runtime_words *w, int64_t index)
{
	uint32_t type = perl_type(w, index);

	return perl_is_sort(w, index) || type == PERL_CX_DEFER || (type == PERL_CX_SUB && perl_has(w, index, SUB_PATTERN));
}

/* What such code enters last has no op to return to either. */
static bool perl_is_in_bare(const struct runtime_words *w, int64_t index)
{
	return perl_is_stacked(w, index) && perl_is_bare(w, index + 1);
}

/* Called from C: there is no op to return to. */
static bool perl_is_called(const struct runtime_words *w, int64_t index)
{
	return (perl_type(w, index) == PERL_CX_SUB || perl_type(w, index) == PERL_CX_FORMAT) &&
	       !perl_word(w, index, PERL_RETOP) && !perl_is_in_bare(w, index);
}

/* call_sv(G_EVAL): an eval without an op to return to, around the sub. */
static bool perl_is_caught(const struct runtime_words *w, int64_t index)
{
	return index + 1 < perl_frames(w) && perl_type(w, index + 1) == PERL_CX_EVAL &&
	       !perl_word(w, index + 1, PERL_RETOP) && !perl_is_in_bare(w, index + 1);
}

/*
 * An eval runs in the loop that entered it, unless that loop was called from C
 * without a place to die to: then eval makes one, and a loop on top of it.
 */
static bool perl_eval_has_loop(const struct runtime_words *w, int64_t index)
{
	for (int64_t i = index + 1; i < perl_frames(w); i++) {
		uint32_t type = perl_type(w, i);

		if (type == PERL_CX_EVAL)
			return false;
		if (perl_is_sort(w, i) || type == PERL_CX_DEFER)
			return true;
		if (perl_is_called(w, i))
			return !perl_is_caught(w, i);
	}
	return false;
}

static bool perl_is_entry(const struct runtime_words *w)
{
	switch (perl_type(w, w->index)) {
	case PERL_CX_NULL:
		return perl_is_sort(w, w->index);
	case PERL_CX_DEFER:
		return true;
	case PERL_CX_EVAL:
		if (!perl_word(w, w->index, PERL_RETOP) && !perl_is_in_bare(w, w->index))
			return !perl_has(w, w->index, EVAL_BLOCK);
		return perl_eval_has_loop(w, w->index);
	default:
		return perl_is_main(w) || perl_is_called(w, w->index);
	}
}

/* --- functions --- */

/* A context gets its COP before its CV, and loses the CV first: with one, it holds the COP of the call. */
static bool perl_has_call(const struct runtime_words *w, int64_t index)
{
	return perl_is_function(w, index) && (!perl_is_unfinished(w, index) || perl_word(w, index, PERL_CV));
}

/* The context by which the function of this one called another: the next inner one of a function. -1: it calls none. */
static int64_t perl_callee(const struct runtime_words *w)
{
	int64_t i = (int64_t)w->index - 1;

	while (i >= 0 && !perl_has_call(w, i))
		i--;
	return i;
}

/* Its line came with the sample; what is left to read is of which file it is. */
static void perl_at_call(const struct runtime_words *w, int64_t callee, struct runtime_frame *ret)
{
	ret->position = (uint32_t)(perl_word(w, callee, PERL_LINE) >> 32);
	ret->flags |= RUNTIME_LINE;
	ret->cookie[PERL_COOKIE_COP] = PERL_ADDRESS(perl_word(w, callee, PERL_OLDCOP));
	ret->cookie[PERL_COOKIE_LINE] = perl_word(w, callee, PERL_LINE);
	ret->cookie[PERL_COOKIE_SEQ] = perl_word(w, callee, PERL_SEQ);
}

static void perl_sub(const struct runtime_words *w, struct runtime_frame *ret)
{
	ret->key = PERL_FUNCTION | perl_word(w, w->index, PERL_CV);
	ret->cookie[0] = perl_word(w, w->index, PERL_START);
	ret->cookie[1] = perl_word(w, w->index, PERL_GV);
	if (perl_word(w, w->index, PERL_FLAGS) >> 32 & PERL_CVF_NAMED)
		ret->cookie[PERL_COOKIE_COP] |= PERL_COOKIE_NAMED;
}

static void perl_function(const struct runtime_words *w, struct runtime_frame *ret)
{
	int64_t callee = perl_callee(w);
	bool own_file = perl_type(w, w->index) == PERL_CX_EVAL && !perl_has(w, w->index, EVAL_REAL);

	if (callee < 0 && perl_leaf_is_known(w))
		ret->cookie[PERL_COOKIE_COP] = PERL_ADDRESS(w->root[0]);
	else if (callee >= 0 && !(own_file && PERL_IS_COMPILERS(perl_word(w, callee, PERL_LINE))))
		perl_at_call(w, callee, ret);
	if (perl_is_sub(w, w->index))
		perl_sub(w, ret);
	else if (perl_is_main(w))
		ret->key = PERL_MAIN;
	else
		ret->key = own_file ? PERL_REQUIRE : PERL_EVAL;
}

static bool perl_is_pointer(uint64_t word)
{
	return word && !(word & 7) && !(word >> ADDRESS_BITS);
}

static bool perl_is_sound(const struct runtime_words *w)
{
	if (!perl_is_sub(w, w->index))
		return true;
	return perl_is_pointer(perl_word(w, w->index, PERL_CV)) && !(w->missing & 1 << PERL_SUB_BODY);
}

int perl_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret)
{
	bool unfinished;

	if (w->count != PERL_WORDS || w->nr_root != 1)
		return -EBADMSG;
	unfinished = perl_is_unfinished(w, w->index);
	if (!unfinished && !perl_is_sound(w))
		return w->index ? -EBADMSG : (ret->flags = RUNTIME_HIDDEN, 0);
	if (unfinished || !(perl_is_function(w, w->index) || perl_is_main(w)))
		ret->flags |= RUNTIME_HIDDEN;
	else
		perl_function(w, ret);
	if (!unfinished && perl_is_entry(w))
		ret->flags |= RUNTIME_ENTRY;
	return 0;
}
