/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile of one interval: stacks counted by workload and attributes, and
 * its OTLP encoding. All profiling data that leaves the host is encoded here.
 *
 * Called by the engine, one thread. Adding a sample hashes its frames and
 * counts; addresses are resolved only when the interval is encoded, once per
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

/*
 * The attributes that [profile] sample_attributes selects from.
 *   X(NAME, "key", type, field): field is struct sample_key's. INT: uint32_t;
 *   STRING: struct str *, of which the builder holds references. LABELS: likewise, the text of any number of attributes,
 *   key, NUL, value, NUL of each; the keys of what is sent are the name, a dot, and key.
 * The type also decides what is encoded, and what is referred to and released.
 */
#define SAMPLE_ATTRIBUTES(X)                                        \
	X(PID, "process.pid", INT, pid)                             \
	X(EXECUTABLE, "process.executable.name", STRING, exe)       \
	X(THREAD_NAME, "thread.name", STRING, comm)                 \
	X(THREAD_ID, "thread.id", INT, tid)                         \
	X(CPU, "cpu.logical_number", INT, cpu)                       \
	X(LABELS, "process.context.label", LABELS, labels)

/*
 * Each value of a sample attribute becomes a series of its own in Pyroscope
 * (measured: 50 thread ids made 50 series), and receivers accept 25 attributes
 * in all. Executables are bounded by what is installed, and distinguish the
 * programs of a unit or container; one that the resource already names is left
 * out. Thread names (kworker/u8:3, worker-1742), ids and CPUs grow with load
 * and time, so they are off by default. Labels are set by the program's author
 * for this very purpose, and their values are bounded.
 */
#define PROFILE_ATTRIBUTES_DEFAULT (1u << SAMPLE_ATTRIBUTE_EXECUTABLE | 1u << SAMPLE_ATTRIBUTE_LABELS)

#define PROFILE_LABELS_MAX 10 /* of one sample */

enum sample_attribute {
#define X(NAME, key, type, field) SAMPLE_ATTRIBUTE_##NAME,
	SAMPLE_ATTRIBUTES(X)
#undef X
	SAMPLE_ATTRIBUTE_NR
};

struct profile_limits {
	uint32_t stacks;        /* distinct stacks an interval, default 65536 */
	uint32_t frames;        /* frames of all distinct stacks, default 1048576 */
	size_t request_bytes;   /* [profile] request_max_size, default 4 MiB, before compression */
};

/*
 * Several builders may share one, which the creator of the builders owns; a
 * change in it applies to all of them. Attributes and origins describe the
 * samples counted, so they change only while no builder holds any.
 */
struct profile_config {
	struct profile_limits limits;
	uint32_t attributes; /* bit per enum sample_attribute */
	struct origins origins;
	const char *scope_version; /* static */
	struct symbolizer *symbols;            /* borrowed */
	const struct kernel_symbols *kernel;   /* borrowed; NULL: kernel frames are one, [kernel] */
	/*
	 * Called while an interval is encoded, with the quality of its samples: for
	 * each run of samples of one workload and executable (NULL: executables are
	 * not distinguished). NULL: no calls.
	 */
	void (*quality)(void *ctx, const struct workload *w, const struct str *exe, uint64_t samples,
			const struct ledger_quality *q);
	void *ctx;
};

struct profile_sample {
	struct workload *workload; /* borrowed; the builder takes a reference */
	uint32_t slot;  /* of its origin in the session */
	uint64_t value; /* in the unit of its origin */
	uint32_t pid, tid, cpu;
	const char *comm; /* thread name, borrowed */
	struct str *exe;  /* borrowed */
	struct str *labels; /* clean; borrowed; NULL: none */
	const struct frame *frames; /* innermost first; borrowed, with all that they refer to */
	uint32_t nr_frames; /* at most PROFILE_FRAMES_MAX; 0: the stack becomes a marker */
};

/* Of one stack: those that share a native frame with another one, inlined into it; what is too many is left out. */
#define PROFILE_INLINED_MAX 4096
/* Kernel, native, interpreted; the creator of a coroutine; markers of a cut, and of halves that do not fit or are short. */
#define PROFILE_FRAMES_MAX                                                                                          \
	(OTP_KSTACK_MAX + UNWIND_FRAMES_MAX + PROFILE_INLINED_MAX + OTP_WALK_PLANS * OTP_WALK_FRAMES + 2 +          \
	 2 * OTP_WALK_PLANS)

struct profile_builder;
/* cfg: borrowed for the builder's life; its bounds on stacks and frames are read now, not later. */
int profile_new(const struct profile_config *cfg, struct profile_builder **ret);
struct profile_builder *profile_free(struct profile_builder *b); /* NULL */

/* 0; -ENOSPC, -ENOMEM, -E2BIG (too many frames): the sample was not added. */
int profile_add(struct profile_builder *b, const struct profile_sample *s);
/* Moves from's samples to to; from is empty afterwards. *ret_lost: samples that did not fit and were dropped. */
void profile_merge(struct profile_builder *to, struct profile_builder *from, struct ledger_counts *ret_lost);
uint64_t profile_samples(const struct profile_builder *b);
size_t profile_bytes(const struct profile_builder *b); /* memory held */

/*
 * Encodes what was added as ExportProfilesServiceRequest messages of at most
 * request_bytes each, hands each to out, and begins a new interval. Times are
 * Unix nanoseconds. samples: the number in this request, by slot.
 * out returns 0 or negative errno, which ends the encoding and is returned;
 * samples not handed to out by then are dropped (*ret_lost).
 */
typedef int profile_out_fn(void *ctx, const void *request, size_t len, const struct ledger_counts *samples);
int profile_encode(struct profile_builder *b, uint64_t start_unix_ns, uint64_t end_unix_ns,
		   profile_out_fn *out, void *ctx, struct ledger_counts *ret_lost);

/*
 * For the progress line: the function with the largest value of its own in the
 * last encoded interval, by the samples of one origin: the CPU clock, or else
 * the first one with samples.
 */
struct profile_top {
	char name[128];
	uint64_t samples; /* sum of the values of samples whose innermost frame it is */
	uint64_t total;	  /* of those with it anywhere on the stack */
};
void profile_top(const struct profile_builder *b, struct profile_top *ret);

struct profile_stats {
	uint64_t intervals, requests, bytes, stacks, locations;
};
void profile_stats(const struct profile_builder *b, struct profile_stats *ret);

#endif
