// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "daemon/engine/adapt.h"
#include "daemon/engine/hints.h"

Suite *hints_suite(void);

static struct hints hints;
static uint32_t told; /* the last answer */
static char told_of[OTP_COMM_LEN];
static int tells;

static uint32_t told_base;

static void on_tell(void *ctx, const char comm[OTP_COMM_LEN], const struct otp_hint *h)
{
	memcpy(told_of, comm, sizeof(told_of));
	told = h->stack_bytes;
	told_base = h->base_bytes;
	tells++;
}

static void setup(void)
{
	memset(&hints, 0, sizeof(hints));
	hints.start = (struct otp_hint){.stack_bytes = 4096, .base_bytes = 4096};
	hints.send = on_tell;
	told = 0;
	tells = 0;
}

static void teardown(void)
{
	hints_done(&hints);
}

static const char *name(int i)
{
	static char comm[OTP_COMM_LEN];

	memset(comm, 0, sizeof(comm));
	snprintf(comm, sizeof(comm), "program %d", i);
	return comm;
}

static void used(const char *comm, uint32_t stack, uint32_t base, uint64_t now)
{
	hints_used(&hints, comm, &(struct otp_hint){.stack_bytes = stack, .base_bytes = base}, now);
}

START_TEST(a_grown_process_makes_a_hint)
{
	hints_grown(&hints, name(1), &(struct otp_hint){.stack_bytes = 16384}, 1);
	ck_assert_int_eq(tells, 1);
	ck_assert_uint_eq(told, 16384);
}
END_TEST

START_TEST(what_everybody_gets_makes_none)
{
	hints_grown(&hints, name(1), &(struct otp_hint){.stack_bytes = 4096}, 1);
	hints_grown(&hints, name(1), &(struct otp_hint){.stack_bytes = 2048}, 1);
	ck_assert_int_eq(tells, 0);
}
END_TEST

START_TEST(a_name_that_was_met_has_what_everybody_gets_for_its_own)
{
	hints_met(&hints, name(1), 1);
	ck_assert_int_eq(tells, 1);
	ck_assert_uint_eq(told, 4096);
	ck_assert_uint_eq(told_base, 4096);
	hints_met(&hints, name(1), 2);
	ck_assert_int_eq(tells, 1);
	hints_grown(&hints, name(1), &(struct otp_hint){.stack_bytes = 16384}, 3);
	ck_assert_uint_eq(told, 16384);
}
END_TEST

START_TEST(a_smaller_process_does_not_shrink_the_hint)
{
	hints_grown(&hints, name(1), &(struct otp_hint){.stack_bytes = 32768}, 1);
	hints_grown(&hints, name(1), &(struct otp_hint){.stack_bytes = 16384}, 2);
	ck_assert_int_eq(tells, 1);
	ck_assert_uint_eq(told, 32768);
}
END_TEST

START_TEST(a_wanted_base_is_told_and_stays_while_it_is_used)
{
	uint64_t now = 1;

	hints_grown(&hints, name(1), &(struct otp_hint){.stack_bytes = 4096, .base_bytes = 8192}, now);
	ck_assert_int_eq(tells, 1);
	ck_assert_uint_eq(told_base, 8192);
	hints_grown(&hints, name(1), &(struct otp_hint){.stack_bytes = 16384}, now);
	ck_assert_uint_eq(told, 16384);
	ck_assert_uint_eq(told_base, 8192);
	for (int i = 0; i < 1000; i++, now += ADAPT_WINDOW_NS / 100)
		used(name(1), 100, i % 50 ? 0 : 5000, now);
	ck_assert_uint_eq(told, 1024);
	ck_assert_uint_eq(told_base, 8192);
	for (int i = 0; i < 1000; i++, now += ADAPT_WINDOW_NS / 100)
		used(name(1), 100, 0, now);
	ck_assert_uint_eq(told_base, 0);
}
END_TEST

START_TEST(a_window_of_shallow_stacks_brings_it_down)
{
	uint64_t now = 1;

	hints_grown(&hints, name(1), &(struct otp_hint){.stack_bytes = 32768}, now);
	for (int i = 0; i < 1000; i++, now += ADAPT_WINDOW_NS / 100)
		used(name(1), 1000, 0, now);
	ck_assert_uint_eq(told, 2048);
	ck_assert_int_eq(tells, 3); /* 32768, 8192, 2048 */
}
END_TEST

