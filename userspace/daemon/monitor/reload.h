/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGHUP: the configuration is read again. A faulty one changes nothing. A valid
 * one is applied without stopping the sampler; a key that needs a restart is
 * logged, and keeps its value. The engine closes its profile, and destinations
 * that were removed finish their queue, so that every sample is accounted for;
 * until both workers have answered, systemd shows the service as reloading.
 *
 * Called by the monitor, one thread. Nothing here waits. One reload at a time: a
 * SIGHUP that arrives meanwhile starts another afterwards.
 */
#ifndef OTP_DAEMON_MONITOR_RELOAD_H
#define OTP_DAEMON_MONITOR_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

struct monitor;
struct worker;

struct config;
struct reload_next;

struct reload {
	bool wanted;		/* SIGHUP has arrived */
	struct reload_next *next; /* read, not in force until the names of containers are resolved; owned */
	bool engine, net;	/* have not answered yet */
	int engine_pid, net_pid; /* to which RELOAD was sent */
	uint64_t deadline_ns;
	bool quiet;		/* the engine's answer is to reload_select: nobody asked for a reload */
	uint32_t done, refused; /* since the start */
};

void reload_ask(struct monitor *m);
void reload_answered(struct monitor *m, const struct worker *w);
bool reload_is_busy(const struct monitor *m);
/* Puts a selection in force: c differs from m->config in targets, rate and depth only. Takes c, leaves the former one. */
void reload_select(struct monitor *m, struct config *c);
void reload_run(struct monitor *m, uint64_t now);
void reload_done(struct reload *r);

#endif
