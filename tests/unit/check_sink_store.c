// SPDX-License-Identifier: Apache-2.0
/*
 * A sink that is no recording: a store that keeps the stacks of some
 * workloads only, in one tree each, and drops the oldest requests.
 */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "graph/place.h"
#include "graph_fixture.h"
#include "otlp/read.h"

Suite *sink_store_suite(void);

enum { SLOTS = 2, BUCKETS = 3 };

/* What one request brought for one workload. */
struct bucket {
	struct values values;
	struct buf held; /* uint32_t[]: nodes */
};

struct slot {
	const char *service;
	struct tree *tree;
	struct bucket buckets[BUCKETS]; /* the newest first */
};

struct store {
	struct slot slots[SLOTS];
	struct slot *slot; /* of the current resource */
	uint32_t root;     /* node of its service */
	struct buf frames, runs, touched;
	uint32_t translated; /* stacks */
};

struct run {
	uint32_t start, n;
};

struct touched {
	uint32_t slot, node;
};

/* function and mapping of this sink are strings of the tree. */
static int line_name(void *ctx, size_t i, uint32_t *ret)
{
	const struct sink_location *l = ctx;

	*ret = l->lines[i].function;
	return 0;
}

static int store_resource(void *ctx, const struct sink_resource *r, uint32_t *ret_space)
{
	struct store *s = ctx;
	const char *service = "";
	size_t i;

	for (i = 0; i < r->n; i++)
		if (strcmp(r->attributes[i].key.s, "service.name") == 0)
			service = otlp_value_string(r->attributes[i].value);
	for (i = 0; i < SLOTS; i++)
		if (strcmp(s->slots[i].service, service) == 0)
			break;
	if (i == SLOTS)
		return OTLP_SKIP;
	s->slot = &s->slots[i];
	*ret_space = (uint32_t)i;
	return tree_add_named(s->slot->tree, 0, service, KIND_SERVICE, &s->root);
}

static int store_profile(void *ctx, const struct sink_profile *p)
{
	return strcmp(p->period_type.s, "cpu") == 0 ? 0 : OTLP_SKIP;
}

static int store_mapping(void *ctx, const struct sink_mapping *m, uint32_t *ret)
{
	struct store *s = ctx;

	return tree_add_string(s->slot->tree, m->file.s, ret);
}

static int store_function(void *ctx, const struct sink_function *f, uint32_t *ret)
{
	struct store *s = ctx;

	return tree_add_string(s->slot->tree, f->name.s, ret);
}

static int store_location(void *ctx, const struct sink_location *l, uint32_t *ret)
{
	struct store *s = ctx;
	const char *file = tree_string(s->slot->tree, l->mapping);
	struct place place = {
		.file = file, .file_len = strlen(file), .module = l->mapping, .address = l->address, .kind = l->kind,
		.lines = l->n, .name = line_name, .ctx = (void *)l,
	};
	struct run run = {.start = (uint32_t)(s->frames.len / sizeof(struct place_frame))};
	int r = place_add_frames(&place, s->slot->tree, &s->frames);

	run.n = (uint32_t)(s->frames.len / sizeof(struct place_frame)) - run.start;
	*ret = (uint32_t)(s->runs.len / sizeof(run));
	buf_add(&s->runs, &run, sizeof(run));
	return r;
}

static int store_stack(void *ctx, const uint32_t *locations, size_t n, uint32_t *ret)
{
	struct store *s = ctx;
	const struct place_frame *frames = (const struct place_frame *)s->frames.data;
	const struct run *runs = (const struct run *)s->runs.data;
	int r = 0;

	s->translated++;
	for (*ret = s->root; !r && n--;)
		r = place_descend(s->slot->tree, frames + runs[locations[n]].start, runs[locations[n]].n, ret);
	return r;
}

static int store_sample(void *ctx, const struct sink_sample *sample, uint32_t *ret)
{
	struct store *s = ctx;
	struct touched t = {.slot = (uint32_t)(s->slot - s->slots), .node = sample->stack};

	*ret = (uint32_t)(s->touched.len / sizeof(t));
	buf_add(&s->touched, &t, sizeof(t));
	buf_reserve(&s->slot->buckets[0].held, (s->touched.len / sizeof(t)) * sizeof(uint32_t));
	return values_add(&s->slot->buckets[0].values, sample->stack, 0);
}

