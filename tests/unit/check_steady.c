// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>

#include "runtime/steady.h"

Suite *steady_suite(void);

/* A counter that rises during the first readings, and fails at a count. */
struct counted { uint64_t counter; uint32_t which, rises, fails_at, counts, reads; };

static int count(void *ctx, uint64_t counters[STEADY_COUNTERS])
{
	struct counted *c = ctx;

	ck_assert_uint_eq(counters[0] | counters[1], 0);
	counters[c->which] = c->counter;
	return ++c->counts == c->fails_at ? -EFAULT : 0;
}

static int read_it(void *ctx)
{
	struct counted *c = ctx;

	c->counter += c->reads < c->rises;
	c->reads++;
	return -EALREADY;
}

static int answer_of(struct counted *c)
{
	return steady_read(&(struct steady){.count = count, .read = read_it, .ctx = c});
}

START_TEST(what_is_read_between_equal_counters_stands)
{
	struct counted c = {.counter = 5, .which = (uint32_t)_i};

	ck_assert_int_eq(answer_of(&c), -EALREADY);
	ck_assert_uint_eq(c.reads, 1);
}
END_TEST

START_TEST(what_is_read_as_a_counter_rises_is_read_again)
{
	struct counted c = {.which = (uint32_t)_i, .rises = STEADY_TRIES - 1};

	ck_assert_int_eq(answer_of(&c), -EALREADY);
	ck_assert_uint_eq(c.reads, STEADY_TRIES);
	c = (struct counted){.which = (uint32_t)_i, .rises = STEADY_TRIES};
	ck_assert_int_eq(answer_of(&c), -ESTALE);
	ck_assert_uint_eq(c.reads, STEADY_TRIES);
}
END_TEST

START_TEST(a_counter_that_cannot_be_read_ends_it)
{
	struct counted c = {.fails_at = 1}, later = {.fails_at = 2};

	ck_assert_int_eq(answer_of(&c), -EFAULT);
	ck_assert_uint_eq(c.reads, 0);
	ck_assert_int_eq(answer_of(&later), -EFAULT);
	ck_assert_uint_eq(later.reads, 1);
}
END_TEST

Suite *steady_suite(void)
{
	Suite *s = suite_create("steady");
	TCase *t = tcase_create("steady");

	tcase_add_loop_test(t, what_is_read_between_equal_counters_stands, 0, STEADY_COUNTERS);
	tcase_add_loop_test(t, what_is_read_as_a_counter_rises_is_read_again, 0, STEADY_COUNTERS);
	tcase_add_test(t, a_counter_that_cannot_be_read_ends_it);
	suite_add_tcase(s, t);
	return s;
}
