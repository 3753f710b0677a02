/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hub's HTTP server: page, API, events, OTLP receiver, on one port.
 *
 * Called by the hub process, one thread: server_fd is readable where there is
 * something to do; call server_run then, and when server_timeout_ms is over.
 * A connection has deadlines for a request as a whole and for its answer,
 * however their bytes arrive; where there are too many, the one that has done
 * nothing for longest is closed. Bounds: CONNECTIONS_MAX and STREAMS_MAX;
 * API_BODY_MAX, or request_bytes of the receiver for RECEIVES_MAX requests at
 * once; a request's headers 32 KiB.
 * Lifetime: server_new, server_free. The store is borrowed; the server is told
 * of its changes, and sends the events.
 */
#ifndef OTP_HUB_SERVER_H
#define OTP_HUB_SERVER_H

#include "hub/api.h"
#include "hub/guard.h"

#define SERVER_CONNECTIONS_MAX 128
#define SERVER_RECEIVES_MAX    4

struct server_config {
	struct guard guard; /* its texts are borrowed as long as the server lives */
	struct api api;
	bool receive;
	const char *cert, *key; /* PEM, borrowed until server_new returns; NULL: plain HTTP */
	struct otlp_limits limits; /* of a received request */
};

struct server;

/* fd listens; owned from now on, also on failure. -EIO, -ENOMEM. */
int server_new(int fd, const struct server_config *config, struct server **ret);
struct server *server_free(struct server *s); /* NULL */
int server_fd(const struct server *s);
int server_timeout_ms(const struct server *s); /* -1: none */
void server_run(struct server *s);
/* The store has taken a request that did not arrive here: readers of events are told. */
void server_taken(struct server *s);

#endif
