/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages of a sample in the engine: process, unwinding, counting; at the
 * end of an interval, names and OTLP. The same code serves the live engine and
 * a replay: records arrive as a batch, questions are sent to a struct host,
 * requests are passed to a function.
 *
 * One thread. Time is an argument, so that a replay runs in the capture's time.
 * Every sample that enters is held (parked or counted into the interval's
 * profile), passed on in a request, or lost for a reason, and is counted as such
 * in the working copy of the ledger.
 */
#ifndef OTP_DAEMON_ENGINE_PIPELINE_H
#define OTP_DAEMON_ENGINE_PIPELINE_H

#include "base/ledger.h"
#include "daemon/config/config.h"
#include "daemon/engine/batch.h"
#include "daemon/engine/decoders.h"
#include "process/table.h"
#include "profile/profile.h"
#include "symbol/symbol.h"

struct pipeline;
struct capture;

struct pipeline_ops {
	/* One encoded request. Unless this returns 0, its samples are lost (encode). */
	profile_out_fn *request;
	/* The plan for copying a process has changed; its selection is not part of this. */
	void (*plan)(void *ctx, uint32_t pid, const struct otp_plan *plan);
	/* How to copy the interpreters' frames of a process; NULL w removes. NULL: nobody copies them. */
	void (*walk)(void *ctx, uint32_t pid, const struct otp_walks *w);
	/* The sizes for programs of this name; zeros: remove the hint. */
	void (*hint)(void *ctx, const char comm[OTP_COMM_LEN], const struct otp_hint *h);
	/* A process runs a runtime that is not known, and stays native; may be NULL. */
	void (*unknown_runtime)(void *ctx, uint32_t pid, const char *runtime, const char *why);
	/* A process was forked by parent, or has executed a program or exited (parent 0); may be NULL. */
	void (*life)(void *ctx, uint32_t pid, uint32_t parent);
};

struct pipeline_config {
	const struct config *config; /* borrowed */
	struct host *host;           /* borrowed */
	struct origins origins;
	struct ledger_engine *ledger; /* the working copy; borrowed */
	struct capture *capture;      /* borrowed, NULL: none */
	struct binary *vdso;          /* borrowed: of a capture; NULL: our own */
	struct decoders *decoders;    /* borrowed, NULL: interpreters are not decoded */
	const struct pipeline_ops *ops;
	void *ctx;
};

int pipeline_new(const struct pipeline_config *cfg, struct pipeline **ret);
struct pipeline *pipeline_free(struct pipeline *p); /* NULL */

/*
 * Another configuration, borrowed like the first; only between two intervals, and
 * where sample_attributes differ, after pipeline_end_wait and the flush.
 * -ENOMEM: the old one is not in force any more either.
 */
int pipeline_reload(struct pipeline *p, const struct config *config);

/* Scans all processes; once, after the side-band has begun. */
int pipeline_scan(struct pipeline *p);
/* Scans some of them again; once a second, where nobody reports process life. */
int pipeline_scan_some(struct pipeline *p);
/* New kernel symbols, owned by the pipeline from then on. */
void pipeline_kernel(struct pipeline *p, struct kernel_symbols *k);
/* Whether newer kernel symbols may resolve addresses that these did not. */
bool pipeline_kernel_unsure(const struct pipeline *p);

/* Applies a sorted batch: events and samples in time order. */
void pipeline_batch(struct pipeline *p, struct batch *b, uint64_t now_ns);
/* In every turn of the main loop: retries samples whose answer has arrived. */
void pipeline_turn(struct pipeline *p, uint64_t now_ns);
/* Retries parked samples; those past their deadline, or all, do not wait any longer. */
void pipeline_retry(struct pipeline *p, uint64_t now_ns, bool all);
size_t pipeline_parked(const struct pipeline *p);
/* Whether the next drain should be early: a program has begun that will soon have walks. */
bool pipeline_is_expecting(const struct pipeline *p, uint64_t now_ns);
/* Ends all waiting for names; before the flush that ends a rate, or a set of attributes. */
void pipeline_end_wait(struct pipeline *p);
/* Ends the interval: encodes its profiles and passes them to ops->request. Times are Unix nanoseconds. */
void pipeline_flush(struct pipeline *p, uint64_t start_unix_ns, uint64_t end_unix_ns);
/* Between a flush and the next batch: the following samples have these periods. */
void pipeline_set_origins(struct pipeline *p, const struct origins *origins);
/* The most bytes of all caches together and of one stack copy; in force at once. */
void pipeline_limit(struct pipeline *p, size_t cache_bytes, uint32_t stack_max_bytes);
/* Appends a description of a process, as JSON. */
void pipeline_explain(struct pipeline *p, uint32_t pid, struct buf *to);
/* The state of a file's debug information has changed; arguments as of symbol_set_fetch. */
void pipeline_debuginfod(struct pipeline *p, const uint8_t *htlhash, uint32_t state, bool again);
/* About once a second: the ledger's figures of processes, parked samples and CPU time. */
void pipeline_tick(struct pipeline *p, uint64_t now_ns);

#endif
