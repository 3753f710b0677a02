// SPDX-License-Identifier: Apache-2.0
/* A slot as a container: its life, its bounds, its eviction, and its answers. slot_add.c fills it. */
#include "hub/slot.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "hub/slot_internal.h"

#define NODE_BYTES	 32u /* struct tree_node and the hash table */
#define NAME_BYTES	 80u /* of a function: two interned keys, their tables, its place */
#define TREE_DEPTH	 16384u
#define COMPACT_FLOOR	 1024u /* nodes: below that there is nothing to gain */

/* The largest power of two whose items fit: tables grow by doubling. */
static uint32_t slot_fit(size_t bytes, size_t item)
{
	uint32_t n = 1;

	while (n < 1u << 30 && (size_t)n * 2 * item <= bytes)
		n *= 2;
	return n;
}

/* Half of the slot for nodes, 3/16 for functions, an eighth for names: buckets have what these leave. */
static void slot_tree_limits(size_t max_bytes, struct tree_limits *ret)
{
	*ret = (struct tree_limits){
		.nodes = slot_fit(max_bytes / 2, NODE_BYTES),
		.depth = TREE_DEPTH,
		.names = slot_fit(max_bytes / 16 * 3, NAME_BYTES),
		.name_bytes = max_bytes / 8,
	};
}

/* The marker's name is there before names are full. */
static int slot_reserve_marker(struct tree *t)
{
	struct tree_function f = {.kind = KIND_MARKER};
	uint32_t n;
	int r = tree_add_string(t, SLOT_FOLDED, &f.name);

	return r < 0 ? r : tree_add_function(t, &f, &n);
}

static int slot_make_tree(size_t max_bytes, struct tree **ret)
{
	_cleanup_(tree_freep) struct tree *t = NULL;
	struct tree_limits limits;
	int r;

	slot_tree_limits(max_bytes, &limits);
	r = tree_new(&limits, &t);
	if (!r)
		r = slot_reserve_marker(t);
	if (!r)
		*ret = steal_ptr(&t);
	return r;
}

int slot_new(size_t max_bytes, uint32_t generation, struct slot **ret)
{
	_cleanup_(slot_freep) struct slot *s = calloc(1, sizeof(*s));
	int r = s ? slot_make_tree(max_bytes, &s->tree) : -ENOMEM;

	if (r < 0)
		return r;
	s->max_bytes = max_bytes;
	s->max_nodes = s->tree->limits.nodes;
	s->generation = generation;
	*ret = steal_ptr(&s);
	return 0;
}

struct slot *slot_free(struct slot *s)
{
	if (!s)
		return NULL;
	for (uint32_t i = 0; i < s->nr_buckets; i++)
		bucket_done(&s->buckets[i]);
	free(s->buckets);
	free(s->places);
	tree_free(s->tree);
	free(s);
	return NULL;
}

static size_t slot_block(void *p)
{
	return p ? malloc_usable_size(p) + sizeof(size_t) : 0;
}

size_t slot_memory(const struct slot *s)
{
	return sizeof(*s) + tree_memory(s->tree) + s->bucket_bytes + slot_block(s->buckets) + slot_block(s->places);
}

/* --- eviction --- */

static void slot_release(struct slot *s, const struct bucket *b)
{
	struct bucket_reader r = bucket_read(b);
	struct bucket_entry e;

	while (bucket_next(&r, &e))
		tree_release(s->tree, e.node);
}

static void slot_evict(struct slot *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct bucket *b = &s->buckets[i];

		slot_release(s, b);
		s->counts.kept -= b->value - b->folded;
		s->counts.folded -= b->folded;
		s->counts.evicted += b->value;
		s->bucket_bytes -= bucket_memory(b);
		bucket_done(b);
	}
	s->nr_buckets -= n;
	if (n)
		memmove(s->buckets, s->buckets + n, s->nr_buckets * sizeof(*s->buckets));
}

/* --- a smaller tree --- */

