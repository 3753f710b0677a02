/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The merged call tree of a recording: what a flame graph shows. Node 0 is
 * "all", below it one node per service, then frames from the outermost in.
 * Equal names of one kind below one parent are one node, so a name counts
 * once however often it occurs side by side.
 *
 * Called by the verbs and renderers, one thread. Built in one go by
 * tree_build, read-only after. Names are borrowed from the recording.
 */
#ifndef OTP_GRAPH_TREE_H
#define OTP_GRAPH_TREE_H

#include <stdint.h>

#include "base/frame_kind.h"
#include "recording/recording.h"

#define TREE_NODES_MAX (4u << 20)
#define TREE_DEPTH_MAX 8192u
#define TREE_NONE      UINT32_MAX

struct tree_node {
	uint32_t name;   /* string of the recording */
	uint32_t module; /* string: the file that it was first seen in; 0: none */
	uint32_t parent, first, next; /* children sorted by name; TREE_NONE ends */
	uint16_t depth;  /* 0: all */
	uint8_t kind;    /* enum frame_kind */
	uint8_t inlined;
	uint64_t self, total;
};

struct tree {
	struct tree_node *nodes; /* owned; a parent comes before its children */
	uint32_t count, cap;
	uint32_t depth; /* of the deepest node */
	const struct recording *rec; /* borrowed */
};

/* The samples of the view as a tree. Names that no dictionary has, such as a service's, join r's strings. -E2BIG, -ENOMEM. */
int tree_build(struct recording *r, const struct rec_view *v, struct tree **ret);
struct tree *tree_free(struct tree *t); /* NULL */
static inline void tree_freep(struct tree **slot)
{
	tree_free(*slot);
}

const char *tree_name(const struct tree *t, const struct tree_node *n);
/* Depth first, children by name: the node after i (tree_next) or after all below i (tree_after); TREE_NONE: none. */
uint32_t tree_next(const struct tree *t, uint32_t i);
uint32_t tree_after(const struct tree *t, uint32_t i);

/* The function with most samples of its own, markers left out, over all places that it was called from. */
struct tree_top {
	const char *name, *module; /* borrowed from the recording; NULL: no samples */
	uint64_t self;
};
int tree_find_top(const struct tree *t, struct tree_top *ret);

#endif
