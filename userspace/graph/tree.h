/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call tree: the structure of a flame graph, without values. Node 0 is
 * "all"; below it stands one node for each service, then frames from the
 * outermost in. Equal names of one kind below one parent are one node.
 *
 * Called by code that merges stacks, one thread per tree. Values are arrays by
 * node (values.h), so one tree serves any number of sample types and times.
 * Identifiers: a node and a function keep their number for the life of the
 * tree, and a parent's number is less than its children's: one pass backwards
 * adds up, one pass forwards distributes.
 * Lifetime: tree_new, tree_free. The tree owns its names; it grows only.
 * A caller that drops stacks counts their uses (tree_hold, tree_release) and
 * makes a smaller tree when few nodes are in use (tree_compact).
 * Bounds: tree_limits, given by the creator. Memory: 24 bytes a node and 8 of
 * index, 32 and the text for each name and function.
 * Errors: -E2BIG, a bound; -ENOMEM. No node was added then, but perhaps a name.
 */
#ifndef OTP_GRAPH_TREE_H
#define OTP_GRAPH_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/frame_kind.h"
#include "base/intern.h"

#define TREE_NONE UINT32_MAX

struct tree_limits {
	uint32_t nodes;
	uint32_t depth; /* at most 65,535; deeper frames count for the last node */
	uint32_t names; /* strings, and functions */
	size_t name_bytes;
};

/* What a frame executes. A key: no padding. */
struct tree_function {
	uint32_t name, module; /* strings; module 0: unknown */
	uint32_t kind;         /* enum frame_kind */
};

struct tree_node {
	uint32_t function; /* its module is that of the first stack added here */
	uint32_t parent, first, next; /* the first child, the next sibling; TREE_NONE: none */
	uint32_t uses;     /* number of tree_hold, plus one for each child in use */
	uint16_t depth;    /* 0: all */
	bool inlined;
};

struct tree {
	struct tree_limits limits;
	struct intern strings;   /* NUL-terminated; 0: "" */
	struct intern functions; /* struct tree_function; 0: that of "all" */
	struct tree_node *nodes; /* owned */
	uint32_t *slots;         /* owned hash table: node + 1, 0: free */
	uint32_t count, cap, nr_slots;
	uint32_t depth; /* of the deepest node */
	uint32_t used;  /* nodes with uses */
};

int tree_new(const struct tree_limits *limits, struct tree **ret);
struct tree *tree_free(struct tree *t); /* NULL */
static inline void tree_freep(struct tree **slot)
{
	tree_free(*slot);
}

/* Numbers of a clean text and of a function: new ones, or those of an equal one. */
int tree_add_string(struct tree *t, const char *s, uint32_t *ret);
int tree_add_function(struct tree *t, const struct tree_function *f, uint32_t *ret);
/* The child of parent for that function's name and kind. At the bound of depth: parent itself. */
int tree_add_node(struct tree *t, uint32_t parent, uint32_t function, bool inlined, uint32_t *ret);
/* The same by texts. */
int tree_add_named(struct tree *t, uint32_t parent, const char *name, enum frame_kind kind, uint32_t *ret);

/* A node is in use while it, or a node below it, was held more often than released. At most 2^32 uses each. */
void tree_hold(struct tree *t, uint32_t node);
void tree_release(struct tree *t, uint32_t node);
/*
 * A tree of the nodes in use, with the names that they need. ret_map, of
 * t->count elements, is filled with each node's number in the new tree,
 * TREE_NONE where it was dropped. t is unchanged.
 */
int tree_compact(const struct tree *t, struct tree **ret, uint32_t *ret_map);
size_t tree_memory(const struct tree *t); /* bytes allocated */

/* Depth first: the node after i (tree_next), or after all below i (tree_after); TREE_NONE: none. */
uint32_t tree_next(const struct tree *t, uint32_t i);
uint32_t tree_after(const struct tree *t, uint32_t i);
/* Orders siblings by name, then kind. Nodes added later are not in order. */
int tree_sort(struct tree *t);

static inline const char *tree_string(const struct tree *t, uint32_t number)
{
	return intern_key(&t->strings, number);
}

static inline const struct tree_function *tree_function(const struct tree *t, uint32_t number)
{
	return intern_key(&t->functions, number);
}

static inline const struct tree_function *tree_function_of(const struct tree *t, uint32_t node)
{
	return tree_function(t, t->nodes[node].function);
}

static inline enum frame_kind tree_kind(const struct tree *t, uint32_t node)
{
	return (enum frame_kind)tree_function_of(t, node)->kind;
}

/* Borrowed from the tree. */
static inline const char *tree_name(const struct tree *t, uint32_t node)
{
	return tree_string(t, tree_function_of(t, node)->name);
}

static inline const char *tree_module(const struct tree *t, uint32_t node)
{
	return tree_string(t, tree_function_of(t, node)->module);
}

#endif
