/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests from the engine to net, kept until net has published that it holds
 * them (ipc.h describes the hand-over).
 *
 * Called by the engine, one thread. Bounded by OUTBOX_BYTES: while no net
 * takes requests, the oldest that no net has seen are lost (no_exporter).
 */
#ifndef OTP_DAEMON_ENGINE_OUTBOX_H
#define OTP_DAEMON_ENGINE_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ledger.h"

#define OUTBOX_BYTES (32u << 20)

struct outbox_entry;
struct outbox {
	struct outbox_entry *first, **last; /* owned */
	size_t bytes;
	int sock;   /* to net; owned, -1: none */
	bool open;  /* the first RECEIVED of this socket has arrived */
	struct ledger_engine *ledger; /* the engine's working copy; borrowed */
	void (*publish)(void *ctx);
	void *ctx;
};

void outbox_init(struct outbox *o, struct ledger_engine *ledger, void (*publish)(void *ctx), void *ctx);
void outbox_done(struct outbox *o);
/* A socket to a new net, or a new one to the same net. Takes ownership of sock. */
void outbox_peer(struct outbox *o, int sock);
/* Copies request. Its samples move from held to handed, published before anything is sent. -errno: no change. */
int outbox_add(struct outbox *o, const void *request, size_t len, const struct ledger_counts *samples);
/* The memfd of the request that was added last, borrowed until the next call; -1: net has it already. */
int outbox_newest(const struct outbox *o);
/* RECEIVED: net holds everything up to id. */
void outbox_received(struct outbox *o, uint64_t id);
/* Sends as much as the socket takes. */
void outbox_pump(struct outbox *o);
static inline bool outbox_empty(const struct outbox *o)
{
	return !o->first;
}

#endif
