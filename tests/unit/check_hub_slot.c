// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "hub/slot.h"
#include "hub_fixture.h"

Suite *hub_slot_suite(void);

#define KIB 1024u

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % sides;
}

/* Bytes that the allocator has given out. */
#if defined(__SANITIZE_ADDRESS__)
size_t __sanitizer_get_current_allocated_bytes(void);
static size_t allocated(void)
{
	return __sanitizer_get_current_allocated_bytes();
}
#else
static size_t allocated(void)
{
	return mallinfo2().uordblks + mallinfo2().hblkhd;
}
#endif

/* --- feeding a slot --- */

static const struct recording_limits limits = {
	.request = {.request_bytes = 64u << 20, .memory_bytes = 1u << 30, .depth = 8192},
	.entries = 1u << 20,
	.bytes = 1u << 30,
	.total = (1ULL << 53) - 1,
	.frames = 1ULL << 28,
};

static void feed(struct slot *s, const struct hf_request *q, uint64_t seq)
{
	struct buf b = {0};
	struct recording *rec;
	struct rec_views views;
	uint32_t *numbers;

	hf_encode(q, &b);
	ck_assert_int_eq(recording_new(&limits, &rec), 0);
	ck_assert_int_eq(recording_read(rec, b.data, b.len), 0);
	ck_assert_int_eq(recording_views(rec, &views), 0);
	numbers = hf_new(rec->samples.count, sizeof(*numbers));
	for (uint32_t i = 0; i < rec->samples.count; i++)
		numbers[i] = i;
	slot_add(s, &(struct slot_input){.rec = rec, .views = &views, .samples = numbers, .count = rec->samples.count,
					 .seq = seq, .now_ns = q->start_ns + q->duration_ns, .max_past_ns = 3600ULL * 1000000000});
	free(numbers);
	rec_views_done(&views);
	recording_free(rec);
	buf_done(&b);
}

static struct hf_request at_step(const struct hf_stack *stacks, size_t n, uint64_t step)
{
	return (struct hf_request){.attributes = {{"service.name", "app"}}, .stacks = stacks, .n = n,
				   .start_ns = HF_START + step * HF_STEP, .duration_ns = HF_STEP};
}

static uint64_t total_of(const struct hf_stack *stacks, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (uint64_t)stacks[i].value;
	return sum;
}

static void assert_balanced(const struct slot *s)
{
	const struct slot_counts *c = &s->counts;
	uint64_t kept = 0, folded = 0;

	ck_assert_uint_eq(c->taken, c->kept + c->folded + c->evicted + c->refused);
	for (uint32_t i = 0; i < s->nr_buckets; i++) {
		kept += s->buckets[i].value - s->buckets[i].folded;
		folded += s->buckets[i].folded;
	}
	ck_assert_uint_eq(c->kept, kept);
	ck_assert_uint_eq(c->folded, folded);
	ck_assert_uint_le(slot_memory(s), s->max_bytes);
}

/* --- the model: every stack of every request, by its text --- */

#define MODEL_REQUESTS 400
#define MODEL_STACKS   60

static struct hf_stack model[MODEL_REQUESTS][MODEL_STACKS];
static size_t model_n[MODEL_REQUESTS];

/* Stacks of a program with many functions, of which some are hot. */
static size_t random_stacks(struct hf_stack *to, uint32_t names)
{
	size_t n = 1 + dice(MODEL_STACKS);

	for (size_t i = 0; i < n; i++) {
		uint32_t depth = 1 + dice(12), hot = dice(4);
		int len = snprintf(to[i].path, sizeof(to[i].path), "main");

		for (uint32_t d = 0; d < depth; d++)
			len += snprintf(to[i].path + len, sizeof(to[i].path) - (size_t)len, ";fn%u",
					hot ? (d * 7 + hot) % names : dice(names));
		to[i].value = 1 + dice(50);
	}
	return n;
}

static void path_of(const struct tree *t, uint32_t node, char *to, size_t size)
{
	size_t at = size - 1, len;

	for (to[at] = '\0'; node; node = t->nodes[node].parent) {
		len = strlen(tree_name(t, node));
		if (to[at])
			to[--at] = ';';
		ck_assert_uint_gt(at, len + 1);
		at -= len;
		memcpy(to + at, tree_name(t, node), len);
	}
	memmove(to, to + at, size - at);
}

