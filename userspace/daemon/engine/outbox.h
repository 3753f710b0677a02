/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests between the engine and net: kept here until net has published that
 * it holds them (ipc.h says how a request changes hands).
 *
 * Called by the engine, one thread. Bounded by OUTBOX_BYTES: while no net
 * takes requests the oldest that no net has seen are given up (no_exporter).
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
	struct outbox_entry *first, **last;
	size_t bytes;
	int sock;   /* to net; owned, -1: none */
	bool open;  /* net has said what it holds */
	struct ledger_engine *ledger; /* the engine's working copy; borrowed */
	void (*publish)(void *ctx);
	void *ctx;
};

void outbox_init(struct outbox *o, struct ledger_engine *ledger, void (*publish)(void *ctx), void *ctx);
void outbox_done(struct outbox *o);
/* A new net, or a new socket to the old one. Takes sock. */
void outbox_peer(struct outbox *o, int sock);
/* held turns into handed, published before anything is sent. -errno: nothing changed. */
int outbox_add(struct outbox *o, const void *request, size_t len, const struct ledger_counts *samples);
/* RECEIVED: net holds everything up to id. */
void outbox_received(struct outbox *o, uint64_t id);
/* Sends what can be sent now. */
void outbox_pump(struct outbox *o);
static inline bool outbox_empty(const struct outbox *o)
{
	return !o->first;
}

#endif
