// SPDX-License-Identifier: Apache-2.0
/* One line a stack, outermost frame first, joined by semicolons, then its samples. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "graph/tree.h"
#include "render/render.h"

/* A semicolon ends a frame there: it cannot be part of a name. */
static void add_name(struct buf *out, const char *name)
{
	const char *p;

	for (; (p = strchr(name, ';')); name = p + 1) {
		buf_add(out, name, (size_t)(p - name));
		buf_add_str(out, ":");
	}
	buf_add_str(out, name);
}

/* path: the nodes from the service down to n, n->depth of them. */
static void add_stack(struct buf *out, const struct tree *t, const struct tree_node *n, const struct tree_node **path)
{
	const struct tree_node *at = n;
	uint32_t i;

	for (i = n->depth; i-- > 0; at = &t->nodes[at->parent])
		path[i] = at;
	for (i = 0; i < n->depth; i++) {
		if (i)
			buf_add_str(out, ";");
		add_name(out, tree_name(t, path[i]));
	}
	buf_printf(out, " %" PRIu64 "\n", n->self);
}

int render_collapsed(struct recording *r, const struct render_options *o, struct buf *out)
{
	_cleanup_(freep) const struct tree_node **path = NULL;
	_cleanup_(tree_freep) struct tree *t = NULL;
	struct rec_view v;
	uint32_t i;
	int e;

	recording_view(r, &v);
	e = tree_build(r, &v, &t);
	if (e < 0)
		return e;
	path = calloc(t->depth + 1, sizeof(*path));
	if (!path)
		return -ENOMEM;
	for (i = 0; i != TREE_NONE && !out->failed; i = tree_next(t, i))
		if (t->nodes[i].self)
			add_stack(out, t, &t->nodes[i], path);
	return out->failed ? -E2BIG : 0;
}
