// SPDX-License-Identifier: Apache-2.0
/* Timers in step with programs, simulated: many runs of ten seconds, always the same ones. */
#include <check.h>
#include <math.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "source/jitter.h"

Suite *jitter_suite(void);

#define RUNS   150
#define RUN_NS (10 * NSEC_PER_SEC)
#define SHARE  0.16 /* 8 ms of every 50 */

static const uint32_t rates[] = {19, 20, 49, 97, 100};
static const uint64_t cycles_us[] = {1000, 4000, 5000, 7000, 10000, 13000, 20000, 37000, 50000, 100000, 1000000};

struct run {
	uint64_t ticks, hits;
};

/* A program that works at the beginning of each cycle. */
static bool works(uint64_t at_ns, uint64_t cycle_ns)
{
	return (double)(at_ns % cycle_ns) < SHARE * (double)cycle_ns;
}

static void run_stretch(struct run *r, uint64_t from_ns, uint64_t to_ns, uint64_t period, uint64_t cycle_ns)
{
	for (uint64_t at = from_ns + period; at <= to_ns; at += period) {
		r->ticks++;
		r->hits += works(at, cycle_ns);
	}
}

/* vary false: as timers were before. */
static struct run run(struct jitter *j, uint64_t mean, uint64_t cycle_ns, bool vary)
{
	uint64_t begin = j->state % NSEC_PER_SEC, at = begin, end = begin + RUN_NS;
	struct run r = {0};

	*j = (struct jitter){.state = j->state};
	while (at < end) {
		uint64_t next = vary ? MIN(jitter_begin(j, mean, at), end) : end;
		int64_t behind = (int64_t)(at - begin - r.ticks * mean);

		run_stretch(&r, at, next, vary ? jitter_period(j, mean, behind) : mean, cycle_ns);
		at = next;
	}
	return r;
}

/* How far hits are from those due: the root mean square, in standard deviations of independent samples. */
static double deviation(uint32_t hz, uint64_t cycle_ns, bool vary, double *ret_mean, unsigned int *ret_far)
{
	uint64_t mean = NSEC_PER_SEC / hz;
	double n = 10.0 * hz, due = n * SHARE, sigma = sqrt(due * (1 - SHARE)), squares = 0, sum = 0;
	struct jitter j = {.state = 1};

	*ret_far = 0;
	for (int i = 0; i < RUNS; i++) {
		double off = (double)run(&j, mean, cycle_ns, vary).hits - due;

		squares += off * off;
		sum += off;
		*ret_far += fabs(off) > 3 * sigma;
		j.state += 0x123456789abcdefULL;
	}
	*ret_mean = sum / RUNS / sigma;
	return sqrt(squares / RUNS) / sigma;
}

START_TEST(program_in_step_is_sampled_as_by_chance)
{
	uint32_t hz = rates[_i];
	unsigned int far, all_far = 0;
	double mean;

	for (size_t i = 0; i < ARRAY_SIZE(cycles_us); i++) {
		double d = deviation(hz, cycles_us[i] * 1000, true, &mean, &far);

		ck_assert_msg(d < 1.5, "%u Hz, a cycle of %lu us: %.2f", hz, cycles_us[i], d);
		ck_assert_msg(fabs(mean) < 0.4, "%u Hz, a cycle of %lu us: off by %.2f", hz, cycles_us[i], mean);
		all_far += far;
	}
	ck_assert_uint_lt(all_far, RUNS * ARRAY_SIZE(cycles_us) * 3 / 100);
}
END_TEST

START_TEST(without_variation_a_program_in_step_is_sampled_always_or_never)
{
	unsigned int far;
	double mean;

	ck_assert(deviation(20, 50 * NSEC_PER_MSEC, false, &mean, &far) > 5);
	ck_assert_uint_eq(far, RUNS);
}
END_TEST

START_TEST(mean_rate_is_the_nominal_one)
{
	static const uint32_t all[] = {1, 19, 97, 997, 10000};
	uint64_t mean = NSEC_PER_SEC / all[_i];
	struct jitter j = {.state = 7};
	struct run r = {0};
	uint64_t at = 0;

	for (int i = 0; i < 200; i++) {
		uint64_t next = jitter_begin(&j, mean, at);

		run_stretch(&r, at, next, jitter_period(&j, mean, (int64_t)(at - r.ticks * mean)), NSEC_PER_SEC);
		at = next;
	}
	/* The last stretch is not yet made up for. */
	ck_assert_double_eq_tol((double)(r.ticks * mean) / (double)at, 1.0, 0.005);
}
END_TEST

/* Each other turn is some seconds late. */
START_TEST(mean_rate_stays_where_turns_come_late)
{
	static const uint32_t all[] = {19, 97, 997};
	uint64_t mean = NSEC_PER_SEC / all[_i];
	struct jitter j = {.state = 11};
	struct run r = {0};
	uint64_t at = 1;

	for (int i = 0; i < 60; i++) {
		uint64_t next = jitter_begin(&j, mean, at) + (i % 2 ? (uint64_t)i % 7 * NSEC_PER_SEC / 2 : 0);

		run_stretch(&r, at, next, jitter_period(&j, mean, (int64_t)(at - 1 - r.ticks * mean)), NSEC_PER_SEC);
		at = next;
		/* From the beginning on, it is never far off. */
		if (at > 10 * NSEC_PER_SEC)
			ck_assert_double_eq_tol((double)(r.ticks * mean) / (double)at, 1.0, 0.1);
	}
	ck_assert_double_eq_tol((double)(r.ticks * mean) / (double)at, 1.0, 0.03);
}
END_TEST

START_TEST(period_has_its_bounds_whatever_the_clock_says)
{
	static const int64_t behind[] = {INT64_MIN, -1, 0, 1, INT64_MAX};
	struct jitter j = {.state = 3};

	for (uint64_t mean = 100000; mean <= NSEC_PER_SEC; mean *= 10)
		for (size_t i = 0; i < ARRAY_SIZE(behind); i++) {
			uint64_t period = jitter_period(&j, mean, behind[i]), stretch = jitter_begin(&j, mean, 5) - 5;

			ck_assert(period >= mean / 2 && period <= mean * 4);
			ck_assert(stretch >= 16 * mean && stretch >= 320 * NSEC_PER_MSEC && stretch <= 24 * NSEC_PER_SEC);
		}
}
END_TEST

Suite *jitter_suite(void)
{
	Suite *s = suite_create("jitter");
	TCase *t = tcase_create("periods");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, program_in_step_is_sampled_as_by_chance, 0, ARRAY_SIZE(rates));
	tcase_add_test(t, without_variation_a_program_in_step_is_sampled_always_or_never);
	tcase_add_loop_test(t, mean_rate_is_the_nominal_one, 0, 5);
	tcase_add_loop_test(t, mean_rate_stays_where_turns_come_late, 0, 3);
	tcase_add_test(t, period_has_its_bounds_whatever_the_clock_says);
	suite_add_tcase(s, t);
	return s;
}
