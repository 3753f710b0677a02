/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the host: those of the engine, the indexer and the monitor are
 * queued, sent one at a time to an idle opener, and answered in any order. An
 * opener that does not answer in time is killed, and its question is answered
 * with an error.
 *
 * Called by the monitor's loop, one thread; nothing waits. Bounds: 64 open
 * questions; eight openers that no signal ends. A worker that sends a malformed
 * question is killed.
 */
#ifndef OTP_DAEMON_MONITOR_ASKS_H
#define OTP_DAEMON_MONITOR_ASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/ipc.h"
#include "daemon/monitor/workers.h"

#define ASKS_MAX 64

/* The senders of questions: two workers, and the monitor for the names of containers. */
enum asker { ASKER_ENGINE, ASKER_INDEXER, ASKER_MONITOR };

/* The answer to a question of the monitor, borrowed; NULL: there is none. */
typedef void asks_own_fn(void *ctx, const struct ipc_message *answer);

/* An open question: it waits, is with an opener, or its answer waits for room in the asker's socket. */
struct ask {
	struct ask *next;
	enum asker from;
	uint64_t tag;
	uint32_t len;
	uint8_t data[] __attribute__((aligned(8))); /* struct ipc_ask and path */
};

struct opener_slot {
	struct ask *current;   /* owned; NULL: idle */
	bool orphan;	       /* the asker is dead */
	uint64_t deadline_ns;
	struct ipc_message *answer; /* owned; not yet accepted by the asker */
	enum asker answer_to;
};

struct asks {
	struct workers *workers; /* borrowed */
	asks_own_fn *own;
	void *own_ctx;
	struct ask *first, **last; /* the waiting ones; owned */
	uint32_t open; /* waiting or with an opener */
	struct opener_slot slot[OPENERS];
	uint64_t asked, refused, timed_out;
};

void asks_init(struct asks *a, struct workers *workers, asks_own_fn *own, void *ctx);
void asks_done(struct asks *a);

void asks_add(struct asks *a, enum asker from, struct ipc_message *msg);
/*
 * A question of the monitor, first in the queue: the selection waits for its answer, and processes can make each
 * question of the engine take as long as its deadline. -ENOMEM.
 */
int asks_add_own(struct asks *a, const struct ipc_ask *ask, const char *path);
void asks_answered(struct asks *a, int opener, struct ipc_message *msg);
void asks_opener_died(struct asks *a, int opener, bool timed_out);
void asks_asker_died(struct asks *a, enum asker from);

void asks_run(struct asks *a, uint64_t now); /* sends questions, ends late ones, passes answers on */
uint64_t asks_next_ns(const struct asks *a);
bool asks_wait_for_room(const struct asks *a); /* poll the engine's socket for output */

#endif
