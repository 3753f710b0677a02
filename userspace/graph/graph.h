/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call tree with values: the input of flame graphs and collapsed stacks. It
 * is filled from recordings: with samples of one type, and for a comparison
 * with a second set on the same tree.
 *
 * Called by the verbs, one thread per graph.
 * Use: graph_new, graph_add for each recording, optionally graph_filter, then
 * graph_finish; read-only after.
 * Ownership: the graph owns tree and values, and borrows nothing.
 * Bounds: tree_limits, and for the frames followed that of the recording.
 * Errors: -E2BIG, a bound; -ENOMEM.
 */
#ifndef OTP_GRAPH_GRAPH_H
#define OTP_GRAPH_GRAPH_H

#include "graph/filter.h"
#include "graph/tree.h"
#include "graph/values.h"
#include "recording/view.h"

struct graph {
	struct tree *tree;
	struct values now;
	struct values before; /* of a comparison */
	bool compared;
};

int graph_new(const struct tree_limits *limits, struct graph **ret);
struct graph *graph_free(struct graph *g); /* NULL */
static inline void graph_freep(struct graph **slot)
{
	graph_free(*slot);
}

/* Add the recording's samples of that view to g->now, or to g->before, which makes it a comparison. */
int graph_add(struct graph *g, const struct recording *r, const struct rec_view *v);
int graph_add_before(struct graph *g, const struct recording *r, const struct rec_view *v);
int graph_filter(struct graph *g, const struct filter *f); /* after the last graph_add */
int graph_finish(struct graph *g);

#endif
