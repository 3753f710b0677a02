/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which stacks are shown, and how much of each: expressions that a stack's
 * functions match or not, and kinds of frames that are hidden.
 *
 * A stack is kept if any of its functions matches one of the focus
 * expressions (or there are none), and none matches an ignore expression. A
 * frame of a hidden kind is left out: its callees and its value move to its
 * caller, so totals do not change. A stack that would have no frame left, which
 * receivers of profiles drop, becomes one marker, FILTER_HIDDEN, whether markers
 * are hidden or not. Expressions match hidden frames too.
 *
 * Called by verbs that show graphs or write recordings, one thread per filter.
 * Lifetime: zero-initialise (everything is shown), filter_done.
 * Expressions: POSIX extended, of at most FILTER_LENGTH bytes and
 * FILTER_EXPRESSIONS of each sort, without back-references, and repeated at
 * most FILTER_REPEATS times, which bounds the time and memory of a hostile
 * one. Names are matched once for each function.
 * Errors: -EINVAL and a reason; -E2BIG, a bound of tree or recording; -ENOMEM.
 */
#ifndef OTP_GRAPH_FILTER_H
#define OTP_GRAPH_FILTER_H

#include <regex.h>

#include "graph/tree.h"
#include "recording/recording.h"

#define FILTER_EXPRESSIONS 16
#define FILTER_LENGTH      256
#define FILTER_REPEATS     1000
#define FILTER_WHY         256
#define FILTER_HIDDEN      "[hidden]"

struct expressions {
	regex_t list[FILTER_EXPRESSIONS];
	uint32_t count;
};

struct filter {
	struct expressions focus, ignore;
	uint32_t hidden; /* a bit for each kind */
};

int filter_focus(struct filter *f, const char *expression, char ret_why[FILTER_WHY]);
int filter_ignore(struct filter *f, const char *expression, char ret_why[FILTER_WHY]);
int filter_hide(struct filter *f, const char *kind, char ret_why[FILTER_WHY]); /* by frame_kind_find */
void filter_done(struct filter *f);
bool filter_is_empty(const struct filter *f);

/*
 * The filtered tree. valued, of t->count elements: whether a node has a value of its own. ret_map, likewise: where that
 * value belongs, TREE_NONE: it is dropped.
 */
int filter_tree(const struct filter *f, const struct tree *t, const bool *valued, struct tree **ret, uint32_t *ret_map);
/* Filters the samples of a recording. On failure they are unchanged. */
int filter_recording(const struct filter *f, struct recording *r);

/* For the two above: which expressions a function's name matches, as bits. */
enum { FILTER_FOCUSED = 1, FILTER_IGNORED = 2 };
unsigned int filter_match(const struct filter *f, const char *name);

static inline bool filter_hides(const struct filter *f, enum frame_kind kind)
{
	return f->hidden >> kind & 1;
}

#endif