/* Adds up, by text, what the tree says and what the model says; both as lists that are compared as sets. */
static void assert_same_as_model(const struct slot *s, size_t first, size_t end, uint64_t from_ns, uint64_t to_ns)
{
	struct slot_range range = {.from_ns = from_ns, .to_ns = to_ns};
	struct values v = {0};
	struct slot_sum sum;
	struct intern paths;
	uint64_t *expected = hf_new(MODEL_REQUESTS * MODEL_STACKS, sizeof(*expected));
	uint32_t n;

	intern_init(&paths, 1u << 24, 1u << 28);
	for (size_t i = first; i < end; i++) {
		uint64_t middle = HF_START + i * HF_STEP + HF_STEP / 2;

		for (size_t k = 0; k < model_n[i] && middle >= from_ns && middle < to_ns; k++) {
			ck_assert_int_eq(intern_number(&paths, model[i][k].path, strlen(model[i][k].path) + 1, &n), 0);
			expected[n] += (uint64_t)model[i][k].value;
		}
	}
	ck_assert_int_eq(slot_values(s, &range, &v, &sum), 0);
	for (uint32_t i = 0; i < s->tree->count; i++) {
		char path[4096];

		if (!v.self[i])
			continue;
		path_of(s->tree, i, path, sizeof(path));
		ck_assert_msg(intern_add(&paths, path, strlen(path) + 1, &n) == 0, "%s was never added", path);
		ck_assert_msg(expected[n] == v.self[i], "%s: %lu in the model, %lu in the slot", path,
			      (unsigned long)expected[n], (unsigned long)v.self[i]);
		expected[n] = 0;
	}
	for (uint32_t i = 0; i < paths.count; i++)
		ck_assert_msg(!expected[i], "%s is missing", (const char *)intern_key(&paths, i));
	values_done(&v);
	intern_done(&paths);
	free(expected);
}

/* What is held are the newest requests, whole; older ones are gone, whole. */
START_TEST(slot_equals_a_simple_model_under_random_load)
{
	static const size_t sizes[] = {256 * KIB, 300 * KIB, 512 * KIB, 2048 * KIB};
	struct slot *s;
	uint64_t taken = 0;

	seed = (uint64_t)_i + 1;
	ck_assert_int_eq(slot_new(sizes[_i], 1, &s), 0);
	for (size_t i = 0; i < MODEL_REQUESTS; i++) {
		uint64_t end = HF_START + (i + 1) * HF_STEP, from = HF_START + dice(MODEL_REQUESTS) * HF_STEP;

		model_n[i] = random_stacks(model[i], 120);
		feed(s, &(struct hf_request){.attributes = {{"service.name", "app"}}, .stacks = model[i], .n = model_n[i],
					     .start_ns = end - HF_STEP, .duration_ns = HF_STEP}, i + 1);
		taken += total_of(model[i], model_n[i]);
		ck_assert_uint_eq(s->counts.taken, taken);
		ck_assert_uint_eq(s->counts.folded + s->counts.refused, 0);
		assert_balanced(s);
		if (i % 16 != 0 || i > 170) /* by then, buckets are merged */
			continue;
		assert_same_as_model(s, i + 1 - s->nr_buckets, i + 1, 0, UINT64_MAX);
		assert_same_as_model(s, i + 1 - s->nr_buckets, i + 1, from, from + 20 * HF_STEP);
	}
	slot_free(s);
}
END_TEST

START_TEST(slot_evicts_only_when_it_is_full)
{
	struct slot *s;

	seed = 7;
	ck_assert_int_eq(slot_new(8192 * KIB, 1, &s), 0);
	for (size_t i = 0; i < MODEL_REQUESTS; i++) {
		model_n[i] = random_stacks(model[i], 120);
		feed(s, &(struct hf_request){.attributes = {{"service.name", "app"}}, .stacks = model[i], .n = model_n[i],
					     .start_ns = HF_START + i * HF_STEP, .duration_ns = HF_STEP}, i + 1);
	}
	ck_assert_uint_eq(s->counts.evicted, 0);
	assert_same_as_model(s, 0, MODEL_REQUESTS, 0, UINT64_MAX);
	slot_free(s);
}
END_TEST

START_TEST(slot_merges_what_is_old_and_loses_nothing)
{
	static const struct hf_stack stacks[] = {{"main;work", 3}, {"main;idle", 1}};
	struct slot *s;
	size_t n = 3000; /* 4 h and 10 min */

	ck_assert_int_eq(slot_new(1024 * KIB, 1, &s), 0);
	for (size_t i = 0; i < n; i++) {
		struct hf_request q = at_step(stacks, ARRAY_SIZE(stacks), i);

		feed(s, &q, i + 1);
	}
	/* 180 of 5 s, 105 of a minute, 13 of ten minutes; a few more at the borders. */
	ck_assert_uint_ge(s->nr_buckets, 180 + 105 + 13);
	ck_assert_uint_le(s->nr_buckets, 180 + 105 + 13 + 20);
	ck_assert_uint_eq(s->counts.kept, 4 * n);
	assert_balanced(s);
	for (uint32_t i = 0; i < s->nr_buckets; i++)
		ck_assert_uint_le(s->buckets[i].end_ns - s->buckets[i].start_ns, 605ULL * 1000000000);
	slot_free(s);
}
END_TEST