START_TEST(a_new_name_has_a_hint_after_some_samples)
{
	for (uint64_t i = 0; i + 1 < HINTS_FIRST; i++)
		used(name(1), 400, 0, i);
	ck_assert_int_eq(tells, 0);
	used(name(1), 300, 0, 50);
	ck_assert_int_eq(tells, 1);
	ck_assert_uint_eq(told, 1024);
}
END_TEST

START_TEST(a_new_name_keeps_what_it_used_of_the_base_that_all_have)
{
	ck_assert_uint_eq(hints_given(&hints, name(1)).base_bytes, 4096);
	for (uint64_t i = 0; i < HINTS_FIRST; i++) {
		used(name(1), 400, i == 7 ? 3000 : 0, i);
		used(name(2), 400, 0, i);
	}
	ck_assert_int_eq(tells, 2);
	ck_assert_uint_eq(hints_given(&hints, name(1)).base_bytes, 4096);
	ck_assert_uint_eq(hints_given(&hints, name(2)).base_bytes, 0);
	ck_assert_uint_eq(hints_given(&hints, name(2)).stack_bytes, 1024);
}
END_TEST

START_TEST(what_all_get_may_change_while_a_name_is_not_told)
{
	used(name(1), 400, 0, 1);
	hints.start = (struct otp_hint){.stack_bytes = 1024};
	hints_grown(&hints, name(1), &(struct otp_hint){.stack_bytes = 2048}, 2);
	ck_assert_int_eq(tells, 1);
	ck_assert_uint_eq(told, 2048);
	ck_assert_uint_eq(told_base, 0);
}
END_TEST

START_TEST(one_deep_stack_in_the_window_keeps_it)
{
	uint64_t now = 1;

	hints_grown(&hints, name(1), &(struct otp_hint){.stack_bytes = 32768}, now);
	for (int i = 0; i < 1000; i++, now += ADAPT_WINDOW_NS / 100)
		used(name(1), i % 50 ? 1000 : 16000, 0, now);
	ck_assert_uint_eq(told, 32768);
}
END_TEST

START_TEST(names_beyond_the_bound_replace_the_oldest)
{
	for (int i = 0; i < HINTS_MAX; i++)
		hints_grown(&hints, name(i), &(struct otp_hint){.stack_bytes = 8192}, (uint64_t)i + 10);
	used(name(0), 100, 0, 100000); /* heard of again: the oldest is now 1 */
	tells = 0;
	hints_grown(&hints, name(HINTS_MAX), &(struct otp_hint){.stack_bytes = 8192}, 200000);
	ck_assert_int_eq(tells, 2);
	ck_assert_ptr_null(map_find(&hints.index, hash_bytes(name(1), OTP_COMM_LEN, 0)));
	ck_assert_ptr_nonnull(map_find(&hints.index, hash_bytes(name(0), OTP_COMM_LEN, 0)));
	ck_assert_uint_eq(hints.index.count, HINTS_MAX);
}
END_TEST

Suite *hints_suite(void)
{
	Suite *s = suite_create("hints");
	TCase *t = tcase_create("hints");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_grown_process_makes_a_hint);
	tcase_add_test(t, what_everybody_gets_makes_none);
	tcase_add_test(t, a_name_that_was_met_has_what_everybody_gets_for_its_own);
	tcase_add_test(t, a_smaller_process_does_not_shrink_the_hint);
	tcase_add_test(t, a_wanted_base_is_told_and_stays_while_it_is_used);
	tcase_add_test(t, a_window_of_shallow_stacks_brings_it_down);
	tcase_add_test(t, a_new_name_has_a_hint_after_some_samples);
	tcase_add_test(t, a_new_name_keeps_what_it_used_of_the_base_that_all_have);
	tcase_add_test(t, what_all_get_may_change_while_a_name_is_not_told);
	tcase_add_test(t, one_deep_stack_in_the_window_keeps_it);
	tcase_add_test(t, names_beyond_the_bound_replace_the_oldest);
	suite_add_tcase(s, t);
	return s;
}