/* Nodes keep their order, so pairs stay sorted; their distances become smaller or stay. */
static void slot_renumber_bucket(struct slot *s, struct bucket *b, const uint32_t *map)
{
	struct bucket_reader r = bucket_read(b);
	struct bucket_writer w = {.at = b->data};
	struct bucket_entry e;
	uint8_t *fit;

	s->bucket_bytes -= bucket_memory(b);
	while (bucket_next(&r, &e))
		bucket_write(&w, map[e.node], e.value);
	b->len = (uint32_t)(w.at - b->data);
	fit = realloc(b->data, MAX(b->len, 1u));
	b->data = fit ? fit : b->data;
	s->bucket_bytes += bucket_memory(b);
}

/* Files that find no room among the names are left out. */
static int slot_move_places(struct slot *s, struct tree *to, const uint32_t *map)
{
	struct slot_place *places = NULL;
	uint32_t cap = 0, file;

	if (array_reach(&places, to->functions.count - 1, &cap, sizeof(*places)) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->tree->count; i++) {
		uint32_t f = s->tree->nodes[i].function;

		if (map[i] == TREE_NONE || f >= s->places_cap || !s->places[f].file)
			continue;
		if (tree_add_string(to, tree_string(s->tree, s->places[f].file), &file) == 0)
			places[to->nodes[map[i]].function] = (struct slot_place){file, s->places[f].line};
	}
	free(s->places);
	s->places = places;
	s->places_cap = cap;
	return 0;
}

static int slot_compact(struct slot *s, struct bucket_entry *pending, uint32_t nr_pending)
{
	_cleanup_(freep) uint32_t *map = calloc(s->tree->count, sizeof(*map));
	_cleanup_(tree_freep) struct tree *to = NULL;
	int r = map ? 0 : -ENOMEM;

	s->tree->limits.nodes = s->max_nodes;
	if (!r)
		r = tree_compact(s->tree, &to, map);
	if (!r)
		r = slot_reserve_marker(to);
	if (!r)
		r = slot_move_places(s, to, map);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < s->nr_buckets; i++)
		slot_renumber_bucket(s, &s->buckets[i], map);
	for (uint32_t i = 0; i < nr_pending; i++)
		pending[i].node = map[pending[i].node];
	tree_free(s->tree);
	s->tree = steal_ptr(&to);
	s->generation++;
	return 0;
}

/* Whether an eighth of one of the tables became free. */
static bool slot_gained(const struct tree *t, uint32_t nodes, uint32_t functions, uint32_t strings)
{
	return t->count < nodes - nodes / 8 || t->functions.count < functions - functions / 8 ||
	       t->strings.count < strings - strings / 8;
}

static bool slot_compact_gains(struct slot *s, struct bucket_entry *pending, uint32_t nr_pending)
{
	uint32_t nodes = s->tree->count, functions = s->tree->functions.count, strings = s->tree->strings.count;

	return slot_compact(s, pending, nr_pending) == 0 && slot_gained(s->tree, nodes, functions, strings);
}

bool slot_make_room(struct slot *s, struct bucket_entry *pending, uint32_t nr_pending)
{
	uint32_t n = 0;

	if (s->tree->used <= s->tree->count / 4 * 3 && slot_compact_gains(s, pending, nr_pending))
		return true;
	while (s->nr_buckets && s->tree->used > s->tree->count / 2) {
		slot_evict(s, 1);
		n++;
	}
	/* Where names are full and nodes are not, a quarter of the history goes. */
	if (!n)
		slot_evict(s, (s->nr_buckets + 3) / 4);
	return slot_compact_gains(s, pending, nr_pending);
}

void slot_trim(struct slot *s)
{
	while (slot_memory(s) > s->max_bytes) {
		bool sparse = s->tree->count > COMPACT_FLOOR && s->tree->used < s->tree->count / 2;

		if (sparse && slot_compact(s, NULL, 0) == 0)
			continue;
		if (!s->nr_buckets)
			return;
		slot_evict(s, 1);
	}
}

/* --- what others ask of it --- */

