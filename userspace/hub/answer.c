// SPDX-License-Identifier: Apache-2.0
#include "hub/answer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "graph/copy.h"

static const struct tree_limits answer_limits = {
	.nodes = 1u << 26, .depth = UINT16_MAX, .names = 1u << 24, .name_bytes = 1ULL << 31};

/* map, by node of the slot: its copy, TREE_NONE where it has no value. */
static int answer_copy_nodes(struct answer *a, const struct slot *s, const struct values *v, uint32_t *map)
{
	_cleanup_(copy_done) struct copy c = {0};
	int r = copy_init(&c, s->tree, a->graph->tree);

	map[0] = 0;
	for (uint32_t i = 1; !r && i < s->tree->count; i++) {
		map[i] = TREE_NONE;
		if (v->total[i])
			r = copy_node(&c, i, map[s->tree->nodes[i].parent], &map[i]);
	}
	return r;
}

static int answer_copy(struct answer *a, const struct slot *s, const struct slot_range *range, bool base)
{
	_cleanup_(freep) uint32_t *map = calloc(s->tree->count, sizeof(*map));
	_cleanup_(values_done) struct values v = {0};
	int r = map ? slot_values(s, range, &v, base ? &a->base : &a->now) : -ENOMEM;

	if (!r)
		r = values_sum(&v, s->tree);
	if (!r)
		r = answer_copy_nodes(a, s, &v, map);
	return r < 0 ? r : values_map(&v, map, s->tree->count, base ? &a->graph->before : &a->graph->now);
}

int answer_add(struct answer *a, const struct slot *s, const struct slot_range *range, bool base)
{
	int r = a->graph ? 0 : graph_new(&answer_limits, &a->graph);

	if (r < 0)
		return r;
	a->graph->compared |= base;
	a->slots[base] = s;
	return answer_copy(a, s, range, base);
}

static int answer_place(struct answer *a, const struct tree *from, uint32_t function, const struct slot_place *place)
{
	const struct tree_function *f = tree_function(from, function);
	struct tree_function g = {.kind = f->kind};
	struct tree *to = a->graph->tree;
	uint32_t n, file;
	int r = tree_add_string(to, tree_string(from, f->name), &g.name);

	if (!r)
		r = tree_add_string(to, tree_string(from, f->module), &g.module);
	if (!r)
		r = tree_add_function(to, &g, &n);
	if (!r)
		r = tree_add_string(to, tree_string(from, place->file), &file);
	if (!r)
		r = array_reach(&a->places, n, &a->places_cap, sizeof(*a->places));
	if (!r)
		a->places[n] = (struct slot_place){file, place->line};
	return r;
}

/* After the filter, which numbers functions anew. */
static int answer_add_places(struct answer *a, const struct slot *s)
{
	int r = 0;

	for (uint32_t i = 0; !r && s && i < MIN(s->places_cap, s->tree->functions.count); i++)
		if (s->places[i].file)
			r = answer_place(a, s->tree, i, &s->places[i]);
	return r;
}

int answer_finish(struct answer *a, const struct filter *f)
{
	int r = f ? graph_filter(a->graph, f) : 0;

	if (!r)
		r = answer_add_places(a, a->slots[0]);
	if (!r)
		r = answer_add_places(a, a->slots[1]);
	return r < 0 ? r : graph_finish(a->graph);
}

void answer_done(struct answer *a)
{
	graph_free(a->graph);
	free(a->places);
	*a = (struct answer){0};
}