static void store_add(void *ctx, uint32_t sample, uint64_t value)
{
	struct store *s = ctx;
	const struct touched *t = (const struct touched *)s->touched.data + sample;
	struct slot *slot = &s->slots[t->slot];

	values_add(&slot->buckets[0].values, t->node, value);
	buf_add(&slot->buckets[0].held, &t->node, sizeof(t->node));
	tree_hold(slot->tree, t->node);
}

static const struct otlp_sink store_sink = {
	.resource = store_resource, .profile = store_profile, .mapping = store_mapping, .function = store_function,
	.location = store_location, .stack = store_stack, .sample = store_sample, .add = store_add,
};

static void bucket_drop(struct bucket *b, struct tree *t)
{
	const uint32_t *held = (const uint32_t *)b->held.data;

	for (size_t i = 0; i < b->held.len / sizeof(*held); i++)
		tree_release(t, held[i]);
	values_done(&b->values);
	buf_done(&b->held);
}

static void store_init(struct store *s)
{
	static const char *const services[] = {"app", "second"};

	*s = (struct store){0};
	for (size_t i = 0; i < SLOTS; i++) {
		s->slots[i].service = services[i];
		ck_assert_int_eq(tree_new(&fixture_tree_limits, &s->slots[i].tree), 0);
	}
}

static void store_done(struct store *s)
{
	for (size_t i = 0; i < SLOTS; i++) {
		for (size_t k = 0; k < BUCKETS; k++)
			bucket_drop(&s->slots[i].buckets[k], s->slots[i].tree);
		tree_free(s->slots[i].tree);
	}
	buf_done(&s->frames);
	buf_done(&s->runs);
	buf_done(&s->touched);
}

/* One request: a new bucket for every slot, the oldest is dropped. */
static int store_read(struct store *s, void (*change)(struct fixture *f))
{
	_cleanup_(buf_done) struct buf b = {0};

	for (size_t i = 0; i < SLOTS; i++) {
		struct slot *slot = &s->slots[i];

		bucket_drop(&slot->buckets[BUCKETS - 1], slot->tree);
		memmove(slot->buckets + 1, slot->buckets, (BUCKETS - 1) * sizeof(slot->buckets[0]));
		slot->buckets[0] = (struct bucket){0};
	}
	buf_reset(&s->frames);
	buf_reset(&s->runs);
	buf_reset(&s->touched);
	fixture_encode(change, &b);
	return otlp_read(b.data, b.len, &fixture_limits.request, &store_sink, s);
}

static uint64_t bucket_total(const struct slot *slot, size_t bucket)
{
	struct values v = slot->buckets[bucket].values;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < v.self_cap; i++)
		sum += v.self[i];
	return sum;
}

static void as_second(struct fixture *f) { f->resource_values[0].string_value = (char *)"second"; }
static void as_third(struct fixture *f) { f->resource_values[0].string_value = (char *)"third"; }
static void as_page_faults(struct fixture *f) { f->period_type.type_strindex = 20; }
static void broken(struct fixture *f) { f->samples[3].stack_index = 5; }

/* The same stacks of three workloads, with one dictionary. */
static void three_services(struct fixture *f)
{
	static OtlpResourceProfiles profiles[3], *pointers[3];
	static OtlpResource resources[3];
	static OtlpKeyValue keys[3], *key_pointers[3];
	static OtlpAnyValue values[3];
	static const char *const names[] = {"app", "third", "second"};

	for (size_t i = 0; i < 3; i++) {
		values[i] = f->resource_values[0];
		values[i].string_value = (char *)names[i];
		keys[i] = f->resource_attributes[0];
		keys[i].value = &values[i];
		key_pointers[i] = &keys[i];
		resources[i] = f->resource;
		resources[i].n_attributes = 1;
		resources[i].attributes = &key_pointers[i];
		profiles[i] = f->resource_profiles;
		profiles[i].resource = &resources[i];
		pointers[i] = &profiles[i];
	}
	f->request.n_resource_profiles = 3;
	f->request.resource_profiles = pointers;
}

