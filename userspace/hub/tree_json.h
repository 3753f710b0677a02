/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call tree as JSON columns in preorder ("Tree" of openapi.yaml): the answer
 * for a range, an increment, a comparison.
 *
 * Called by the API, one thread. Everything is borrowed for the call. Nodes
 * without a value, of which none below has one either, are left out; where a
 * tree has no value at all, its root is there.
 * Errors: -ENOMEM; that of the buffer is noted in the writer's buffer.
 * Cost: two passes over the nodes in use.
 */
#ifndef OTP_HUB_TREE_JSON_H
#define OTP_HUB_TREE_JSON_H

#include "graph/values.h"
#include "hub/jsonw.h"
#include "hub/slot.h"

struct tree_view {
	const struct tree *tree;
	const struct values *now, *base; /* summed; base NULL: no comparison */
	const struct slot_place *places; /* by function; NULL: none */
	uint32_t nr_places;
};

/* Members nodes, functions, strings and kinds of an object that is open. */
int tree_json(struct jsonw *w, const struct tree_view *v);
/* A member or element of the API's Type. */
void hub_type_json(struct jsonw *w, const char *name, const struct hub_type *t);

#endif
