// SPDX-License-Identifier: Apache-2.0
#include "graph/adder.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "graph/place.h"

/* The frames of a location: a range of the adder's frames. */
struct adder_run {
	uint32_t start, n; /* n 0: not translated yet */
};

/* place.name: ctx is a location of the recording. */
struct location_ref {
	struct adder *adder;
	const struct rec_location *location;
};

/* Each string is hashed once, however many functions and locations have it. */
static int adder_string(struct adder *a, uint32_t string, uint32_t *ret)
{
	uint32_t *known = &a->strings[string], number;
	int r = *known ? 0 : tree_add_string(a->tree, recording_str(a->rec, string), &number);

	if (r < 0)
		return r;
	if (!*known)
		*known = number + 1;
	*ret = *known - 1;
	return 0;
}

static const struct rec_function *adder_function(const struct adder *a, const struct rec_location *l, size_t line)
{
	return intern_key(&a->rec->functions, l->lines[line].function);
}

static int adder_name(void *ctx, size_t i, uint32_t *ret)
{
	const struct location_ref *ref = ctx;

	return adder_string(ref->adder, adder_function(ref->adder, ref->location, i)->name, ret);
}

/* Frames stand outermost first, lines innermost first. */
static int adder_report(struct adder *a, const struct rec_location *l, const struct adder_run *run, size_t lines)
{
	const struct place_frame *frames = (const struct place_frame *)a->frames.data + run->start;
	size_t i;
	int r = 0;

	for (i = 0; !r && a->placed && i < lines; i++)
		r = a->placed(a->ctx, frames[i].function, adder_function(a, l, lines - 1 - i));
	return r;
}

static int adder_translate(struct adder *a, uint32_t location, struct adder_run *ret)
{
	const struct rec_location *l = intern_key(&a->rec->locations, location);
	const struct rec_mapping *m = intern_key(&a->rec->mappings, l->mapping);
	struct location_ref ref = {a, l};
	struct place place = {
		.file = recording_str(a->rec, m->file),
		.file_len = intern_len(&a->rec->strings, m->file) - 1,
		.address = l->address,
		.kind = (enum frame_kind)l->kind,
		.lines = recording_lines(a->rec, location),
		.name = adder_name,
		.ctx = &ref,
	};
	size_t start = a->frames.len / sizeof(struct place_frame), end;
	struct adder_run run;
	int r = adder_string(a, m->file, &place.module);

	if (!r)
		r = place_add_frames(&place, a->tree, &a->frames);
	end = a->frames.len / sizeof(struct place_frame);
	if (r < 0)
		return r;
	if (end > UINT32_MAX)
		return -E2BIG;
	run = (struct adder_run){.start = (uint32_t)start, .n = (uint32_t)(end - start)};
	r = adder_report(a, l, &run, place.lines);
	if (!r)
		*ret = run;
	return r;
}

static int adder_descend_location(struct adder *a, uint32_t location, uint32_t *node)
{
	struct adder_run *run = &a->runs[location];
	int r = run->n ? 0 : adder_translate(a, location, run);

	if (r < 0)
		return r;
	if (run->n > a->left)
		return -E2BIG;
	a->left -= run->n;
	return place_descend(a->tree, (const struct place_frame *)a->frames.data + run->start, run->n, node);
}

int adder_descend(struct adder *a, uint32_t stack, uint32_t *node)
{
	size_t n;
	const uint32_t *locations = recording_stack(a->rec, stack, &n);
	int r = 0;

	while (!r && n--)
		r = adder_descend_location(a, locations[n], node);
	return r;
}

int adder_init(struct adder *a, struct tree *t, const struct recording *rec, uint64_t max_frames)
{
	*a = (struct adder){.tree = t, .rec = rec, .left = max_frames};
	a->runs = calloc(rec->locations.count, sizeof(*a->runs));
	a->strings = calloc(rec->strings.count, sizeof(*a->strings));
	return a->runs && a->strings ? 0 : -ENOMEM;
}

void adder_done(struct adder *a)
{
	free(a->runs);
	free(a->strings);
	buf_done(&a->frames);
}