START_TEST(store_keeps_the_workloads_that_it_has_slots_for)
{
	struct store s;

	store_init(&s);
	ck_assert_int_eq(store_read(&s, three_services), 0);
	ck_assert_uint_eq(bucket_total(&s.slots[0], 0), 10);
	ck_assert_uint_eq(bucket_total(&s.slots[1], 0), 10);
	/* The workload without a slot cost no translation. */
	ck_assert_uint_eq(s.translated, 2 * 4);
	ck_assert_uint_eq(s.slots[0].tree->count, 9);
	ck_assert_uint_eq(s.slots[1].tree->count, 9);
	ck_assert_int_eq(store_read(&s, as_third), 0);
	ck_assert_int_eq(store_read(&s, as_page_faults), 0);
	ck_assert_uint_eq(s.translated, 2 * 4);
	store_done(&s);
}
END_TEST

START_TEST(tree_of_a_store_is_that_of_a_recording)
{
	struct recording *r = fixture_recording();
	struct graph *g = fixture_graph(r);
	struct store s;
	struct tree *t;
	uint32_t i, k;

	store_init(&s);
	ck_assert_int_eq(store_read(&s, NULL), 0);
	t = s.slots[0].tree;
	ck_assert_int_eq(tree_sort(t), 0);
	ck_assert_int_eq(values_sum(&s.slots[0].buckets[0].values, t), 0);
	for (i = 0, k = 0; i != TREE_NONE && k != TREE_NONE; i = tree_next(t, i), k = tree_next(g->tree, k)) {
		ck_assert_str_eq(tree_name(t, i), tree_name(g->tree, k));
		ck_assert_str_eq(tree_module(t, i), tree_module(g->tree, k));
		ck_assert_int_eq(tree_kind(t, i), tree_kind(g->tree, k));
		ck_assert_uint_eq(s.slots[0].buckets[0].values.total[i], g->now.total[k]);
	}
	ck_assert_uint_eq(i, k);
	graph_free(g);
	recording_free(r);
	store_done(&s);
}
END_TEST

START_TEST(old_requests_are_dropped_and_their_branches_with_them)
{
	struct store s;
	struct tree *to = NULL;
	uint32_t map[16];

	store_init(&s);
	ck_assert_int_eq(store_read(&s, NULL), 0);
	ck_assert_uint_eq(s.slots[0].tree->used, 9);
	for (size_t i = 0; i < BUCKETS; i++) {
		ck_assert_uint_eq(s.slots[0].tree->used, 9);
		ck_assert_int_eq(store_read(&s, as_second), 0);
	}
	ck_assert_uint_eq(s.slots[0].tree->used, 0);
	ck_assert_uint_eq(s.slots[1].tree->used, 9);
	ck_assert_uint_eq(bucket_total(&s.slots[1], 2), 10);
	ck_assert_int_eq(tree_compact(s.slots[0].tree, &to, map), 0);
	ck_assert_uint_eq(to->count, 1);
	tree_free(to);
	store_done(&s);
}
END_TEST

START_TEST(refused_request_adds_nothing_to_a_store)
{
	struct store s;

	store_init(&s);
	ck_assert_int_eq(store_read(&s, broken), -EBADMSG);
	ck_assert_uint_gt(s.translated, 0);
	ck_assert_uint_eq(bucket_total(&s.slots[0], 0), 0);
	ck_assert_uint_eq(s.slots[0].tree->used, 0);
	store_done(&s);
}
END_TEST

Suite *sink_store_suite(void)
{
	Suite *s = suite_create("sink_store");
	TCase *t = tcase_create("store");

	tcase_add_test(t, store_keeps_the_workloads_that_it_has_slots_for);
	tcase_add_test(t, tree_of_a_store_is_that_of_a_recording);
	tcase_add_test(t, old_requests_are_dropped_and_their_branches_with_them);
	tcase_add_test(t, refused_request_adds_nothing_to_a_store);
	suite_add_tcase(s, t);
	return s;
}
