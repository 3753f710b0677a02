/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the engine share: its state, and what each does for the
 * others. Only engine*.c include it. One thread, the engine's.
 */
#ifndef OTP_DAEMON_ENGINE_ENGINE_STATE_H
#define OTP_DAEMON_ENGINE_ENGINE_STATE_H

#include "base/clock.h"
#include "base/ledger.h"
#include "daemon/config/config.h"
#include "daemon/engine/batch.h"
#include "daemon/engine/capture.h"
#include "daemon/engine/host_live.h"
#include "daemon/engine/outbox.h"
#include "daemon/engine/pipeline.h"
#include "daemon/ipc.h"
#include "ring/ring.h"
#include "source/source.h"

/* Between two readings of the kernel's symbols: each costs some 50 ms, and may be in vain. */
#define KERNEL_FIRST_NS   (30 * NSEC_PER_SEC)
#define KERNEL_LONGEST_NS (600 * NSEC_PER_SEC)
/* The ring is looked at so often at the most. */
#define DRAIN_FAST_NS (50 * NSEC_PER_MSEC)
/* More records than this in one drain are worth an earlier look. */
#define DRAIN_ITEMS 96

struct engine {
	int sock; /* to the monitor */
	int epoll;
	struct config *config;
	struct ring ring;
	int ring_fd; /* wakes us: the ring itself, or an eventfd where userspace writes it */
	bool scans;  /* nobody reports process life */
	struct origins origins; /* what is sampled, with the periods in force */
	struct sideband_reader *sideband;
	struct ledger_engine_page *page;
	struct ledger_engine ledger;
	struct outbox outbox;
	struct host_live *host;
	struct pipeline *pipeline;
	struct capture *capture;
	struct batch batch;
	struct ipc_message message;
	int kallsyms_fd; /* gives the symbols of the moment, each time it is read; -1 */
	uint64_t kallsyms_ns, kallsyms_wait_ns;
	const struct otp_rec *waited_for; /* head whose chunks were incomplete at the last drain */
	uint64_t drain_slow_ns, drain_every_ns, next_drain_ns, next_beat_ns;
	uint64_t interval_start_ns, interval_end_ns, last_end_unix_ns;
	uint64_t beats;
	uint64_t bad; /* samples of the batch that break the contract */
	struct ipc_rate rate; /* the change under way; no origins: none */
	uint64_t rate_deadline_ns;
	bool started, stopping;
	bool watch; /* the monitor wants to hear of programs that begin */
	struct ipc_life lives[256];
	uint32_t nr_lives;
};

/* The ledger's working copy becomes what the monitor reads. ctx: struct engine. */
void engine_publish(void *ctx);
/* Ends the interval: its profile goes to net. */
void engine_flush(struct engine *e, uint64_t now);
/* One message of the monitor. 0, or negative: it breaks the rules, or there is no memory. */
int engine_take(struct engine *e, struct ipc_message *m);
/* What came through ring and side-band since the last time, in order of time, into the pipeline. */
void engine_drain(struct engine *e);
/* Once, before the first drain: a batch in which a predecessor died. */
void engine_skip_fatal_batch(struct engine *e);
/* With what has been handed over so far. 0 or negative errno. */
int engine_make_pipeline(struct engine *e);
/* What process life was collected goes to the monitor. */
void engine_send_lives(struct engine *e);

#endif
