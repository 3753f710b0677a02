/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One clock: CLOCK_BOOTTIME in nanoseconds, for samples, side-band, timers
 * and deadlines. Wall-clock time exists only at the edge, in exported data.
 * Any context; a few tens of nanoseconds.
 */
#ifndef OTP_BASE_CLOCK_H
#define OTP_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC  1000000000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_USEC 1000ULL

static inline uint64_t clock_read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

#define CLOCK_OFFSET_TRIES 8
#define CLOCK_OFFSET_NS	   (20 * NSEC_PER_USEC) /* good enough: no more tries */

/*
 * What to add to a boot time to get Unix time. Changes when the wall clock is
 * set. The process may lose its CPU between two readings, for any time: the
 * wall clock is read between two readings of the boot clock, and the attempt
 * with the closest pair counts.
 */
static inline uint64_t clock_unix_offset_ns(void)
{
	uint64_t offset = 0, best = UINT64_MAX;

	for (int i = 0; i < CLOCK_OFFSET_TRIES && best > CLOCK_OFFSET_NS; i++) {
		uint64_t before = clock_now_ns();
		uint64_t unix_ns = clock_read_ns(CLOCK_REALTIME);
		uint64_t took = clock_now_ns() - before;

		if (took < best) {
			best = took;
			offset = unix_ns - before - took / 2;
		}
	}
	return offset;
}

/* A difference from which on the wall clock was set, and is not merely slewed. */
#define CLOCK_SET_NS NSEC_PER_SEC

/*
 * Unix time at which an interval begins: start by its own measurement, while
 * the interval before ended at last_end. A small difference is the wall clock's
 * drift, and the intervals join. A large one means that the clock was set:
 * start is returned, so that no duration contains the adjustment.
 */
static inline uint64_t clock_join_ns(uint64_t start, uint64_t last_end)
{
	uint64_t apart = start > last_end ? start - last_end : last_end - start;

	return apart < CLOCK_SET_NS ? last_end : start;
}

#endif
