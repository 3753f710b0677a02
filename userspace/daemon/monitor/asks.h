/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the host: the engine's, the indexer's and the monitor's own are
 * queued, given one at a time to an opener that is free, and answered in any
 * order. An opener that does not answer in time is killed, and its question
 * answered in its place.
 *
 * Called by the monitor's loop, one thread; nothing waits. Bounds: 64 questions
 * that are not answered; eight openers that no signal ends. A question that
 * breaks the rules is the end of the worker that sent it.
 */
#ifndef OTP_DAEMON_MONITOR_ASKS_H
#define OTP_DAEMON_MONITOR_ASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/ipc.h"
#include "daemon/monitor/workers.h"

#define ASKS_MAX 64

/* Who asks openers: two workers, and the monitor itself for the names of containers. */
enum asker { ASKER_ENGINE, ASKER_INDEXER, ASKER_MONITOR };

/* Of the monitor's own question; NULL: there is no answer. */
typedef void asks_own_fn(void *ctx, const struct ipc_message *answer);

/* A question on its way: waits, is with an opener, or its answer waits for room in the asker's socket. */
struct ask {
	struct ask *next;
	enum asker from;
	uint64_t tag;
	uint32_t len;
	uint8_t data[] __attribute__((aligned(8))); /* struct ipc_ask and path */
};

struct opener_slot {
	struct ask *current;   /* NULL: idle */
	bool orphan;	       /* who asked is dead */
	uint64_t deadline_ns;
	struct ipc_message *answer; /* not yet accepted by who asked */
	enum asker answer_to;
};

struct asks {
	struct workers *workers; /* borrowed */
	asks_own_fn *own;
	void *own_ctx;
	struct ask *first, **last;
	uint32_t open; /* waiting or with an opener */
	struct opener_slot slot[OPENERS];
	uint64_t asked, refused, timed_out;
};

void asks_init(struct asks *a, struct workers *workers, asks_own_fn *own, void *ctx);
void asks_done(struct asks *a);

void asks_add(struct asks *a, enum asker from, struct ipc_message *msg);
int asks_add_own(struct asks *a, const struct ipc_ask *ask, const char *path); /* -ENOMEM */
void asks_answered(struct asks *a, int opener, struct ipc_message *msg);
void asks_opener_died(struct asks *a, int opener, bool timed_out);
void asks_asker_died(struct asks *a, enum asker from);

void asks_run(struct asks *a, uint64_t now); /* hands out, times out, sends on */
uint64_t asks_next_ns(const struct asks *a);
bool asks_wait_for_room(const struct asks *a); /* poll the engine's socket for output */

#endif
