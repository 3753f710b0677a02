// SPDX-License-Identifier: Apache-2.0
/* A tree that holds only what is in use: how a store that drops old stacks stays bounded. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "graph/tree.h"

/* The number in the other tree of one of t's functions; known: by function, number + 1, 0: not yet. */
static int compact_function(const struct tree *t, uint32_t function, struct tree *to, uint32_t *known, uint32_t *ret)
{
	const struct tree_function *f = tree_function(t, function);
	struct tree_function g = {.kind = f->kind};
	int r = 0;

	if (!known[function]) {
		r = tree_add_string(to, tree_string(t, f->name), &g.name);
		if (!r)
			r = tree_add_string(to, tree_string(t, f->module), &g.module);
		if (!r)
			r = tree_add_function(to, &g, ret);
		known[function] = r < 0 ? 0 : *ret + 1;
	}
	*ret = known[function] - 1;
	return r;
}

/* Nodes keep their order, so a parent was copied before its children. */
static int compact_nodes(const struct tree *t, struct tree *to, uint32_t *known, uint32_t *ret_map)
{
	uint32_t i, function;
	int r;

	for (i = 1; i < t->count; i++) {
		const struct tree_node *n = &t->nodes[i];

		ret_map[i] = TREE_NONE;
		if (!n->uses)
			continue;
		r = compact_function(t, n->function, to, known, &function);
		if (!r)
			r = tree_add_node(to, ret_map[n->parent], function, n->inlined, &ret_map[i]);
		if (r < 0)
			return r;
		/* Children that vanish were no uses: the count holds. */
		to->nodes[ret_map[i]].uses = n->uses;
	}
	return 0;
}

int tree_compact(const struct tree *t, struct tree **ret, uint32_t *ret_map)
{
	_cleanup_(freep) uint32_t *known = calloc(t->functions.count, sizeof(*known));
	_cleanup_(tree_freep) struct tree *to = NULL;
	int r = known ? tree_new(&t->limits, &to) : -ENOMEM;

	if (r < 0)
		return r;
	ret_map[0] = 0;
	to->nodes[0].uses = t->nodes[0].uses;
	to->used = t->used;
	r = compact_nodes(t, to, known, ret_map);
	if (!r)
		*ret = steal_ptr(&to);
	return r;
}
