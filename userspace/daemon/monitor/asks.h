/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the host: those of the engine, the indexer, the monitor, and of
 * the monitor for decoders are queued, sent one at a time to an idle opener, and answered in any order. The
 * opener gets the asker's socket with the question and answers there, so that no
 * file of others passes through the monitor, which could wait for ever to close
 * it. An opener that does not answer in time is killed, and its question is
 * answered with an error. What it touched is banned for a minute if it is a user's,
 * and, where no signal ends the opener, until that ends and for ten minutes more.
 *
 * Called by the monitor's loop, one thread; nothing waits. Bounds: 64 open
 * questions; ABANDONED_MAX processes that no signal ends. A worker that sends a malformed
 * question is killed.
 */
#ifndef OTP_DAEMON_MONITOR_ASKS_H
#define OTP_DAEMON_MONITOR_ASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/ipc.h"
#include "daemon/monitor/workers.h"

#define ASKS_MAX 64

/*
 * The senders of questions: two workers, the monitor for the names of containers, and the monitor for each decoder, to
 * which the answer goes.
 */
enum asker { ASKER_ENGINE, ASKER_INDEXER, ASKER_MONITOR, ASKER_DECODER /* and those behind it */ };

/* The answer to a question of the monitor, borrowed; NULL: there is none. */
typedef void asks_own_fn(void *ctx, const struct ipc_message *answer);

/* An open question: it waits, or is with an opener. */
struct ask {
	struct ask *next;
	enum asker from;
	uint64_t tag;
	uint32_t len;
	uint8_t data[] __attribute__((aligned(8))); /* struct ipc_ask and path */
};

struct opener_slot {
	struct ask *current;   /* owned; NULL: idle */
	bool orphan;	     /* the asker is dead */
	struct blame touches; /* what it said last that it touches; uid 0, pid 0, dev 0: nothing yet */
	uint64_t deadline_ns; /* UINT64_MAX: the answer is found, and waits for room in the asker's socket */
};

/* What an opener touched that was killed over it. */
struct suspect {
	pid_t pid; /* 0: none */
	struct blame touches;
	uint64_t since_ns;
	bool banned; /* while the process lives, the ban stays */
};

struct asks {
	struct workers *workers; /* borrowed */
	asks_own_fn *own;
	void *own_ctx;
	struct ask *first, **last; /* the waiting ones; owned */
	uint32_t open; /* waiting or with an opener */
	struct opener_slot slot[OPENERS];
	struct bans bans;
	struct suspect suspect[ABANDONED_MAX];
	bool copy_overlays; /* engine or indexer hung on one */
	struct blame decoder_touches[DECODERS]; /* whose memory each got; zero: none yet */
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
/*
 * HOST_OPEN_DECODER on behalf of a decoder, which gets the answer: whose memory to open, before others' questions, since
 * decoders are few. -ENOMEM.
 */
int asks_add_decoder(struct asks *a, int decoder, const struct ipc_ask *ask);
/*
 * HOST_OPEN_BESIDE on behalf of a decoder, which gets the answer with this tag. Behind others' questions: lines are of
 * less use than names. -EBUSY: too many are open, of this decoder or of all; -ENOMEM.
 */
int asks_add_beside(struct asks *a, int decoder, uint64_t tag, const struct ipc_ask *ask, const char *name);
/* No signal ends this decoder: the memory that it got is banned as what an opener hangs on. */
void asks_decoder_hangs(struct asks *a, int decoder, pid_t pid, uint64_t now);
void asks_from_opener(struct asks *a, int opener, struct ipc_message *msg);
void asks_opener_died(struct asks *a, int opener, bool timed_out);
void asks_asker_died(struct asks *a, enum asker from);
void asks_abandoned_ended(struct asks *a, pid_t pid);
int asks_opener_started(struct asks *a, int opener); /* sends it the bans */
void asks_copy_overlays(struct asks *a); /* from now on */

void asks_run(struct asks *a, uint64_t now); /* sends questions, ends late ones, and bans */
uint64_t asks_next_ns(const struct asks *a); /* a question is late then, or a ban ends; UINT64_MAX: neither */

#endif