static int slot_replace_tree(struct slot *s)
{
	struct tree *t;
	int r = slot_make_tree(s->max_bytes, &t);

	if (r < 0)
		return r;
	tree_free(s->tree);
	s->tree = t;
	free(s->places);
	s->places = NULL;
	s->places_cap = 0;
	s->max_nodes = t->limits.nodes;
	return 0;
}

void slot_clear(struct slot *s)
{
	slot_evict(s, s->nr_buckets);
	s->generation++;
	s->seq = 0;
	/* Without memory for another tree the old one stays, with no node in use. */
	slot_replace_tree(s);
}

static bool slot_tree_fits(const struct slot *s, const struct tree_limits *l)
{
	const struct tree *t = s->tree;

	return t->count <= l->nodes && t->functions.count <= l->names && t->strings.count <= l->names &&
	       t->strings.bytes <= l->name_bytes && t->functions.bytes <= l->name_bytes;
}

static void slot_set_limits(struct slot *s, const struct tree_limits *l)
{
	s->tree->limits = *l;
	s->max_nodes = l->nodes;
	s->tree->strings.max_keys = s->tree->functions.max_keys = l->names;
	s->tree->strings.max_bytes = s->tree->functions.max_bytes = l->name_bytes;
}

int slot_resize(struct slot *s, size_t max_bytes)
{
	struct tree_limits limits;

	s->max_bytes = max_bytes;
	slot_tree_limits(max_bytes, &limits);
	while (!slot_tree_fits(s, &limits)) {
		if (s->nr_buckets < 2) {
			slot_clear(s);
			return slot_tree_fits(s, &limits) ? 0 : -ENOMEM;
		}
		slot_evict(s, (s->nr_buckets + 1) / 2);
		if (slot_compact(s, NULL, 0) < 0)
			slot_evict(s, s->nr_buckets);
	}
	slot_set_limits(s, &limits);
	slot_trim(s);
	return 0;
}

bool slot_range_has(const struct slot_range *r, const struct bucket *b)
{
	uint64_t middle = b->start_ns + (b->end_ns - b->start_ns) / 2;

	return b->type == r->type && b->seq > r->after && middle >= r->from_ns && middle < r->to_ns;
}

static void slot_sum_add(struct slot_sum *sum, const struct bucket *b)
{
	sum->start_ns = sum->buckets ? MIN(sum->start_ns, b->start_ns) : b->start_ns;
	sum->end_ns = MAX(sum->end_ns, b->end_ns);
	sum->value += b->value;
	sum->folded += b->folded;
	sum->buckets++;
}

void slot_sum(const struct slot *s, const struct slot_range *r, struct slot_sum *ret)
{
	*ret = (struct slot_sum){0};
	for (uint32_t i = 0; i < s->nr_buckets; i++)
		if (slot_range_has(r, &s->buckets[i]))
			slot_sum_add(ret, &s->buckets[i]);
}

int slot_values(const struct slot *s, const struct slot_range *r, struct values *v, struct slot_sum *ret)
{
	int err = values_add(v, s->tree->count - 1, 0);

	*ret = (struct slot_sum){0};
	for (uint32_t i = 0; !err && i < s->nr_buckets; i++) {
		struct bucket_reader reader = bucket_read(&s->buckets[i]);
		struct bucket_entry e;

		if (!slot_range_has(r, &s->buckets[i]))
			continue;
		slot_sum_add(ret, &s->buckets[i]);
		while (bucket_next(&reader, &e))
			v->self[e.node] += e.value;
	}
	return err;
}

int slot_type(const struct slot *s, const char *name, uint32_t *ret)
{
	int r = -ENOENT;

	for (uint32_t i = 0; i < s->nr_types; i++) {
		if (*name ? strcmp(s->types[i].name, name) != 0 : r == 0 && !s->types[i].cpu)
			continue;
		*ret = i;
		r = 0;
		if (*name || s->types[i].cpu)
			break;
	}
	return r;
}

uint64_t slot_newest_ns(const struct slot *s)
{
	uint64_t newest = 0;

	for (uint32_t i = 0; i < s->nr_buckets; i++)
		newest = MAX(newest, s->buckets[i].end_ns);
	return newest;
}
