// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <string.h>

#include "graph_fixture.h"

Suite *filter_suite(void);

static char why[FILTER_WHY];

/* What a filter is made from; NULL: not given. */
struct rules {
	const char *focus, *focus2, *ignore, *ignore2, *hide, *hide2;
};

static struct filter filter_of(const struct rules *r)
{
	struct filter f = {0};

	ck_assert(!r->focus || filter_focus(&f, r->focus, why) == 0);
	ck_assert(!r->focus2 || filter_focus(&f, r->focus2, why) == 0);
	ck_assert(!r->ignore || filter_ignore(&f, r->ignore, why) == 0);
	ck_assert(!r->ignore2 || filter_ignore(&f, r->ignore2, why) == 0);
	ck_assert(!r->hide || filter_hide(&f, r->hide, why) == 0);
	ck_assert(!r->hide2 || filter_hide(&f, r->hide2, why) == 0);
	return f;
}

/* The recording's collapsed stacks, filtered as a tree. */
static void by_tree(struct recording *r, const struct filter *f, struct buf *out)
{
	_cleanup_(rec_views_done) struct rec_views views = fixture_views(r);
	_cleanup_(graph_freep) struct graph *g = NULL;
	struct picture p = {0};

	ck_assert_int_eq(graph_new(&fixture_tree_limits, &g), 0);
	ck_assert_int_eq(graph_add(g, r, &views.list[0]), 0);
	ck_assert_int_eq(graph_filter(g, f), 0);
	ck_assert_int_eq(graph_finish(g), 0);
	p.graph = g;
	ck_assert_int_eq(render_collapsed(&p, out), 0);
}

static const struct {
	struct rules rules;
	const char *stacks;
} cases[] = {
	{{0}, "app;[cut: stack deeper than its copy];main 1\napp;main;app+0x3039 1\napp;main;work;inlined_fn 5\n"
	      "app;main;work;inlined_fn;vfs_read 3\n"},
	{{.focus = "^work$"}, "app;main;work;inlined_fn 5\napp;main;work;inlined_fn;vfs_read 3\n"},
	{{.focus = "vfs"}, "app;main;work;inlined_fn;vfs_read 3\n"},
	{{.focus = "vfs", .focus2 = "0x3039$"}, "app;main;app+0x3039 1\napp;main;work;inlined_fn;vfs_read 3\n"},
	{{.ignore = "^inlined"}, "app;[cut: stack deeper than its copy];main 1\napp;main;app+0x3039 1\n"},
	{{.ignore = "vfs", .ignore2 = "^\\[cut"}, "app;main;app+0x3039 1\napp;main;work;inlined_fn 5\n"},
	{{.focus = "work", .ignore = "vfs"}, "app;main;work;inlined_fn 5\n"},
	/* A service is no function. */
	{{.focus = "^app$"}, ""},
	{{.ignore = "^app$"}, "app;[cut: stack deeper than its copy];main 1\napp;main;app+0x3039 1\n"
			      "app;main;work;inlined_fn 5\napp;main;work;inlined_fn;vfs_read 3\n"},
	{{.hide = "kernel"}, "app;[cut: stack deeper than its copy];main 1\napp;main;app+0x3039 1\n"
			     "app;main;work;inlined_fn 8\n"},
	{{.hide = "marker"}, "app;main 1\napp;main;app+0x3039 1\napp;main;work;inlined_fn 5\n"
			     "app;main;work;inlined_fn;vfs_read 3\n"},
	{{.hide = "native", .hide2 = "marker"}, "app;[hidden] 7\napp;vfs_read 3\n"},
	{{.hide = "native", .hide2 = "kernel"}, "app;[cut: stack deeper than its copy] 1\napp;[hidden] 9\n"},
	/* Hidden frames are matched all the same. */
	{{.focus = "vfs", .hide = "kernel"}, "app;main;work;inlined_fn 3\n"},
	{{.ignore = "vfs", .hide = "Kernel"}, "app;[cut: stack deeper than its copy];main 1\napp;main;app+0x3039 1\n"
					      "app;main;work;inlined_fn 5\n"},
	{{.focus = "no such function"}, ""},
};

START_TEST(filter_keeps_matching_stacks_and_folds_hidden_frames)
{
	struct recording *r = fixture_recording();
	struct filter f = filter_of(&cases[_i].rules);
	struct buf b = {0};

	by_tree(r, &f, &b);
	ck_assert_str_eq(buf_cstr(&b), cases[_i].stacks);
	buf_done(&b);
	filter_done(&f);
	recording_free(r);
}
END_TEST

START_TEST(filter_of_a_recording_does_what_that_of_a_tree_does)
{
	struct recording *r = fixture_recording();
	struct filter f = filter_of(&cases[_i].rules);
	struct buf b = {0};

	ck_assert_int_eq(filter_recording(&f, r), 0);
	ck_assert_int_eq(fixture_draw(render_collapsed, r, (struct picture){0}, NULL, &b), 0);
	ck_assert_str_eq(buf_cstr(&b), cases[_i].stacks);
	buf_done(&b);
	filter_done(&f);
	recording_free(r);
}
END_TEST

START_TEST(sample_of_hidden_frames_only_keeps_a_frame)
{
	struct recording *r = fixture_recording();
	struct filter f = filter_of(&(struct rules){.hide = "native", .hide2 = "marker"});
	uint64_t total = r->total;
	size_t depth;

	ck_assert_int_eq(filter_recording(&f, r), 0);
	ck_assert_uint_eq(r->total, total);
	for (uint32_t i = 0; i < r->samples.count; i++) {
		recording_stack(r, ((const struct rec_sample *)intern_key(&r->samples, i))->stack, &depth);
		ck_assert_uint_eq(depth, 1);
	}
	filter_done(&f);
	recording_free(r);
}
END_TEST

