// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <string.h>

#include "graph_fixture.h"

Suite *view_suite(void);

/* "app" of the fixture's strings, with the texts that the other types need. */
static void page_faults(struct fixture *f)
{
	f->strings[20] = (char *)"page_faults";
	f->sample_type.type_strindex = 20;
	f->period_type.type_strindex = 20;
	f->period_type.unit_strindex = 2;
	f->profile.period = 1;
	f->values[0] = 300;
}

static void off_cpu(struct fixture *f)
{
	f->strings[20] = (char *)"off_cpu";
	f->sample_type.type_strindex = 20;
	f->sample_type.unit_strindex = 4;
	f->profile.period_type = NULL;
	f->profile.period = 0;
}

/* The same name as page_faults has where only letters, digits and underscores are left. */
static void page_faults_again(struct fixture *f)
{
	page_faults(f);
	f->strings[20] = (char *)"page-faults";
}

static struct recording *several_types(void)
{
	struct recording *r = NULL;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(page_faults, r), 0);
	ck_assert_int_eq(fixture_read(off_cpu, r), 0);
	ck_assert_int_eq(fixture_read(NULL, r), 0);
	ck_assert_int_eq(fixture_read(page_faults_again, r), 0);
	return r;
}

START_TEST(view_sums_up_its_series)
{
	struct recording *r = fixture_recording();
	struct rec_views views = fixture_views(r);
	const struct rec_view *v = &views.list[0];

	ck_assert_uint_eq(views.count, 1);
	ck_assert_uint_eq(v->value, 10);
	ck_assert_int_eq(v->period, FX_PERIOD);
	ck_assert(!v->period_mixed);
	ck_assert_uint_eq(v->start_ns, FX_START);
	ck_assert_uint_eq(v->end_ns, FX_START + 5000000000ULL);
	ck_assert_uint_eq(v->services, 1);
	ck_assert_uint_eq(v->hosts, 1);
	ck_assert_str_eq(v->host, "box");
	ck_assert_str_eq(v->name, "cpu");
	ck_assert_str_eq(rec_view_unit(r, v), "samples");
	ck_assert(rec_view_is_cpu(r, v));
	ck_assert(rec_view_counts_samples(r, v));
	rec_views_done(&views);
	recording_free(r);
}
END_TEST

START_TEST(each_type_is_a_view_and_cpu_is_the_first)
{
	struct recording *r = several_types();
	struct rec_views views = fixture_views(r);
	static const struct {
		const char *name, *unit;
		uint64_t value;
	} expected[] = {
		{"cpu", "samples", 10}, {"page_faults", "page_faults", 307}, {"off_cpu", "nanoseconds", 10},
		{"page_faults_4", "page-faults", 307},
	};
	uint32_t i;

	ck_assert_uint_eq(views.count, ARRAY_SIZE(expected));
	for (i = 0; i < views.count; i++) {
		const struct rec_view *v = &views.list[i];

		ck_assert_str_eq(v->name, expected[i].name);
		ck_assert_str_eq(rec_view_unit(r, v), expected[i].unit);
		ck_assert_uint_eq(v->value, expected[i].value);
		ck_assert_int_eq(rec_view_is_cpu(r, v), i == 0);
		ck_assert_int_eq(rec_view_counts_samples(r, v), i == 0);
		ck_assert_uint_eq(v->services, 1);
		ck_assert_str_eq(v->host, "box");
	}
	for (i = 0; i < r->series.count; i++)
		ck_assert(rec_view_has(&views.list[views.by_series[i]], r, i));
	rec_views_done(&views);
	recording_free(r);
}
END_TEST

START_TEST(view_is_found_by_its_name_or_its_type)
{
	struct recording *r = several_types();
	struct rec_views views = fixture_views(r);

	ck_assert_ptr_eq(rec_views_find(&views, r, "cpu"), &views.list[0]);
	ck_assert_ptr_eq(rec_views_find(&views, r, "samples"), &views.list[0]);
	ck_assert_ptr_eq(rec_views_find(&views, r, "page_faults"), &views.list[1]);
	ck_assert_ptr_eq(rec_views_find(&views, r, "page-faults"), &views.list[3]);
	ck_assert_ptr_null(rec_views_find(&views, r, "page"));
	rec_views_done(&views);
	recording_free(r);
}
END_TEST

