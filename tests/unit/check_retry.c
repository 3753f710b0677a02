// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "export/retry.h"

Suite *retry_suite(void);

#define NOW 1783000000 /* Thu, 02 Jul 2026 13:46:40 GMT */

static const struct {
	long status;
	bool again;
} statuses[] = {
	{400, false}, {401, false}, {403, false}, {404, false}, {408, false}, {413, false}, {415, false},
	{429, true},  {500, false}, {501, false}, {502, true},	{503, true},  {504, true},  {505, false},
};

START_TEST(only_the_codes_of_otlp_are_tried_again)
{
	ck_assert_int_eq(retry_status(statuses[_i].status), statuses[_i].again);
}
END_TEST

static const struct {
	const char *value;
	int rc;
	uint64_t seconds;
} values[] = {
	{"0", 0, 0},
	{"7", 0, 7},
	{"  30 ", 0, 30},
	{"120\r\n", 0, 120},
	{"3600", 0, 3600},
	{"86400", 0, 3600},
	{"99999999999999999999999999", 0, 3600},
	{"Thu, 02 Jul 2026 13:47:10 GMT", 0, 30},
	{"Thursday, 02-Jul-26 13:47:10 GMT", 0, 30},
	{"Thu Jul  2 13:47:10 2026", 0, 30},
	{"Thu, 02 Jul 2026 13:46:00 GMT", 0, 0},
	{"Fri, 02 Jul 2027 13:46:00 GMT", 0, 3600},
	{"", -EINVAL, 0},
	{"-5", -EINVAL, 0},
	{"1.5", -EINVAL, 0},
	{"5 minutes", -EINVAL, 0},
	{"0x10", -EINVAL, 0},
	{"soon", -EINVAL, 0},
};

START_TEST(retry_after_is_seconds_or_a_date_and_bounded)
{
	uint64_t ns = 42;

	ck_assert_int_eq(retry_after_parse(values[_i].value, NOW, &ns), values[_i].rc);
	ck_assert_uint_eq(ns, values[_i].rc ? 42 : values[_i].seconds * NSEC_PER_SEC);
}
END_TEST

static uint64_t longest(uint32_t failures)
{
	return retry_backoff_ns(5 * NSEC_PER_SEC, 30 * NSEC_PER_SEC, failures, 0);
}

START_TEST(the_wait_grows_by_half_up_to_the_maximum)
{
	ck_assert_uint_eq(longest(1), 5 * NSEC_PER_SEC);
	ck_assert_uint_eq(longest(2), 7500 * NSEC_PER_MSEC + 1);
	ck_assert_uint_gt(longest(5), 25 * NSEC_PER_SEC);
	ck_assert_uint_eq(longest(6), 30 * NSEC_PER_SEC);
	ck_assert_uint_eq(longest(UINT32_MAX), 30 * NSEC_PER_SEC);
}
END_TEST

START_TEST(the_wait_is_drawn_from_its_upper_half)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (uint64_t random = 0; random < 20 * NSEC_PER_SEC; random += 12345678) {
		uint64_t wait = retry_backoff_ns(5 * NSEC_PER_SEC, 30 * NSEC_PER_SEC, 1, random);

		low = MIN(low, wait);
		high = MAX(high, wait);
	}
	ck_assert_uint_gt(low, 2500 * NSEC_PER_MSEC);
	ck_assert_uint_lt(low, 2600 * NSEC_PER_MSEC);
	ck_assert_uint_eq(high, 5 * NSEC_PER_SEC);
}
END_TEST

START_TEST(an_initial_wait_above_the_maximum_is_the_maximum)
{
	ck_assert_uint_eq(retry_backoff_ns(60, 10, 1, 0), 10);
	ck_assert_uint_eq(retry_backoff_ns(60, 10, 9, 0), 10);
	ck_assert_uint_eq(retry_backoff_ns(0, 10, 3, 7), 0);
	ck_assert_uint_eq(retry_backoff_ns(1, 1, 3, 7), 1);
}
END_TEST

Suite *retry_suite(void)
{
	Suite *s = suite_create("retry");
	TCase *t = tcase_create("retry");

	tcase_add_loop_test(t, only_the_codes_of_otlp_are_tried_again, 0, ARRAY_SIZE(statuses));
	tcase_add_loop_test(t, retry_after_is_seconds_or_a_date_and_bounded, 0, ARRAY_SIZE(values));
	tcase_add_test(t, the_wait_grows_by_half_up_to_the_maximum);
	tcase_add_test(t, the_wait_is_drawn_from_its_upper_half);
	tcase_add_test(t, an_initial_wait_above_the_maximum_is_the_maximum);
	suite_add_tcase(s, t);
	return s;
}
