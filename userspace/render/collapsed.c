// SPDX-License-Identifier: Apache-2.0
/*
 * One line a stack, outermost frame first, joined by semicolons, then its
 * value; in a comparison the value before, then the value now.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "render/picture.h"

/* In this format a semicolon ends a frame, so it is replaced in names. */
static void collapsed_add_name(struct buf *out, const char *name)
{
	const char *p;

	for (; (p = strchr(name, ';')); name = p + 1) {
		buf_add(out, name, (size_t)(p - name));
		buf_add_str(out, ":");
	}
	buf_add_str(out, name);
}

/* path: the nodes from the service down to node, as many as it is deep. */
static void collapsed_add_stack(struct buf *out, const struct tree *t, uint32_t node, uint32_t *path)
{
	uint32_t depth = t->nodes[node].depth, i, at = node;

	for (i = depth; i-- > 0; at = t->nodes[at].parent)
		path[i] = at;
	for (i = 0; i < depth; i++) {
		if (i)
			buf_add_str(out, ";");
		collapsed_add_name(out, tree_name(t, path[i]));
	}
}

int render_collapsed(const struct picture *p, struct buf *out)
{
	const struct tree *t = p->graph->tree;
	const uint64_t *self = p->graph->now.self, *before = p->graph->compared ? p->graph->before.self : NULL;
	_cleanup_(freep) uint32_t *path = calloc(t->depth + 1, sizeof(*path));
	uint32_t i;

	if (!path)
		return -ENOMEM;
	for (i = 0; i != TREE_NONE && !out->failed; i = tree_next(t, i)) {
		if (!self[i] && !(before && before[i]))
			continue;
		collapsed_add_stack(out, t, i, path);
		if (before)
			buf_printf(out, " %" PRIu64, before[i]);
		buf_printf(out, " %" PRIu64 "\n", self[i]);
	}
	return out->failed ? -E2BIG : 0;
}
