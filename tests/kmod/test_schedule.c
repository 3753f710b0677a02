// SPDX-License-Identifier: Apache-2.0
/*
 * The module's schedule of ticks: one in each period, no instant more likely
 * than another, and programs in step with the clock counted as they are due.
 * Seeds are constants: each run computes the same.
 */
#include <math.h>

#include "kmod/schedule.h"
#include "tests/kmod/test.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof(*(a)))
#define NSEC_PER_SEC  1000000000ull
#define USEC	      1000ull
#define MSEC	      1000000ull
#define SEEDS	      200

static const u64 rates[] = {1, 19, 20, 49, 97, 100, 997, 10000};

static struct otprof_schedule schedule(u64 hz, u64 seed)
{
	return (struct otprof_schedule){
		.begin_ns = 123456789 * seed, .period_ns = NSEC_PER_SEC / hz, .seed = seed * 0xda942042e4dd58b5ull};
}

static bool each_period_has_one_tick(void)
{
	for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
		struct otprof_schedule s = schedule(rates[r], r + 1);

		for (u64 n = 0; n < 10000; n++) {
			u64 at = otprof_schedule_at(&s, n) - s.begin_ns;

			CHECK(at >= n * s.period_ns && at < (n + 1) * s.period_ns);
		}
	}
	return true;
}

static bool ticks_that_are_due_are_those_whose_time_has_come(void)
{
	struct otprof_schedule s = schedule(97, 7);

	CHECK(otprof_schedule_due(&s, 0) == 0);
	CHECK(otprof_schedule_due(&s, s.begin_ns) == (otprof_schedule_at(&s, 0) == s.begin_ns));
	for (u64 n = 0; n < 10000; n++) {
		u64 at = otprof_schedule_at(&s, n);

		CHECK(otprof_schedule_due(&s, at - 1) == n && otprof_schedule_due(&s, at) == n + 1);
	}
	return true;
}

/* Ticks that take a while, now and then longer than a period: none before its time, before the rest, or twice. */
static bool no_tick_comes_early_or_twice(void)
{
	for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
		struct otprof_schedule s = schedule(rates[r], 3);
		u64 x = 88172645463325252ull, n = 0, at = otprof_schedule_at(&s, 0), ticks;

		for (ticks = 1; ticks < 10000; ticks++) {
			u64 before = n, earliest = at + test_random(&x) % (test_random(&x) % 8 ? s.period_ns : 3 * s.period_ns);

			at = otprof_schedule_next(&s, &n, earliest);
			CHECK(n > before && at >= earliest && at >= otprof_schedule_at(&s, n));
			CHECK(at < s.begin_ns + (n + 1) * s.period_ns);
			CHECK(ticks < otprof_schedule_due(&s, at));
		}
		CHECK(n < 2 * ticks);
	}
	return true;
}

static bool tick_without_delay_is_never_left_out(void)
{
	struct otprof_schedule s = schedule(10000, 5);
	u64 n = 0, at = otprof_schedule_at(&s, 0);

	for (u64 i = 1; i < 10000; i++) {
		at = otprof_schedule_next(&s, &n, at);
		CHECK(n == i && at >= otprof_schedule_at(&s, n) && at <= otprof_schedule_at(&s, n) + 1);
	}
	return true;
}

/* Chi-square of 64 parts of the period, for each seed: at most its quantile at 5 sigma. */
static bool every_instant_is_as_likely(void)
{
	for (u64 seed = 1; seed <= SEEDS; seed++) {
		struct otprof_schedule s = schedule(100, seed);
		unsigned int bins[64] = {0};
		double chi = 0;

		for (u64 n = 0; n < 6400; n++)
			bins[(otprof_schedule_at(&s, n) - s.begin_ns) % s.period_ns * 64 / s.period_ns]++;
		for (int b = 0; b < 64; b++)
			chi += (bins[b] - 100.0) * (bins[b] - 100.0) / 100;
		CHECK(chi < 63 + 5 * sqrt(2 * 63));
	}
	return true;
}

/* Works work_ns at the beginning of every period_ns. */
struct program {
	u64 period_ns, work_ns;
};

