/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When one CPU of a session ticks: once in each period, at a random place of
 * that period.
 *
 * Every instant has the same chance to be ticked, one in period_ns, whatever
 * the program does and whatever its own timers are: counts and shares are
 * unbiased for each program, also for one that works in step with the clock.
 * The places of different periods are independent. A program that runs for the
 * part p of a period is counted in it with a variance of p (1 - p); summed over
 * the periods of its run this is at most the variance of as many ticks that are
 * spread over the whole run by chance (binomial), and 0 for a program that runs
 * without a break. A place within less than the whole period would leave some
 * instants more likely than others, and programs in step with them wrong.
 *
 * Ticks are numbered from 0. The place of a tick is computed from its number,
 * not drawn: how many are due by a given moment is exact, and may be asked by
 * another CPU without a lock.
 *
 * Who calls it: timers.c. Context: any, also a hard interrupt. Times are
 * nanoseconds of one clock, at or after begin_ns. Cost: one division at most
 * and a few multiplications. Pure: also builds in userspace.
 */
#ifndef OTPROF_SCHEDULE_H
#define OTPROF_SCHEDULE_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include "tests/kmod/kernel.h"
#endif

struct otprof_schedule {
	u64 begin_ns;  /* of the period of tick 0 */
	u64 period_ns; /* less than 2^32 */
	u64 seed;      /* random, another one for each CPU */
};

/* When tick n is due. */
u64 otprof_schedule_at(const struct otprof_schedule *s, u64 n);
/* How many ticks are due by now_ns, that moment included. */
u64 otprof_schedule_due(const struct otprof_schedule *s, u64 now_ns);
/*
 * When the next tick fires, no earlier than earliest_ns; *n is the number of
 * the last one, then of this one. A tick of the period that contains
 * earliest_ns is moved there if it was due before; those of periods that are
 * over by then are left out.
 */
u64 otprof_schedule_next(const struct otprof_schedule *s, u64 *n, u64 earliest_ns);

#endif
