/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rate of sampling, changed live. A profile has one period, so it is
 * closed around a change: sampling stops, the engine drains what the old rate
 * left on the ring, ends the interval's profile and says so, then sampling
 * goes on at the new rate. An engine that does not answer within seconds holds
 * nobody up: it learns from the ring position where the old rate ended.
 *
 * Called by the monitor. Two have a say: the configuration, and the guard
 * against overload, which may want less. Nothing here waits.
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
	bool closing;	    /* the engine is to close the old rate's profile */
	uint64_t deadline_ns, retry_ns;
	struct ipc_rate last; /* the last change; id 0: there was none */
	struct origins origins_before; /* with the periods of what lies below last.pos */
	uint64_t acked; /* id of the last change that the engine answered */
};

/*
 * The configuration's rate from now on, unless the guard holds it down. 0 when
 * it is in force or will be soon; -ERANGE; -EOPNOTSUPP: the source cannot.
 */
int rate_change(struct monitor *m, uint32_t hz);
/* The most that the guard allows; 0: anything. */
int rate_limit(struct monitor *m, uint32_t hz);
void rate_run(struct monitor *m, uint64_t now);
void rate_acked(struct monitor *m, const struct ipc_message *msg);

/* For an engine that starts: the period of what lies on the ring first, and the change behind it, if any. */
const struct origins *rate_ring_origins(const struct monitor *m);
const struct ipc_rate *rate_pending(const struct monitor *m);

#endif
