/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGHUP: the configuration is read again. A wrong one changes nothing. A good
 * one is applied where it can be while sampling goes on; what takes a restart
 * is said, and keeps its value. The engine closes its profile and net lets
 * what is no destination any more deliver, so that every sample is accounted
 * for; until both have answered the service manager knows that we reload.
 *
 * Called by the monitor. Nothing here waits. One reload at a time: a SIGHUP
 * that comes meanwhile begins another when this one is over.
 */
#ifndef OTP_DAEMON_MONITOR_RELOAD_H
#define OTP_DAEMON_MONITOR_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

struct monitor;
struct worker;

struct reload_next;

struct reload {
	bool wanted;		/* SIGHUP came */
	struct reload_next *next; /* read, and not in force before the names of containers are known; owned */
	bool engine, net;	/* have not answered yet */
	int engine_pid, net_pid; /* who was told */
	uint64_t deadline_ns;
	uint32_t done, refused; /* since the start */
};

void reload_ask(struct monitor *m);
void reload_answered(struct monitor *m, const struct worker *w);
void reload_run(struct monitor *m, uint64_t now);
void reload_done(struct reload *r);

#endif
