// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <string.h>

#include "graph_fixture.h"

Suite *values_suite(void);

static struct tree *new_tree(void)
{
	struct tree *t = NULL;

	ck_assert_int_eq(tree_new(&fixture_tree_limits, &t), 0);
	return t;
}

/* The node of a stack of one-letter functions: "abc" is c called by b called by a. */
static uint32_t stack(struct tree *t, const char *letters)
{
	uint32_t node = 0;

	for (; *letters; letters++)
		ck_assert_int_eq(tree_add_named(t, node, (char[]){*letters, '\0'}, KIND_NATIVE, &node), 0);
	return node;
}

static void add(struct tree *t, struct values *v, const char *letters, uint64_t n)
{
	ck_assert_int_eq(values_add(v, stack(t, letters), n), 0);
}

static struct function_value sum_of(const struct tree *t, const struct function_value *sums, const char *name)
{
	struct function_value sum = {0};
	uint32_t i;

	for (i = 0; i < t->functions.count; i++)
		if (strcmp(tree_string(t, tree_function(t, i)->name), name) == 0) {
			sum.self += sums[i].self;
			sum.total += sums[i].total;
		}
	return sum;
}

START_TEST(one_tree_holds_several_sets_of_values)
{
	struct tree *t = new_tree();
	struct values early = {0}, late = {0};

	add(t, &early, "ab", 3);
	add(t, &late, "ab", 1);
	add(t, &late, "ac", 5);
	add(t, &late, "", 2);
	ck_assert_int_eq(values_sum(&early, t), 0);
	ck_assert_int_eq(values_sum(&late, t), 0);
	ck_assert_uint_eq(early.total[0], 3);
	ck_assert_uint_eq(early.total[stack(t, "ac")], 0);
	ck_assert_uint_eq(late.total[0], 8);
	ck_assert_uint_eq(late.self[0], 2);
	ck_assert_uint_eq(late.total[stack(t, "a")], 6);
	values_done(&early);
	values_done(&late);
	tree_free(t);
}
END_TEST

START_TEST(self_is_summed_over_all_places_and_total_once_for_each_stack)
{
	struct tree *t = new_tree();
	struct function_value *sums = NULL;
	struct values v = {0};

	add(t, &v, "faf", 1);   /* recursion through a */
	add(t, &v, "ff", 10);   /* direct */
	add(t, &v, "ff", 0);
	add(t, &v, "bf", 100);  /* another place */
	add(t, &v, "b", 1000);
	add(t, &v, "fffff", 5);
	ck_assert_int_eq(values_sum(&v, t), 0);
	ck_assert_int_eq(values_by_function(&v, t, &sums), 0);
	ck_assert_uint_eq(sum_of(t, sums, "f").self, 116);
	ck_assert_uint_eq(sum_of(t, sums, "f").total, 116);
	ck_assert_uint_eq(sum_of(t, sums, "a").self, 0);
	ck_assert_uint_eq(sum_of(t, sums, "a").total, 1);
	ck_assert_uint_eq(sum_of(t, sums, "b").self, 1000);
	ck_assert_uint_eq(sum_of(t, sums, "b").total, 1100);
	ck_assert_uint_eq(sum_of(t, sums, "all").total, 1116);
	free(sums);
	values_done(&v);
	tree_free(t);
}
END_TEST

/* By counting each stack's letters: what the one pass over the tree must give. */
START_TEST(table_of_random_stacks_is_what_counting_them_gives)
{
	struct tree *t = new_tree();
	struct function_value *sums = NULL, expected[4] = {0};
	struct values v = {0};
	uint32_t seed = (uint32_t)_i * 7919 + 1, i, k;

	for (i = 0; i < 300; i++) {
		char letters[13] = "";
		bool seen[4] = {0};
		uint32_t n = 1 + (seed = seed * 1664525 + 1013904223, seed >> 8) % 12;

		for (k = 0; k < n; k++) {
			seed = seed * 1664525 + 1013904223;
			letters[k] = (char)('a' + (seed >> 9) % 4);
			seen[letters[k] - 'a'] = true;
		}
		add(t, &v, letters, i);
		expected[letters[n - 1] - 'a'].self += i;
		for (k = 0; k < 4; k++)
			expected[k].total += seen[k] ? i : 0;
	}
	ck_assert_int_eq(values_sum(&v, t), 0);
	ck_assert_int_eq(values_by_function(&v, t, &sums), 0);
	for (k = 0; k < 4; k++) {
		ck_assert_uint_eq(sum_of(t, sums, (char[]){(char)('a' + k), '\0'}).self, expected[k].self);
		ck_assert_uint_eq(sum_of(t, sums, (char[]){(char)('a' + k), '\0'}).total, expected[k].total);
	}
	free(sums);
	values_done(&v);
	tree_free(t);
}
END_TEST

START_TEST(hottest_is_by_its_own_values_over_all_places_and_no_marker)
{
	struct recording *r = fixture_recording();
	struct graph *g = fixture_graph(r);
	const struct tree_function *f;
	uint32_t function;
	uint64_t self;

	ck_assert_int_eq(values_hottest(&g->now, g->tree, &function, &self), 0);
	f = tree_function(g->tree, function);
	ck_assert_str_eq(tree_string(g->tree, f->name), "inlined_fn");
	ck_assert_str_eq(tree_string(g->tree, f->module), "/usr/bin/app");
	ck_assert_uint_eq(self, 5);
	graph_free(g);
	recording_free(r);
}
END_TEST

START_TEST(values_follow_a_map_to_another_tree)
{
	struct tree *t = new_tree(), *to = NULL;
	struct values v = {0}, mapped = {0};
	uint32_t map[8];

	add(t, &v, "ab", 3);
	add(t, &v, "c", 4);
	tree_hold(t, stack(t, "ab"));
	ck_assert_int_eq(tree_compact(t, &to, map), 0);
	ck_assert_int_eq(values_map(&v, map, t->count, &mapped), 0);
	ck_assert_int_eq(values_sum(&mapped, to), 0);
	ck_assert_uint_eq(mapped.total[0], 3);
	ck_assert_uint_eq(mapped.self[stack(to, "ab")], 3);
	values_done(&v);
	values_done(&mapped);
	tree_free(t);
	tree_free(to);
}
END_TEST

Suite *values_suite(void)
{
	Suite *s = suite_create("values");
	TCase *t = tcase_create("values");

	tcase_add_test(t, one_tree_holds_several_sets_of_values);
	tcase_add_test(t, self_is_summed_over_all_places_and_total_once_for_each_stack);
	tcase_add_loop_test(t, table_of_random_stacks_is_what_counting_them_gives, 0, 10);
	tcase_add_test(t, hottest_is_by_its_own_values_over_all_places_and_no_marker);
	tcase_add_test(t, values_follow_a_map_to_another_tree);
	suite_add_tcase(s, t);
	return s;
}
