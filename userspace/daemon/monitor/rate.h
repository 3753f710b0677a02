/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rate of sampling, changed live. A profile has one period, so it is
 * closed at a change: sampling stops, the engine drains the old rate's samples
 * from the ring, ends the interval's profile and answers, then sampling continues
 * at the new rate. Sampling waits seconds at most for the answer: a late engine
 * finds the end of the old rate by its ring position.
 *
 * Called by the monitor, one thread. Two set the rate: the configuration, and
 * the guard against overload, which limits it. Nothing here blocks.
 */
#ifndef OTP_DAEMON_MONITOR_RATE_H
#define OTP_DAEMON_MONITOR_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/ipc.h"

struct monitor;

struct rate {
	uint32_t hz;	    /* in force */
	uint32_t wanted_hz; /* by the configuration */
	uint32_t limit_hz;  /* by the guard; 0: none */
	bool closing;	    /* the engine has to close the old rate's profile; sampling is stopped */
	uint64_t deadline_ns, retry_ns;
	struct ipc_rate last; /* the last change; id 0: there was none */
	struct origins origins_before; /* with the periods of samples below last.pos */
	uint64_t acked; /* id of the last change that the engine answered */
};

/*
 * Sets the configuration's rate, which the guard may limit. 0: it is in force or
 * will be soon; -ERANGE; -EOPNOTSUPP: the source cannot change its rate.
 */
int rate_change(struct monitor *m, uint32_t hz);
/* Sets the guard's limit; 0: none. */
int rate_limit(struct monitor *m, uint32_t hz);
void rate_run(struct monitor *m, uint64_t now);
void rate_acked(struct monitor *m, const struct ipc_message *msg);

/* For a new engine: the periods of the ring's oldest samples, and the change after them (NULL: none). Borrowed. */
const struct origins *rate_ring_origins(const struct monitor *m);
const struct ipc_rate *rate_pending(const struct monitor *m);

#endif
