/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of otprof once a second, and carries out the decisions of
 * the guard (limits/guard.h): rate, budget of stack bytes, the engine's caches.
 * Called by the monitor, one thread; nothing waits.
 */
#ifndef OTP_DAEMON_MONITOR_GUARD_RUN_H
#define OTP_DAEMON_MONITOR_GUARD_RUN_H

#include <stdint.h>

#include "daemon/limits/guard.h"

struct config;
struct monitor;
struct status_guard;
struct otp_defaults;

struct guard_run {
	struct guard state;
	struct guard_orders orders;	     /* in force */
	uint64_t memory_bytes, memory_limit; /* the tighter of configuration and control group */
	uint64_t cache_bytes;		     /* last sent to the engine */
	uint32_t engine_pid;		     /* that engine */
};

/* From the configuration: at start and after a reload. */
void guard_run_config(struct monitor *m);
/* The least of what the configuration and the control group allow; 0: nothing limits. */
uint64_t guard_memory_limit(const struct config *c);
void guard_run(struct monitor *m, uint64_t now);
/* Sends a new engine its limits. */
void guard_engine_ready(struct monitor *m);
/* Writes m->sampler.defaults to the sampler, reduced by the guard's orders. */
int guard_set_defaults(struct monitor *m);
void guard_status(const struct monitor *m, struct status_guard *ret);

#endif
