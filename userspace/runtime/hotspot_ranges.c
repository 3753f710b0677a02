// SPDX-License-Identifier: Apache-2.0
/*
 * Ranges of compiled code, two of its region's numbers beside the words (more) each: from << 14 | length, and words << 2 |
 * arguments << 1 | left. Two halves of words have from where on ranges are not told, 0 where all are.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"

#define UNTOLD	     (2 * HOTSPOT_RANGES) /* for a return address too */
#define UNTOLD_EXACT (UNTOLD + 1)	  /* for a thread's own pc */

#define FROM_MAX   (1u << 18)
#define LENGTH_MAX ((1u << 14) - 1)
#define NUMBERS	   2u

static void range_set_untold(struct runtime_code *c, uint32_t i, uint32_t from)
{
	const unsigned shift = i % 2 * 32;

	c->word[i / 2] = (c->word[i / 2] & ~((uint64_t)UINT32_MAX << shift)) | (uint64_t)from << shift;
}

static struct hotspot_range range_of(const uint32_t at[NUMBERS])
{
	const uint32_t from = at[0] >> 14;

	return (struct hotspot_range){.from = from, .end = from + (at[0] & LENGTH_MAX), .words = at[1] >> 2,
				      .arguments = at[1] >> 1 & 1, .left = at[1] & 1};
}

/* As much of a range as an entry holds. Its end becomes where the rest begins. */
static void range_take(struct runtime_code_made *made, struct hotspot_range *rest)
{
	const uint32_t n = MIN(rest->end - rest->from, LENGTH_MAX);

	runtime_code_add_more(made, rest->from << 14 | n);
	runtime_code_add_more(made, rest->words << 2 | (uint32_t)rest->arguments << 1 | rest->left);
	rest->from += n;
}

/* Of a frame that is taken down, the first instruction is the pop: two ranges that touch are not one. */
static bool range_goes_on(const struct hotspot_range *last, const struct hotspot_range *r)
{
	return (r->words || r->left) && last->end == r->from && last->words == r->words &&
	       last->arguments == r->arguments && last->left == r->left;
}

/* Words of a return address: a callee has taken its arguments away. */
static uint32_t range_words_of_caller(const struct hotspot_range *r)
{
	return r->arguments ? r->words - MIN(r->words, HOTSPOT_ARGUMENTS) : r->words;
}

void hotspot_range_untold(struct runtime_code *c, uint32_t from, bool exact)
{
	const uint32_t i = exact ? UNTOLD_EXACT : UNTOLD, before = runtime_code_half(c, i);

	if (!before || before > from)
		range_set_untold(c, i, MAX(from, 1u));
}

bool hotspot_ranges_are_told(const struct runtime_code *c)
{
	return !runtime_code_half(c, UNTOLD_EXACT);
}

void hotspot_range_add(struct runtime_code_made *made, const struct hotspot_range *r)
{
	struct hotspot_range rest = *r, last;
	const uint32_t nr = made->code.nr_more;

	if (nr) {
		last = range_of(made->more + nr - NUMBERS);
		if (range_goes_on(&last, r)) {
			rest.from = last.from;
			made->code.nr_more -= NUMBERS;
		}
	}
	while (rest.from < rest.end && rest.from < FROM_MAX && made->code.nr_more + NUMBERS <= RUNTIME_CODE_MORE)
		range_take(made, &rest);
	/* A frame that is taken down calls nothing. */
	if (rest.from < rest.end)
		hotspot_range_untold(&made->code, rest.from, !range_words_of_caller(r));
}

int hotspot_range_at(const struct runtime_code *c, const uint32_t *more, uint64_t offset, bool exact,
		     struct hotspot_range *ret)
{
	const uint32_t untold = runtime_code_half(c, UNTOLD), untold_exact = runtime_code_half(c, UNTOLD_EXACT);

	for (uint32_t i = 0; i + NUMBERS <= c->nr_more; i += NUMBERS) {
		*ret = range_of(more + i);
		if (offset < ret->from || offset >= ret->end)
			continue;
		if (ret->words == HOTSPOT_RANGE_UNKNOWN)
			return -ENOENT;
		if (!exact)
			ret->words = range_words_of_caller(ret);
		return exact || ret->words;
	}
	return (untold && offset >= untold) || (exact && untold_exact && offset >= untold_exact) ? -ENOENT : 0;
}
