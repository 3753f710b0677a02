// SPDX-License-Identifier: Apache-2.0
/* Filling a slot: samples of a request become nodes and, by type, a bucket; old buckets are merged. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "graph/adder.h"
#include "hub/slot_internal.h"

#define ROOMS_MAX   4		      /* times that one request may make the tree smaller */
#define MERGES_MAX  16		      /* pairs of buckets merged after a request */
#define FINE_NS	    (900 * NSEC_PER_SEC) /* for so long buckets stay as they came */
#define MINUTES_NS  (7200 * NSEC_PER_SEC) /* for so long there is one a minute */
#define MARKER_PART 16 /* of the nodes: one of so many is for markers only */
#define FUTURE_NS   (2 * NSEC_PER_SEC) /* clocks of hosts differ */

struct filler {
	struct slot *slot;
	const struct slot_input *in;
	struct adder adder;
	struct bucket_entry *pending; /* owned: held nodes, by number of the sample in in->samples */
	uint8_t *folded;	      /* owned, likewise: whether it is */
	uint32_t *types;	      /* owned, by view: type of the slot + 1, 0: not known yet, SLOT_TYPES + 1: none */
	uint32_t placed;	      /* how many are pending */
	uint32_t rooms;
};

/* --- types --- */

static int filler_new_type(struct slot *s, const struct hub_type *t, uint32_t *ret)
{
	for (uint32_t i = 0; i < s->nr_types; i++) {
		if (strcmp(s->types[i].name, t->name) != 0)
			continue;
		*ret = i;
		/* One name, another unit: their values cannot be added up. */
		return strcmp(s->types[i].unit, t->unit) == 0 ? 0 : -EINVAL;
	}
	if (s->nr_types >= SLOT_TYPES)
		return -ENOSPC;
	*ret = s->nr_types;
	s->types[s->nr_types++] = *t;
	return 0;
}

void hub_type_of(const struct recording *r, const struct rec_view *v, struct hub_type *ret)
{
	*ret = (struct hub_type){.cpu = rec_view_is_cpu(r, v), .period = v->period};
	snprintf(ret->name, sizeof(ret->name), "%s", v->name);
	snprintf(ret->unit, sizeof(ret->unit), "%.*s", (int)utf8_bytes(rec_view_unit(r, v), SLOT_UNIT / 4 - 1),
		 rec_view_unit(r, v));
}

static uint32_t filler_type(struct filler *f, uint32_t series)
{
	uint32_t view = f->in->views->by_series[series], *known = &f->types[view], type;
	struct hub_type t;

	if (*known)
		return *known - 1;
	hub_type_of(f->in->rec, &f->in->views->list[view], &t);
	*known = (filler_new_type(f->slot, &t, &type) < 0 ? SLOT_TYPES : type) + 1;
	if (*known <= SLOT_TYPES)
		f->slot->types[type].period = t.period;
	return *known - 1;
}

/* --- nodes --- */

/* The file is a help, not a part of the profile: without room for its name there is none. */
static int filler_on_function(void *ctx, uint32_t function, const struct rec_function *from)
{
	struct filler *f = ctx;
	struct slot *s = f->slot;
	struct slot_place *place;

	if (!from->file)
		return 0;
	if (array_reach(&s->places, function, &s->places_cap, sizeof(*s->places)) < 0)
		return -ENOMEM;
	place = &s->places[function];
	if (place->file || tree_add_string(s->tree, recording_str(f->in->rec, from->file), &place->file) < 0)
		return 0;
	place->line = from->start_line > 0 && from->start_line <= INT32_MAX ? (uint32_t)from->start_line : 0;
	return 0;
}

static int filler_begin_tree(struct filler *f)
{
	int r;

	adder_done(&f->adder);
	r = adder_init(&f->adder, f->slot->tree, f->in->rec, UINT64_MAX);
	f->adder.placed = filler_on_function;
	f->adder.ctx = f;
	f->slot->tree->limits.nodes = f->slot->max_nodes - f->slot->max_nodes / MARKER_PART;
	return r;
}

static int filler_try(struct filler *f, uint32_t stack, uint32_t *node)
{
	*node = 0;
	return adder_descend(&f->adder, stack, node);
}

