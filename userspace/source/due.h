/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many ticks of one CPU's timer are due, by the time that its event was
 * enabled. A timer changes its period from stretch to stretch (jitter.h), so the
 * ticks of the stretches that are over are counted beside the one under way.
 *
 * Called by events.c, one thread; arithmetic alone, but for the clock. Times are
 * nanoseconds that the event was enabled, as the kernel counts them.
 */
#ifndef OTP_SOURCE_DUE_H
#define OTP_SOURCE_DUE_H

#include <stdint.h>

struct due {
	uint64_t idle_from_ns; /* the CPU's idle time when its event began; events.c's */
	uint64_t read_ns;      /* time enabled when it was last read, which interrupts the CPU */
	uint64_t read_at_ns;   /* and when that was */
	uint64_t since_ns;     /* time enabled when the mean period last changed */
	uint64_t from_ns;      /* time enabled when the stretch began */
	uint64_t period;       /* of the stretch */
	uint64_t ticks;	       /* due from since_ns to from_ns */
};

/* Counts from enabled_ns on, at this period. */
void due_begin(struct due *d, uint64_t enabled_ns, uint64_t period);
/* The time enabled was read. */
void due_read(struct due *d, uint64_t enabled_ns);
/* The time enabled now, of an event that runs since it was read, without reading it. */
uint64_t due_enabled_now(const struct due *d);
/* Ticks due since the mean period last changed. */
uint64_t due_ticks(const struct due *d, uint64_t enabled_ns);
/*
 * The same of an event that has just been read. Where stretches were counted of
 * a CPU that was offline, its time enabled is less than they say: then it says
 * itself how many ticks of the mean period were due.
 */
uint64_t due_ticks_read(const struct due *d, uint64_t enabled_ns, uint64_t mean);
/* A new stretch begins, with the ticks due before it. */
void due_stretch(struct due *d, uint64_t enabled_ns, uint64_t ticks, uint64_t period);

#endif
