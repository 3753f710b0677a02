// SPDX-License-Identifier: Apache-2.0
#include "graph/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

void values_done(struct values *v)
{
	free(v->self);
	free(v->total);
	*v = (struct values){0};
}

int values_add(struct values *v, uint32_t node, uint64_t value)
{
	if (array_reach(&v->self, node, &v->self_cap, sizeof(*v->self)) < 0)
		return -ENOMEM;
	v->self[node] += value;
	return 0;
}

/* A parent comes before its children, so one pass backwards adds up all totals. */
int values_sum(struct values *v, const struct tree *t)
{
	uint32_t i;

	if (array_reach(&v->self, t->count - 1, &v->self_cap, sizeof(*v->self)) < 0 ||
	    array_reach(&v->total, t->count - 1, &v->total_cap, sizeof(*v->total)) < 0)
		return -ENOMEM;
	memcpy(v->total, v->self, t->count * sizeof(*v->total));
	for (i = t->count; i-- > 1;)
		v->total[t->nodes[i].parent] += v->total[i];
	return 0;
}

int values_map(const struct values *from, const uint32_t *map, uint32_t count, struct values *to)
{
	uint32_t i;
	int r = 0;

	for (i = 0; !r && i < MIN(count, from->self_cap); i++)
		if (from->self[i] && map[i] != TREE_NONE)
			r = values_add(to, map[i], from->self[i]);
	return r;
}

/* Leaves node i, and each ancestor of which it is the last child; returns the next node, depth first. */
static uint32_t values_leave(const struct tree *t, uint32_t i, uint32_t *on_path)
{
	for (; i != TREE_NONE; i = t->nodes[i].parent) {
		on_path[t->nodes[i].function]--;
		if (t->nodes[i].next != TREE_NONE)
			return t->nodes[i].next;
	}
	return TREE_NONE;
}

int values_by_function(const struct values *v, const struct tree *t, struct function_value **ret)
{
	_cleanup_(freep) struct function_value *sums = calloc(t->functions.count, sizeof(*sums));
	_cleanup_(freep) uint32_t *on_path = calloc(t->functions.count, sizeof(*on_path));
	uint32_t i = 0;

	if (!sums || !on_path)
		return -ENOMEM;
	while (i != TREE_NONE) {
		uint32_t f = t->nodes[i].function;

		sums[f].self += v->self[i];
		/* The outermost node of a function includes the stacks of all below it. */
		if (!on_path[f]++)
			sums[f].total += v->total[i];
		i = t->nodes[i].first != TREE_NONE ? t->nodes[i].first : values_leave(t, i, on_path);
	}
	*ret = steal_ptr(&sums);
	return 0;
}

int values_hottest(const struct values *v, const struct tree *t, uint32_t *ret_function, uint64_t *ret_self)
{
	_cleanup_(freep) struct function_value *sums = NULL;
	uint32_t i, best = 0;
	int r = values_by_function(v, t, &sums);

	if (r < 0)
		return r;
	for (i = 1; i < t->functions.count; i++)
		if (tree_function(t, i)->kind > KIND_MARKER && sums[i].self > (best ? sums[best].self : 0))
			best = i;
	*ret_function = best;
	*ret_self = best ? sums[best].self : 0;
	return 0;
}
