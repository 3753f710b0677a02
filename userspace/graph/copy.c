// SPDX-License-Identifier: Apache-2.0
#include "graph/copy.h"

#include <errno.h>
#include <stdlib.h>

int copy_init(struct copy *c, const struct tree *from, struct tree *to)
{
	*c = (struct copy){.from = from, .to = to, .functions = calloc(from->functions.count, sizeof(*c->functions))};
	return c->functions ? 0 : -ENOMEM;
}

void copy_done(struct copy *c)
{
	free(c->functions);
}

static int copy_function(struct copy *c, uint32_t function, uint32_t *ret)
{
	const struct tree_function *f = tree_function(c->from, function);
	struct tree_function g = {.kind = f->kind};
	int r = tree_add_string(c->to, tree_string(c->from, f->name), &g.name);

	if (!r)
		r = tree_add_string(c->to, tree_string(c->from, f->module), &g.module);
	return r < 0 ? r : tree_add_function(c->to, &g, ret);
}

int copy_node(struct copy *c, uint32_t node, uint32_t parent, uint32_t *ret)
{
	const struct tree_node *n = &c->from->nodes[node];
	uint32_t *known = &c->functions[n->function], function;
	int r = 0;

	if (!*known) {
		r = copy_function(c, n->function, &function);
		*known = r < 0 ? 0 : function + 1;
	}
	return r < 0 ? r : tree_add_node(c->to, parent, *known - 1, n->inlined, ret);
}
