// SPDX-License-Identifier: Apache-2.0
/* Samples that wait: how many, and of whom. */
#include <check.h>

#include "base/cleanup.h"
#include "daemon/engine/park.h"

Suite *park_suite(void);

#define STACK (64u << 10)

static const uint8_t stack[STACK];
static struct park park;

static void setup(void)
{
	park_init(&park);
}

static void teardown(void)
{
	park_done(&park);
	ck_assert_uint_eq(park.bytes, 0);
	ck_assert_uint_eq(park.count, 0);
}

static int add(uint32_t pid, uint32_t stack_len)
{
	const struct sample s = {.head = {.pid = pid}, .stack = stack, .stack_len = stack_len};
	const struct process p = {.pid = pid};

	return park_add(&park, &s, &p, 1, false);
}

/* As many as it may. Their bytes. */
static size_t fill(uint32_t pid)
{
	size_t before = park.bytes;

	for (unsigned i = 0; add(pid, STACK) == 0; i++)
		ck_assert_uint_le(i, PARK_BYTES / STACK);
	return park.bytes - before;
}

START_TEST(process_alone_has_two_thirds)
{
	size_t held = fill(1);

	ck_assert_uint_gt(held, PARK_BYTES / 3 * 2 - 2 * STACK);
	ck_assert_uint_le(held, PARK_BYTES / 3 * 2);
}
END_TEST

START_TEST(process_has_room_beside_those_that_took_theirs)
{
	for (uint32_t pid = 1; pid <= 8; pid++)
		fill(pid);
	ck_assert_uint_le(park.bytes, PARK_BYTES);
	ck_assert_int_eq(add(1, STACK), -ENOSPC);
	ck_assert_int_eq(add(100, 1024), 0);
}
END_TEST

START_TEST(room_is_given_back)
{
	size_t held = fill(1);

	while (park.first)
		park_remove(&park, &park.first);
	ck_assert_uint_eq(fill(1), held);
}
END_TEST

START_TEST(samples_leave_in_any_order)
{
	add(1, 8);
	add(2, 8);
	add(3, 8);
	park_remove(&park, &park.first->next);
	ck_assert_uint_eq(park.count, 2);
	ck_assert_uint_eq(park.first->sample.head.pid, 1);
	ck_assert_uint_eq(park.first->next->sample.head.pid, 3);
	add(4, 8);
	ck_assert_uint_eq(park.first->next->next->sample.head.pid, 4);
}
END_TEST

Suite *park_suite(void)
{
	Suite *s = suite_create("park");
	TCase *t = tcase_create("park");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, process_alone_has_two_thirds);
	tcase_add_test(t, process_has_room_beside_those_that_took_theirs);
	tcase_add_test(t, room_is_given_back);
	tcase_add_test(t, samples_leave_in_any_order);
	suite_add_tcase(s, t);
	return s;
}
