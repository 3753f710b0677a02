/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests from the engine to the hub next door: each that net gets, the same
 * memory. The hub shows; net delivers. So nothing here waits, keeps or counts for
 * the ledger: a request that the hub does not take at once is not shown.
 *
 * Called by the engine, one thread. The buffer of the socket has room for a few
 * messages, so that a hub that does not read holds a few requests in memory.
 */
#ifndef OTP_DAEMON_ENGINE_HUB_FEED_H
#define OTP_DAEMON_ENGINE_HUB_FEED_H

#include <stddef.h>
#include <stdint.h>

struct hub_feed {
	int sock; /* owned; -1: there is no hub */
};

void hub_feed_init(struct hub_feed *f);
void hub_feed_done(struct hub_feed *f);
void hub_feed_peer(struct hub_feed *f, int sock); /* takes ownership */
/* memfd: sealed, borrowed; -1: nothing to send. */
void hub_feed_send(struct hub_feed *f, int memfd, size_t len);

#endif
