/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random periods for the timers of the CPU clock. Timers of round milliseconds
 * are everywhere: with a fixed period of 50 ms, a program that works 8 ms of
 * every 50 was seen in all samples or in none.
 *
 * Called by the BPF and perf sources, one thread. A timer runs stretch by
 * stretch, each with a period of its own. Setting a period begins a new one:
 * what has passed of the old period is lost, half a period on average. The mean
 * rate nevertheless is the nominal one, because each stretch makes up for what
 * the ones before it lacked.
 *
 * The ticks of a program that works a share p of the time vary from stretch to
 * stretch about as those of independent samples would, n * p * (1 - p), for
 * every cycle of the program: a share of its cycle is hit as often as any
 * other once the periods of all stretches range over a whole cycle. At high
 * rates only cycles of a few periods need that, and a narrower range keeps the
 * rates of stretches alike.
 */
#ifndef OTP_SOURCE_JITTER_H
#define OTP_SOURCE_JITTER_H

#include <stdint.h>

struct jitter {
	uint64_t state;
	uint64_t began_ns;  /* the stretch */
	uint64_t lasted_ns; /* the longest of the last stretches */
};

void jitter_init(struct jitter *j); /* from the kernel's random numbers */
/* Begins a stretch; returns when to begin the next: after about 20 ticks and at least 0.4 s; a fifth is random. */
uint64_t jitter_begin(struct jitter *j, uint64_t mean_ns, uint64_t now_ns);
/*
 * A period for the stretch that begins, from half of mean_ns to 4 times it.
 * behind_ns: the time enabled so far, less mean_ns for each tick due in it.
 * Where stretches lately began late, as on a host that leaves the caller no
 * CPU, rates vary less: a rate that stays for long must not be far off.
 */
uint64_t jitter_period(struct jitter *j, uint64_t mean_ns, int64_t behind_ns);

#endif
