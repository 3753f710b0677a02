// SPDX-License-Identifier: Apache-2.0
/* A filter on the samples of a recording: each stack is judged once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "graph/filter.h"
#include "graph/place.h"

/* The result for a stack: one of these, or 2 plus the number of the stack that replaces it. */
enum { STACK_UNKNOWN, STACK_DROPPED, STACK_BECOMES };

struct sieve {
	const struct filter *filter;
	struct recording *rec;
	uint8_t *locations;   /* owned: filter_match of its functions, + 1; 0: not matched yet */
	uint64_t *stacks;     /* owned: STACK_ */
	struct buf shortened; /* scratch: uint32_t[], locations that are not hidden */
	uint32_t marker;      /* location of FILTER_HIDDEN; 0: not added yet */
};

static const char *sieve_name(const struct sieve *s, const struct rec_location *l, size_t line)
{
	const struct rec_function *f = intern_key(&s->rec->functions, l->lines[line].function);

	return recording_str(s->rec, f->name);
}

static unsigned int sieve_location(struct sieve *s, uint32_t location)
{
	const struct rec_location *l = intern_key(&s->rec->locations, location);
	const struct rec_mapping *m = intern_key(&s->rec->mappings, l->mapping);
	size_t n = recording_lines(s->rec, location), i;
	char text[PLACE_NAMELESS];
	unsigned int match = 0;

	if (s->locations[location])
		return s->locations[location] - 1u;
	place_nameless(recording_str(s->rec, m->file), intern_len(&s->rec->strings, m->file) - 1, l->address, text);
	for (i = 0; i < n; i++)
		match |= filter_match(s->filter, *sieve_name(s, l, i) ? sieve_name(s, l, i) : text);
	if (!n)
		match = filter_match(s->filter, text);
	s->locations[location] = (uint8_t)(match + 1);
	return match;
}

static int sieve_add_marker(struct sieve *s)
{
	uint8_t key[sizeof(struct rec_location) + sizeof(struct rec_line)];
	const struct rec_location l = {.kind = KIND_MARKER};
	struct rec_function f = {0};
	struct rec_line line = {0};
	int e = intern_number(&s->rec->strings, FILTER_HIDDEN, sizeof(FILTER_HIDDEN), &f.name);

	if (!e)
		e = intern_number(&s->rec->functions, &f, sizeof(f), &line.function);
	memcpy(key, &l, sizeof(l));
	memcpy(key + sizeof(l), &line, sizeof(line));
	return e < 0 ? e : intern_number(&s->rec->locations, key, sizeof(key), &s->marker);
}

/* In place of frames that are all hidden: one marker. */
static int sieve_mark(struct sieve *s)
{
	int e = s->marker ? 0 : sieve_add_marker(s);

	buf_add(&s->shortened, &s->marker, sizeof(s->marker));
	return e;
}

static int sieve_shorten(struct sieve *s, const uint32_t *stack, size_t n, uint32_t *ret)
{
	size_t i;
	int e = 0;

	buf_reset(&s->shortened);
	for (i = 0; i < n; i++) {
		const struct rec_location *l = intern_key(&s->rec->locations, stack[i]);

		if (!filter_hides(s->filter, (enum frame_kind)l->kind))
			buf_add(&s->shortened, &stack[i], sizeof(stack[i]));
	}
	if (n && !s->shortened.len)
		e = sieve_mark(s);
	if (e < 0 || s->shortened.failed)
		return e < 0 ? e : -ENOMEM;
	return intern_number(&s->rec->stacks, s->shortened.data ? (void *)s->shortened.data : "", s->shortened.len, ret);
}

static int sieve_stack(struct sieve *s, uint32_t stack, uint64_t *ret)
{
	size_t n, i;
	const uint32_t *locations = recording_stack(s->rec, stack, &n);
	unsigned int match = s->filter->focus.count ? 0 : FILTER_FOCUSED;
	uint32_t shortened;
	int e;

	for (i = 0; i < n; i++)
		match |= sieve_location(s, locations[i]);
	*ret = STACK_DROPPED;
	if (match != FILTER_FOCUSED)
		return 0;
	e = sieve_shorten(s, locations, n, &shortened);
	*ret = STACK_BECOMES + (uint64_t)shortened;
	return e;
}

static int sieve_sample(void *ctx, struct rec_sample *sample)
{
	struct sieve *s = ctx;
	uint64_t *verdict = &s->stacks[sample->stack];
	int e = *verdict ? 0 : sieve_stack(s, sample->stack, verdict);

	if (e < 0 || *verdict == STACK_DROPPED)
		return e;
	sample->stack = (uint32_t)(*verdict - STACK_BECOMES);
	return 1;
}

static void sieve_done(struct sieve *s)
{
	free(s->locations);
	free(s->stacks);
	buf_done(&s->shortened);
}

int filter_recording(const struct filter *f, struct recording *r)
{
	_cleanup_(sieve_done) struct sieve s = {.filter = f, .rec = r};

	s.locations = calloc(r->locations.count, sizeof(*s.locations));
	s.stacks = calloc(r->stacks.count, sizeof(*s.stacks));
	if (!s.locations || !s.stacks)
		return -ENOMEM;
	return recording_rewrite(r, sieve_sample, &s);
}
