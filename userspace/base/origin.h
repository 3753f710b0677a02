/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of origins, the events that samples stand for: the name of each,
 * how perf opens it, and the types of its profile. A new origin is a line in
 * OTP_ORIGINS (kmod/uapi/otprof.h) and one here.
 *
 * Called by all that name, open, encode or report an origin. Constant data.
 */
#ifndef OTP_BASE_ORIGIN_H
#define OTP_BASE_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "kmod/uapi/otprof.h"

/*
 *   X(NAME, "alias", kind, PERF, "sample type", "unit", "period type", "period unit")
 * alias: perf's other name, or NULL. kind and PERF: PERF_TYPE_kind and
 * PERF_COUNT_PERF of linux/perf_event.h. The rest are the types of the
 * profile's values and period (OTLP: Profile.sample_type, period_type). The CPU
 * clock's values are samples, and its period is a time: receivers recognise
 * this pair as CPU time. Other values are numbers of events. Types contain no
 * hyphen because Pyroscope refuses one.
 */
#define ORIGINS(X)                                                                                                 \
	X(CPU_CLOCK, NULL, SOFTWARE, SW_CPU_CLOCK, "samples", "count", "cpu", "nanoseconds")                       \
	X(PAGE_FAULTS, "faults", SOFTWARE, SW_PAGE_FAULTS, "page_faults", "count", "page_faults", "count")         \
	X(MINOR_FAULTS, NULL, SOFTWARE, SW_PAGE_FAULTS_MIN, "minor_faults", "count", "minor_faults", "count")      \
	X(MAJOR_FAULTS, NULL, SOFTWARE, SW_PAGE_FAULTS_MAJ, "major_faults", "count", "major_faults", "count")      \
	X(CONTEXT_SWITCHES, "cs", SOFTWARE, SW_CONTEXT_SWITCHES, "context_switches", "count", "context_switches",  \
	  "count")                                                                                                 \
	X(CPU_MIGRATIONS, "migrations", SOFTWARE, SW_CPU_MIGRATIONS, "cpu_migrations", "count", "cpu_migrations",  \
	  "count")                                                                                                 \
	X(ALIGNMENT_FAULTS, NULL, SOFTWARE, SW_ALIGNMENT_FAULTS, "alignment_faults", "count", "alignment_faults",  \
	  "count")                                                                                                 \
	X(EMULATION_FAULTS, NULL, SOFTWARE, SW_EMULATION_FAULTS, "emulation_faults", "count", "emulation_faults",  \
	  "count")                                                                                                 \
	X(CYCLES, "cpu-cycles", HARDWARE, HW_CPU_CYCLES, "cycles", "count", "cycles", "count")                     \
	X(INSTRUCTIONS, NULL, HARDWARE, HW_INSTRUCTIONS, "instructions", "count", "instructions", "count")         \
	X(CACHE_REFERENCES, NULL, HARDWARE, HW_CACHE_REFERENCES, "cache_references", "count", "cache_references",  \
	  "count")                                                                                                 \
	X(CACHE_MISSES, NULL, HARDWARE, HW_CACHE_MISSES, "cache_misses", "count", "cache_misses", "count")         \
	X(BRANCHES, "branch-instructions", HARDWARE, HW_BRANCH_INSTRUCTIONS, "branches", "count", "branches",      \
	  "count")                                                                                                 \
	X(BRANCH_MISSES, NULL, HARDWARE, HW_BRANCH_MISSES, "branch_misses", "count", "branch_misses", "count")     \
	X(BUS_CYCLES, NULL, HARDWARE, HW_BUS_CYCLES, "bus_cycles", "count", "bus_cycles", "count")                 \
	X(REF_CYCLES, NULL, HARDWARE, HW_REF_CPU_CYCLES, "ref_cycles", "count", "ref_cycles", "count")

/* Types and units of a profile's values and of its period. Static strings. */
struct origin_types {
	const char *type, *unit, *period_type, *period_unit;
};

const char *origin_name(uint32_t origin);                  /* perf's: "page-faults"; static; NULL: no such origin */
const struct origin_types *origin_types(uint32_t origin);  /* likewise */
int origin_find(const char *name, uint8_t *ret);           /* by name or alias; -ENOENT */

/* What a session samples, by slot: slot 0 is the CPU clock's, sampled or not. Plain data; all zero: no slot yet. */
struct origins {
	uint32_t count; /* slots in use, up to OTP_ORIGINS_MAX */
	struct origin_slot {
		uint8_t origin; /* enum otp_origin */
		bool sampled;
		/*
		 * CPU clock: ns between ticks. Else events between two samples; 1 also where the kernel varies their
		 * number (by frequency). Either way each sample holds the number that it stands for.
		 */
		uint64_t period;
	} slot[OTP_ORIGINS_MAX];
};

/* The slot of an origin that the session samples, or -ENOENT. */
int origins_slot(const struct origins *o, uint8_t origin);
/* The slot in which a record counts: its origin's, or 0 where it is no sample of this session. */
uint32_t origins_slot_of(const struct origins *o, const struct otp_rec *rec);
/* The CPU clock alone. */
struct origins origins_of_clock(uint64_t period_ns);

#endif