static struct hf_stack *many_stacks(size_t n, uint32_t round)
{
	struct hf_stack *stacks = hf_new(n, sizeof(*stacks));

	for (size_t i = 0; i < n; i++) {
		snprintf(stacks[i].path, sizeof(stacks[i].path), "main;loop;f%u_%zu;g%zu;h%u_%zu", round, i, i % 50, round, i);
		stacks[i].value = 2;
	}
	return stacks;
}

START_TEST(slot_folds_what_one_interval_has_too_much_of)
{
	size_t n = 20000;
	struct hf_stack *stacks = many_stacks(n, 0);
	struct hf_request q = at_step(stacks, n, 0);
	struct slot_range all = {.to_ns = UINT64_MAX};
	struct values v = {0};
	struct slot_sum sum;
	struct slot *s;

	ck_assert_int_eq(slot_new(512 * KIB, 1, &s), 0);
	feed(s, &q, 1);
	assert_balanced(s);
	ck_assert_uint_gt(s->counts.folded, 0);
	ck_assert_uint_gt(s->counts.kept, 0);
	ck_assert_uint_eq(s->counts.refused + s->counts.evicted, 0);
	ck_assert_int_eq(slot_values(s, &all, &v, &sum), 0);
	ck_assert_int_eq(values_sum(&v, s->tree), 0);
	ck_assert_uint_eq(v.total[0], 2 * n);
	ck_assert_uint_eq(sum.folded, s->counts.folded);
	/* All folded values stand below a marker. */
	for (uint32_t i = 0; i < s->tree->count; i++)
		if (tree_kind(s->tree, i) == KIND_MARKER)
			sum.folded -= v.self[i];
	ck_assert_uint_eq(sum.folded, 0);
	values_done(&v);
	free(stacks);
	slot_free(s);
}
END_TEST

START_TEST(slot_stays_bounded_when_the_tree_never_stands_still)
{
	struct slot *s;
	uint64_t taken = 0;

	ck_assert_int_eq(slot_new(512 * KIB, 1, &s), 0);
	for (uint32_t round = 0; round < 300; round++) {
		size_t n = 50;
		struct hf_stack *stacks = many_stacks(n, round);
		struct hf_request q = at_step(stacks, n, round);

		feed(s, &q, round + 1);
		taken += 2 * n;
		ck_assert_uint_eq(s->counts.taken, taken);
		assert_balanced(s);
		ck_assert_uint_ge(s->counts.kept, 2 * n); /* the newest is whole */
		free(stacks);
	}
	ck_assert_uint_eq(s->counts.folded + s->counts.refused, 0);
	ck_assert_uint_gt(s->counts.evicted, 0);
	ck_assert_uint_gt(s->generation, 1);
	slot_free(s);
}
END_TEST

START_TEST(slot_says_how_many_bytes_it_has)
{
	size_t before = allocated(), told, got;
	struct slot *s;

	seed = 3;
	ck_assert_int_eq(slot_new(2048 * KIB, 1, &s), 0);
	for (size_t i = 0; i < 300; i++) {
		model_n[0] = random_stacks(model[0], 3000);
		feed(s, &(struct hf_request){.attributes = {{"service.name", "app"}}, .stacks = model[0], .n = model_n[0],
					     .start_ns = HF_START + i * HF_STEP, .duration_ns = HF_STEP}, i + 1);
	}
	told = slot_memory(s);
	got = allocated() - before;
	ck_assert_uint_gt(told, 256 * KIB);
	ck_assert_msg(told * 10 >= got * 9 && told * 9 <= got * 10, "%zu told, %zu allocated", told, got);
	slot_free(s);
}
END_TEST

START_TEST(slot_made_smaller_is_within_its_new_bytes)
{
	struct slot *s;

	seed = 5;
	ck_assert_int_eq(slot_new(4096 * KIB, 1, &s), 0);
	for (size_t i = 0; i < 300; i++) {
		model_n[0] = random_stacks(model[0], 2000);
		feed(s, &(struct hf_request){.attributes = {{"service.name", "app"}}, .stacks = model[0], .n = model_n[0],
					     .start_ns = HF_START + i * HF_STEP, .duration_ns = HF_STEP}, i + 1);
	}
	ck_assert_uint_gt(slot_memory(s), 512 * KIB);
	ck_assert_int_eq(slot_resize(s, 512 * KIB), 0);
	assert_balanced(s);
	ck_assert_uint_gt(s->counts.kept, 0);
	ck_assert_int_eq(slot_resize(s, 256 * KIB), 0);
	assert_balanced(s);
	ck_assert_int_eq(slot_resize(s, 8192 * KIB), 0);
	assert_balanced(s);
	slot_free(s);
}
END_TEST

