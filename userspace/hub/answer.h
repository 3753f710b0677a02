/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A range of a slot, or of two for a comparison, as a graph of its own: what
 * filters, snapshots and comparisons are made from.
 *
 * Called by the API, one thread. Zero-initialise, answer_add for the slot,
 * answer_add for the base if there is one, answer_finish, then read;
 * answer_done. The answer owns graph and places; slots are borrowed up to
 * answer_finish.
 * Errors: -E2BIG, more nodes than two slots can have; -ENOMEM.
 * Cost: a copy of the nodes that have a value in the range.
 */
#ifndef OTP_HUB_ANSWER_H
#define OTP_HUB_ANSWER_H

#include "graph/graph.h"
#include "hub/slot.h"

struct answer {
	struct graph *graph;	   /* owned */
	struct slot_place *places; /* owned, by function of the graph's tree */
	uint32_t places_cap;
	const struct slot *slots[2]; /* borrowed; NULL: none */
	struct slot_sum now, base;
};

/* base: to what the other is compared. */
int answer_add(struct answer *a, const struct slot *s, const struct slot_range *r, bool base);
/* filter NULL: none. */
int answer_finish(struct answer *a, const struct filter *f);
void answer_done(struct answer *a);

#endif
