/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All workers: when each is started, what it is sent, and what follows from its
 * end.
 *
 * Called by the monitor's loop, one thread. Nothing here waits for a worker to
 * end: SIGCHLD leads to workers_reap.
 */
#ifndef OTP_DAEMON_MONITOR_WORKERS_H
#define OTP_DAEMON_MONITOR_WORKERS_H

#include "daemon/monitor/worker.h"

#define OPENERS	      2
#define DECODERS      4
#define ABANDONED_MAX 32

struct workers {
	struct worker engine, net, hub, opener[OPENERS], indexer, fetcher, decoder[DECODERS];
	int program;		     /* otprof-worker, by worker_program_open; -1: not opened yet */
	uint32_t abandoned;	     /* killed, but no signal ends them: they wait for a file server */
	uint64_t disposable_past_ns; /* CPU of disposable ones that ended */
};

struct monitor;

void workers_init(struct workers *w);
void workers_run(struct monitor *m, uint64_t now); /* starts those that are due, kills those that hang */
void workers_reap(struct monitor *m);
/* Kills it, and does not wait for its end: another one may be started now. Its socket is closed. */
void workers_abandon(struct workers *all, struct worker *w);
uint64_t workers_next_ns(const struct workers *w);
bool workers_may_start(const struct monitor *m, const struct worker *w); /* now, or after its pause */

#endif
