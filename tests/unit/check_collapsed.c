// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <string.h>

#include "graph_fixture.h"

Suite *collapsed_suite(void);

START_TEST(lines_are_stacks_from_the_root_with_their_own_samples)
{
	struct recording *r = fixture_recording();
	struct buf b = {0};

	ck_assert_int_eq(fixture_draw(render_collapsed, r, (struct picture){0}, NULL, &b), 0);
	ck_assert_str_eq(buf_cstr(&b),
			 "app;[cut: stack deeper than its copy];main 1\n"
			 "app;main;app+0x3039 1\n"
			 "app;main;work;inlined_fn 5\n"
			 "app;main;work;inlined_fn;vfs_read 3\n");
	buf_done(&b);
	recording_free(r);
}
END_TEST

static void semicolons(struct fixture *f)
{
	f->strings[5] = (char *)"ma;in\n2";
}

START_TEST(names_cannot_break_a_line_or_a_stack)
{
	struct recording *r = NULL;
	struct buf b = {0};

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(semicolons, r), 0);
	ck_assert_int_eq(fixture_draw(render_collapsed, r, (struct picture){0}, NULL, &b), 0);
	ck_assert_ptr_nonnull(strstr(buf_cstr(&b), "app;ma:in?2;work;inlined_fn 5\n"));
	buf_done(&b);
	recording_free(r);
}
END_TEST

START_TEST(nothing_recorded_is_no_line)
{
	struct recording *r = NULL;
	struct buf b = {0};

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_draw(render_collapsed, r, (struct picture){0}, NULL, &b), 0);
	ck_assert_uint_eq(b.len, 0);
	recording_free(r);
}
END_TEST

static void later(struct fixture *f)
{
	f->values[0] = 30; /* vfs_read */
	f->strings[13] = (char *)"[cut: something else]";
}

START_TEST(comparison_has_the_values_before_and_after)
{
	struct recording *before = fixture_recording(), *r = NULL;
	struct buf b = {0};
	struct graph *g;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(later, r), 0);
	g = fixture_comparison(r, before);
	ck_assert_int_eq(render_collapsed(&(struct picture){.graph = g}, &b), 0);
	ck_assert_str_eq(buf_cstr(&b),
			 "app;[cut: something else];main 0 1\n"
			 "app;[cut: stack deeper than its copy];main 1 0\n"
			 "app;main;app+0x3039 1 1\n"
			 "app;main;work;inlined_fn 5 5\n"
			 "app;main;work;inlined_fn;vfs_read 3 30\n");
	graph_free(g);
	buf_done(&b);
	recording_free(r);
	recording_free(before);
}
END_TEST

Suite *collapsed_suite(void)
{
	Suite *s = suite_create("collapsed");
	TCase *t = tcase_create("collapsed");

	tcase_add_test(t, lines_are_stacks_from_the_root_with_their_own_samples);
	tcase_add_test(t, names_cannot_break_a_line_or_a_stack);
	tcase_add_test(t, comparison_has_the_values_before_and_after);
	tcase_add_test(t, nothing_recorded_is_no_line);
	suite_add_tcase(s, t);
	return s;
}
