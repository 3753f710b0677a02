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
static uint32_t changes, deepest, lowest;
static uint64_t noise;

static void limit(uint64_t cpu_permyriad, uint32_t hz)
{
	guard_limits(&g, &(struct guard_limits){.cpu_permyriad = cpu_permyriad, .hz = hz});
}

static void setup(void)
{
	memset(&g, 0, sizeof(g));
	changes = deepest = 0;
	lowest = UINT32_MAX;
	noise = 1;
	now = (struct guard_look){.now_ns = 1000 * NSEC_PER_SEC};
	limit(400, 10000);
}

/* A second that took `samples` samples. An order is in force from the next look on. */
static void second_of(uint64_t fixed_us, uint64_t sample_us, uint64_t files_us, uint64_t samples)
{
	now.now_ns += NSEC_PER_SEC;
	now.samples += samples;
	now.files_ns += files_us * NSEC_PER_USEC;
	now.cpu_ns += (fixed_us + files_us + sample_us * samples) * NSEC_PER_USEC;
	changes += guard_look(&g, &now, &change);
	guard_orders(&g, &orders);
	deepest = MAX(deepest, orders.stack_shift);
	lowest = MIN(lowest, orders.hz);
}

/* One second of life: fixed_us of CPU time, files_us for reading files, sample_us for each sample of each of 2 CPUs. */
static void second_with_files(uint64_t fixed_us, uint64_t sample_us, uint64_t files_us)
{
	guard_orders(&g, &orders);
	now.hz = orders.hz;
	second_of(fixed_us, sample_us, files_us, 2 * orders.hz);
}

static void seconds_with_files(uint32_t n, uint64_t fixed_us, uint64_t sample_us, uint64_t files_us)
{
	while (n--)
		second_with_files(fixed_us, sample_us, files_us);
}

static void second(uint64_t fixed_us, uint64_t sample_us)
{
	second_with_files(fixed_us, sample_us, 0);
}

static void seconds(uint32_t n, uint64_t fixed_us, uint64_t sample_us)
{
	seconds_with_files(n, fixed_us, sample_us, 0);
}

/* us, more or less by as much as a fifth. */
static uint64_t noisy(uint64_t us)
{
	noise = noise * 6364136223846793005ull + 1442695040888963407ull;
	return us * (80 + (noise >> 33) % 41) / 100;
}

START_TEST(nothing_is_given_up_below_the_limit)
{
	limit(400, 20);
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
	/* 40 ms a second at 12 us a sample and 2 CPUs: below 1666 Hz, and no less than 80 % of it. */
	ck_assert_uint_lt(orders.hz, 1666);
	ck_assert_uint_gt(orders.hz, 1333);
	ck_assert_uint_eq(orders.stack_shift, 0);
}
END_TEST

START_TEST(share_stays_below_the_limit_afterwards)
{
	uint64_t before;

	seconds(60, 4000, 12);
	before = now.cpu_ns;
	seconds(100, 4000, 12);
	ck_assert_uint_le(now.cpu_ns - before, 100 * 40 * NSEC_PER_MSEC);
	ck_assert_uint_gt(orders.hz, 1100);
}
END_TEST

START_TEST(little_too_much_costs_a_little_of_the_rate)
{
	limit(400, 97);
	seconds(60, 5000, 200);
	ck_assert_uint_eq(changes, 1);
	ck_assert_int_eq(change.step, GUARD_RATE);
	ck_assert_uint_eq(orders.stack_shift, 0);
	ck_assert_uint_ge(orders.hz, 70);
	ck_assert_uint_lt(orders.hz, 88);
}
END_TEST

/* Half of the limit is fixed: the rate in proportion to the whole cost would not fit. */
START_TEST(fixed_cost_is_learned_from_the_load)
{
	limit(400, 1000);
	for (int i = 0; i < 31; i++) {
		guard_orders(&g, &orders);
		now.hz = orders.hz;
		second_of(20000, 20, 0, i % 2 ? 300 : 900);
	}
	ck_assert_uint_eq(changes, 0);
	while (!changes)
		second(20000, 20);
	/* 34 ms a second: 14 ms for samples. */
	ck_assert_uint_ge(orders.hz, 340);
	ck_assert_uint_le(orders.hz, 360);
}
END_TEST

START_TEST(everything_comes_back_within_ten_seconds_of_room)
{
	seconds(60, 1000, 12);
	ck_assert_uint_lt(orders.hz, 10000);
	seconds(10, 1000, 1);
	ck_assert_uint_eq(orders.hz, 10000);
	ck_assert_uint_eq(orders.stack_shift, 0);
	ck_assert_uint_eq(g.ladder[GUARD_CPU].level, 0);
	ck_assert_uint_gt(g.ladder[GUARD_CPU].raises[GUARD_RATE], 0);
}
END_TEST

/* The engine's first samples cost ten times as much; 62 Hz and 4 KiB for a minute were the answer once. */
START_TEST(costly_start_is_over_ten_seconds_after_its_end)
{
	limit(400, 997);
	seconds(20, 2000, 150);
	ck_assert_uint_lt(lowest, 997);
	ck_assert_uint_gt(lowest, 62);
	ck_assert_uint_eq(deepest, 0);
	seconds(10, 2000, 15);
	ck_assert_uint_eq(orders.hz, 997);
	ck_assert_uint_eq(deepest, 0);
}
END_TEST