static const struct {
	struct rules rules;
	uint32_t nodes;
} sparse[] = {
	{{.focus = "vfs"}, 6}, /* all, app, main, work, inlined_fn, vfs_read */
	{{.focus = "vfs", .hide = "native"}, 3}, /* all, app, vfs_read */
};

START_TEST(filtered_tree_holds_no_node_without_a_stack)
{
	struct recording *r = fixture_recording();
	struct filter f = filter_of(&sparse[_i].rules);
	struct graph *g = fixture_graph(r);

	ck_assert_int_eq(graph_filter(g, &f), 0);
	ck_assert_int_eq(graph_finish(g), 0);
	ck_assert_uint_eq(g->tree->count, sparse[_i].nodes);
	for (uint32_t i = 0; i < g->tree->count; i++)
		ck_assert_uint_gt(g->now.total[i], 0);
	graph_free(g);
	filter_done(&f);
	recording_free(r);
}
END_TEST

static const struct {
	const char *expression, *why;
} refused[] = {
	{"(a", "Unmatched"},
	{"[z", "Unmatched"},
	{"(a)\\1", "back-references"},
	{"((a{10}){20}){30}", "repeats"},
	{"a{1001}", "repeats"},
	{"a++++++++++++++++++++++++++++++++++++++++", "repeats"},
	{"((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+", "repeats"},
	{"a{1,}{1,}{1,}{1,}{1,}{1,}{1,}{1,}{1,}{1,}", "repeats"},
	{"a{2,1001}", "repeats"},
	{"a{99999999999999999999}", "repeats"},
};

START_TEST(expression_that_may_not_be_bounded_is_refused)
{
	struct filter f = {0};

	*why = '\0';
	ck_assert_int_eq(filter_focus(&f, refused[_i].expression, why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, refused[_i].why));
	ck_assert(filter_is_empty(&f));
	filter_done(&f);
}
END_TEST

static const char *const accepted[] = {"", "^a(b|c)*$", "[[:alpha:]]+::", "a\\{5000\\}", "(a{10}){100}", "\\\\1", "x{,5}"};

START_TEST(ordinary_expression_is_accepted)
{
	struct filter f = {0};

	ck_assert_int_eq(filter_ignore(&f, accepted[_i], why), 0);
	ck_assert(!filter_is_empty(&f));
	filter_done(&f);
	ck_assert(filter_is_empty(&f));
}
END_TEST

START_TEST(expressions_are_bounded_in_length_and_number)
{
	char text[FILTER_LENGTH + 2];
	struct filter f = {0};

	memset(text, 'a', sizeof(text));
	text[FILTER_LENGTH + 1] = '\0';
	ck_assert_int_eq(filter_focus(&f, text, why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "too long"));
	text[FILTER_LENGTH] = '\0';
	for (int i = 0; i < FILTER_EXPRESSIONS; i++)
		ck_assert_int_eq(filter_focus(&f, text, why), 0);
	ck_assert_int_eq(filter_focus(&f, "a", why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "too many"));
	ck_assert_int_eq(filter_ignore(&f, "a", why), 0);
	filter_done(&f);
}
END_TEST

START_TEST(kinds_are_known_by_type_and_label)
{
	struct filter f = {0};

	ck_assert_int_eq(filter_hide(&f, "cpython", why), 0);
	ck_assert(filter_hides(&f, KIND_CPYTHON));
	ck_assert_int_eq(filter_hide(&f, "javascript", why), 0);
	ck_assert(filter_hides(&f, KIND_V8JS));
	ck_assert_int_eq(filter_hide(&f, "other", why), 0);
	ck_assert(filter_hides(&f, KIND_OTHER));
	ck_assert(!filter_hides(&f, KIND_NATIVE));
	ck_assert_int_eq(filter_hide(&f, "service", why), -EINVAL);
	ck_assert_int_eq(filter_hide(&f, "all", why), -EINVAL);
	ck_assert_int_eq(filter_hide(&f, "", why), -EINVAL);
	ck_assert_int_eq(filter_hide(&f, "kernels", why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, "marker, other, kernel, native, jit"));
	ck_assert_ptr_nonnull(strstr(why, "luajit"));
	filter_done(&f);
}
END_TEST

Suite *filter_suite(void)
{
	Suite *s = suite_create("filter");
	TCase *t = tcase_create("filter");

	tcase_add_loop_test(t, filter_keeps_matching_stacks_and_folds_hidden_frames, 0, ARRAY_SIZE(cases));
	tcase_add_loop_test(t, filter_of_a_recording_does_what_that_of_a_tree_does, 0, ARRAY_SIZE(cases));
	tcase_add_test(t, sample_of_hidden_frames_only_keeps_a_frame);
	tcase_add_loop_test(t, filtered_tree_holds_no_node_without_a_stack, 0, ARRAY_SIZE(sparse));
	tcase_add_loop_test(t, expression_that_may_not_be_bounded_is_refused, 0, ARRAY_SIZE(refused));
	tcase_add_loop_test(t, ordinary_expression_is_accepted, 0, ARRAY_SIZE(accepted));
	tcase_add_test(t, expressions_are_bounded_in_length_and_number);
	tcase_add_test(t, kinds_are_known_by_type_and_label);
	suite_add_tcase(s, t);
	return s;
}