START_TEST(slot_keeps_types_apart)
{
	static const struct hf_stack ticks[] = {{"main;work", 3}}, faults[] = {{"main;work", 500}, {"main;map", 5}};
	struct hf_request q = at_step(faults, 2, 0), c = at_step(ticks, 1, 0);
	struct slot_range range = {.to_ns = UINT64_MAX};
	struct slot_sum sum;
	struct slot *s;

	q.type = "page_faults";
	ck_assert_int_eq(slot_new(256 * KIB, 1, &s), 0);
	feed(s, &q, 1);
	feed(s, &c, 2);
	ck_assert_int_eq(slot_type(s, "", &range.type), 0);
	ck_assert_str_eq(s->types[range.type].name, "cpu");
	ck_assert(s->types[range.type].cpu);
	ck_assert_int_eq(s->types[range.type].period, HF_PERIOD);
	slot_sum(s, &range, &sum);
	ck_assert_uint_eq(sum.value, 3);
	ck_assert_int_eq(slot_type(s, "page_faults", &range.type), 0);
	slot_sum(s, &range, &sum);
	ck_assert_uint_eq(sum.value, 505);
	ck_assert_str_eq(s->types[range.type].unit, "page_faults");
	ck_assert_int_eq(slot_type(s, "off_cpu", &range.type), -ENOENT);
	range.after = 1;
	slot_sum(s, &range, &sum);
	ck_assert_uint_eq(sum.value, 0);
	slot_free(s);
}
END_TEST

/* As a sender whose clock is wrong, or that states no time. */
START_TEST(slot_shows_samples_of_a_wrong_time_as_of_now)
{
	static const struct hf_stack stacks[] = {{"main", 1}};
	static const uint64_t starts[] = {0, HF_START + 86400000000000ULL, UINT64_MAX - HF_STEP};
	struct slot *s;

	ck_assert_int_eq(slot_new(256 * KIB, 1, &s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		struct hf_request q = at_step(stacks, 1, 0);
		struct rec_views views;
		struct recording *rec;
		struct buf b = {0};
		uint32_t zero = 0;

		q.start_ns = starts[i];
		hf_encode(&q, &b);
		ck_assert_int_eq(recording_new(&limits, &rec), 0);
		ck_assert_int_eq(recording_read(rec, b.data, b.len), 0);
		ck_assert_int_eq(recording_views(rec, &views), 0);
		slot_add(s, &(struct slot_input){.rec = rec, .views = &views, .samples = &zero, .count = 1, .seq = i + 1,
						 .now_ns = HF_START, .max_past_ns = 3600ULL * 1000000000});
		ck_assert_uint_eq(s->buckets[i].start_ns, HF_START);
		ck_assert_uint_eq(s->buckets[i].end_ns, HF_START);
		rec_views_done(&views);
		recording_free(rec);
		buf_done(&b);
	}
	slot_free(s);
}
END_TEST

START_TEST(slot_cleared_is_empty_and_of_a_new_generation)
{
	static const struct hf_stack stacks[] = {{"main;work", 3}};
	struct hf_request q = at_step(stacks, 1, 0);
	struct slot *s;

	ck_assert_int_eq(slot_new(256 * KIB, 5, &s), 0);
	feed(s, &q, 1);
	slot_clear(s);
	ck_assert_uint_eq(s->generation, 6);
	ck_assert_uint_eq(s->counts.evicted, 3);
	ck_assert_uint_eq(s->tree->count, 1);
	assert_balanced(s);
	feed(s, &q, 2);
	ck_assert_uint_eq(s->counts.kept, 3);
	assert_balanced(s);
	slot_free(s);
}
END_TEST

Suite *hub_slot_suite(void)
{
	Suite *s = suite_create("hub_slot");
	TCase *t = tcase_create("slot");

	tcase_set_timeout(t, 240);
	tcase_add_loop_test(t, slot_equals_a_simple_model_under_random_load, 0, 4);
	tcase_add_test(t, slot_evicts_only_when_it_is_full);
	tcase_add_test(t, slot_merges_what_is_old_and_loses_nothing);
	tcase_add_test(t, slot_folds_what_one_interval_has_too_much_of);
	tcase_add_test(t, slot_stays_bounded_when_the_tree_never_stands_still);
	tcase_add_test(t, slot_says_how_many_bytes_it_has);
	tcase_add_test(t, slot_made_smaller_is_within_its_new_bytes);
	tcase_add_test(t, slot_keeps_types_apart);
	tcase_add_test(t, slot_shows_samples_of_a_wrong_time_as_of_now);
	tcase_add_test(t, slot_cleared_is_empty_and_of_a_new_generation);
	suite_add_tcase(s, t);
	return s;
}
