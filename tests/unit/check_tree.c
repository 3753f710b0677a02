// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <string.h>

#include "graph_fixture.h"

Suite *tree_suite(void);

/* The node by names from "all" down, or TREE_NONE. */
static uint32_t at(const struct tree *t, const char *const *path)
{
	uint32_t i = 0;

	for (; *path && i != TREE_NONE; path++)
		for (i = t->nodes[i].first; i != TREE_NONE && strcmp(tree_name(t, i), *path) != 0;)
			i = t->nodes[i].next;
	return i;
}

#define AT(g, ...)    at((g)->tree, (const char *const[]){__VA_ARGS__, NULL})
#define TOTAL(g, ...) ((g)->now.total[AT(g, __VA_ARGS__)])
#define SELF(g, ...)  ((g)->now.self[AT(g, __VA_ARGS__)])
#define KIND(g, ...)  tree_kind((g)->tree, AT(g, __VA_ARGS__))

START_TEST(tree_adds_up_from_the_leaves)
{
	struct recording *r = fixture_recording();
	struct graph *g = fixture_graph(r);

	ck_assert_uint_eq(g->now.total[0], 10);
	ck_assert_uint_eq(g->now.self[0], 0);
	ck_assert_uint_eq(TOTAL(g, "app"), 10);
	ck_assert_uint_eq(TOTAL(g, "app", "main"), 9);
	ck_assert_uint_eq(SELF(g, "app", "main"), 0);
	ck_assert_uint_eq(TOTAL(g, "app", "main", "work"), 8);
	ck_assert_uint_eq(SELF(g, "app", "main", "work", "inlined_fn"), 5);
	ck_assert_uint_eq(SELF(g, "app", "main", "work", "inlined_fn", "vfs_read"), 3);
	ck_assert_uint_eq(g->tree->depth, 5);
	graph_free(g);
	recording_free(r);
}
END_TEST

START_TEST(frames_have_their_kind)
{
	struct recording *r = fixture_recording();
	struct graph *g = fixture_graph(r);
	struct tree *t = g->tree;

	ck_assert_int_eq(KIND(g, "app"), KIND_SERVICE);
	ck_assert_int_eq(KIND(g, "app", "main"), KIND_NATIVE);
	ck_assert(!t->nodes[AT(g, "app", "main", "work")].inlined);
	ck_assert(t->nodes[AT(g, "app", "main", "work", "inlined_fn")].inlined);
	ck_assert_int_eq(KIND(g, "app", "main", "work", "inlined_fn", "vfs_read"), KIND_KERNEL);
	ck_assert_int_eq(KIND(g, "app", "[cut: stack deeper than its copy]"), KIND_MARKER);
	ck_assert_uint_eq(SELF(g, "app", "[cut: stack deeper than its copy]", "main"), 1);
	ck_assert_str_eq(tree_module(t, AT(g, "app", "main")), "/usr/bin/app");
	ck_assert_int_eq(frame_kind_of_type("cpython"), KIND_CPYTHON);
	ck_assert_int_eq(frame_kind_of_type("no such"), KIND_OTHER);
	ck_assert_int_eq(frame_kind_of_type(NULL), KIND_OTHER);
	graph_free(g);
	recording_free(r);
}
END_TEST

START_TEST(frame_without_a_name_is_file_and_address)
{
	struct recording *r = fixture_recording();
	struct graph *g = fixture_graph(r);

	ck_assert_uint_ne(AT(g, "app", "main", "app+0x3039"), TREE_NONE);
	graph_free(g);
	recording_free(r);
}
END_TEST

START_TEST(tree_does_not_need_its_recording)
{
	struct recording *r = fixture_recording();
	struct graph *g = fixture_graph(r);

	recording_free(r);
	ck_assert_uint_eq(TOTAL(g, "app", "main", "work"), 8);
	ck_assert_str_eq(tree_module(g->tree, AT(g, "app", "main", "work")), "/usr/bin/app");
	graph_free(g);
}
END_TEST

