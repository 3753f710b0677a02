// SPDX-License-Identifier: Apache-2.0
/* Copies the nodes in use to a smaller tree, so that a store that drops old stacks stays bounded. */
#include "base/cleanup.h"
#include "graph/copy.h"

/* Nodes keep their order, so a parent was copied before its children. */
static int compact_nodes(struct copy *c, uint32_t *ret_map)
{
	uint32_t i;
	int r;

	for (i = 1; i < c->from->count; i++) {
		const struct tree_node *n = &c->from->nodes[i];

		ret_map[i] = TREE_NONE;
		if (!n->uses)
			continue;
		r = copy_node(c, i, ret_map[n->parent], &ret_map[i]);
		if (r < 0)
			return r;
		/* Children that are dropped were not in use, so they are not part of the count. */
		c->to->nodes[ret_map[i]].uses = n->uses;
	}
	return 0;
}

int tree_compact(const struct tree *t, struct tree **ret, uint32_t *ret_map)
{
	_cleanup_(tree_freep) struct tree *to = NULL;
	_cleanup_(copy_done) struct copy c = {0};
	int r = tree_new(&t->limits, &to);

	if (!r)
		r = copy_init(&c, t, to);
	if (r < 0)
		return r;
	ret_map[0] = 0;
	to->nodes[0].uses = t->nodes[0].uses;
	to->used = t->used;
	r = compact_nodes(&c, ret_map);
	if (!r)
		*ret = steal_ptr(&to);
	return r;
}
