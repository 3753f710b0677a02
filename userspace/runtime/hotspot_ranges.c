// SPDX-License-Identifier: Apache-2.0
/*
 * Ranges of compiled code, half a word of its region each: from << 14 | length << 6 | words << 1 | flag. Before them two
 * halves have from where on ranges are not told, 0 where all are. A check of a type takes three, for each number of words
 * one; where there is no room for more, these become one that callers alone are known in.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/hotspot.h"

#define UNTOLD	     (2 * HOTSPOT_RANGES) /* for a return address too */
#define UNTOLD_EXACT (UNTOLD + 1)	  /* for a thread's own pc */
#define FIRST	     (UNTOLD + 2)
#define HALVES	     (2 * RUNTIME_CODE_WORDS)

#define FROM_MAX   (1u << 18)
#define LENGTH_MAX 255u
#define UNIT	   32u /* of the length of what is not known; then flag is set */

static void range_put(struct runtime_code *c, uint32_t i, uint32_t half)
{
	const unsigned shift = i % 2 * 32;

	c->word[i / 2] = (c->word[i / 2] & ~((uint64_t)UINT32_MAX << shift)) | (uint64_t)half << shift;
}

static struct hotspot_range range_of(uint32_t half)
{
	const uint32_t from = half >> 14, length = half >> 6 & LENGTH_MAX, words = half >> 1 & HOTSPOT_RANGE_UNKNOWN;
	const bool flag = half & 1, unknown = words == HOTSPOT_RANGE_UNKNOWN;

	return (struct hotspot_range){.from = from, .end = from + length * (unknown && flag ? UNIT : 1), .words = words,
				      .arguments = flag && words && !unknown, .left = flag && !words};
}

/* As much of a range as an entry holds: where nothing is known, perhaps some bytes more. Its end becomes where the rest begins. */
static uint32_t range_take(struct hotspot_range *rest)
{
	const uint32_t from = rest->from, length = rest->end - from;
	const bool by_units = rest->words == HOTSPOT_RANGE_UNKNOWN && length > LENGTH_MAX;
	const uint32_t unit = by_units ? UNIT : 1, n = MIN((length + unit - 1) / unit, LENGTH_MAX);

	rest->from = from + n * unit;
	return from << 14 | n << 6 | rest->words << 1 | (rest->arguments || rest->left || by_units);
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
	if (r->words == HOTSPOT_RANGE_CALLEE)
		return 0;
	return r->arguments ? r->words - MIN(r->words, HOTSPOT_ARGUMENTS) : r->words;
}

void hotspot_range_untold(struct runtime_code *c, uint32_t from, bool exact)
{
	const uint32_t i = exact ? UNTOLD_EXACT : UNTOLD, before = runtime_code_half(c, i);

	if (!before || before > from)
		range_put(c, i, MAX(from, 1u));
}

bool hotspot_ranges_are_told(const struct runtime_code *c)
{
	return !runtime_code_half(c, UNTOLD_EXACT);
}

/* Of arguments alone, which a callee takes away. */
static bool range_is_of_callee(const struct hotspot_range *r)
{
	return r->arguments && !range_words_of_caller(r);
}

static bool ranges_join(struct hotspot_range *a, const struct hotspot_range *b)
{
	if (a->end != b->from || b->end - a->from > LENGTH_MAX || !range_is_of_callee(a) || !range_is_of_callee(b))
		return false;
	*a = (struct hotspot_range){.from = a->from, .end = b->end, .words = HOTSPOT_RANGE_CALLEE, .arguments = true};
	return true;
}

/* Where the next one comes: HALVES, where there is no room. */
static uint32_t ranges_make_room(struct runtime_code *c)
{
	struct hotspot_range last = range_of(runtime_code_half(c, FIRST));
	uint32_t nr = FIRST;

	for (uint32_t i = FIRST + 1; i < HALVES; i++) {
		const struct hotspot_range next = range_of(runtime_code_half(c, i));

		if (ranges_join(&last, &next))
			continue;
		range_put(c, nr++, range_take(&last));
		last = next;
	}
	range_put(c, nr++, range_take(&last));
	for (uint32_t i = nr; i < HALVES; i++)
		range_put(c, i, 0);
	return nr;
}

void hotspot_range_add(struct runtime_code *c, const struct hotspot_range *r)
{
	struct hotspot_range rest = *r, last;
	uint32_t i = FIRST;

	while (i < HALVES && runtime_code_half(c, i))
		i++;
	if (i == HALVES)
		i = ranges_make_room(c);
	if (i > FIRST) {
		last = range_of(runtime_code_half(c, i - 1));
		if (range_goes_on(&last, r)) {
			rest.from = last.from;
			i--;
		}
	}
	for (; rest.from < rest.end && rest.from < FROM_MAX && i < HALVES; i++)
		range_put(c, i, range_take(&rest));
	/* A frame that is taken down calls nothing. */
	if (rest.from < rest.end)
		hotspot_range_untold(c, rest.from, !range_words_of_caller(r));
}

int hotspot_range_at(const struct runtime_code *c, uint64_t offset, bool exact, struct hotspot_range *ret)
{
	const uint32_t untold = runtime_code_half(c, UNTOLD), untold_exact = runtime_code_half(c, UNTOLD_EXACT);

	for (uint32_t i = FIRST; i < HALVES && runtime_code_half(c, i); i++) {
		*ret = range_of(runtime_code_half(c, i));
		if (offset < ret->from || offset >= ret->end)
			continue;
		if (ret->words == HOTSPOT_RANGE_UNKNOWN || (exact && ret->words == HOTSPOT_RANGE_CALLEE))
			return -ENOENT;
		if (!exact)
			ret->words = range_words_of_caller(ret);
		return exact || ret->words;
	}
	return (untold && offset >= untold) || (exact && untold_exact && offset >= untold_exact) ? -ENOENT : 0;
}
