// SPDX-License-Identifier: Apache-2.0
#include "graph/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

_Static_assert(KIND_NR <= 32, "a bit for each kind");

/* How often glibc's regcomp copies what is repeated by an interval at s: "{2,5}" 5 times, "{2,}" 3 times; else 1. */
static uint64_t expression_interval(const char *s)
{
	char *end;
	uint64_t low = strtoull(s + 1, &end, 10), high = low;

	if (*end == ',' && end[1] == '}')
		return low < UINT64_MAX ? low + 1 : low;
	if (*end == ',')
		high = strtoull(end + 1, &end, 10);
	return *end == '}' && (low || high) ? (low > high ? low : high) : 1;
}

/* Likewise by any repetition at s, before which before stands: "a+" is "aa*", which grows only where it is repeated again. */
static uint64_t expression_copies(char before, const char *s)
{
	if (*s == '+')
		return before && strchr("+*?})", before) ? 2 : 1;
	return *s == '{' ? expression_interval(s) : 1;
}

/* How often the innermost of nested repetitions may be repeated: an upper bound, their product. */
static bool expression_repeats_too_often(const char *s)
{
	uint64_t product = 1;
	char before = '\0';

	for (; *s; before = *s++) {
		if (*s == '\\' && s[1])
			s++;
		else if (__builtin_mul_overflow(product, expression_copies(before, s), &product))
			return true;
		if (product > FILTER_REPEATS)
			return true;
	}
	return false;
}

/* Back-references make matching exponential. */
static bool expression_has_back_reference(const char *s)
{
	for (; *s; s++)
		if (*s == '\\' && s[1] && *++s >= '1' && *s <= '9')
			return true;
	return false;
}

static const char *expression_refused(const struct expressions *to, const char *s)
{
	if (to->count == FILTER_EXPRESSIONS)
		return "too many expressions";
	if (strlen(s) > FILTER_LENGTH)
		return "the expression is too long";
	if (expression_has_back_reference(s))
		return "back-references are not supported";
	if (expression_repeats_too_often(s))
		return "it repeats too often";
	return NULL;
}

static int expressions_add(struct expressions *to, const char *s, char why[FILTER_WHY])
{
	const char *refused = expression_refused(to, s);
	regex_t *regex = &to->list[to->count];
	int e;

	if (refused) {
		snprintf(why, FILTER_WHY, "%s", refused);
		return -EINVAL;
	}
	e = regcomp(regex, s, REG_EXTENDED | REG_NOSUB);
	if (e) {
		regerror(e, regex, why, FILTER_WHY);
		return -EINVAL;
	}
	to->count++;
	return 0;
}

int filter_focus(struct filter *f, const char *expression, char ret_why[FILTER_WHY])
{
	return expressions_add(&f->focus, expression, ret_why);
}

int filter_ignore(struct filter *f, const char *expression, char ret_why[FILTER_WHY])
{
	return expressions_add(&f->ignore, expression, ret_why);
}

/* Only kinds of frames can be hidden, not those of the nodes above them. */
int filter_hide(struct filter *f, const char *kind, char ret_why[FILTER_WHY])
{
	enum frame_kind k = frame_kind_find(kind);
	size_t at;

	if (k != KIND_NR && k >= KIND_MARKER) {
		f->hidden |= 1u << k;
		return 0;
	}
	at = (size_t)snprintf(ret_why, FILTER_WHY, "no such kind of frame: there are");
	for (k = KIND_MARKER; k < KIND_NR && at < FILTER_WHY; k++)
		at += (size_t)snprintf(ret_why + at, FILTER_WHY - at, "%s %s", k == KIND_MARKER ? "" : ",",
				       frame_kind_name(k));
	return -EINVAL;
}

bool filter_is_empty(const struct filter *f)
{
	return !f->focus.count && !f->ignore.count && !f->hidden;
}

static bool expressions_match(const struct expressions *e, const char *name)
{
	uint32_t i;

	for (i = 0; i < e->count; i++)
		if (regexec(&e->list[i], name, 0, NULL, 0) == 0)
			return true;
	return false;
}

unsigned int filter_match(const struct filter *f, const char *name)
{
	return (expressions_match(&f->focus, name) ? FILTER_FOCUSED : 0) |
	       (expressions_match(&f->ignore, name) ? FILTER_IGNORED : 0);
}

static void expressions_done(struct expressions *e)
{
	while (e->count)
		regfree(&e->list[--e->count]);
}

void filter_done(struct filter *f)
{
	expressions_done(&f->focus);
	expressions_done(&f->ignore);
	f->hidden = 0;
}
