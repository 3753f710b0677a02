/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a call tree: for each node its own sum (self) and that of all
 * stacks through it (total), for any set of samples: one type, one range of
 * time, one side of a comparison.
 *
 * Called by code that draws or lists a tree, one thread per set.
 * Use: values_add for each stack, values_sum once, then read.
 * Lifetime: zero-initialise, values_done. The arrays are owned and have
 * tree->count elements after values_sum.
 * Units: those of the samples. The caller bounds the sum of all to 64 bits.
 * Cost: 16 bytes a node; values_sum is one pass over the nodes.
 * Errors: -ENOMEM.
 */
#ifndef OTP_GRAPH_VALUES_H
#define OTP_GRAPH_VALUES_H

#include <stdint.h>

#include "graph/tree.h"

struct values {
	uint64_t *self, *total;
	uint32_t self_cap, total_cap;
};

void values_done(struct values *v);
int values_add(struct values *v, uint32_t node, uint64_t value); /* a stack that ends in node */
int values_sum(struct values *v, const struct tree *t);
/* The same values in another tree: map holds, for each of the count nodes, its number there or TREE_NONE. */
int values_map(const struct values *from, const uint32_t *map, uint32_t count, struct values *to);

/* Of one function at all its nodes: a stack counts once, however often the function is on it. */
struct function_value {
	uint64_t self, total;
};

/* By function of the tree; *ret is the caller's to free. Cost: one pass over the nodes. */
int values_by_function(const struct values *v, const struct tree *t, struct function_value **ret);
/* The function with the largest self, markers left out; 0: none. */
int values_hottest(const struct values *v, const struct tree *t, uint32_t *ret_function, uint64_t *ret_self);

#endif
