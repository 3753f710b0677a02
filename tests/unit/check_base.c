// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/ledger.h"
#include "base/strpool.h"

Suite *base_suite(void);

START_TEST(buf_refuses_what_exceeds_its_bound)
{
	struct buf b;

	buf_init(&b, 8);
	buf_add(&b, "12345678", 8);
	ck_assert(!b.failed);
	buf_add(&b, "9", 1);
	ck_assert(b.failed);
	ck_assert_uint_eq(b.len, 8);
	buf_done(&b);
}
END_TEST

START_TEST(buf_refuses_a_length_that_overflows)
{
	struct buf b;

	buf_init(&b, 0);
	buf_add(&b, "x", 1);
	ck_assert_ptr_null(buf_reserve(&b, SIZE_MAX));
	ck_assert(b.failed);
	buf_done(&b);
}
END_TEST

START_TEST(buf_prints_and_terminates)
{
	struct buf b;

	buf_init(&b, 0);
	buf_printf(&b, "%d-%s", 42, "x");
	ck_assert_str_eq(buf_cstr(&b), "42-x");
	ck_assert_uint_eq(b.len, 4);
	buf_done(&b);
}
END_TEST

START_TEST(content_has_the_same_hash_in_every_process)
{
	const uint64_t of = hash_content("text", 4, 1), key = hash_bytes("text", 4, 1);

	hash_seed++;
	ck_assert_uint_eq(hash_content("text", 4, 1), of);
	ck_assert_uint_ne(hash_bytes("text", 4, 1), key);
	hash_seed--;
	ck_assert_uint_ne(hash_content("text", 4, 2), of);
	ck_assert_uint_ne(hash_content("texts", 5, 1), of);
}
END_TEST

/* Against a plain array as the model: put, replace, remove, in a fixed pseudo-random order. */
START_TEST(map_agrees_with_an_array)
{
	enum { KEYS = 997 };
	static uint64_t model[KEYS];
	struct map m = {0};
	uint64_t x = 1;

	memset(model, 0, sizeof(model));
	for (int i = 0; i < 50000; i++) {
		uint64_t key;

		x = hash_u64(x + (uint64_t)i);
		key = x % KEYS;
		if (x >> 60 < 6) {
			ck_assert_int_eq(map_remove(&m, key), model[key] != 0);
			model[key] = 0;
		} else {
			ck_assert_int_eq(map_put(&m, key, x | 1), 0);
			model[key] = x | 1;
		}
	}
	for (uint64_t key = 0; key < KEYS; key++) {
		uint64_t *v = map_find(&m, key);

		ck_assert_uint_eq(v ? *v : 0, model[key]);
	}
	map_done(&m);
}
END_TEST

START_TEST(map_without_memory_of_its_own_finds_nothing)
{
	struct map m = {0};

	ck_assert_ptr_null(map_find(&m, 1));
	ck_assert(!map_remove(&m, 1));
}
END_TEST

START_TEST(equal_strings_are_one_object)
{
	struct str *a = str_get_c("libc.so.6"), *b = str_get("libc.so.6x", 9), *c = str_get_c("other");
	size_t before;

	ck_assert_ptr_eq(a, b);
	ck_assert_ptr_ne(a, c);
	before = str_count();
	str_put(a);
	ck_assert_uint_eq(str_count(), before);
	str_put(b);
	ck_assert_uint_eq(str_count(), before - 1);
	str_put(c);
}
END_TEST

START_TEST(strings_survive_the_removal_of_others)
{
	enum { N = 2000 };
	static struct str *all[N];
	char name[32];

	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "string %d", i);
		all[i] = str_get_c(name);
	}
	for (int i = 0; i < N; i += 2)
		all[i] = str_put(all[i]);
	for (int i = 1; i < N; i += 2) {
		struct str *again;

		snprintf(name, sizeof(name), "string %d", i);
		again = str_get_c(name);
		ck_assert_ptr_eq(again, all[i]);
		str_put(again);
		str_put(all[i]);
	}
}
END_TEST

START_TEST(strings_may_hold_zero_bytes)
{
	struct str *a = str_get("a\0b", 3), *b = str_get("a\0c", 3);

	ck_assert_ptr_ne(a, b);
	ck_assert_uint_eq(a->len, 3);
	str_put(a);
	str_put(b);
}
END_TEST

START_TEST(ledger_page_shows_the_last_published_state)
{
	static struct ledger_engine_page page;
	struct ledger_engine work = {.read.of[0] = 1}, seen;

	ledger_publish(&page, &work);
	work.read.of[0] = 2; /* not published: must not be seen */
	ledger_read(&page, &seen);
	ck_assert_uint_eq(seen.read.of[0], 1);
	ledger_publish(&page, &work);
	ledger_read(&page, &seen);
	ck_assert_uint_eq(seen.read.of[0], 2);
}
END_TEST

/* One at a time: on a slow machine the timer must not be faster than this. */
static void stand_still(int sig)
{
	struct timespec t = {.tv_nsec = 5 * NSEC_PER_MSEC};
	struct itimerval again = {.it_value.tv_usec = 1000};

	(void)sig;
	nanosleep(&t, NULL);
	setitimer(ITIMER_REAL, &again, NULL);
}

/* On a busy host a process stands still between any two clocks that it reads. */
START_TEST(wall_clock_is_the_same_for_who_is_interrupted)
{
	uint64_t first = clock_unix_offset_ns(), end = clock_now_ns() + 400 * NSEC_PER_MSEC, worst = 0;

	signal(SIGALRM, stand_still);
	raise(SIGALRM);
	while (clock_now_ns() < end) {
		uint64_t now = clock_unix_offset_ns();

		worst = MAX(worst, now > first ? now - first : first - now);
	}
	signal(SIGALRM, SIG_IGN);
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	ck_assert_uint_lt(worst, 2 * NSEC_PER_MSEC);
}
END_TEST

START_TEST(intervals_join_unless_the_clock_was_set)
{
	const uint64_t end = 1000 * NSEC_PER_SEC;

	ck_assert_uint_eq(clock_join_ns(end, end), end);
	ck_assert_uint_eq(clock_join_ns(end + 400 * NSEC_PER_MSEC, end), end);
	ck_assert_uint_eq(clock_join_ns(end - 400 * NSEC_PER_MSEC, end), end);
	ck_assert_uint_eq(clock_join_ns(end + 3600 * NSEC_PER_SEC, end), end + 3600 * NSEC_PER_SEC);
	ck_assert_uint_eq(clock_join_ns(end - 500 * NSEC_PER_SEC, end), end - 500 * NSEC_PER_SEC);
}
END_TEST

Suite *base_suite(void)
{
	Suite *s = suite_create("base");
	TCase *t = tcase_create("base");

	tcase_add_test(t, buf_refuses_what_exceeds_its_bound);
	tcase_add_test(t, buf_refuses_a_length_that_overflows);
	tcase_add_test(t, buf_prints_and_terminates);
	tcase_add_test(t, content_has_the_same_hash_in_every_process);
	tcase_add_test(t, map_agrees_with_an_array);
	tcase_add_test(t, map_without_memory_of_its_own_finds_nothing);
	tcase_add_test(t, equal_strings_are_one_object);
	tcase_add_test(t, strings_survive_the_removal_of_others);
	tcase_add_test(t, strings_may_hold_zero_bytes);
	tcase_add_test(t, ledger_page_shows_the_last_published_state);
	tcase_add_test(t, wall_clock_is_the_same_for_who_is_interrupted);
	tcase_add_test(t, intervals_join_unless_the_clock_was_set);
	suite_add_tcase(s, t);
	return s;
}