START_TEST(returned_too_early_is_still_back_within_ten_seconds)
{
	limit(400, 997);
	for (int i = 0; i < 20; i++) {
		seconds(12, 2000, 60);
		seconds(6, 2000, 10);
	}
	ck_assert_uint_gt(g.ladder[GUARD_CPU].returns, 0);
	seconds(12, 2000, 60);
	seconds(10, 2000, 10);
	ck_assert_uint_eq(orders.hz, 997);
	ck_assert_uint_eq(deepest, 0);
}
END_TEST

START_TEST(load_just_above_the_limit_does_not_swing)
{
	uint64_t before;

	limit(400, 997);
	seconds(60, 2000, 20);
	ck_assert_uint_eq(changes, 1);
	before = now.cpu_ns;
	for (int i = 0; i < 1800; i++)
		second(noisy(2000), noisy(20));
	ck_assert_uint_le(changes, 6);
	ck_assert_uint_ge(lowest, 750);
	ck_assert_uint_le(now.cpu_ns - before, 1800 * 40 * NSEC_PER_MSEC);
}
END_TEST

START_TEST(load_just_below_the_limit_does_not_swing)
{
	limit(400, 997);
	for (int i = 0; i < 1800; i++)
		second(noisy(2000), noisy(17));
	ck_assert_uint_eq(changes, 0);
}
END_TEST

START_TEST(load_that_comes_and_goes_is_followed_with_whole_stacks)
{
	uint64_t before;

	limit(400, 997);
	seconds(60, 2000, 60);
	before = now.cpu_ns;
	for (int i = 0; i < 200; i++) {
		seconds(5, 2000, 60);
		seconds(5, 2000, 1);
	}
	ck_assert_uint_eq(deepest, 0);
	ck_assert_uint_le(now.cpu_ns - before, 2000 * 48 * NSEC_PER_MSEC);
}
END_TEST

START_TEST(rate_ends_at_one_hertz_with_whole_stacks)
{
	seconds(900, 100000, 0);
	ck_assert_uint_eq(orders.hz, 1);
	/* Shorter copies of two samples a second save nothing. */
	ck_assert_uint_eq(deepest, 0);
	changes = 0;
	seconds(60, 100000, 0);
	ck_assert_uint_eq(changes, 0);
}
END_TEST

/* Events of a small period have no bound in number. */
START_TEST(stacks_are_given_up_last_and_return_first)
{
	limit(400, 20);
	for (int i = 0; i < 200; i++) {
		guard_orders(&g, &orders);
		if (now.hz != orders.hz && orders.hz > 1)
			ck_assert_uint_eq(orders.stack_shift, 0);
		now.hz = orders.hz;
		second_of(1000, 30, 0, 5000);
	}
	ck_assert_uint_eq(orders.hz, 1);
	ck_assert_uint_eq(orders.stack_shift, GUARD_STACK_NONE);
	ck_assert(change.at_end);
	ck_assert_uint_eq(g.ladder[GUARD_CPU].level, 3);
	while (orders.stack_shift) {
		ck_assert_uint_eq(orders.hz, 1);
		second(1000, 30);
	}
	seconds(10, 1000, 30);
	ck_assert_uint_eq(orders.hz, 20);
}
END_TEST

/* perf as an ordinary user: the sampler cannot change its rate. */
START_TEST(fixed_rate_stays_while_stacks_are_given_up_and_return)
{
	guard_limits(&g, &(struct guard_limits){.cpu_permyriad = 400, .hz = 997, .fixed_rate = true});
	seconds(120, 2000, 60);
	ck_assert_uint_eq(orders.stack_shift, GUARD_STACK_NONE);
	ck_assert_uint_eq(lowest, 997);
	ck_assert_uint_eq(g.ladder[GUARD_CPU].lowered[GUARD_STACKS], 2);
	seconds(10, 2000, 5);
	ck_assert_uint_eq(orders.stack_shift, 0);
	ck_assert_uint_eq(orders.hz, 997);
	ck_assert_uint_eq(g.ladder[GUARD_CPU].level, 0);
	ck_assert_uint_eq(g.ladder[GUARD_CPU].lowered[GUARD_RATE] + g.ladder[GUARD_CPU].raises[GUARD_RATE], 0);
}
END_TEST

START_TEST(start_may_cost_more)
{
	limit(400, 20);
	seconds(1, 900000, 0);
	seconds(60, 5000, 20);
	ck_assert_uint_eq(changes, 0);
}
END_TEST

START_TEST(files_read_at_the_start_cost_no_quality)
{
	limit(400, 997);
	seconds_with_files(60, 2000, 15, 150000);
	ck_assert_uint_eq(changes, 0);
}
END_TEST

