// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "graph/place.h"

/* The frames of a location: a range of the adder's frames. */
struct run {
	uint32_t start, n; /* n 0: not translated yet */
};

/* State while one recording is added to a graph. */
struct adder {
	struct tree *tree;
	const struct recording *rec;
	struct run *runs;   /* owned, by location */
	struct buf frames;  /* struct place_frame[] */
	uint32_t *strings;  /* owned, by string: its number in the tree + 1, 0: none yet */
	uint32_t *roots;    /* owned, by string: node of the service of that name, TREE_NONE: none yet */
	uint64_t left;      /* frames that may still be followed */
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

static int adder_name(void *ctx, size_t i, uint32_t *ret)
{
	const struct location_ref *ref = ctx;
	const struct rec_function *f = intern_key(&ref->adder->rec->functions, ref->location->lines[i].function);

	return adder_string(ref->adder, f->name, ret);
}

static int adder_translate(struct adder *a, uint32_t location, struct run *run)
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
	int r = adder_string(a, m->file, &place.module);

	if (!r)
		r = place_add_frames(&place, a->tree, &a->frames);
	end = a->frames.len / sizeof(struct place_frame);
	if (!r && end > UINT32_MAX)
		r = -E2BIG;
	if (!r)
		*run = (struct run){.start = (uint32_t)start, .n = (uint32_t)(end - start)};
	return r;
}

static int adder_descend(struct adder *a, uint32_t location, uint32_t *node)
{
	struct run *run = &a->runs[location];
	int r = run->n ? 0 : adder_translate(a, location, run);

	if (r < 0)
		return r;
	if (run->n > a->left)
		return -E2BIG;
	a->left -= run->n;
	return place_descend(a->tree, (const struct place_frame *)a->frames.data + run->start, run->n, node);
}

static int adder_root(struct adder *a, uint32_t series, uint32_t *ret)
{
	uint32_t service = recording_workload(a->rec, series)->service, *root = &a->roots[service];
	int r = 0;

	if (*root == TREE_NONE)
		r = tree_add_named(a->tree, 0, recording_str(a->rec, service), KIND_SERVICE, root);
	*ret = *root;
	return r;
}

static int adder_stack(struct adder *a, const struct rec_sample *s, uint32_t *ret)
{
	size_t n;
	const uint32_t *stack = recording_stack(a->rec, s->stack, &n);
	int r = adder_root(a, s->series, ret);

	while (!r && n--)
		r = adder_descend(a, stack[n], ret);
	return r;
}

static int adder_init(struct adder *a, struct tree *t, const struct recording *rec)
{
	*a = (struct adder){.tree = t, .rec = rec, .left = rec->limits.frames};
	a->runs = calloc(rec->locations.count, sizeof(*a->runs));
	a->roots = malloc(rec->strings.count * sizeof(*a->roots));
	a->strings = calloc(rec->strings.count, sizeof(*a->strings));
	if (!a->runs || !a->roots || !a->strings)
		return -ENOMEM;
	memset(a->roots, 0xff, rec->strings.count * sizeof(*a->roots));
	return 0;
}

static void adder_done(struct adder *a)
{
	free(a->runs);
	free(a->roots);
	free(a->strings);
	buf_done(&a->frames);
}

static int graph_add_to(struct graph *g, struct values *to, const struct recording *rec, const struct rec_view *v)
{
	_cleanup_(adder_done) struct adder a;
	uint32_t i, node;
	int r = adder_init(&a, g->tree, rec);

	for (i = 0; !r && i < rec->samples.count; i++) {
		const struct rec_sample *s = intern_key(&rec->samples, i);

		if (!rec_view_has(v, rec, s->series))
			continue;
		r = adder_stack(&a, s, &node);
		if (!r)
			r = values_add(to, node, rec->sums[i]);
	}
	return r;
}

int graph_add(struct graph *g, const struct recording *rec, const struct rec_view *v)
{
	return graph_add_to(g, &g->now, rec, v);
}

int graph_add_before(struct graph *g, const struct recording *rec, const struct rec_view *v)
{
	g->compared = true;
	return graph_add_to(g, &g->before, rec, v);
}

static int graph_map(struct values *v, const uint32_t *map, uint32_t count)
{
	_cleanup_(values_done) struct values mapped = {0};
	struct values old = *v;
	int r = values_map(v, map, count, &mapped);

	if (r < 0)
		return r;
	*v = mapped;
	mapped = old;
	return 0;
}

/* By node: whether a stack ends in it, before or now. */
static bool *graph_valued(const struct graph *g)
{
	const struct values *now = &g->now, *before = &g->before;
	bool *valued = calloc(g->tree->count, sizeof(*valued));
	uint32_t i;

	for (i = 0; valued && i < g->tree->count; i++)
		valued[i] = (i < now->self_cap && now->self[i]) || (i < before->self_cap && before->self[i]);
	return valued;
}

int graph_filter(struct graph *g, const struct filter *f)
{
	_cleanup_(freep) uint32_t *map = calloc(g->tree->count, sizeof(*map));
	_cleanup_(freep) bool *valued = graph_valued(g);
	struct tree *filtered = NULL;
	uint32_t count = g->tree->count;
	int r = map && valued ? filter_tree(f, g->tree, valued, &filtered, map) : -ENOMEM;

	if (r < 0)
		return r;
	tree_free(g->tree);
	g->tree = filtered;
	r = graph_map(&g->now, map, count);
	return r < 0 ? r : graph_map(&g->before, map, count);
}

int graph_finish(struct graph *g)
{
	int r = tree_sort(g->tree);

	if (!r)
		r = values_sum(&g->now, g->tree);
	return r < 0 || !g->compared ? r : values_sum(&g->before, g->tree);
}

int graph_new(const struct tree_limits *limits, struct graph **ret)
{
	_cleanup_(graph_freep) struct graph *g = calloc(1, sizeof(*g));
	int r = g ? tree_new(limits, &g->tree) : -ENOMEM;

	if (!r)
		*ret = steal_ptr(&g);
	return r;
}

struct graph *graph_free(struct graph *g)
{
	if (!g)
		return NULL;
	tree_free(g->tree);
	values_done(&g->now);
	values_done(&g->before);
	free(g);
	return NULL;
}
