// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/report/quality.h"

Suite *quality_suite(void);

static struct ledger_engine *ledger;
static const struct ledger_quality one = {
	.stacks = 2, .stacks_root = 1, .cut = {[3] = 1}, .frames = 5, .by = {[NAME_SYMTAB] = 3, [NAME_RAW] = 2}};

static void setup(void)
{
	ledger = calloc(1, sizeof(*ledger));
}

static void teardown(void)
{
	free(ledger);
}

static struct workload *workload(const char *service)
{
	struct attribute a = {str_get_c("service.name"), str_get_c(service)};
	struct workload *w = NULL;

	ck_assert_int_eq(workload_get(&a, 1, &w), 0);
	str_put(a.key);
	str_put(a.value);
	return w;
}

static void add(const char *service, const char *exe, uint64_t samples)
{
	struct workload *w = workload(service);
	struct str *e = exe ? str_get_c(exe) : NULL;

	quality_add(ledger, w, e, samples, &one);
	str_put(e);
	workload_put(w);
}

static const struct ledger_workload *find(const char *service, const char *exe)
{
	struct workload *w = workload(service);
	struct str *e = exe ? str_get_c(exe) : NULL;
	const struct ledger_workload *row = quality_find(ledger, w, e);

	str_put(e);
	workload_put(w);
	return row;
}

START_TEST(total_and_workload_grow_together)
{
	add("db", "redis", 2);
	add("db", "redis", 2);
	add("db", "redis-cli", 2);
	ck_assert_uint_eq(ledger->frames, 15);
	ck_assert_uint_eq(ledger->frames_named, 9);
	ck_assert_uint_eq(ledger->named_by[NAME_RAW], 6);
	ck_assert_uint_eq(find("db", "redis")->quality.stacks, 4);
	ck_assert_uint_eq(find("db", "redis")->quality.stacks_root, 2);
	ck_assert_uint_eq(find("db", "redis")->quality.cut[3], 2);
	ck_assert_uint_eq(find("db", "redis")->quality.by[NAME_SYMTAB], 6);
	ck_assert_uint_eq(find("db", "redis-cli")->quality.frames, 5);
	ck_assert_ptr_null(find("db", NULL));
}
END_TEST

START_TEST(busiest_stay_when_there_is_no_room)
{
	char name[16];

	for (int i = 0; i < LEDGER_WORKLOADS_MAX; i++) {
		snprintf(name, sizeof(name), "w%d", i);
		add(name, NULL, 10 + (uint64_t)i);
	}
	add("small", NULL, 10);
	ck_assert_ptr_null(find("small", NULL));
	add("large", NULL, 11);
	ck_assert_ptr_nonnull(find("large", NULL));
	ck_assert_ptr_null(find("w0", NULL));
	ck_assert_ptr_nonnull(find("w1", NULL));
	ck_assert_uint_eq(find("large", NULL)->quality.stacks, 2);
	ck_assert_uint_eq(ledger->frames, 5 * (LEDGER_WORKLOADS_MAX + 2));
}
END_TEST

START_TEST(what_was_long_ago_makes_room)
{
	char name[16];

	for (int i = 0; i < LEDGER_WORKLOADS_MAX; i++) {
		snprintf(name, sizeof(name), "w%d", i);
		add(name, NULL, 1000);
	}
	for (int i = 0; i < 12; i++)
		quality_age(ledger);
	add("new", NULL, 2);
	ck_assert_ptr_nonnull(find("new", NULL));
}
END_TEST

START_TEST(long_names_are_cut_and_found_again)
{
	char name[200];

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	add(name, name, 1);
	add(name, name, 1);
	ck_assert_uint_eq(find(name, name)->quality.stacks, 4);
	ck_assert_uint_eq(strlen(find(name, name)->service), sizeof(ledger->workloads[0].service) - 1);
}
END_TEST

START_TEST(every_source_has_a_name)
{
	ck_assert_str_eq(name_source_name(NAME_DWARF), "dwarf");
	ck_assert_str_eq(name_source_name(NAME_RAW), "raw");
	ck_assert_ptr_null(name_source_name(NAME_SOURCE_NR));
	ck_assert(name_source_is_name(NAME_KALLSYMS));
	ck_assert(!name_source_is_name(NAME_UNWIND_START));
	ck_assert(!name_source_is_name(NAME_SOURCE_NR));
}
END_TEST

Suite *quality_suite(void)
{
	Suite *s = suite_create("quality");
	TCase *t = tcase_create("quality");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, total_and_workload_grow_together);
	tcase_add_test(t, busiest_stay_when_there_is_no_room);
	tcase_add_test(t, what_was_long_ago_makes_room);
	tcase_add_test(t, long_names_are_cut_and_found_again);
	tcase_add_test(t, every_source_has_a_name);
	suite_add_tcase(s, t);
	return s;
}