/* Below the last function that there is room for, so that its own time is not wrong. */
static void filler_fold(struct filler *f, uint32_t *node)
{
	struct tree *t = f->slot->tree;
	uint32_t limit = t->limits.nodes;

	t->limits.nodes = f->slot->max_nodes;
	/* Where there is no room for the marker either, its caller has the value. */
	tree_add_named(t, *node, SLOT_FOLDED, KIND_MARKER, node);
	t->limits.nodes = limit;
}

/* 0, 1: it is folded, or -ENOMEM. */
static int filler_place(struct filler *f, uint32_t stack, uint32_t *node)
{
	int r = filler_try(f, stack, node);

	if (r == -E2BIG && f->rooms < ROOMS_MAX) {
		f->rooms = slot_make_room(f->slot, f->pending, f->placed) ? f->rooms + 1 : ROOMS_MAX;
		/* The tree is another one even where little was gained. */
		r = filler_begin_tree(f);
		if (!r)
			r = filler_try(f, stack, node);
	}
	if (r != -E2BIG)
		return r;
	filler_fold(f, node);
	return 1;
}

static void filler_add(struct filler *f, uint32_t i)
{
	const struct rec_sample *s = intern_key(&f->in->rec->samples, f->in->samples[i]);
	uint64_t value = f->in->rec->sums[f->in->samples[i]];
	uint32_t node;
	int r = filler_type(f, s->series) < SLOT_TYPES ? filler_place(f, s->stack, &node) : -ENOSPC;

	f->slot->counts.taken += value;
	f->pending[i] = (struct bucket_entry){0};
	f->placed = i + 1;
	if (r < 0) {
		f->slot->counts.refused += value;
		return;
	}
	tree_hold(f->slot->tree, node);
	f->pending[i] = (struct bucket_entry){.node = node, .value = value};
	f->folded[i] = (uint8_t)r;
}

/* --- buckets --- */

/* Times that are not of the recent past are the sender's error: what arrives now is shown as of now. */
static void filler_take_times(const struct slot_input *in, uint32_t series, struct bucket *b)
{
	struct rec_times t = series < in->rec->times_cap ? in->rec->times[series] : (struct rec_times){0};
	bool wrong = !t.start_ns || t.end_ns < t.start_ns || t.end_ns > in->now_ns + FUTURE_NS ||
		     t.start_ns + in->max_past_ns < in->now_ns || t.end_ns - t.start_ns > in->max_past_ns;

	if (wrong)
		t.start_ns = t.end_ns = in->now_ns;
	b->start_ns = b->end_ns && b->start_ns ? MIN(b->start_ns, t.start_ns) : t.start_ns;
	b->end_ns = MAX(b->end_ns, t.end_ns);
}

static void slot_push(struct slot *s, const struct bucket *b)
{
	s->buckets[s->nr_buckets++] = *b;
	s->bucket_bytes += bucket_memory(b);
	s->counts.kept += b->value - b->folded;
	s->counts.folded += b->folded;
	s->seq = b->seq;
}

/* Equal nodes become one pair, which holds its node once. */
static void slot_release_equal(struct slot *s, const struct bucket_entry *sorted, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (sorted[i].node == sorted[i - 1].node)
			tree_release(s->tree, sorted[i].node);
}

static void slot_refuse(struct slot *s, const struct bucket_entry *entries, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		tree_release(s->tree, entries[i].node);
		s->counts.refused += entries[i].value;
	}
}

static void filler_make_bucket(struct filler *f, uint32_t type, struct bucket_entry *entries)
{
	struct slot *s = f->slot;
	struct bucket b = {.type = type, .seq = f->in->seq};
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->in->count; i++) {
		const struct rec_sample *sample = intern_key(&f->in->rec->samples, f->in->samples[i]);

		if (!f->pending[i].value || filler_type(f, sample->series) != type)
			continue;
		filler_take_times(f->in, sample->series, &b);
		entries[n++] = f->pending[i];
		b.folded += f->folded[i] ? f->pending[i].value : 0;
	}
	if (!n)
		return;
	bucket_sort(entries, n);
	if (array_reserve(&s->buckets, s->nr_buckets, &s->buckets_cap, sizeof(*s->buckets)) < 0) {
		slot_refuse(s, entries, n);
		return;
	}
	if (bucket_encode(&b, entries, n) < 0) {
		slot_refuse(s, entries, n);
		return;
	}
	slot_release_equal(s, entries, n);
	slot_push(s, &b);
}

