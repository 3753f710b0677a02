// SPDX-License-Identifier: Apache-2.0
/* The order of siblings. Only their links change: numbers stay. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "graph/tree.h"

static int sort_by_name(const void *a, const void *b, void *tree)
{
	const struct tree *t = tree;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = strcmp(tree_name(t, x), tree_name(t, y));

	return c ? c : (int)tree_kind(t, x) - (int)tree_kind(t, y);
}

static void sort_children(struct tree *t, struct tree_node *n, uint32_t *scratch)
{
	uint32_t count = 0, i;

	for (i = n->first; i != TREE_NONE; i = t->nodes[i].next)
		scratch[count++] = i;
	if (count < 2)
		return;
	qsort_r(scratch, count, sizeof(*scratch), sort_by_name, t);
	n->first = scratch[0];
	for (i = 0; i < count; i++)
		t->nodes[scratch[i]].next = i + 1 < count ? scratch[i + 1] : TREE_NONE;
}

int tree_sort(struct tree *t)
{
	_cleanup_(freep) uint32_t *scratch = calloc(t->count, sizeof(*scratch));
	uint32_t i;

	if (!scratch)
		return -ENOMEM;
	for (i = 0; i < t->count; i++)
		sort_children(t, &t->nodes[i], scratch);
	return 0;
}
