/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample's way through the engine: process, unwinding, counting; at the end
 * of an interval, names and OTLP. The same code serves the live engine and a
 * replay: records come in as a batch, questions go to a struct host, requests
 * go to a function.
 *
 * One thread. Time is an argument, so that a replay has the capture's.
 * Every sample that enters is held (parked or counted into the interval's
 * profile), handed out in a request, or lost for a reason, and the ledger copy
 * says so.
 */
#ifndef OTP_DAEMON_ENGINE_PIPELINE_H
#define OTP_DAEMON_ENGINE_PIPELINE_H

#include "base/ledger.h"
#include "daemon/config/config.h"
#include "daemon/engine/batch.h"
#include "process/table.h"
#include "profile/profile.h"
#include "symbol/symbol.h"

struct pipeline;
struct capture;

struct pipeline_ops {
	/* One encoded request of so many samples; 0, or it is lost (encode). */
	profile_out_fn *request;
	/* How a process is to be copied has changed; whether it is selected is not said here. */
	void (*plan)(void *ctx, uint32_t pid, const struct otp_plan *plan);
	/* What programs of this name need; 0: nothing special. */
	void (*hint)(void *ctx, const char comm[OTP_COMM_LEN], const struct otp_hint *h);
	/* A process was forked by parent, or began a program or ended (parent 0); may be NULL. */
	void (*life)(void *ctx, uint32_t pid, uint32_t parent);
};

struct pipeline_config {
	const struct config *config; /* borrowed */
	struct host *host;           /* borrowed */
	struct origins origins;
	struct ledger_engine *ledger; /* the working copy; borrowed */
	struct capture *capture;      /* borrowed, NULL: none */
	struct binary *vdso;          /* borrowed: of a capture; NULL: our own */
	const struct pipeline_ops *ops;
	void *ctx;
};

int pipeline_new(const struct pipeline_config *cfg, struct pipeline **ret);
struct pipeline *pipeline_free(struct pipeline *p); /* NULL */

/*
 * Another configuration, which must live on; only between two intervals, and
 * where sample_attributes differ, after pipeline_end_wait and the flush.
 * -ENOMEM: the old one is gone all the same.
 */
int pipeline_reload(struct pipeline *p, const struct config *config);

/* Looks at all processes that exist; once, after the side-band has begun. */
int pipeline_scan(struct pipeline *p);
/* Some of them once more, once a second, where nobody reports process life. */
int pipeline_scan_some(struct pipeline *p);
/* New kernel symbols; takes them. */
void pipeline_kernel(struct pipeline *p, struct kernel_symbols *k);
/* Whether kernel code was met that newer ones may name better. */
bool pipeline_kernel_unsure(const struct pipeline *p);

/* Applies a sorted batch: events and samples in time order. */
void pipeline_batch(struct pipeline *p, struct batch *b, uint64_t now_ns);
/* In every turn of the main loop: what waits for an answer that has come goes on. */
void pipeline_turn(struct pipeline *p, uint64_t now_ns);
/* Tries parked samples again; those past their deadline, or all, go on as they are. */
void pipeline_retry(struct pipeline *p, uint64_t now_ns, bool all);
size_t pipeline_parked(const struct pipeline *p);
/* What waits for names waits no longer; before the flush that ends a rate, or a set of attributes. */
void pipeline_end_wait(struct pipeline *p);
/* Ends the interval: encodes and hands out. Times are Unix nanoseconds. */
void pipeline_flush(struct pipeline *p, uint64_t start_unix_ns, uint64_t end_unix_ns);
/* Between a flush and the next batch: the samples to come have these periods. */
void pipeline_set_origins(struct pipeline *p, const struct origins *origins);
/* What caches may hold together, and how deep stacks are copied at most; changes take effect at once. */
void pipeline_limit(struct pipeline *p, size_t cache_bytes, uint32_t stack_max_bytes);
/* What is known of a process, as JSON. */
void pipeline_explain(struct pipeline *p, uint32_t pid, struct buf *to);
/* News of a file's debug information, as symbol_set_fetch takes it. */
void pipeline_debuginfod(struct pipeline *p, const uint8_t *htlhash, uint32_t state, bool again);
/* About once a second: housekeeping, and the ledger's figures of quality and cost. */
void pipeline_tick(struct pipeline *p, uint64_t now_ns);

#endif