START_TEST(same_type_is_found_in_another_recording)
{
	struct recording *r = several_types(), *cpu = fixture_recording();
	struct rec_views views = fixture_views(r), others = fixture_views(cpu);

	ck_assert_ptr_eq(rec_views_same(&others, cpu, &views.list[0], r), &others.list[0]);
	ck_assert_ptr_null(rec_views_same(&others, cpu, &views.list[1], r));
	ck_assert_ptr_eq(rec_views_same(&views, r, &others.list[0], cpu), &views.list[0]);
	rec_views_done(&views);
	rec_views_done(&others);
	recording_free(r);
	recording_free(cpu);
}
END_TEST

START_TEST(keeping_a_view_drops_the_other_types)
{
	struct recording *r = several_types();
	struct rec_views views = fixture_views(r);

	ck_assert_int_eq(rec_view_keep(&views.list[1], r), 0);
	rec_views_done(&views);
	views = fixture_views(r);
	ck_assert_uint_eq(views.count, 1);
	ck_assert_str_eq(views.list[0].name, "page_faults");
	ck_assert_uint_eq(views.list[0].value, 307);
	ck_assert_uint_eq(r->total, 307);
	rec_views_done(&views);
	recording_free(r);
}
END_TEST

static void two_hosts(struct fixture *f)
{
	f->resource_values[0].string_value = (char *)"other";
	f->resource_values[1].string_value = (char *)"other box";
	f->profile.period = 1;
}

START_TEST(series_of_one_type_share_a_view)
{
	struct recording *r = fixture_recording();
	struct rec_views views;

	ck_assert_int_eq(fixture_read(two_hosts, r), 0);
	views = fixture_views(r);
	ck_assert_uint_eq(views.count, 1);
	ck_assert_uint_eq(views.list[0].value, 20);
	ck_assert(views.list[0].period_mixed);
	ck_assert_uint_eq(views.list[0].services, 2);
	ck_assert_uint_eq(views.list[0].hosts, 2);
	ck_assert_ptr_null(views.list[0].host);
	rec_views_done(&views);
	recording_free(r);
}
END_TEST

/* As another profiler writes CPU samples: first a request without a period. */
static void no_period(struct fixture *f)
{
	f->resource_values[0].string_value = (char *)"other";
	f->profile.period = 0;
}

START_TEST(period_is_that_of_the_first_series_with_one)
{
	struct recording *r = NULL;
	struct rec_views views;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(no_period, r), 0);
	views = fixture_views(r);
	ck_assert(rec_view_is_cpu(r, &views.list[0]));
	ck_assert_int_eq(views.list[0].period, 0);
	rec_views_done(&views);
	ck_assert_int_eq(fixture_read(NULL, r), 0);
	views = fixture_views(r);
	ck_assert_uint_eq(views.count, 1);
	ck_assert(rec_view_is_cpu(r, &views.list[0]));
	ck_assert_int_eq(views.list[0].period, FX_PERIOD);
	ck_assert(views.list[0].period_mixed);
	rec_views_done(&views);
	recording_free(r);
}
END_TEST

/* CPU time itself, not samples of it. */
static void cpu_time(struct fixture *f)
{
	f->sample_type.type_strindex = 3;
	f->sample_type.unit_strindex = 4;
}

/* Counts something else at each tick of the CPU clock. */
static void count_by_ticks(struct fixture *f)
{
	page_faults(f);
	f->period_type.type_strindex = 3;
	f->period_type.unit_strindex = 4;
}

START_TEST(view_of_another_type_is_not_cpu)
{
	static void (*const change[])(struct fixture *f) = {cpu_time, count_by_ticks};
	struct recording *r = NULL;
	struct rec_views views;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(change[_i], r), 0);
	ck_assert_int_eq(fixture_read(NULL, r), 0);
	views = fixture_views(r);
	ck_assert_uint_eq(views.count, 2);
	ck_assert(rec_view_is_cpu(r, &views.list[0]));
	ck_assert_str_eq(rec_view_unit(r, &views.list[0]), "samples");
	ck_assert(!rec_view_is_cpu(r, &views.list[1]));
	rec_views_done(&views);
	recording_free(r);
}
END_TEST