static void filler_make_buckets(struct filler *f)
{
	_cleanup_(freep) struct bucket_entry *entries = calloc(f->in->count, sizeof(*entries));

	for (uint32_t i = 0; entries && i < f->slot->nr_types; i++)
		filler_make_bucket(f, i, entries);
	for (uint32_t i = 0; !entries && i < f->in->count; i++)
		if (f->pending[i].value)
			slot_refuse(f->slot, &f->pending[i], 1);
}

static int filler_init(struct filler *f, struct slot *s, const struct slot_input *in)
{
	*f = (struct filler){.slot = s, .in = in};
	f->pending = calloc(in->count, sizeof(*f->pending));
	f->folded = calloc(in->count, 1);
	f->types = calloc(in->views->count, sizeof(*f->types));
	return f->pending && f->folded && f->types ? filler_begin_tree(f) : -ENOMEM;
}

static void filler_done(struct filler *f)
{
	f->slot->tree->limits.nodes = f->slot->max_nodes;
	adder_done(&f->adder);
	free(f->pending);
	free(f->folded);
	free(f->types);
}

static void slot_refuse_all(struct slot *s, const struct slot_input *in)
{
	for (uint32_t i = 0; i < in->count; i++) {
		s->counts.taken += in->rec->sums[in->samples[i]];
		s->counts.refused += in->rec->sums[in->samples[i]];
	}
}

void slot_add(struct slot *s, const struct slot_input *in)
{
	_cleanup_(filler_done) struct filler f;

	if (filler_init(&f, s, in) < 0) {
		slot_refuse_all(s, in);
		return;
	}
	for (uint32_t i = 0; i < in->count; i++)
		filler_add(&f, i);
	filler_make_buckets(&f);
	slot_merge(s);
	slot_trim(s);
}

/* --- merging --- */

static uint64_t slot_merge_width(uint64_t age)
{
	return age < FINE_NS ? 0 : age < MINUTES_NS ? 60 * NSEC_PER_SEC : 600 * NSEC_PER_SEC;
}

/* The next bucket of the same type that lies in the same minute, or ten; nr_buckets: none. */
static uint32_t slot_merge_partner(const struct slot *s, uint32_t i, uint64_t newest)
{
	const struct bucket *b = &s->buckets[i];
	uint64_t width = b->end_ns < newest ? slot_merge_width(newest - b->end_ns) : 0;

	for (uint32_t j = i + 1; width && j < s->nr_buckets; j++) {
		const struct bucket *c = &s->buckets[j];

		if (c->type == b->type)
			return c->start_ns / width == b->start_ns / width && c->end_ns < newest &&
					       slot_merge_width(newest - c->end_ns) ? j : s->nr_buckets;
	}
	return s->nr_buckets;
}

static int slot_merge_two(struct slot *s, struct bucket *a, struct bucket *b)
{
	uint32_t n = 0, total = a->entries + b->entries;
	_cleanup_(freep) struct bucket_entry *entries = calloc(MAX(total, 1u), sizeof(*entries));
	struct bucket_reader ra = bucket_read(a), rb = bucket_read(b);
	struct bucket merged = {.type = a->type, .seq = MAX(a->seq, b->seq), .folded = a->folded + b->folded,
				.start_ns = MIN(a->start_ns, b->start_ns), .end_ns = MAX(a->end_ns, b->end_ns)};

	if (!entries)
		return -ENOMEM;
	while (n < total && (bucket_next(&ra, &entries[n]) || bucket_next(&rb, &entries[n])))
		n++;
	bucket_sort(entries, n);
	if (bucket_encode(&merged, entries, n) < 0)
		return -ENOMEM;
	slot_release_equal(s, entries, n);
	s->bucket_bytes -= bucket_memory(a) + bucket_memory(b);
	bucket_done(a);
	bucket_done(b);
	*a = merged;
	s->bucket_bytes += bucket_memory(a);
	return 0;
}

void slot_merge(struct slot *s)
{
	uint64_t newest = slot_newest_ns(s);
	uint32_t merges = 0;

	for (uint32_t i = 0; i < s->nr_buckets && merges < MERGES_MAX; i++) {
		uint32_t j = slot_merge_partner(s, i, newest);

		if (j == s->nr_buckets)
			continue;
		if (slot_merge_two(s, &s->buckets[i], &s->buckets[j]) < 0)
			return;
		s->nr_buckets--;
		memmove(s->buckets + j, s->buckets + j + 1, (s->nr_buckets - j) * sizeof(*s->buckets));
		merges++;
		i--;
	}
}
