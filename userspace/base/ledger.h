/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger's shared pages. Every sample that the sampler took is at any
 * time in exactly one place: on the ring, in the engine, with the exporter
 * for each destination, exported, unconfirmed, or lost for a reason.
 *
 * Each worker publishes its part in one page that the monitor owns (a memfd),
 * so a worker that is killed leaves its counts exact. A page holds two slots
 * and the number of the current one: the writer fills the other slot, then
 * stores its number with release order, so that a reader, or the monitor after
 * a kill, always sees one whole state.
 *
 * Writers: the engine and net, each its own page, one thread. Readers: the
 * monitor, at any time. Counts are samples unless the name says otherwise and
 * grow for the life of the monitor; a restarted worker continues from the page.
 * Every equation holds for each origin separately.
 */
#ifndef OTP_BASE_LEDGER_H
#define OTP_BASE_LEDGER_H

#include <stdint.h>
#include <string.h>

#include "kmod/uapi/otprof.h"
#include "kmod/uapi/otprof_walk.h"

#define LEDGER_DESTINATIONS_MAX 8

/*
 * The sources of frames' names, as status, metrics and explain list them.
 *   X(NAME, "name", named)  named: a function's name, not a place in a file
 */
#define NAME_SOURCES(X)                                                                            \
	X(DWARF, "dwarf", 1)		     /* debug information: inlined calls, lines */          \
	X(GOPCLNTAB, "gopclntab", 1)	     /* Go's own table: inlined calls, lines */                  \
	X(DEBUG_SYMBOLS, "debug_symbols", 1) /* the whole symbol table, of the debug file where the file has none */ \
	X(DEBUGDATA, "gnu_debugdata", 1)     /* symbols that a stripped file keeps packed */        \
	X(SYMTAB, "symtab", 1)                                                                     \
	X(DYNSYM, "dynsym", 1)                                                                     \
	X(PLT, "plt", 1)                                                                           \
	X(PERF_MAP, "perf_map", 1)                                                                 \
	X(JITDUMP, "jitdump", 1)                                                                   \
	X(RUNTIME, "runtime", 1) /* an interpreter's own metadata */                               \
	X(KALLSYMS, "kallsyms", 1)                                                                 \
	X(UNWIND_START, "unwind_start", 0) /* binary+0x<where the function begins> */               \
	X(RAW, "raw", 0)                   /* binary+0xoffset, or nothing at all */

enum name_source {
#define X(NAME, name, named) NAME_##NAME,
	NAME_SOURCES(X)
#undef X
	NAME_SOURCE_NR
};

#define LEDGER_ENDS_MAX	     24
#define LEDGER_SOURCES_MAX   16
#define LEDGER_LINE_FILES_MAX 16
#define LEDGER_KINDS_MAX     24
#define LEDGER_GUESSES_MAX   8
#define LEDGER_WORKLOADS_MAX 32

struct ledger_quality {
	uint64_t stacks, stacks_root, cut[LEDGER_ENDS_MAX]; /* by how they end */
	uint64_t frames;
	uint64_t by[LEDGER_SOURCES_MAX];      /* frames by enum name_source */
	uint64_t kinds[LEDGER_KINDS_MAX];     /* frames by enum frame_kind */
	uint64_t guessed[LEDGER_GUESSES_MAX]; /* frames by enum frame_guess */
};

/* One of the workloads with most samples; its counts begin when it becomes one of them. */
struct ledger_workload {
	char service[64], executable[32]; /* both empty: the entry is unused */
	uint64_t recent;		   /* samples, halved every interval: the measure of "most" */
	struct ledger_quality quality;
};

_Static_assert(NAME_SOURCE_NR <= LEDGER_SOURCES_MAX, "each source has a counter");

/* Numbers of samples, one for each slot of the session's origins (kmod/uapi/otprof.h). */
struct ledger_counts {
	uint64_t of[OTP_ORIGINS_MAX];
};

static inline void ledger_counts_add(struct ledger_counts *to, const struct ledger_counts *n)
{
	for (int i = 0; i < OTP_ORIGINS_MAX; i++)
		to->of[i] += n->of[i];
}

static inline void ledger_counts_subtract(struct ledger_counts *from, const struct ledger_counts *n)
{
	for (int i = 0; i < OTP_ORIGINS_MAX; i++)
		from->of[i] -= n->of[i];
}

/* Moves n from one count to another. */
static inline void ledger_counts_move(struct ledger_counts *from, struct ledger_counts *to, const struct ledger_counts *n)
{
	ledger_counts_subtract(from, n);
	ledger_counts_add(to, n);
}

static inline uint64_t ledger_counts_total(const struct ledger_counts *n)
{
	uint64_t total = 0;

	for (int i = 0; i < OTP_ORIGINS_MAX; i++)
		total += n->of[i];
	return total;
}

/*
 * The engine. Samples below ring_pos are counted here, no longer on the ring;
 * the monitor moves the ring's consumer position there (ring/ring.h).
 * read == held + handed + sum(lost).
 */
