/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events that a session samples, in the notation of the configuration and `otprof record -e`:
 * "cpu-clock, page-faults/period=100/, cycles/freq=997/". Names are perf's.
 *
 * Called by the configuration, the command line and the sources. Plain values.
 * Bounds: the CPU clock and EVENT_LIST_MAX events.
 */
#ifndef OTP_SOURCE_EVENT_LIST_H
#define OTP_SOURCE_EVENT_LIST_H

#include <stddef.h>

#include "base/origin.h"

#define EVENT_LIST_MAX (OTP_ORIGINS_MAX - 1)
#define EVENT_WHY      200

struct event_spec {
	uint8_t origin;		/* enum otp_origin, never the CPU clock */
	uint32_t frequency_hz;	/* samples a second and CPU that the kernel aims at; 0: by period */
	uint64_t period;	/* events between samples; both 0: the session's frequency */
};

struct event_list {
	bool no_clock; /* the CPU clock is not sampled */
	uint32_t count;
	struct event_spec event[EVENT_LIST_MAX]; /* event i has slot i + 1 */
};

struct buf;

/* -EINVAL: why contains what is wrong and what was expected. */
int event_list_parse(const char *text, struct event_list *ret, char why[EVENT_WHY]);
/* In the notation of event_list_parse. */
void event_list_print(const struct event_list *l, struct buf *to);
/* Sets for every event without a rate of its own this period, or, if that is 0, this frequency. */
void event_list_set_rate(struct event_list *l, uint64_t period, uint32_t frequency_hz);
/*
 * Samples a second and CPU to make room for, at this frequency of the session.
 * The rate of an event with a period is unknown: it counts as a thousand.
 */
uint32_t event_list_rate(const struct event_list *l, uint32_t frequency_hz);
/* The origins of the session by slot, with the clock's period; periods of events as configured. */
void event_list_origins(const struct event_list *l, uint64_t clock_ns, struct origins *ret);

#endif
