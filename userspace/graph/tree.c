// SPDX-License-Identifier: Apache-2.0
#include "graph/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

#define TREE_FIRST 256u

static int tree_error(int r)
{
	return r == -ENOSPC ? -E2BIG : r;
}

int tree_add_string(struct tree *t, const char *s, uint32_t *ret)
{
	return tree_error(intern_number(&t->strings, s, strlen(s) + 1, ret));
}

int tree_add_function(struct tree *t, const struct tree_function *f, uint32_t *ret)
{
	return tree_error(intern_number(&t->functions, f, sizeof(*f), ret));
}

static uint64_t node_hash(uint32_t parent, const struct tree_function *f)
{
	return hash_u64(((uint64_t)parent << 32 | f->name) ^ (uint64_t)f->kind << 56 ^ hash_seed);
}

static bool node_is(const struct tree *t, uint32_t node, uint32_t parent, const struct tree_function *f)
{
	const struct tree_function *g = tree_function_of(t, node);

	return t->nodes[node].parent == parent && g->name == f->name && g->kind == f->kind;
}

/* The slot of that node, or the free one where it belongs. */
static uint32_t *tree_slot(const struct tree *t, uint32_t parent, const struct tree_function *f)
{
	uint32_t mask = t->nr_slots - 1, i = (uint32_t)node_hash(parent, f) & mask;

	while (t->slots[i] && !node_is(t, t->slots[i] - 1, parent, f))
		i = (i + 1) & mask;
	return &t->slots[i];
}

static int tree_grow_slots(struct tree *t, uint32_t nr_slots)
{
	uint32_t *slots = calloc(nr_slots, sizeof(*slots)), i;

	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->nr_slots = nr_slots;
	for (i = 0; i < t->count; i++)
		*tree_slot(t, t->nodes[i].parent, tree_function_of(t, i)) = i + 1;
	return 0;
}

/* Slots are half full at most: probes stay short and always end. */
static int tree_grow(struct tree *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : TREE_FIRST;
	struct tree_node *nodes;

	if (t->count < t->cap)
		return 0;
	nodes = reallocarray(t->nodes, cap, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	t->nodes = nodes;
	if (t->nr_slots < cap * 2 && tree_grow_slots(t, cap * 2) < 0)
		return -ENOMEM;
	t->cap = cap;
	return 0;
}

static void tree_link(struct tree *t, uint32_t parent, uint32_t function, bool inlined)
{
	struct tree_node *up = parent == TREE_NONE ? NULL : &t->nodes[parent];
	struct tree_node *n = &t->nodes[t->count];

	*n = (struct tree_node){
		.function = function,
		.parent = parent,
		.first = TREE_NONE,
		.next = up ? up->first : TREE_NONE,
		.depth = up ? (uint16_t)(up->depth + 1) : 0,
		.inlined = inlined,
	};
	if (up)
		up->first = t->count;
	t->depth = MAX(t->depth, (uint32_t)n->depth);
	t->count++;
}

static int tree_find_or_add(struct tree *t, uint32_t parent, uint32_t function, bool inlined, uint32_t *ret)
{
	const struct tree_function *f = tree_function(t, function);
	uint32_t *slot = t->nr_slots ? tree_slot(t, parent, f) : NULL;
	int r;

	if (slot && *slot) {
		*ret = *slot - 1;
		t->nodes[*ret].inlined |= inlined;
		return 0;
	}
	if (t->count >= t->limits.nodes)
		return -E2BIG;
	r = tree_grow(t);
	if (r < 0)
		return r;
	tree_link(t, parent, function, inlined);
	*ret = t->count - 1;
	*tree_slot(t, parent, f) = t->count;
	return 0;
}

int tree_add_node(struct tree *t, uint32_t parent, uint32_t function, bool inlined, uint32_t *ret)
{
	if (t->nodes[parent].depth >= t->limits.depth) {
		*ret = parent;
		return 0;
	}
	return tree_find_or_add(t, parent, function, inlined, ret);
}

int tree_add_named(struct tree *t, uint32_t parent, const char *name, enum frame_kind kind, uint32_t *ret)
{
	struct tree_function f = {.kind = kind};
	uint32_t function;
	int r = tree_add_string(t, name, &f.name);

	if (!r)
		r = tree_add_function(t, &f, &function);
	return r < 0 ? r : tree_add_node(t, parent, function, false, ret);
}

static int tree_add_all(struct tree *t)
{
	struct tree_function all = {.kind = KIND_ALL};
	uint32_t n;
	int r = tree_add_string(t, "", &n);

	if (!r)
		r = tree_add_string(t, "all", &all.name);
	if (!r)
		r = tree_add_function(t, &all, &n);
	return r < 0 ? r : tree_find_or_add(t, TREE_NONE, n, false, &n);
}

int tree_new(const struct tree_limits *limits, struct tree **ret)
{
	_cleanup_(tree_freep) struct tree *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->limits = *limits;
	t->limits.depth = MIN(limits->depth, (uint32_t)UINT16_MAX);
	intern_init(&t->strings, limits->names, limits->name_bytes);
	intern_init(&t->functions, limits->names, limits->name_bytes);
	r = tree_add_all(t);
	if (!r)
		*ret = steal_ptr(&t);
	return r;
}

struct tree *tree_free(struct tree *t)
{
	if (!t)
		return NULL;
	intern_done(&t->strings);
	intern_done(&t->functions);
	free(t->nodes);
	free(t->slots);
	free(t);
	return NULL;
}

size_t tree_memory(const struct tree *t)
{
	return sizeof(*t) + intern_memory(&t->strings) + intern_memory(&t->functions) + t->cap * sizeof(*t->nodes) +
	       t->nr_slots * sizeof(*t->slots);
}

void tree_hold(struct tree *t, uint32_t node)
{
	/* A node's first use is a use of its parent. */
	while (node != TREE_NONE && !t->nodes[node].uses++) {
		t->used++;
		node = t->nodes[node].parent;
	}
}

void tree_release(struct tree *t, uint32_t node)
{
	while (node != TREE_NONE && !--t->nodes[node].uses) {
		t->used--;
		node = t->nodes[node].parent;
	}
}

uint32_t tree_after(const struct tree *t, uint32_t i)
{
	while (i != TREE_NONE && t->nodes[i].next == TREE_NONE)
		i = t->nodes[i].parent;
	return i == TREE_NONE ? i : t->nodes[i].next;
}

uint32_t tree_next(const struct tree *t, uint32_t i)
{
	return t->nodes[i].first != TREE_NONE ? t->nodes[i].first : tree_after(t, i);
}