START_TEST(children_are_sorted_by_name)
{
	struct recording *r = fixture_recording();
	struct graph *g = fixture_graph(r);
	const struct tree *t = g->tree;
	uint32_t i, last, pairs = 0;

	for (i = 0; i < t->count; i++) {
		last = t->nodes[i].first;
		while (last != TREE_NONE && t->nodes[last].next != TREE_NONE) {
			ck_assert_int_lt(strcmp(tree_name(t, last), tree_name(t, t->nodes[last].next)), 0);
			last = t->nodes[last].next;
			pairs++;
		}
	}
	ck_assert_uint_ge(pairs, 2);
	graph_free(g);
	recording_free(r);
}
END_TEST

START_TEST(walk_visits_each_node_once_parents_first)
{
	struct recording *r = fixture_recording();
	struct graph *g = fixture_graph(r);
	const struct tree *t = g->tree;
	uint32_t i, n = 0;
	uint64_t self = 0;

	for (i = 0; i != TREE_NONE; i = tree_next(t, i)) {
		n++;
		self += g->now.self[i];
	}
	ck_assert_uint_eq(n, t->count);
	ck_assert_uint_eq(self, 10);
	ck_assert_uint_eq(tree_after(t, 0), TREE_NONE);
	graph_free(g);
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
	struct graph *g;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(recursive, r), 0);
	g = fixture_graph(r);
	ck_assert_uint_eq(g->tree->depth, FX_TREE_DEPTH);
	ck_assert_uint_eq(g->now.total[0], 10);
	graph_free(g);
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
	uint32_t function = 7;
	uint64_t self = 7;
	struct graph *g;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	g = fixture_graph(r);
	ck_assert_uint_eq(g->tree->count, 1);
	ck_assert_uint_eq(g->now.total[0], 0);
	ck_assert_int_eq(values_hottest(&g->now, g->tree, &function, &self), 0);
	ck_assert_uint_eq(function, 0);
	ck_assert_uint_eq(self, 0);
	graph_free(g);
	recording_free(r);
}
END_TEST

START_TEST(bounds_are_the_creators)
{
	struct tree_limits limits[3] = {fixture_tree_limits, fixture_tree_limits, fixture_tree_limits};
	struct recording *r = fixture_recording();
	struct rec_views views = fixture_views(r);

	limits[0].nodes = 8; /* of 9 */
	limits[1].names = 5;
	limits[2].name_bytes = 30;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct graph *g = NULL;

		ck_assert_int_eq(graph_new(&limits[i], &g), 0);
		ck_assert_int_eq(graph_add(g, r, &views.list[0]), -E2BIG);
		graph_free(g);
	}
	rec_views_done(&views);
	recording_free(r);
}
END_TEST

/* A native function's node below parent. */
static uint32_t add(struct tree *t, uint32_t parent, const char *name)
{
	uint32_t node = TREE_NONE;

	ck_assert_int_eq(tree_add_named(t, parent, name, KIND_NATIVE, &node), 0);
	return node;
}

static struct tree *new_tree(void)
{
	struct tree *t = NULL;

	ck_assert_int_eq(tree_new(&fixture_tree_limits, &t), 0);
	return t;
}

START_TEST(equal_name_and_kind_below_one_parent_are_one_node)
{
	struct tree *t = new_tree();
	uint32_t a = add(t, 0, "a"), other;

	ck_assert_uint_eq(add(t, 0, "a"), a);
	ck_assert_uint_ne(add(t, a, "a"), a);
	ck_assert_int_eq(tree_add_named(t, 0, "a", KIND_KERNEL, &other), 0);
	ck_assert_uint_ne(other, a);
	tree_free(t);
}
END_TEST

START_TEST(node_is_in_use_while_it_or_one_below_is_held)
{
	struct tree *t = new_tree();
	uint32_t a = add(t, 0, "a"), b = add(t, a, "b"), c = add(t, b, "c");

	ck_assert_uint_eq(t->used, 0);
	tree_hold(t, c);
	tree_hold(t, c);
	ck_assert_uint_eq(t->used, 4);
	tree_hold(t, b);
	tree_release(t, c);
	ck_assert_uint_eq(t->used, 4);
	tree_release(t, c);
	ck_assert_uint_eq(t->used, 3);
	tree_release(t, b);
	ck_assert_uint_eq(t->used, 0);
	tree_free(t);
}
END_TEST

