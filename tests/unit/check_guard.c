// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/limits/guard.h"

Suite *guard_suite(void);

#define MIB (1u << 20)

/* A daemon whose CPU time is a fixed part and so much a sample, on a clock of ours. */
static struct guard g;
static struct guard_look now;
static struct guard_change change;
static struct guard_orders orders;
static uint32_t changes;

static void setup(void)
{
	memset(&g, 0, sizeof(g));
	changes = 0;
	now = (struct guard_look){.now_ns = 1000 * NSEC_PER_SEC};
	guard_limits(&g, &(struct guard_limits){.cpu_permyriad = 400, .hz = 10000});
}

/* One second of life: fixed_us of CPU time, and sample_us for each sample of each of 2 CPUs. */
static void second(uint64_t fixed_us, uint64_t sample_us)
{
	guard_orders(&g, &orders);
	now.now_ns += NSEC_PER_SEC;
	now.cpu_ns += (fixed_us + sample_us * orders.hz * 2) * NSEC_PER_USEC;
	changes += guard_look(&g, &now, &change);
	guard_orders(&g, &orders);
}

static void seconds(uint32_t n, uint64_t fixed_us, uint64_t sample_us)
{
	while (n--)
		second(fixed_us, sample_us);
}

START_TEST(nothing_is_given_up_below_the_limit)
{
	guard_limits(&g, &(struct guard_limits){.cpu_permyriad = 400, .hz = 20});
	seconds(600, 5000, 20);
	ck_assert_uint_eq(changes, 0);
	ck_assert_uint_eq(orders.hz, 20);
	ck_assert_uint_eq(orders.stack_shift, 0);
	ck_assert_uint_eq(orders.cache_shift, 0);
}
END_TEST

START_TEST(far_too_much_falls_at_once_to_what_fits)
{
	seconds(8, 1000, 12);
	ck_assert_uint_eq(changes, 1);
	ck_assert_int_eq(change.cause, GUARD_CPU);
	ck_assert_int_eq(change.step, GUARD_RATE);
	ck_assert(change.lowered);
	/* 40 ms a second at 12 us a sample and 2 CPUs: below 1666 Hz. */
	ck_assert_uint_eq(orders.hz, 1250);
	ck_assert_uint_eq(orders.stack_shift, GUARD_STACK_NONE);
}
END_TEST

START_TEST(share_stays_below_the_limit_afterwards)
{
	uint64_t before;

	seconds(60, 4000, 12);
	before = now.cpu_ns;
	seconds(100, 4000, 12);
	ck_assert_uint_le(now.cpu_ns - before, 100 * 40 * NSEC_PER_MSEC);
}
END_TEST

START_TEST(little_too_much_costs_stacks_first)
{
	guard_limits(&g, &(struct guard_limits){.cpu_permyriad = 400, .hz = 97});
	seconds(30, 45000, 1);
	ck_assert_uint_eq(changes, 1);
	ck_assert_int_eq(change.step, GUARD_STACKS);
	ck_assert_uint_gt(orders.stack_shift, 0);
	ck_assert_uint_eq(orders.hz, 97);
}
END_TEST

START_TEST(everything_comes_back_after_a_quiet_time)
{
	seconds(60, 1000, 12);
	ck_assert_uint_lt(orders.hz, 10000);
	seconds(900, 100, 0);
	ck_assert_uint_eq(orders.hz, 10000);
	ck_assert_uint_eq(orders.stack_shift, 0);
	ck_assert_uint_gt(g.ladder[GUARD_CPU].raises[GUARD_RATE], 0);
}
END_TEST

START_TEST(load_between_two_steps_does_not_swing)
{
	seconds(60, 1000, 12);
	changes = 0;
	seconds(1800, 1000, 12);
	/* Half an hour: a try now and then, ever rarer. */
	ck_assert_uint_le(changes, 12);
}
END_TEST

START_TEST(rate_ends_at_one_hertz)
{
	seconds(900, 100000, 0);
	ck_assert_uint_eq(orders.hz, 1);
	ck_assert(change.at_end);
	changes = 0;
	seconds(60, 100000, 0);
	ck_assert_uint_eq(changes, 0);
}
END_TEST

START_TEST(start_may_cost_more)
{
	guard_limits(&g, &(struct guard_limits){.cpu_permyriad = 400, .hz = 20});
	seconds(1, 900000, 0);
	seconds(60, 5000, 20);
	ck_assert_uint_eq(changes, 0);
}
END_TEST

