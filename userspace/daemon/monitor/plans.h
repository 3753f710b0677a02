/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans, walks and hints that the engine requests. It parses hostile input, so it may
 * tune how a process is copied, within the configured bounds, but never which
 * processes are selected.
 *
 * Called by the monitor for each PLAN, WALK and HINT; one thread. An engine that sends
 * a malformed message is killed; a request beyond the bounds, or beyond 2048 at
 * once and a thousand a second, is refused and counted.
 */
#ifndef OTP_DAEMON_MONITOR_PLANS_H
#define OTP_DAEMON_MONITOR_PLANS_H

#include <stdbool.h>
#include <stdint.h>

struct ipc_message;
struct monitor;

struct plans {
	uint64_t tokens_ns;    /* a token bucket, as the time up to which it is used */
	uint64_t set, refused; /* since the start */
	bool logged_no_walks;
};

void plans_set(struct monitor *m, const struct ipc_message *msg);
void walks_set(struct monitor *m, const struct ipc_message *msg);
void hints_set(struct monitor *m, const struct ipc_message *msg);

#endif
