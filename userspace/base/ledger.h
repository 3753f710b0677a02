/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger's shared pages. Every sample that the sampler took is at any
 * time in exactly one place: on the ring, in the engine, with the exporter
 * for each destination, exported, unconfirmed, or lost for a reason.
 *
 * Each worker publishes its part in one page that the monitor owns (a memfd),
 * so a worker that is killed leaves its counts exact. A page holds two slots
 * and an index: the writer fills the slot that is not current, then flips the
 * index with release order, so that a reader, or the monitor after a kill,
 * always sees one whole state.
 *
 * Writers: the engine and net, each its own page, one thread. Readers: the
 * monitor, at any time. Counts are samples unless the name says otherwise and
 * grow for the life of the monitor; a restarted worker goes on from the page.
 * Every equation holds for each origin by itself.
 */
#ifndef OTP_BASE_LEDGER_H
#define OTP_BASE_LEDGER_H

#include <stdint.h>
#include <string.h>

#include "kmod/uapi/otprof.h"

#define LEDGER_DESTINATIONS_MAX 8

/*
 * Where a frame's name comes from: in status, metrics and explain.
 *   X(NAME, "name", named)  named: a function's name, not a place in a file
 */
#define NAME_SOURCES(X)                                                                            \
	X(DWARF, "dwarf", 1)		     /* debug information: inlined calls, lines */          \
	X(DEBUG_SYMBOLS, "debug_symbols", 1) /* the whole symbol table, of the debug file where the file has none */ \
	X(DEBUGDATA, "gnu_debugdata", 1)     /* symbols that a stripped file keeps packed */        \
	X(SYMTAB, "symtab", 1)                                                                     \
	X(DYNSYM, "dynsym", 1)                                                                     \
	X(PLT, "plt", 1)                                                                           \
	X(PERF_MAP, "perf_map", 1)                                                                 \
	X(JITDUMP, "jitdump", 1)                                                                   \
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
#define LEDGER_KINDS_MAX     24
#define LEDGER_GUESSES_MAX   4
#define LEDGER_WORKLOADS_MAX 32

struct ledger_quality {
	uint64_t stacks, stacks_root, cut[LEDGER_ENDS_MAX]; /* by how they end */
	uint64_t frames;
	uint64_t by[LEDGER_SOURCES_MAX];      /* frames by enum name_source */
	uint64_t kinds[LEDGER_KINDS_MAX];     /* frames by enum frame_kind */
	uint64_t guessed[LEDGER_GUESSES_MAX]; /* frames by enum frame_guess */
};

/* One of those that take most; grows for as long as it is one of them. */
struct ledger_workload {
	char service[64], executable[32]; /* empty: no such place */
	uint64_t recent;		   /* samples, halved every interval: who takes most */
	struct ledger_quality quality;
};

_Static_assert(NAME_SOURCE_NR <= LEDGER_SOURCES_MAX, "each source has a counter");

/* A number of samples, apart for each slot of the session's origins (kmod/uapi/otprof.h). */
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

/* From one place to another. */
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
 * The engine. Samples below ring_pos are accounted for here and not on the
 * ring any more: after a kill between this publication and the ring's own
 * consumer position, the monitor moves the consumer to ring_pos.
 * read == held + handed + sum(lost).
 */
struct ledger_engine {
	uint64_t ring_pos;
	uint64_t batch_end;  /* not 0: records up to here are being worked on; the next engine passes over them */
	uint64_t last_id;   /* id of the last request */
	struct ledger_counts read;   /* samples taken over from the ring */
	struct ledger_counts held;   /* parked, or in the interval's profile */
	struct ledger_counts handed; /* put into requests, in order of their ids; see net.received */
	struct ledger_counts lost[OTP_LOSS_MAX];
	/* Quality and cost, no part of the equation. */
	uint64_t parked, stacks, stacks_root, cut[LEDGER_ENDS_MAX];
	uint64_t frames, frames_named, processes, cpu_ns, sideband_records, sideband_lost;
	uint64_t intervals, ring_peak_bytes, memory_bytes;
	char top_name[128];
	uint64_t top_samples, top_total;
	uint64_t named_by[LEDGER_SOURCES_MAX];
	uint64_t kinds[LEDGER_KINDS_MAX], guessed[LEDGER_GUESSES_MAX]; /* frames, as in struct ledger_quality */
	struct ledger_workload workloads[LEDGER_WORKLOADS_MAX]; /* in no order */
};

struct ledger_destination {
	char name[64];    /* places change hands on reload: the name says whose it is */
	struct ledger_counts earlier; /* samples that net had received before this destination was there */
	struct ledger_counts exported;
	struct ledger_counts unconfirmed;
	struct ledger_counts queued;  /* in flight: waiting, or between tries */
	struct ledger_counts sending; /* in flight: a try is under way, or ended unknown; unconfirmed if net dies now */
	struct ledger_counts lost[OTP_LOSS_MAX];
	uint64_t requests, bytes, retries; /* requests and bytes exported */
	char last_error[96];
};

/*
 * net. received == earlier + exported + unconfirmed + queued + sending +
 * sum(lost), for each destination. A request lies between the two workers, in flight, while
 * engine.handed > net.received; the engine keeps it until net has published
 * that it was received, and sends it again to a net that was restarted.
 */
struct ledger_net {
	struct ledger_counts received; /* cumulative */
	uint64_t received_id; /* last request taken over */
	uint64_t cpu_ns;
	uint32_t destinations;
	uint32_t reserved;
	struct ledger_destination dest[LEDGER_DESTINATIONS_MAX];
};

#define LEDGER_PAGE(type)                                  \
	struct type##_page {                               \
		uint32_t magic;                            \
		uint32_t current; /* index of the slot that holds */ \
		struct type slot[2];                       \
	}

LEDGER_PAGE(ledger_engine);
LEDGER_PAGE(ledger_net);

#define LEDGER_MAGIC 0x6f74704cu

/* Publish: work on a private copy, then this. */
#define ledger_publish(page, copy)                                                \
	do {                                                                      \
		uint32_t _next = !(page)->current;                                \
		memcpy(&(page)->slot[_next], (copy), sizeof((page)->slot[0]));    \
		__atomic_store_n(&(page)->current, _next, __ATOMIC_RELEASE);      \
	} while (0)

/*
 * Reads a whole state: again while the writer publishes meanwhile, with an end
 * even if it never rests (a worker may be in hostile hands).
 */
#define LEDGER_READS_MAX 50
#define ledger_read(page, copy)                                                              \
	do {                                                                                 \
		for (int _i = 0; _i < LEDGER_READS_MAX; _i++) {                              \
			uint32_t _now = __atomic_load_n(&(page)->current, __ATOMIC_ACQUIRE); \
			memcpy((copy), &(page)->slot[_now & 1], sizeof((page)->slot[0]));    \
			__atomic_thread_fence(__ATOMIC_ACQUIRE);                             \
			if (_now == __atomic_load_n(&(page)->current, __ATOMIC_RELAXED))     \
				break;                                                       \
		}                                                                            \
	} while (0)

#endif