START_TEST(no_limit_is_no_guard)
{
	guard_limits(&g, &(struct guard_limits){.cpu_permyriad = 0, .hz = 10000});
	seconds(120, 100000, 50);
	ck_assert_uint_eq(changes, 0);
	ck_assert_uint_eq(orders.hz, 10000);
}
END_TEST

START_TEST(memory_takes_caches_first_then_stacks_then_rate)
{
	now.memory_limit = 40 * MIB;
	now.memory_bytes = 37 * MIB;
	seconds(4, 0, 0);
	ck_assert_uint_eq(orders.cache_shift, 2);
	ck_assert_int_eq(change.step, GUARD_CACHES);
	ck_assert_uint_eq(orders.hz, 10000);
	ck_assert_uint_eq(orders.stack_shift, 0);
	seconds(3, 0, 0);
	ck_assert_uint_eq(orders.cache_shift, 3);
	seconds(3, 0, 0);
	ck_assert_uint_eq(orders.stack_shift, GUARD_STACK_NONE);
	ck_assert_uint_eq(orders.hz, 10000);
	seconds(3, 0, 0);
	ck_assert_uint_eq(orders.hz, 5000);
	ck_assert_uint_eq(orders.cache_shift, 3);
	ck_assert_uint_eq(g.ladder[GUARD_MEMORY].lowered[GUARD_CACHES], 3);
}
END_TEST

START_TEST(memory_near_its_end_is_urgent)
{
	now.memory_limit = 40 * MIB;
	now.memory_bytes = 39 * MIB;
	second(0, 0);
	ck_assert_uint_eq(g.ladder[GUARD_MEMORY].level, 2);
	second(0, 0);
	ck_assert_uint_eq(g.ladder[GUARD_MEMORY].level, 4);
}
END_TEST

START_TEST(memory_comes_back_one_step_a_quiet_minute)
{
	now.memory_limit = 40 * MIB;
	now.memory_bytes = 39 * MIB;
	second(0, 0);
	now.memory_bytes = 20 * MIB;
	seconds(59, 0, 0);
	ck_assert_uint_eq(orders.cache_shift, 2);
	seconds(2, 0, 0);
	ck_assert_uint_eq(orders.cache_shift, 1);
	ck_assert(!change.lowered);
	seconds(61, 0, 0);
	ck_assert_uint_eq(orders.cache_shift, 0);
}
END_TEST

START_TEST(both_causes_hold_the_stricter)
{
	now.memory_limit = 40 * MIB;
	now.memory_bytes = 37 * MIB;
	seconds(8, 1000, 12);
	ck_assert_uint_eq(orders.hz, 1250);
	ck_assert_uint_gt(orders.cache_shift, 0);
}
END_TEST

START_TEST(another_rate_keeps_the_level)
{
	seconds(8, 1000, 12);
	ck_assert_uint_eq(orders.hz, 1250);
	guard_limits(&g, &(struct guard_limits){.cpu_permyriad = 400, .hz = 1000});
	guard_orders(&g, &orders);
	ck_assert_uint_eq(orders.hz, 125);
	guard_limits(&g, &(struct guard_limits){.cpu_permyriad = 0, .hz = 1000});
	guard_orders(&g, &orders);
	ck_assert_uint_eq(orders.hz, 1000);
}
END_TEST

Suite *guard_suite(void)
{
	Suite *s = suite_create("guard");
	TCase *t = tcase_create("guard");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, nothing_is_given_up_below_the_limit);
	tcase_add_test(t, far_too_much_falls_at_once_to_what_fits);
	tcase_add_test(t, share_stays_below_the_limit_afterwards);
	tcase_add_test(t, little_too_much_costs_stacks_first);
	tcase_add_test(t, everything_comes_back_after_a_quiet_time);
	tcase_add_test(t, load_between_two_steps_does_not_swing);
	tcase_add_test(t, rate_ends_at_one_hertz);
	tcase_add_test(t, start_may_cost_more);
	tcase_add_test(t, no_limit_is_no_guard);
	tcase_add_test(t, memory_takes_caches_first_then_stacks_then_rate);
	tcase_add_test(t, memory_near_its_end_is_urgent);
	tcase_add_test(t, memory_comes_back_one_step_a_quiet_minute);
	tcase_add_test(t, both_causes_hold_the_stricter);
	tcase_add_test(t, another_rate_keeps_the_level);
	suite_add_tcase(s, t);
	return s;
}
