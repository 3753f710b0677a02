/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read while a process goes on: it was there all the while if counters that rise before it goes were the same
 * before and after. Around the time at which one rises, what is read may be partly of the next epoch: it is read again.
 *
 * Called by decode and code of runtimes, in a decoder. No state.
 * Cost: the counters twice for each reading, of which there are STEADY_TRIES at most.
 */
#ifndef OTP_RUNTIME_STEADY_H
#define OTP_RUNTIME_STEADY_H

#include <stdint.h>

#define STEADY_TRIES	3
#define STEADY_COUNTERS 2

struct steady {
	/* Fills in the counters' values, which are zeros before. 0, or an error, which ends it. */
	int (*count)(void *ctx, uint64_t counters[STEADY_COUNTERS]);
	/* Begins anew with each call. */
	int (*read)(void *ctx);
	void *ctx; /* of both */
};

/* The answer of read; -ESTALE: the counters were never the same. */
int steady_read(const struct steady *s);

#endif