static void no_values(struct fixture *f)
{
	page_faults(f);
	for (size_t i = 0; i < ARRAY_SIZE(f->values); i++)
		f->values[i] = 0;
}

START_TEST(type_without_samples_is_no_view)
{
	struct recording *r = fixture_recording();
	struct rec_views views;

	ck_assert_int_eq(fixture_read(no_values, r), 0);
	views = fixture_views(r);
	ck_assert_uint_eq(views.count, 1);
	ck_assert_str_eq(views.list[0].name, "cpu");
	rec_views_done(&views);
	recording_free(r);
}
END_TEST

START_TEST(empty_recording_has_one_view_of_nothing)
{
	struct recording *r = NULL;
	struct rec_views views;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	views = fixture_views(r);
	ck_assert_uint_eq(views.count, 1);
	ck_assert_uint_eq(views.list[0].value, 0);
	ck_assert_str_eq(views.list[0].name, "samples");
	ck_assert_str_eq(rec_view_unit(r, &views.list[0]), "samples");
	rec_views_done(&views);
	recording_free(r);
}
END_TEST

static void hostile_name(struct fixture *f)
{
	page_faults(f);
	f->strings[20] = (char *)"../../etc/\xc3\xa4 a name that is longer than any that is good for a file";
}

START_TEST(name_is_good_for_a_file)
{
	struct recording *r = NULL;
	struct rec_views views;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(hostile_name, r), 0);
	views = fixture_views(r);
	ck_assert_str_eq(views.list[0].name, "______etc____a_name_that_is_longer_than_any_tha");
	rec_views_done(&views);
	recording_free(r);
}
END_TEST

static void type_x(struct fixture *f)
{
	page_faults(f);
	f->strings[20] = (char *)"x";
}

static void type_x_3(struct fixture *f)
{
	page_faults(f);
	f->strings[20] = (char *)"x_3";
}

static void type_x_of_another_unit(struct fixture *f)
{
	type_x(f);
	f->sample_type.unit_strindex = 4;
}

static void type_x_without_a_unit(struct fixture *f)
{
	type_x(f);
	f->sample_type.unit_strindex = 0;
}

START_TEST(number_that_makes_a_taken_name_is_passed_over)
{
	void (*const types[])(struct fixture *f) = {type_x, type_x_3, type_x_of_another_unit, type_x_without_a_unit};
	const char *const names[] = {"x", "x_3", "x_4", "x_5"};
	struct recording *r = NULL;
	struct rec_views views;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		ck_assert_int_eq(fixture_read(types[i], r), 0);
	views = fixture_views(r);
	ck_assert_uint_eq(views.count, ARRAY_SIZE(names));
	for (uint32_t i = 0; i < views.count; i++)
		ck_assert_str_eq(views.list[i].name, names[i]);
	rec_views_done(&views);
	recording_free(r);
}
END_TEST

Suite *view_suite(void)
{
	Suite *s = suite_create("view");
	TCase *t = tcase_create("view");

	tcase_add_test(t, view_sums_up_its_series);
	tcase_add_test(t, each_type_is_a_view_and_cpu_is_the_first);
	tcase_add_test(t, view_is_found_by_its_name_or_its_type);
	tcase_add_test(t, same_type_is_found_in_another_recording);
	tcase_add_test(t, keeping_a_view_drops_the_other_types);
	tcase_add_test(t, series_of_one_type_share_a_view);
	tcase_add_test(t, period_is_that_of_the_first_series_with_one);
	tcase_add_loop_test(t, view_of_another_type_is_not_cpu, 0, 2);
	tcase_add_test(t, type_without_samples_is_no_view);
	tcase_add_test(t, empty_recording_has_one_view_of_nothing);
	tcase_add_test(t, name_is_good_for_a_file);
	tcase_add_test(t, number_that_makes_a_taken_name_is_passed_over);
	suite_add_tcase(s, t);
	return s;
}