START_TEST(files_read_for_ever_are_a_cost)
{
	uint64_t before;

	limit(400, 997);
	seconds_with_files(1800, 2000, 15, 20000);
	ck_assert_uint_gt(changes, 0);
	ck_assert_uint_eq(deepest, 0);
	before = now.cpu_ns;
	seconds_with_files(600, 2000, 15, 20000);
	ck_assert_uint_le(now.cpu_ns - before, 600 * 41 * NSEC_PER_MSEC);
	ck_assert_uint_gt(lowest, 100);
}
END_TEST

/* The credit is what the limit left unused. */
START_TEST(files_are_paid_again_after_a_quiet_time)
{
	limit(400, 997);
	seconds_with_files(100, 2000, 5, 200000);
	ck_assert_uint_gt(changes, 0);
	seconds(600, 2000, 5);
	changes = 0;
	seconds_with_files(50, 2000, 5, 200000);
	ck_assert_uint_eq(changes, 0);
}
END_TEST

/* An engine that is busy closes the old rate's profile seconds late. */
START_TEST(rate_that_is_not_in_force_yet_is_not_judged)
{
	limit(400, 997);
	while (!changes)
		second(2000, 60);
	for (int i = 0; i < 14; i++)
		second_of(2000, 60, 0, 2 * 997);
	now.hz = 0;
	for (int i = 0; i < 30; i++)
		second_of(2000, 60, 0, 2 * 997);
	ck_assert_uint_eq(changes, 1);
	/* The sampler has rejected the change: what is in force costs too much. */
	now.hz = 997;
	for (int i = 0; i < 14; i++)
		second_of(2000, 60, 0, 2 * 997);
	ck_assert_uint_eq(changes, 2);
}
END_TEST

START_TEST(no_limit_is_no_guard)
{
	limit(0, 10000);
	seconds(120, 100000, 50);
	ck_assert_uint_eq(changes, 0);
	ck_assert_uint_eq(orders.hz, 10000);
}
END_TEST

START_TEST(memory_takes_caches_first_then_rate_then_stacks)
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
	ck_assert_uint_eq(orders.hz, 5000);
	ck_assert_uint_eq(orders.stack_shift, 0);
	seconds(3 * 12, 0, 0);
	ck_assert_uint_eq(orders.hz, 1);
	ck_assert_uint_eq(orders.stack_shift, 0);
	seconds(3, 0, 0);
	ck_assert_uint_eq(orders.stack_shift, GUARD_STACK_NONE);
	ck_assert(change.at_end);
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
	ck_assert_uint_lt(orders.hz, 1666);
	ck_assert_uint_gt(orders.cache_shift, 0);
	/* 14 levels later memory is the stricter. */
	seconds(60, 1000, 12);
	ck_assert_uint_eq(orders.hz, 1);
	ck_assert_uint_gt(g.cpu.hz, 1000);
}
END_TEST

START_TEST(another_rate_keeps_what_fits)
{
	uint32_t fits;

	seconds(8, 1000, 12);
	fits = orders.hz;
	limit(400, 5000);
	guard_orders(&g, &orders);
	ck_assert_uint_eq(orders.hz, fits);
	limit(400, 1000);
	guard_orders(&g, &orders);
	ck_assert_uint_eq(orders.hz, 1000);
	ck_assert_uint_eq(g.ladder[GUARD_CPU].level, 0);
	limit(0, 2000);
	guard_orders(&g, &orders);
	ck_assert_uint_eq(orders.hz, 2000);
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
	tcase_add_test(t, little_too_much_costs_a_little_of_the_rate);
	tcase_add_test(t, fixed_cost_is_learned_from_the_load);
	tcase_add_test(t, everything_comes_back_within_ten_seconds_of_room);
	tcase_add_test(t, costly_start_is_over_ten_seconds_after_its_end);
	tcase_add_test(t, returned_too_early_is_still_back_within_ten_seconds);
	tcase_add_test(t, load_just_above_the_limit_does_not_swing);
	tcase_add_test(t, load_just_below_the_limit_does_not_swing);
	tcase_add_test(t, load_that_comes_and_goes_is_followed_with_whole_stacks);
	tcase_add_test(t, rate_ends_at_one_hertz_with_whole_stacks);
	tcase_add_test(t, stacks_are_given_up_last_and_return_first);
	tcase_add_test(t, fixed_rate_stays_while_stacks_are_given_up_and_return);
	tcase_add_test(t, start_may_cost_more);
	tcase_add_test(t, files_read_at_the_start_cost_no_quality);
	tcase_add_test(t, files_read_for_ever_are_a_cost);
	tcase_add_test(t, files_are_paid_again_after_a_quiet_time);
	tcase_add_test(t, rate_that_is_not_in_force_yet_is_not_judged);
	tcase_add_test(t, no_limit_is_no_guard);
	tcase_add_test(t, memory_takes_caches_first_then_rate_then_stacks);
	tcase_add_test(t, memory_near_its_end_is_urgent);
	tcase_add_test(t, memory_comes_back_one_step_a_quiet_minute);
	tcase_add_test(t, both_causes_hold_the_stricter);
	tcase_add_test(t, another_rate_keeps_what_fits);
	suite_add_tcase(s, t);
	return s;
}