START_TEST(compaction_keeps_what_is_in_use_and_its_names_only)
{
	struct tree *t = new_tree(), *to = NULL;
	uint32_t a = add(t, 0, "a"), b = add(t, a, "b"), c = add(t, 0, "c"), d = add(t, c, "d"), map[5], i;

	tree_hold(t, d);
	tree_hold(t, d);
	ck_assert_int_eq(tree_compact(t, &to, map), 0);
	ck_assert_uint_eq(map[0], 0);
	ck_assert_uint_eq(map[a], TREE_NONE);
	ck_assert_uint_eq(map[b], TREE_NONE);
	ck_assert_uint_eq(to->count, 3);
	ck_assert_uint_eq(to->used, 3);
	ck_assert_str_eq(tree_name(to, map[d]), "d");
	ck_assert_uint_eq(to->nodes[map[d]].parent, map[c]);
	for (i = 0; i < to->strings.count; i++) {
		ck_assert_str_ne(tree_string(to, i), "a");
		ck_assert_str_ne(tree_string(to, i), "b");
	}
	/* A use of the old tree is one of the new. */
	tree_release(to, map[d]);
	tree_release(to, map[d]);
	ck_assert_uint_eq(to->used, 0);
	ck_assert_uint_eq(add(to, map[c], "d"), map[d]);
	tree_free(t);
	tree_free(to);
}
END_TEST

/*
 * The model of the random test: stacks as strings of letters, "abc" for c
 * called by b called by a, with how often each is held, and its node.
 */
#define MODEL_STACKS 4000
#define MODEL_DEPTH  8

struct model {
	char stacks[MODEL_STACKS][MODEL_DEPTH + 1];
	uint32_t nodes[MODEL_STACKS];
	unsigned int held[MODEL_STACKS];
	uint32_t count, seed;
};

static uint32_t model_random(struct model *m, uint32_t below)
{
	m->seed = m->seed * 1664525 + 1013904223;
	return (m->seed >> 8) % below;
}

static uint32_t model_find(struct model *m, const char *stack)
{
	uint32_t i;

	for (i = 0; i < m->count; i++)
		if (strcmp(m->stacks[i], stack) == 0)
			return i;
	ck_assert_uint_lt(m->count, MODEL_STACKS);
	strcpy(m->stacks[m->count], stack);
	m->nodes[m->count] = TREE_NONE;
	m->held[m->count] = 0;
	return m->count++;
}

static void model_hold(struct model *m, struct tree *t)
{
	char stack[MODEL_DEPTH + 1] = "";
	uint32_t depth = 1 + model_random(m, MODEL_DEPTH), i, node = 0, k;

	for (i = 0; i < depth; i++) {
		stack[i] = (char)('a' + model_random(m, 3));
		node = add(t, node, (char[]){stack[i], '\0'});
	}
	k = model_find(m, stack);
	/* Known numbers are stable. */
	ck_assert(m->nodes[k] == TREE_NONE || m->nodes[k] == node);
	m->nodes[k] = node;
	m->held[k]++;
	tree_hold(t, node);
}

static void model_release(struct model *m, struct tree *t)
{
	uint32_t k = m->count ? model_random(m, m->count) : 0;

	if (m->count && m->held[k]) {
		m->held[k]--;
		tree_release(t, m->nodes[k]);
	}
}

/* Distinct prefixes of the stacks that are held: the nodes that there must be, besides "all". */
static uint32_t model_used(const struct model *m)
{
	static char seen[MODEL_STACKS * MODEL_DEPTH][MODEL_DEPTH + 1];
	uint32_t n = 0, i, k;
	size_t len;

	for (i = 0; i < m->count; i++) {
		for (len = 1; m->held[i] && len <= strlen(m->stacks[i]); len++) {
			for (k = 0; k < n; k++)
				if (strlen(seen[k]) == len && strncmp(seen[k], m->stacks[i], len) == 0)
					break;
			if (k == n)
				snprintf(seen[n++], sizeof(seen[0]), "%.*s", (int)len, m->stacks[i]);
		}
	}
	return n ? n + 1 : 0;
}

static void model_stack_of(const struct tree *t, uint32_t node, char *ret)
{
	ret[t->nodes[node].depth] = '\0';
	for (; node; node = t->nodes[node].parent)
		ret[t->nodes[node].depth - 1] = tree_name(t, node)[0];
}

