// SPDX-License-Identifier: Apache-2.0
/* Walks are set as decoders made them, for the process that they read. */
#include <check.h>

#include "base/cleanup.h"
#include "daemon/monitor/vouched.h"

Suite *vouched_suite(void);

static struct vouched v;

static struct otp_walk plan(uint64_t base)
{
	return (struct otp_walk){.start = OTP_WALK_AT, .base = base, .frames_max = 10};
}

static void vouch(uint32_t pid, uint64_t start_ns, uint64_t base, uint64_t now)
{
	const struct otp_walk p = plan(base);

	ck_assert_int_eq(vouched_add(&v, pid, start_ns, &p, now), 0);
}

static bool allows(uint32_t pid, uint64_t start_ns, uint64_t exec_id, uint64_t base, uint64_t now)
{
	const struct otp_walks w = {.generation = 1, .start_ns = start_ns, .exec_id = exec_id, .plan[0] = plan(base)};

	return vouched_allows(&v, pid, &w, now);
}

static void teardown(void)
{
	vouched_done(&v);
}

START_TEST(plan_of_the_process_is_allowed)
{
	vouch(5, 1, 4096, 0);
	ck_assert(allows(5, 1, 7, 4096, 1));
	ck_assert(allows(5, 1, 7, 4096, VOUCHED_USE_NS * 9));
}
END_TEST

START_TEST(other_plans_processes_and_starts_are_refused)
{
	ck_assert(!allows(5, 1, 7, 4096, 1));
	vouch(5, 1, 4096, 0);
	ck_assert(!allows(5, 1, 7, 4104, 1));
	ck_assert(!allows(6, 1, 7, 4096, 1));
	ck_assert(!allows(5, 2, 7, 4096, 1));
	ck_assert(allows(5, 1, 7, 4096, 1));
}
END_TEST

START_TEST(second_plan_may_be_another_runtimes)
{
	struct otp_walks w = {.start_ns = 1, .plan = {plan(4096), plan(8192)}};

	vouch(5, 1, 4096, 0);
	ck_assert(!vouched_allows(&v, 5, &w, 1));
	vouch(5, 1, 8192, 0);
	ck_assert(vouched_allows(&v, 5, &w, 1));
}
END_TEST

START_TEST(both_plans_of_the_next_program_take_the_place_of_those_before)
{
	struct otp_walks w = {.start_ns = 1, .exec_id = 8, .plan = {plan(12288), plan(16384)}};

	vouch(5, 1, 4096, 0);
	vouch(5, 1, 8192, 0);
	vouch(5, 1, 12288, 2);
	vouch(5, 1, 16384, 2);
	ck_assert(vouched_allows(&v, 5, &w, 3));
}
END_TEST

START_TEST(a_runtimes_second_plan_may_give_way_to_another_runtimes)
{
	struct otp_walks both = {.start_ns = 1, .exec_id = 8, .plan = {plan(4096), plan(8192)}};
	struct otp_walks then = {.start_ns = 1, .exec_id = 8, .plan = {plan(4096), plan(12288)}};

	vouch(5, 1, 4096, 0);
	vouch(5, 1, 8192, 0);
	ck_assert(vouched_allows(&v, 5, &both, 1));
	vouch(5, 1, 12288, 2);
	ck_assert(vouched_allows(&v, 5, &then, 3));
}
END_TEST

START_TEST(first_walks_fix_the_program)
{
	vouch(5, 1, 4096, 0);
	ck_assert(allows(5, 1, 7, 4096, 1));
	ck_assert(!allows(5, 1, 8, 4096, 2));
	vouch(5, 1, 4096, 3);
	ck_assert(allows(5, 1, 8, 4096, 4));
}
END_TEST

START_TEST(word_that_was_never_used_expires)
{
	vouch(5, 1, 4096, 0);
	ck_assert(!allows(5, 1, 7, 4096, VOUCHED_USE_NS));
}
END_TEST

START_TEST(next_owner_of_a_pid_has_nothing)
{
	vouch(5, 1, 4096, 0);
	vouch(5, 2, 8192, 0);
	ck_assert(!allows(5, 2, 7, 4096, 1));
	ck_assert(!allows(5, 1, 7, 4096, 1));
}
END_TEST

START_TEST(processes_are_bounded)
{
	for (uint32_t pid = 1; pid <= VOUCHED_MAX + 1; pid++)
		vouch(pid, 1, 4096, 0);
	ck_assert_uint_eq(v.by_pid.count, VOUCHED_MAX);
	ck_assert(!allows(1, 1, 7, 4096, 1));
	ck_assert(allows(2, 1, 7, 4096, 1));
}
END_TEST

Suite *vouched_suite(void)
{
	Suite *s = suite_create("vouched");
	TCase *t = tcase_create("vouched");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, plan_of_the_process_is_allowed);
	tcase_add_test(t, other_plans_processes_and_starts_are_refused);
	tcase_add_test(t, second_plan_may_be_another_runtimes);
	tcase_add_test(t, both_plans_of_the_next_program_take_the_place_of_those_before);
	tcase_add_test(t, a_runtimes_second_plan_may_give_way_to_another_runtimes);
	tcase_add_test(t, first_walks_fix_the_program);
	tcase_add_test(t, word_that_was_never_used_expires);
	tcase_add_test(t, next_owner_of_a_pid_has_nothing);
	tcase_add_test(t, processes_are_bounded);
	suite_add_tcase(s, t);
	return s;
}
