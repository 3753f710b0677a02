// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <string.h>

#include "base/intern.h"

Suite *intern_suite(void);

START_TEST(equal_keys_have_one_number)
{
	struct intern t;
	uint32_t n, i;

	intern_init(&t, 1000, SIZE_MAX);
	for (i = 0; i < 1000; i++) {
		ck_assert_int_eq(intern_add(&t, &i, sizeof(i), &n), 1);
		ck_assert_uint_eq(n, i);
	}
	for (i = 0; i < 1000; i++) {
		ck_assert_int_eq(intern_add(&t, &i, sizeof(i), &n), 0);
		ck_assert_uint_eq(n, i);
		ck_assert_uint_eq(intern_len(&t, i), sizeof(i));
		ck_assert_mem_eq(intern_key(&t, i), &i, sizeof(i));
	}
	ck_assert_int_eq(intern_number(&t, &(uint32_t){5}, sizeof(i), &n), 0);
	intern_done(&t);
}
END_TEST

START_TEST(keys_stay_where_they_are)
{
	struct intern t;
	const void *first;
	uint32_t n;

	intern_init(&t, 100000, SIZE_MAX);
	intern_add(&t, "first", 5, &n);
	first = intern_key(&t, 0);
	ck_assert_uint_eq((uintptr_t)first % 8, 0);
	for (uint32_t i = 0; i < 20000; i++)
		ck_assert_int_eq(intern_add(&t, &i, sizeof(i), &n), 1);
	ck_assert_ptr_eq(intern_key(&t, 0), first);
	ck_assert_mem_eq(first, "first", 5);
	intern_done(&t);
}
END_TEST

START_TEST(latest_keys_are_removed)
{
	struct intern t;
	uint32_t number;

	intern_init(&t, 100000, SIZE_MAX);
	for (uint32_t i = 0; i < 5000; i++)
		ck_assert_int_eq(intern_add(&t, &i, sizeof(i), &number), 1);
	for (uint32_t back = 4999; back > 100; back -= 700) {
		intern_truncate(&t, back);
		ck_assert_uint_eq(t.count, back);
		ck_assert_uint_eq(t.bytes, back * sizeof(uint32_t));
		for (uint32_t i = 0; i < back; i += 7) {
			ck_assert_int_eq(intern_add(&t, &i, sizeof(i), &number), 0);
			ck_assert_uint_eq(number, i);
		}
	}
	number = 0;
	ck_assert_int_eq(intern_add(&t, "", 0, &number), 1);
	ck_assert_int_eq(intern_add(&t, "", 0, &number), 0);
	intern_truncate(&t, 0);
	ck_assert_int_eq(intern_add(&t, "x", 1, &number), 1);
	ck_assert_uint_eq(number, 0);
	intern_done(&t);
}
END_TEST

/* Adds and removes at random, with long keys between short ones; an array of numbers is the model. */
START_TEST(removal_and_addition_agree_with_an_array)
{
	static char key[5000];
	uint32_t seed = 7, number, count = 0;
	struct intern t;

	intern_init(&t, 100000, SIZE_MAX);
	for (int turn = 0; turn < 20000; turn++) {
		seed = seed * 1103515245 + 12345;
		if (seed >> 16 & 7) {
			memcpy(key, &count, sizeof(count));
			ck_assert_int_eq(intern_add(&t, key, count % 97 ? 8 : sizeof(key), &number), 1);
			ck_assert_uint_eq(number, count++);
		} else {
			count -= count ? (seed >> 20) % count % 16 : 0;
			intern_truncate(&t, count);
		}
	}
	ck_assert_uint_eq(t.count, count);
	for (uint32_t i = 0; i < count; i++)
		ck_assert_mem_eq(intern_key(&t, i), &i, sizeof(i));
	intern_done(&t);
}
END_TEST

START_TEST(keys_beyond_the_bounds_are_refused)
{
	struct intern t;
	uint32_t number = 7;

	intern_init(&t, 2, 10);
	ck_assert_int_eq(intern_add(&t, "12345678", 8, &number), 1);
	ck_assert_int_eq(intern_add(&t, "abc", 3, &number), -ENOSPC);
	ck_assert_uint_eq(number, 0);
	ck_assert_int_eq(intern_add(&t, "ab", 2, &number), 1);
	ck_assert_int_eq(intern_add(&t, "", 0, &number), -ENOSPC);
	ck_assert_int_eq(intern_add(&t, "12345678", 8, &number), 0);
	ck_assert_uint_eq(number, 0);
	intern_done(&t);
}
END_TEST

START_TEST(reset_keeps_memory_that_is_needed_again)
{
	size_t memory = 0;
	struct intern t;
	uint32_t n;

	intern_init(&t, 100000, SIZE_MAX);
	for (int round = 0; round < 5; round++) {
		for (uint32_t i = 0; i < 20000; i++)
			ck_assert_int_eq(intern_add(&t, &i, sizeof(i), &n), 1);
		if (round < 2)
			memory = intern_memory(&t);
		ck_assert_uint_le(intern_memory(&t), memory);
		intern_reset(&t);
		ck_assert_uint_eq(t.count, 0);
	}
	intern_reset(&t);
	intern_add(&t, "x", 1, &n);
	ck_assert_uint_lt(intern_memory(&t), memory / 10);
	intern_done(&t);
}
END_TEST

Suite *intern_suite(void)
{
	Suite *s = suite_create("intern");
	TCase *t = tcase_create("intern");

	tcase_add_test(t, equal_keys_have_one_number);
	tcase_add_test(t, keys_stay_where_they_are);
	tcase_add_test(t, latest_keys_are_removed);
	tcase_add_test(t, removal_and_addition_agree_with_an_array);
	tcase_add_test(t, keys_beyond_the_bounds_are_refused);
	tcase_add_test(t, reset_keeps_memory_that_is_needed_again);
	suite_add_tcase(s, t);
	return s;
}