struct ledger_engine {
	uint64_t ring_pos;
	uint64_t batch_end;  /* not 0: records up to here are being processed; a restarted engine skips them */
	uint64_t last_id;   /* id of the last request */
	struct ledger_counts read;   /* samples read from the ring */
	struct ledger_counts held;   /* parked, or in the interval's profile */
	struct ledger_counts handed; /* put into requests, in order of their ids; see net.received */
	struct ledger_counts lost[OTP_LOSS_MAX];
	/* Quality and cost, no part of the equation. */
	uint64_t parked, stacks, stacks_root, cut[LEDGER_ENDS_MAX];
	uint64_t frames, frames_named, processes, cpu_ns, sideband_records, sideband_lost;
	uint64_t intervals, ring_peak_bytes, memory_bytes;
	/* Interpreted code: runtimes of processes; samples that were walked, by how that ended; their frames. */
	uint64_t runtimes_attached, runtimes_refused;
	uint64_t walked[OTP_WALK_END_NR], walks_misfit;
	uint64_t walk_frames, walk_frames_unknown;
	uint64_t stacks_of_heap, stacks_without_heap; /* with callers that lie in the heap: shown, and left out */
	uint64_t labels_left; /* labels of samples that are no attribute of them: runtimes_context.c, labels.c */
	/* Decoder processes: that run now, and processes that wait for one; started, too late, broken; their answers. */
	uint64_t decoders_live, decoders_waiting, decoders_started, decoders_late, decoders_died;
	uint64_t functions_decoded, functions_failed;
	uint64_t line_files[LEDGER_LINE_FILES_MAX]; /* files of lines that decoders sought, by what became of them */
	uint64_t loop_leaves; /* stacks whose innermost native frame is a loop: the runtime's own time */
	char top_name[128];
	uint64_t top_samples, top_total;
	uint64_t named_by[LEDGER_SOURCES_MAX];
	uint64_t kinds[LEDGER_KINDS_MAX], guessed[LEDGER_GUESSES_MAX]; /* frames, as in struct ledger_quality */
	struct ledger_workload workloads[LEDGER_WORKLOADS_MAX]; /* in no order */
};

struct ledger_destination {
	char name[64];    /* identifies the destination: a reload may put another one here */
	struct ledger_counts earlier; /* samples that net had received before this destination was added */
	struct ledger_counts exported;
	struct ledger_counts unconfirmed;
	struct ledger_counts queued;  /* in flight: waiting, or between tries */
	struct ledger_counts sending; /* in flight: a try is under way or its outcome unknown; unconfirmed if net dies now */
	struct ledger_counts spooled; /* in flight: on disk, also while a try is under way; stays if net dies */
	struct ledger_counts restored; /* found on disk by a net that did not have them in its books */
	struct ledger_counts lost[OTP_LOSS_MAX];
	struct ledger_counts repeated; /* exported after a try that may have delivered them, too; no part of the equation */
	uint64_t requests, bytes, retries; /* requests and bytes exported */
	uint64_t spool_requests, spool_bytes; /* on disk now */
	uint64_t spool_torn; /* records that could not be read */
	uint32_t coding;       /* of new requests: enum export_coding */
	uint32_t zstd_refused; /* 1: gzip in place of zstd, which it does not take */
	char last_error[96];
};

/*
 * net. received + restored == earlier + exported + unconfirmed + queued +
 * sending + spooled + sum(lost), for each destination. While engine.handed > net.received, a
 * request is in flight between the two workers; the engine keeps it until net
 * has published that it was received, and sends it again to a restarted net.
 */
struct ledger_net {
	struct ledger_counts received; /* cumulative */
	uint64_t received_id; /* id of the last request received */
	uint64_t cpu_ns;
	uint32_t destinations;
	uint32_t reserved;
	struct ledger_destination dest[LEDGER_DESTINATIONS_MAX];
};

#define LEDGER_PAGE(type)                                  \
	struct type##_page {                               \
		uint32_t magic;                            \
		uint32_t current; /* the slot to read */   \
		struct type slot[2];                       \
	}

LEDGER_PAGE(ledger_engine);
LEDGER_PAGE(ledger_net);

#define LEDGER_MAGIC 0x6f74704cu

/* Publishes the writer's private copy. */
#define ledger_publish(page, copy)                                                \
	do {                                                                      \
		uint32_t _next = !(page)->current;                                \
		memcpy(&(page)->slot[_next], (copy), sizeof((page)->slot[0]));    \
		__atomic_store_n(&(page)->current, _next, __ATOMIC_RELEASE);      \
	} while (0)

/*
 * Copies one whole state. Repeats if the writer published meanwhile, at most
 * LEDGER_READS_MAX times: a hostile worker might never stop publishing.
 */
#define LEDGER_READS_MAX 50
#define ledger_read(page, copy)                                                              \
	do {                                                                                 \
		for (int _read = 0; _read < LEDGER_READS_MAX; _read++) {                     \
			uint32_t _now = __atomic_load_n(&(page)->current, __ATOMIC_ACQUIRE); \
			memcpy((copy), &(page)->slot[_now & 1], sizeof((page)->slot[0]));    \
			__atomic_thread_fence(__ATOMIC_ACQUIRE);                             \
			if (_now == __atomic_load_n(&(page)->current, __ATOMIC_RELAXED))     \
				break;                                                       \
		}                                                                            \
	} while (0)

/* ring_pos alone. Pairs with ledger_publish: the engine has finished reading what lies below. */
static inline uint64_t ledger_ring_pos(const struct ledger_engine_page *page)
{
	uint32_t now = __atomic_load_n(&page->current, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&page->slot[now & 1].ring_pos, __ATOMIC_ACQUIRE);
}

#endif
