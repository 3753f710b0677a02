/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of the metrics endpoint, and which of them makes room for a
 * new one: the one that has been without an answered request for longest.
 * Otherwise a few connections that request nothing would keep everybody out;
 * bytes that trickle in do not count as activity.
 *
 * Private to metrics.c, one thread. A client is owned by the list until
 * metrics_client_end. The socket belongs to the HTTP library: it is shut down
 * here, which the library takes as the client's end.
 */
#ifndef OTP_DAEMON_REPORT_METRICS_CLIENTS_H
#define OTP_DAEMON_REPORT_METRICS_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>

struct metrics_client {
	struct metrics_client *next;
	int fd; /* borrowed */
	bool waits; /* for an answer of the monitor: it is not shut down */
	uint64_t since_ns; /* start, or end of the last request */
};

struct metrics_clients {
	struct metrics_client *first;
	uint32_t count;
};

/* Adds a connection; with more than max of them the idlest is shut down. NULL: no memory. */
struct metrics_client *metrics_client_begin(struct metrics_clients *all, int fd, uint32_t max, uint64_t now_ns);
void metrics_client_end(struct metrics_clients *all, struct metrics_client *c);
/* Shuts down those without an answered request for this long. */
void metrics_clients_expire(const struct metrics_clients *all, uint64_t now_ns, uint64_t age_ns);

#endif
