// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <string.h>

#include "graph/tree.h"
#include "otlp_fixture.h"

Suite *tree_suite(void);

static struct tree *build(struct recording *r)
{
	struct tree *t = NULL;
	struct rec_view v;

	recording_view(r, &v);
	ck_assert_int_eq(tree_build(r, &v, &t), 0);
	return t;
}

/* The node by names from "all" down, or NULL. */
static const struct tree_node *at(const struct tree *t, const char *const *path)
{
	const struct tree_node *n = &t->nodes[0];
	uint32_t i;

	for (; *path; path++) {
		for (i = n->first; i != TREE_NONE && strcmp(tree_name(t, &t->nodes[i]), *path) != 0;)
			i = t->nodes[i].next;
		if (i == TREE_NONE)
			return NULL;
		n = &t->nodes[i];
	}
	return n;
}

#define AT(t, ...) at((t), (const char *const[]){__VA_ARGS__, NULL})

START_TEST(tree_adds_up_from_the_leaves)
{
	struct recording *r = fixture_recording();
	struct tree *t = build(r);

	ck_assert_uint_eq(t->nodes[0].total, 10);
	ck_assert_uint_eq(t->nodes[0].self, 0);
	ck_assert_uint_eq(AT(t, "app")->total, 10);
	ck_assert_uint_eq(AT(t, "app", "main")->total, 9);
	ck_assert_uint_eq(AT(t, "app", "main")->self, 0);
	ck_assert_uint_eq(AT(t, "app", "main", "work")->total, 8);
	ck_assert_uint_eq(AT(t, "app", "main", "work", "inlined_fn")->self, 5);
	ck_assert_uint_eq(AT(t, "app", "main", "work", "inlined_fn", "vfs_read")->self, 3);
	ck_assert_uint_eq(t->depth, 5);
	tree_free(t);
	recording_free(r);
}
END_TEST

START_TEST(frames_have_their_kind)
{
	struct recording *r = fixture_recording();
	struct tree *t = build(r);

	ck_assert_int_eq(AT(t, "app")->kind, KIND_SERVICE);
	ck_assert_int_eq(AT(t, "app", "main")->kind, KIND_NATIVE);
	ck_assert(!AT(t, "app", "main", "work")->inlined);
	ck_assert(AT(t, "app", "main", "work", "inlined_fn")->inlined);
	ck_assert_int_eq(AT(t, "app", "main", "work", "inlined_fn", "vfs_read")->kind, KIND_KERNEL);
	ck_assert_int_eq(AT(t, "app", "[cut: stack deeper than its copy]")->kind, KIND_MARKER);
	ck_assert_uint_eq(AT(t, "app", "[cut: stack deeper than its copy]", "main")->self, 1);
	ck_assert_str_eq(recording_str(r, AT(t, "app", "main")->module), "/usr/bin/app");
	ck_assert_int_eq(frame_kind_of_type("cpython"), KIND_CPYTHON);
	ck_assert_int_eq(frame_kind_of_type("no such"), KIND_OTHER);
	ck_assert_int_eq(frame_kind_of_type(NULL), KIND_OTHER);
	tree_free(t);
	recording_free(r);
}
END_TEST

START_TEST(frame_without_a_name_is_file_and_address)
{
	struct recording *r = fixture_recording();
	struct tree *t = build(r);

	ck_assert_ptr_nonnull(AT(t, "app", "main", "app+0x3039"));
	tree_free(t);
	recording_free(r);
}
END_TEST

START_TEST(children_are_sorted_by_name)
{
	struct recording *r = fixture_recording();
	struct tree *t = build(r);
	uint32_t i, last, pairs = 0;

	for (i = 0; i < t->count; i++) {
		last = t->nodes[i].first;
		while (last != TREE_NONE && t->nodes[last].next != TREE_NONE) {
			ck_assert_int_lt(strcmp(tree_name(t, &t->nodes[last]), tree_name(t, &t->nodes[t->nodes[last].next])), 0);
			last = t->nodes[last].next;
			pairs++;
		}
	}
	ck_assert_uint_ge(pairs, 2);
	tree_free(t);
	recording_free(r);
}
END_TEST

START_TEST(walk_visits_each_node_once_parents_first)
{
	struct recording *r = fixture_recording();
	struct tree *t = build(r);
	uint32_t i, n = 0;
	uint64_t self = 0;

	for (i = 0; i != TREE_NONE; i = tree_next(t, i)) {
		n++;
		self += t->nodes[i].self;
	}
	ck_assert_uint_eq(n, t->count);
	ck_assert_uint_eq(self, 10);
	ck_assert_uint_eq(tree_after(t, 0), TREE_NONE);
	tree_free(t);
	recording_free(r);
}
END_TEST

START_TEST(top_is_by_own_samples_and_no_marker)
{
	struct recording *r = fixture_recording();
	struct tree *t = build(r);
	struct tree_top top;

	ck_assert_int_eq(tree_find_top(t, &top), 0);
	ck_assert_str_eq(top.name, "inlined_fn");
	ck_assert_str_eq(top.module, "/usr/bin/app");
	ck_assert_uint_eq(top.self, 5);
	tree_free(t);
	recording_free(r);
}
END_TEST

static void recursive(struct fixture *f)
{
	static int32_t indices[FX_DEPTH];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(indices); i++)
		indices[i] = 2; /* two frames each: deeper than a tree is */
	f->stacks[1].n_location_indices = ARRAY_SIZE(indices);
	f->stacks[1].location_indices = indices;
}

START_TEST(depth_is_bounded_and_no_sample_is_lost)
{
	struct recording *r = NULL;
	struct tree *t;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(recursive, r), 0);
	t = build(r);
	ck_assert_uint_eq(t->depth, TREE_DEPTH_MAX);
	ck_assert_uint_eq(t->nodes[0].total, 10);
	tree_free(t);
	recording_free(r);
}
END_TEST

static void too_deep(struct fixture *f)
{
	static int32_t indices[FX_DEPTH + 1];

	f->stacks[1].n_location_indices = ARRAY_SIZE(indices);
	f->stacks[1].location_indices = indices;
}

START_TEST(stack_over_the_limit_is_refused)
{
	struct recording *r = NULL;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(too_deep, r), -E2BIG);
	recording_free(r);
}
END_TEST

START_TEST(empty_recording_is_a_tree_of_one_node)
{
	struct recording *r = NULL;
	struct tree_top top;
	struct tree *t;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	t = build(r);
	ck_assert_uint_eq(t->count, 1);
	ck_assert_uint_eq(t->nodes[0].total, 0);
	ck_assert_int_eq(tree_find_top(t, &top), 0);
	ck_assert_ptr_null(top.name);
	tree_free(t);
	recording_free(r);
}
END_TEST

Suite *tree_suite(void)
{
	Suite *s = suite_create("tree");
	TCase *t = tcase_create("tree");

	tcase_add_test(t, tree_adds_up_from_the_leaves);
	tcase_add_test(t, frames_have_their_kind);
	tcase_add_test(t, frame_without_a_name_is_file_and_address);
	tcase_add_test(t, children_are_sorted_by_name);
	tcase_add_test(t, walk_visits_each_node_once_parents_first);
	tcase_add_test(t, top_is_by_own_samples_and_no_marker);
	tcase_add_test(t, depth_is_bounded_and_no_sample_is_lost);
	tcase_add_test(t, stack_over_the_limit_is_refused);
	tcase_add_test(t, empty_recording_is_a_tree_of_one_node);
	suite_add_tcase(s, t);
	return s;
}
