// SPDX-License-Identifier: Apache-2.0
/*
 * A filter on a call tree. A node stands for one stack, the path from the
 * root to it: it matches if its parent matches or its own name does.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "graph/copy.h"
#include "graph/filter.h"

/* Of a node: FILTER_FOCUSED and FILTER_IGNORED for its stack, and whether the new tree holds it or one below. */
enum { NODE_NEEDED = 4 };

static bool filter_keeps(unsigned int state)
{
	return (state & (FILTER_FOCUSED | FILTER_IGNORED)) == FILTER_FOCUSED;
}

/* By function. Services, the nodes above the frames, are not matched. */
static uint8_t *filter_match_functions(const struct filter *f, const struct tree *t)
{
	uint8_t *matches = calloc(t->functions.count, 1);
	uint32_t i;

	for (i = 0; matches && i < t->functions.count; i++)
		if (tree_function(t, i)->kind >= KIND_MARKER)
			matches[i] = (uint8_t)filter_match(f, tree_string(t, tree_function(t, i)->name));
	return matches;
}

/* A pass forwards passes matches on to callees; one backwards marks the nodes that lead to kept stacks. */
static uint8_t *filter_judge_nodes(const struct filter *f, const struct tree *t)
{
	_cleanup_(freep) uint8_t *matches = filter_match_functions(f, t);
	uint8_t *states = matches ? calloc(t->count, 1) : NULL;
	uint32_t i;

	if (!states)
		return NULL;
	states[0] = f->focus.count ? 0 : FILTER_FOCUSED;
	for (i = 1; i < t->count; i++)
		states[i] = states[t->nodes[i].parent] | matches[t->nodes[i].function];
	states[0] |= NODE_NEEDED;
	for (i = t->count; i-- > 1;) {
		if (filter_keeps(states[i]))
			states[i] |= NODE_NEEDED;
		if (states[i] & NODE_NEEDED)
			states[t->nodes[i].parent] |= NODE_NEEDED;
	}
	return states;
}

/* images, by node: its copy, its caller's copy if it is hidden, or none. */
static int filter_copy_images(const struct filter *f, struct copy *c, const uint8_t *states, uint32_t *images)
{
	uint32_t i;
	int r = 0;

	images[0] = 0;
	for (i = 1; !r && i < c->from->count; i++) {
		uint32_t parent = images[c->from->nodes[i].parent];

		images[i] = TREE_NONE;
		if (!(states[i] & NODE_NEEDED))
			continue;
		if (filter_hides(f, tree_kind(c->from, i)))
			images[i] = parent;
		else
			r = copy_node(c, i, parent, &images[i]);
	}
	return r;
}

/* Where the own value of a node belongs whose image is parent: in place of no frame at all, one marker. */
static int filter_place_value(const struct filter *f, const struct copy *c, uint32_t node, uint32_t *image)
{
	if (!filter_hides(f, tree_kind(c->from, node)) || tree_kind(c->to, *image) >= KIND_MARKER)
		return 0;
	return tree_add_named(c->to, *image, FILTER_HIDDEN, KIND_MARKER, image);
}

/* map: images on entry. */
static int filter_place_values(const struct filter *f, struct copy *c, const uint8_t *states, const bool *valued,
			       uint32_t *map)
{
	uint32_t i;
	int r = 0;

	for (i = 0; !r && i < c->from->count; i++) {
		if (!filter_keeps(states[i]))
			map[i] = TREE_NONE;
		else if (valued[i])
			r = filter_place_value(f, c, i, &map[i]);
	}
	return r;
}

int filter_tree(const struct filter *f, const struct tree *t, const bool *valued, struct tree **ret, uint32_t *ret_map)
{
	_cleanup_(freep) uint8_t *states = filter_judge_nodes(f, t);
	_cleanup_(tree_freep) struct tree *to = NULL;
	_cleanup_(copy_done) struct copy c = {0};
	int r = states ? tree_new(&t->limits, &to) : -ENOMEM;

	if (!r)
		r = copy_init(&c, t, to);
	if (!r)
		r = filter_copy_images(f, &c, states, ret_map);
	if (!r)
		r = filter_place_values(f, &c, states, valued, ret_map);
	if (r < 0)
		return r;
	*ret = steal_ptr(&to);
	return 0;
}
