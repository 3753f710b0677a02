/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's state, and the functions that its files provide for each other.
 * Only engine*.c and their unit test include it. One thread. What is mapped, open
 * or created here is owned; engine.c frees it.
 */
#ifndef OTP_DAEMON_ENGINE_ENGINE_STATE_H
#define OTP_DAEMON_ENGINE_ENGINE_STATE_H

#include "base/clock.h"
#include "base/ledger.h"
#include "daemon/config/config.h"
#include "daemon/engine/batch.h"
#include "daemon/engine/capture.h"
#include "daemon/engine/decoders.h"
#include "daemon/engine/host_live.h"
#include "daemon/engine/hub_feed.h"
#include "daemon/engine/outbox.h"
#include "daemon/engine/pipeline.h"
#include "daemon/ipc.h"
#include "ring/ring.h"
#include "source/source.h"

/* Between two readings of the kernel's symbols: each costs some 50 ms, and may find nothing new. */
#define KERNEL_FIRST_NS   (30 * NSEC_PER_SEC)
#define KERNEL_LONGEST_NS (600 * NSEC_PER_SEC)
/* The least time between two drains. */
#define DRAIN_FAST_NS (50 * NSEC_PER_MSEC)
/* After more records than this, the next drain is earlier. */
#define DRAIN_ITEMS 96
/* Instead of a descriptor, in epoll's data: the sampler has woken us. */
#define RING_FILLS (-2)

struct engine {
	int sock; /* to the monitor */
	int epoll;
	struct config *config;
	struct ring ring;	/* a view: nothing of it can be written here */
	unsigned long position; /* everything below it is read; the monitor learns it from the ledger's page */
	bool scans;  /* /proc is scanned, since nobody reports process life */
	struct origins origins; /* with the periods in force */
	struct sideband_reader *sideband;
	struct ledger_engine_page *page;
	struct ledger_engine ledger;
	struct outbox outbox;
	struct hub_feed hub;
	struct host_live *host;
	struct decoders *decoders;
	struct pipeline *pipeline;
	struct capture *capture;
	struct batch batch;
	struct ipc_message message;
	int kallsyms_fd; /* each reading returns the present symbols; -1 */
	uint64_t kallsyms_ns, kallsyms_wait_ns;
	const struct otp_rec *waited_for; /* head whose chunks were incomplete at the last drain */
	uint64_t drain_slow_ns, drain_every_ns, next_drain_ns, next_beat_ns;
	uint64_t interval_start_ns, interval_end_ns, last_end_unix_ns;
	uint64_t beats;
	uint64_t bad; /* samples of the batch that break the ring's contract */
	struct ipc_rate rate; /* the change under way; no origins: none */
	uint64_t rate_deadline_ns;
	bool started, stopping;
	bool watch; /* the monitor has requested LIFE messages */
	struct ipc_life lives[256];
	uint32_t nr_lives;
	uint64_t unknown[32]; /* runtimes of which the log has a line, by hash of runtime and reason */
	uint32_t nr_unknown;
};

/* Copies the ledger's working copy to the page that the monitor reads. ctx: struct engine. */
void engine_publish(void *ctx);
/* Ends the interval: sends its profile to net. */
void engine_flush(struct engine *e, uint64_t now);
/* Handles one message of the monitor. Negative errno: it breaks the rules, or there is no memory. */
int engine_take(struct engine *e, struct ipc_message *m);
/* Passes new records of ring and side-band, in order of time, to the pipeline. */
void engine_drain(struct engine *e);
/* Once, before the first drain: skips the batch in which a predecessor died. */
void engine_skip_fatal_batch(struct engine *e);
/* From what the monitor has sent so far. 0 or negative errno. */
int engine_make_pipeline(struct engine *e);
/* Sends the collected LIFE entries to the monitor. */
void engine_send_lives(struct engine *e);

#endif
