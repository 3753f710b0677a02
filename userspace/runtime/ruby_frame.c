// SPDX-License-Identifier: Apache-2.0
/*
 * Control frames. An iseq's key is its object, with the method entry and words of
 * its body as cookies; a C function's key is its method entry. A block has no
 * entry of its own: the frame that made it has, and stands further out in the
 * same walk, unless it has returned already: then the block's class is unknown.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/ruby.h"

#define FRAME_OUTER_MAX 128 /* frames that one block's search looks at */
#define FRAME_CODE_MAX	(1u << 24)

struct frame_entry {
	uint64_t at;
	uint64_t class, definition; /* 0: not copied */
};

static bool frame_has(const struct runtime_words *w, uint32_t sub)
{
	return !(w->missing & (1u << sub));
}

/* The method entry of a local environment, through the svar that a frame has once it has matched a regexp. */
static struct frame_entry frame_entry_of(const uint64_t *word, bool copied)
{
	struct frame_entry e = {.at = word[RUBY_WORD_ENTRY]};

	if (!copied || !e.at)
		return (struct frame_entry){0};
	if (ruby_is_imemo(word[RUBY_WORD_ENTRY_FLAGS], RUBY_IMEMO_SVAR))
		return (struct frame_entry){.at = word[RUBY_WORD_ENTRY_CLASS]};
	if (!ruby_is_imemo(word[RUBY_WORD_ENTRY_FLAGS], RUBY_IMEMO_ENTRY))
		return (struct frame_entry){0};
	e.class = word[RUBY_WORD_ENTRY_CLASS];
	e.definition = word[RUBY_WORD_ENTRY_DEFINITION];
	return e;
}

/* The frame further out whose environment is ep; NULL. */
static const uint64_t *frame_outer(const struct runtime_words *w, uint64_t ep, uint32_t *from)
{
	uint32_t step = w->count + 1;

	for (uint32_t i = *from + 1; i <= MIN(w->nr_outer, FRAME_OUTER_MAX); i++) {
		if (w->word[i * step + RUBY_WORD_EP] == ep) {
			*from = i;
			return w->word + i * step;
		}
	}
	return NULL;
}

static struct frame_entry frame_entry(const struct runtime_words *w)
{
	const uint64_t *word = w->word;
	uint32_t at = 0;

	while (word && !(word[RUBY_WORD_FLAGS] & RUBY_ENV_LOCAL))
		word = frame_outer(w, word[RUBY_WORD_SPEC] & ~3ULL, &at);
	if (!word)
		return (struct frame_entry){0};
	/* The word before a frame's own is its address, with the subs that are missing. */
	return frame_entry_of(word, at ? !(word[-1] & OTP_WALK_MISSING(3)) : frame_has(w, 3));
}

static int frame_native(const struct runtime_words *w, struct runtime_frame *ret)
{
	const struct frame_entry e = frame_entry_of(w->word, frame_has(w, 3));

	ret->flags |= RUNTIME_NATIVE;
	if (!e.definition) {
		ret->flags |= RUNTIME_HIDDEN;
		return 0;
	}
	ret->key = e.at;
	ret->cookie[RUBY_COOKIE_ENTRY] = RUBY_COOKIE_NATIVE;
	ret->cookie[RUBY_COOKIE_CODE] = e.definition;
	ret->cookie[RUBY_COOKIE_MORE] = e.class;
	return 0;
}

/*
 * pc is behind the instruction that runs. Compiled code sets it only before it calls what may look at it: while it runs
 * itself, the function's first line stands for the one that is not known.
 */
static void frame_position(const struct runtime_words *w, struct runtime_frame *ret)
{
	uint64_t pc = w->word[RUBY_WORD_PC], code = w->word[RUBY_WORD_ENCODED], n = (pc - code) / 8;

	if (w->compiled && !w->index)
		return;
	if (pc < code || pc % 8 || n > FRAME_CODE_MAX)
		ret->flags |= RUNTIME_LINE;
	else
		ret->position = n ? (uint32_t)n - 1 : 0;
}

static int frame_iseq(const struct runtime_words *w, struct runtime_frame *ret)
{
	const struct frame_entry e = frame_entry(w);

	if (!frame_has(w, 1) || !frame_has(w, 2))
		return -EBADMSG;
	ret->key = w->word[RUBY_WORD_ISEQ];
	ret->cookie[RUBY_COOKIE_ENTRY] = e.at;
	ret->cookie[RUBY_COOKIE_CODE] = w->word[RUBY_WORD_ENCODED];
	ret->cookie[RUBY_COOKIE_MORE] = ruby_mix(w->word[RUBY_WORD_LABEL], e.definition);
	frame_position(w, ret);
	return 0;
}

/*
 * Rescue and ensure have a frame of their own, which stands on that of their
 * method. From 3.4 on both have the method's name, and backtraces show the first.
 */
static bool frame_is_shown_by_its_rescue(const struct runtime_attached *a, const struct runtime_words *w)
{
	return a->param[RUBY_PARAM_VERSION] >= RUBY_LABELS_BY_OWNER && w->index &&
	       ((w->word - w->count - 1)[RUBY_WORD_FLAGS] & RUBY_FRAME_MAGIC) == RUBY_FRAME_RESCUE;
}

int ruby_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret)
{
	uint64_t flags;

	if (w->count != RUBY_WORDS || !frame_has(w, 0) || !(w->word[RUBY_WORD_FLAGS] & 1))
		return -EBADMSG;
	flags = w->word[RUBY_WORD_FLAGS];
	*ret = (struct runtime_frame){0};
	if ((flags & RUBY_FRAME_MAGIC) == RUBY_FRAME_CFUNC)
		return frame_native(w, ret);
	/* Blocks that are C functions, the frame at the end of each stack, and what backtraces leave out likewise. */
	if (!w->word[RUBY_WORD_PC] || !w->word[RUBY_WORD_ISEQ] || (flags & RUBY_FRAME_MAGIC) == RUBY_FRAME_DUMMY) {
		ret->flags = RUNTIME_HIDDEN;
		return 0;
	}
	ret->flags = flags & RUBY_FRAME_FINISH ? RUNTIME_ENTRY : 0;
	if (frame_is_shown_by_its_rescue(a, w)) {
		ret->flags |= RUNTIME_HIDDEN;
		return 0;
	}
	return frame_iseq(w, ret);
}
