// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "graph/adder.h"

/* By string: the node of the service of that name, TREE_NONE: none yet. */
static uint32_t *graph_roots(const struct recording *rec)
{
	uint32_t *roots = malloc(rec->strings.count * sizeof(*roots));

	if (roots)
		memset(roots, 0xff, rec->strings.count * sizeof(*roots));
	return roots;
}

static int graph_add_stack(struct graph *g, struct adder *a, uint32_t *roots, const struct rec_sample *s, uint32_t *ret)
{
	uint32_t service = recording_workload(a->rec, s->series)->service, *root = &roots[service];
	int r = 0;

	if (*root == TREE_NONE)
		r = tree_add_named(g->tree, 0, recording_str(a->rec, service), KIND_SERVICE, root);
	*ret = *root;
	return r < 0 ? r : adder_descend(a, s->stack, ret);
}

static int graph_add_to(struct graph *g, struct values *to, const struct recording *rec, const struct rec_view *v)
{
	_cleanup_(adder_done) struct adder a;
	_cleanup_(freep) uint32_t *roots = graph_roots(rec);
	uint32_t i, node;
	int r = adder_init(&a, g->tree, rec, rec->limits.frames);

	if (!roots)
		return -ENOMEM;

	for (i = 0; !r && i < rec->samples.count; i++) {
		const struct rec_sample *s = intern_key(&rec->samples, i);

		if (!rec_view_has(v, rec, s->series))
			continue;
		r = graph_add_stack(g, &a, roots, s, &node);
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
