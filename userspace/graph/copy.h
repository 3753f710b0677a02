/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies nodes of one tree into another, with the names that they need.
 *
 * Called by compaction and by filters, one thread. Embedded there: copy_init,
 * copy_done. Both trees are borrowed.
 * Errors: -E2BIG, a bound of the new tree; -ENOMEM.
 * Cost: 4 bytes for each function of the old tree.
 */
#ifndef OTP_GRAPH_COPY_H
#define OTP_GRAPH_COPY_H

#include "graph/tree.h"

struct copy {
	const struct tree *from;
	struct tree *to;
	uint32_t *functions; /* owned, by function of from: that of to + 1, 0: not copied yet */
};

int copy_init(struct copy *c, const struct tree *from, struct tree *to);
void copy_done(struct copy *c);
/* The child of parent, in the new tree, that equals node of the old one; added if it is missing. */
int copy_node(struct copy *c, uint32_t node, uint32_t parent, uint32_t *ret);

#endif