static void model_check(struct model *m, const struct tree *t)
{
	char stack[MODEL_DEPTH + 1];
	uint32_t i;

	ck_assert_uint_eq(t->used, model_used(m));
	for (i = 0; i < m->count; i++) {
		if (!m->held[i])
			continue;
		model_stack_of(t, m->nodes[i], stack);
		ck_assert_str_eq(stack, m->stacks[i]);
	}
}

static struct tree *model_compact(struct model *m, struct tree *t)
{
	uint32_t *map = calloc(t->count, sizeof(*map)), i, k = 0;
	struct tree *to = NULL;

	ck_assert_int_eq(tree_compact(t, &to, map), 0);
	ck_assert_uint_eq(to->count, MAX(t->used, 1u));
	for (i = 0; i < m->count; i++) {
		if (!m->held[i])
			continue;
		memmove(m->stacks[k], m->stacks[i], sizeof(m->stacks[0]));
		m->held[k] = m->held[i];
		m->nodes[k++] = map[m->nodes[i]];
	}
	m->count = k;
	free(map);
	tree_free(t);
	return to;
}

START_TEST(tree_follows_a_model_through_adds_drops_and_compactions)
{
	static struct model m;
	struct tree *t = new_tree();
	uint32_t round, i;

	m = (struct model){.seed = 1 + (uint32_t)_i};
	for (round = 0; round < 12; round++) {
		/* Rounds that add more than they drop, and the reverse. */
		for (i = 0; i < 120; i++)
			if (model_random(&m, 10) < (round % 3 == 2 ? 2 : 6))
				model_hold(&m, t);
			else
				model_release(&m, t);
		model_check(&m, t);
		if (round % 2)
			t = model_compact(&m, t);
		model_check(&m, t);
	}
	tree_free(t);
}
END_TEST

START_TEST(store_that_drops_as_much_as_it_adds_stays_bounded)
{
	struct tree *t = new_tree();
	char name[32];
	uint32_t i, held[100], compactions = 0;
	size_t most = 0;

	for (i = 0; i < 20000; i++) {
		uint32_t *old = &held[i % 100];

		if (i >= 100)
			tree_release(t, *old);
		snprintf(name, sizeof(name), "function_%u", i);
		*old = add(t, add(t, 0, name), "leaf");
		tree_hold(t, *old);
		if (t->count > 2 * t->used + 500) {
			uint32_t *map = calloc(t->count, sizeof(*map)), k;
			struct tree *to = NULL;

			ck_assert_int_eq(tree_compact(t, &to, map), 0);
			for (k = 0; k < 100; k++)
				held[k] = map[held[k]];
			free(map);
			tree_free(t);
			t = to;
			compactions++;
		}
		most = MAX(most, tree_memory(t));
	}
	ck_assert_uint_gt(compactions, 10);
	ck_assert_uint_lt(most, 256u << 10);
	tree_free(t);
}
END_TEST

Suite *tree_suite(void)
{
	Suite *s = suite_create("tree");
	TCase *t = tcase_create("tree");

	tcase_add_test(t, tree_adds_up_from_the_leaves);
	tcase_add_test(t, frames_have_their_kind);
	tcase_add_test(t, frame_without_a_name_is_file_and_address);
	tcase_add_test(t, tree_does_not_need_its_recording);
	tcase_add_test(t, children_are_sorted_by_name);
	tcase_add_test(t, walk_visits_each_node_once_parents_first);
	tcase_add_test(t, depth_is_bounded_and_no_sample_is_lost);
	tcase_add_test(t, stack_over_the_limit_is_refused);
	tcase_add_test(t, empty_recording_is_a_tree_of_one_node);
	tcase_add_test(t, bounds_are_the_creators);
	tcase_add_test(t, equal_name_and_kind_below_one_parent_are_one_node);
	tcase_add_test(t, node_is_in_use_while_it_or_one_below_is_held);
	tcase_add_test(t, compaction_keeps_what_is_in_use_and_its_names_only);
	tcase_add_loop_test(t, tree_follows_a_model_through_adds_drops_and_compactions, 0, 20);
	tcase_add_test(t, store_that_drops_as_much_as_it_adds_stays_bounded);
	suite_add_tcase(s, t);
	return s;
}