static unsigned int hits(const struct otprof_schedule *s, const struct program *p, u64 ticks, bool in_step)
{
	unsigned int n = 0;

	for (u64 i = 0; i < ticks; i++) {
		u64 at = in_step ? s->begin_ns + i * s->period_ns : otprof_schedule_at(s, i);

		n += at % p->period_ns < p->work_ns;
	}
	return n;
}

static const struct program programs[] = {
	{1 * MSEC, 50 * USEC},   {4 * MSEC, 200 * USEC},  {5 * MSEC, 250 * USEC},  {7 * MSEC, 350 * USEC},
	{10 * MSEC, 500 * USEC}, {13 * MSEC, 650 * USEC}, {20 * MSEC, 1 * MSEC},   {37 * MSEC, 2 * MSEC},
	{50 * MSEC, 8 * MSEC},   {100 * MSEC, 8 * MSEC},  {1000 * MSEC, 80 * MSEC},
};

/* Chi-square over programs and rates, 20 s each, with the binomial variance. */
static double chi_square(u64 seed, bool in_step)
{
	double chi = 0;

	for (size_t r = 1; r <= 5; r++)
		for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
			struct otprof_schedule s = schedule(rates[r], seed + r);
			double part = (double)programs[i].work_ns / (double)programs[i].period_ns;
			double due = 20 * (double)rates[r] * part, off = hits(&s, &programs[i], 20 * rates[r], in_step) - due;

			chi += off * off / (due * (1 - part));
		}
	return chi;
}

/* 55 cells; programs of one rate share their ticks, so the sum varies a little more than of independent ones. */
static bool programs_in_step_are_counted_as_due(void)
{
	double sum = 0;

	for (u64 seed = 1; seed <= SEEDS; seed++) {
		double chi = chi_square(1000 * seed, false);

		CHECK(chi < 55 + 7 * sqrt(2 * 55));
		CHECK(chi_square(1000 * seed, true) > 500);
		sum += chi;
	}
	CHECK(sum / SEEDS < 57);
	return true;
}

/* Of one that runs 300 ms of each second at 100 Hz: less than of as many ticks by chance, for most fall well inside. */
static bool counts_vary_less_than_by_chance(void)
{
	const struct program p = {1000 * MSEC, 300 * MSEC};
	double square = 0;

	for (u64 seed = 1; seed <= SEEDS; seed++) {
		struct otprof_schedule s = schedule(100, seed);
		double off = hits(&s, &p, 1000, false) - 300.0;

		square += off * off;
	}
	CHECK(square / SEEDS < 0.1 * 1000 * 0.3 * 0.7);
	return true;
}

/* Two CPUs, or two sessions, whose seeds are close: their places agree no more often than by chance. */
static bool neighbours_are_independent(void)
{
	struct otprof_schedule a = schedule(100, 1), b = a;
	double product = 0;

	b.seed++;
	for (u64 n = 0; n < 100000; n++)
		product += ((double)(otprof_schedule_at(&a, n) - a.begin_ns - n * a.period_ns) / (double)a.period_ns - 0.5) *
			   ((double)(otprof_schedule_at(&b, n) - b.begin_ns - n * b.period_ns) / (double)b.period_ns - 0.5);
	CHECK(fabs(product / 100000 * 12) < 5 / sqrt(100000));
	return true;
}

static const struct test tests[] = {
	{"each period has one tick", each_period_has_one_tick},
	{"ticks that are due are those whose time has come", ticks_that_are_due_are_those_whose_time_has_come},
	{"no tick comes early or twice", no_tick_comes_early_or_twice},
	{"tick without delay is never left out", tick_without_delay_is_never_left_out},
	{"every instant is as likely", every_instant_is_as_likely},
	{"programs in step are counted as due", programs_in_step_are_counted_as_due},
	{"counts vary less than by chance", counts_vary_less_than_by_chance},
	{"neighbours are independent", neighbours_are_independent},
};

int main(void)
{
	return test_run("schedule", tests, sizeof(tests) / sizeof(*tests)) != 0;
}
