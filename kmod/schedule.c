// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/schedule.h"

#ifdef __KERNEL__
#include <linux/kernel.h>
#include <linux/math64.h>
#endif

/* The nth number of SplitMix64, which passes BigCrush: a counter, mixed until each bit depends on each. */
static u64 random_of(u64 seed, u64 n)
{
	u64 x = seed + (n + 1) * 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* 32 random bits times the period, in 2^-32: uniform to less than a nanosecond. */
u64 otprof_schedule_at(const struct otprof_schedule *s, u64 n)
{
	u64 place = (random_of(s->seed, n) >> 32) * s->period_ns >> 32;

	return s->begin_ns + n * s->period_ns + place;
}

u64 otprof_schedule_due(const struct otprof_schedule *s, u64 now_ns)
{
	u64 over;

	if (now_ns < s->begin_ns)
		return 0;
	over = div64_u64(now_ns - s->begin_ns, s->period_ns);
	return over + (now_ns >= otprof_schedule_at(s, over));
}

u64 otprof_schedule_next(const struct otprof_schedule *s, u64 *n, u64 earliest_ns)
{
	u64 at = otprof_schedule_at(s, ++*n);

	if (at >= earliest_ns)
		return at;
	*n = max(*n, div64_u64(earliest_ns - s->begin_ns, s->period_ns));
	return max(otprof_schedule_at(s, *n), earliest_ns);
}
