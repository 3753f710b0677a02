// SPDX-License-Identifier: Apache-2.0
#include "graph/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

struct builder {
	struct tree *t;
	struct recording *rec;
	struct intern index; /* struct node_key, numbered as the nodes are */
	uint32_t *roots;     /* by series: node of its service, TREE_NONE: none yet */
	uint64_t steps;
};

struct node_key {
	uint32_t parent, name, kind;
};

const char *tree_name(const struct tree *t, const struct tree_node *n)
{
	return n->kind == KIND_ALL ? "all" : recording_str(t->rec, n->name);
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

static int node_new(struct builder *b, const struct node_key *key)
{
	struct tree *t = b->t;
	struct tree_node *parent, *nodes;
	uint32_t cap = t->cap ? t->cap * 2 : 256;

	if (t->count == t->cap) {
		nodes = reallocarray(t->nodes, cap, sizeof(*nodes));
		if (!nodes)
			return -ENOMEM;
		t->nodes = nodes;
		t->cap = cap;
	}
	parent = key->parent == TREE_NONE ? NULL : &t->nodes[key->parent];
	t->nodes[t->count] = (struct tree_node){
		.name = key->name,
		.kind = (uint8_t)key->kind,
		.parent = key->parent,
		.first = TREE_NONE,
		.next = parent ? parent->first : TREE_NONE,
		.depth = parent ? parent->depth + 1 : 0,
	};
	if (parent)
		parent->first = t->count;
	t->depth = MAX(t->depth, (uint32_t)t->nodes[t->count].depth);
	t->count++;
	return 0;
}

static int node_get(struct builder *b, uint32_t parent, uint32_t name, enum frame_kind kind, uint32_t *ret)
{
	struct node_key key = {.parent = parent, .name = name, .kind = kind};
	int r = intern_number(&b->index, &key, sizeof(key), ret);

	if (r < 0)
		return r == -ENOSPC ? -E2BIG : r;
	return *ret == b->t->count ? node_new(b, &key) : 0;
}

static uint32_t location_module(const struct builder *b, const struct rec_location *l)
{
	const struct rec_mapping *m = intern_key(&b->rec->mappings, l->mapping);

	return m->file;
}

static int add_frame(struct builder *b, uint32_t *at, uint32_t name, enum frame_kind kind, uint32_t module,
		     bool inlined)
{
	struct tree_node *n;
	int r;

	if (++b->steps > b->rec->limits.frames)
		return -E2BIG;
	/* Past the bound all that is deeper counts for the last node. */
	if (b->t->nodes[*at].depth >= TREE_DEPTH_MAX)
		return 0;
	r = node_get(b, *at, name, kind, at);
	if (r < 0)
		return r;
	n = &b->t->nodes[*at];
	if (!n->module)
		n->module = module;
	n->inlined |= inlined;
	return 0;
}

/* Where no name came along, file and address are one. */
static int add_nameless(struct builder *b, uint32_t *at, const struct rec_location *l, enum frame_kind kind)
{
	const char *file = recording_str(b->rec, location_module(b, l)), *slash = strrchr(file, '/');
	char text[256];
	uint32_t name;
	int r;

	snprintf(text, sizeof(text), "%.200s+0x%llx", *file ? (slash ? slash + 1 : file) : "unknown",
		     (unsigned long long)l->address);
	r = recording_string(b->rec, text, &name);
	return r < 0 ? r : add_frame(b, at, name, kind, location_module(b, l), false);
}

static int add_location(struct builder *b, uint32_t *at, uint32_t location)
{
	const struct rec_location *l = intern_key(&b->rec->locations, location);
	size_t n = recording_lines(b->rec, location);
	enum frame_kind kind = (enum frame_kind)l->kind;
	int r = 0;

	if (!n)
		return add_nameless(b, at, l, kind);
	/* The last line is the function that was compiled, those before it were inlined. */
	while (!r && n--) {
		const struct rec_function *f = intern_key(&b->rec->functions, l->lines[n].function);

		r = f->name ? add_frame(b, at, f->name, kind, location_module(b, l),
					n + 1 < recording_lines(b->rec, location)) :
			      add_nameless(b, at, l, kind);
	}
	return r;
}

static int add_root(struct builder *b, uint32_t series, uint32_t *ret)
{
	const char *service = recording_service(b->rec, series);
	uint32_t name;
	int r;

	*ret = b->roots[series];
	if (*ret != TREE_NONE)
		return 0;
	r = recording_string(b->rec, service, &name);
	if (!r)
		r = node_get(b, 0, name, KIND_SERVICE, ret);
	if (!r)
		b->roots[series] = *ret;
	return r;
}

static int add_sample(struct builder *b, const struct rec_sample *s, uint64_t count)
{
	size_t n;
	const uint32_t *stack = recording_stack(b->rec, s->stack, &n);
	uint32_t at;
	int r = add_root(b, s->series, &at);

	while (!r && n--)
		r = add_location(b, &at, stack[n]);
	if (!r)
		b->t->nodes[at].self += count;
	return r;
}

/* A parent comes before its children, so that one pass backwards adds up all totals. */
static void add_totals(struct tree *t)
{
	uint32_t i;

	for (i = t->count; i-- > 0;) {
		struct tree_node *n = &t->nodes[i];

		n->total += n->self;
		if (n->parent != TREE_NONE)
			t->nodes[n->parent].total += n->total;
	}
}

static int by_name(const void *a, const void *b, void *tree)
{
	const struct tree *t = tree;
	const struct tree_node *x = &t->nodes[*(const uint32_t *)a], *y = &t->nodes[*(const uint32_t *)b];
	int c = strcmp(tree_name(t, x), tree_name(t, y));

	return c ? c : (int)x->kind - (int)y->kind;
}

static void sort_children(struct tree *t, struct tree_node *n, uint32_t *scratch)
{
	uint32_t count = 0, i;

	for (i = n->first; i != TREE_NONE; i = t->nodes[i].next)
		scratch[count++] = i;
	if (count < 2)
		return;
	qsort_r(scratch, count, sizeof(*scratch), by_name, t);
	n->first = scratch[0];
	for (i = 0; i < count; i++)
		t->nodes[scratch[i]].next = i + 1 < count ? scratch[i + 1] : TREE_NONE;
}

static int sort_all(struct tree *t)
{
	_cleanup_(freep) uint32_t *scratch = calloc(t->count, sizeof(*scratch));
	uint32_t i;

	if (!scratch)
		return -ENOMEM;
	for (i = 0; i < t->count; i++)
		sort_children(t, &t->nodes[i], scratch);
	return 0;
}

static int add_samples(struct builder *b, const struct rec_view *v)
{
	const struct recording *rec = b->rec;
	uint32_t i, all;
	int r = node_get(b, TREE_NONE, 0, KIND_ALL, &all);

	for (i = 0; !r && i < rec->samples.count; i++) {
		const struct rec_sample *s = intern_key(&rec->samples, i);

		if (recording_in_view(rec, v, s->series))
			r = add_sample(b, s, rec->sums[i]);
	}
	return r;
}

static void builder_done(struct builder *b)
{
	intern_done(&b->index);
	free(b->roots);
	tree_free(b->t);
}

int tree_build(struct recording *rec, const struct rec_view *v, struct tree **ret)
{
	_cleanup_(builder_done) struct builder b = {.rec = rec};
	int r;

	intern_init(&b.index, TREE_NODES_MAX, SIZE_MAX);
	b.t = calloc(1, sizeof(*b.t));
	b.roots = malloc((rec->series.count + 1) * sizeof(*b.roots));
	if (!b.t || !b.roots)
		return -ENOMEM;
	memset(b.roots, 0xff, (rec->series.count + 1) * sizeof(*b.roots));
	b.t->rec = rec;
	r = add_samples(&b, v);
	if (!r)
		r = sort_all(b.t);
	if (r < 0)
		return r;
	add_totals(b.t);
	*ret = steal_ptr(&b.t);
	return 0;
}

struct tree *tree_free(struct tree *t)
{
	if (t)
		free(t->nodes);
	free(t);
	return NULL;
}

int tree_find_top(const struct tree *t, struct tree_top *ret)
{
	_cleanup_(map_done) struct map selfs = {0};
	uint32_t i;

	*ret = (struct tree_top){0};
	for (i = 0; i < t->count; i++) {
		const struct tree_node *n = &t->nodes[i];
		uint64_t *self = map_find(&selfs, n->name);
		uint64_t sum = n->self + (self ? *self : 0);

		if (!n->self || n->kind <= KIND_MARKER)
			continue;
		if (map_put(&selfs, n->name, sum) < 0)
			return -ENOMEM;
		if (sum > ret->self)
			*ret = (struct tree_top){.name = tree_name(t, n), .module = recording_str(t->rec, n->module),
						 .self = sum};
	}
	return 0;
}
