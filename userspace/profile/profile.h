/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile of one interval: stacks counted by workload and attributes, and
 * its OTLP encoding. Everything that leaves the host has passed here.
 *
 * Called by the engine, one thread. Adding a sample hashes its frames and
 * counts; names are looked up only when the interval is encoded, once per
 * location.
 * Bounds: struct profile_limits; a sample that does not fit is refused with
 * -ENOSPC (the ledger's no_memory).
 */
#ifndef OTP_PROFILE_PROFILE_H
#define OTP_PROFILE_PROFILE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/ledger.h"
#include "base/origin.h"
#include "process/workload.h"
#include "symbol/symbol.h"
#include "unwind/unwind.h"

/* [profile] sample_attributes: which of these tell samples apart. One line here, one in the encoder's table. */
#define SAMPLE_ATTRIBUTES(X)                                        \
	X(PID, "process.pid", INT)                                  \
	X(EXECUTABLE, "process.executable.name", STRING)            \
	X(THREAD_NAME, "thread.name", STRING)                       \
	X(THREAD_ID, "thread.id", INT)                              \
	X(CPU, "cpu.logical_number", INT)

/*
 * Each value of a sample attribute becomes a series of its own in Pyroscope
 * (measured: 50 thread ids made 50 series), and receivers take 25 attributes
 * in all. The executable is bounded by what is installed, and says which of a
 * unit's or container's programs used the CPU; where the resource says it
 * already, it is left out. Thread names (kworker/u8:3, worker-1742), ids and
 * CPUs grow with load and time: on request only.
 */
#define PROFILE_ATTRIBUTES_DEFAULT (1u << SAMPLE_ATTRIBUTE_EXECUTABLE)

enum sample_attribute {
#define X(NAME, name, type) SAMPLE_ATTRIBUTE_##NAME,
	SAMPLE_ATTRIBUTES(X)
#undef X
	SAMPLE_ATTRIBUTE_NR
};

struct profile_limits {
	uint32_t stacks;        /* distinct stacks an interval, default 65536 */
	uint32_t frames;        /* frames of all distinct stacks, default 1048576 */
	size_t request_bytes;   /* [profile] request_max_bytes, default 4 MiB, before compression */
};

/*
 * Several builders may share one: it is owned by whoever makes them, and what
 * is changed in it holds for all of them. Attributes and origins describe the
 * samples that are held, and change only while no builder holds any.
 */
struct profile_config {
	struct profile_limits limits;
	uint32_t attributes; /* bit per enum sample_attribute */
	struct origins origins;
	const char *scope_version; /* static */
	struct symbolizer *symbols;            /* borrowed */
	const struct kernel_symbols *kernel;   /* borrowed; NULL: kernel frames are one, [kernel] */
	/*
	 * How good the samples of an interval are, said while it is encoded: once
	 * for samples that stand together and have one workload and executable
	 * (NULL where that tells none apart). May be NULL.
	 */
	void (*quality)(void *ctx, const struct workload *w, const struct str *exe, uint64_t samples,
			const struct ledger_quality *q);
	void *ctx;
};

struct profile_sample {
	struct workload *workload; /* borrowed; the builder takes a reference */
	uint32_t slot;  /* of its origin in the session */
	uint64_t value; /* how much of the origin it stands for */
	uint32_t pid, tid, cpu;
	const char *comm; /* thread name, borrowed */
	struct str *exe;  /* borrowed */
	const struct frame *frames; /* innermost first; borrowed, as is what they refer to */
	uint32_t nr_frames; /* at most PROFILE_FRAMES_MAX; 0: a marker stands in their place */
};

/* Kernel frames, user frames, marker. */
#define PROFILE_FRAMES_MAX (OTP_KSTACK_MAX + UNWIND_FRAMES_MAX + 1)

struct profile_builder;
/* cfg: borrowed for the builder's life; its bounds on stacks and frames are those of now. */
int profile_new(const struct profile_config *cfg, struct profile_builder **ret);
struct profile_builder *profile_free(struct profile_builder *b); /* NULL */

/* 0, -ENOSPC, -ENOMEM, -E2BIG (too many frames): then nothing was added. */
int profile_add(struct profile_builder *b, const struct profile_sample *s);
/* Adds from's samples to to's and empties from. *ret_lost: samples that did not fit, and are gone. */
void profile_merge(struct profile_builder *to, struct profile_builder *from, struct ledger_counts *ret_lost);
uint64_t profile_samples(const struct profile_builder *b);
size_t profile_bytes(const struct profile_builder *b); /* memory held */

/*
 * Encodes what was added as ExportProfilesServiceRequest messages of at most
 * request_bytes each, hands each to out, and begins a new interval. Times are
 * Unix nanoseconds. samples: how many are in this request.
 * out returns 0 or negative errno, which ends the encoding and is returned;
 * what had not been handed out by then is gone (*ret_lost samples).
 */
typedef int profile_out_fn(void *ctx, const void *request, size_t len, const struct ledger_counts *samples);
int profile_encode(struct profile_builder *b, uint64_t start_unix_ns, uint64_t end_unix_ns,
		   profile_out_fn *out, void *ctx, struct ledger_counts *ret_lost);

/* What the progress line shows: the function with most samples by self, of the last encoded interval. */
struct profile_top {
	char name[128];
	uint64_t samples, total;
};
void profile_top(const struct profile_builder *b, struct profile_top *ret);

struct profile_stats {
	uint64_t intervals, requests, bytes, stacks, locations;
};
void profile_stats(const struct profile_builder *b, struct profile_stats *ret);

#endif
