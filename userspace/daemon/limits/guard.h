/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard against overload: otprof keeps its own CPU time below a share of
 * the machine and its memory below a limit, and gives up quality for that.
 *
 * This file only decides: it turns looks (measurements, one a second) into
 * orders. The monitor's guard_run.c measures and carries out. Pure; one
 * thread, no clock of its own. Units are in the names. Errors: none.
 *
 * A lower rate makes a profile coarser, a cut stack makes it wrong: the rate is
 * given up first, stack depth last. Two causes, and the stricter order of both
 * holds:
 *
 * CPU time (guard_cpu.c): a window of ten seconds that costs more than its
 * limit lowers the rate to the one that fits, by the measured fixed cost and
 * cost per sample. Only where one sample a second and CPU does not fit, and
 * samples cause the excess, stacks become shorter. Both return once two to four
 * seconds show room, at the earliest 2 to 8 seconds after a cut. A sampler whose
 * rate is fixed gives up stacks alone. Work that reads files (indexes, symbols,
 * mappings of new processes) is paid from a credit first, since it ends by
 * itself, and a lower rate does not end it sooner. The credit is five minutes of
 * the limit, and is refilled only by what the limit leaves unused.
 *
 * Memory (guard.c): half the caches, a quarter, an eighth, then the rate by
 * halves, then shorter stacks. A step is taken back after a quiet minute, which
 * doubles each time that a return has to be undone.
 */
#ifndef OTP_DAEMON_LIMITS_GUARD_H
#define OTP_DAEMON_LIMITS_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/limits/cost_line.h"

enum guard_cause { GUARD_CPU, GUARD_MEMORY, GUARD_CAUSES };
enum guard_step { GUARD_CACHES, GUARD_RATE, GUARD_STACKS, GUARD_STEPS };

struct guard_limits {
	uint64_t cpu_permyriad; /* of one CPU, hundredths of a percent, all CPUs' shares added; 0: no limit */
	uint32_t hz;		/* as configured */
	bool fixed_rate;	/* the sampler cannot change it: stacks are all that is left to give up */
};

struct guard_look { /* sums since the start, except hz and memory */
	uint64_t now_ns;
	uint64_t cpu_ns;
	uint64_t files_ns; /* the part of cpu_ns that read files; never falls, like cpu_ns */
	uint64_t samples;  /* of all origins */
	uint32_t hz;	   /* in force: an order takes effect seconds later; 0: none, the rate is being changed */
	uint64_t memory_bytes, memory_limit; /* limit 0: none */
};

struct guard_orders {
	uint32_t hz;		  /* the most */
	uint32_t cache_shift;	  /* caches are 2^n times smaller */
	uint32_t stack_shift;	  /* the budget of stack bytes above the default is 2^n times smaller */
};
#define GUARD_STACK_NONE 32 /* stack_shift: no bytes above the default */

struct guard_ladder {
	uint32_t level;		 /* 0: nothing is given up */
	uint32_t returns;	 /* raises that were soon taken back */
	uint64_t changed_ns;	 /* 0: never */
	bool raised;		 /* the last change was a raise */
	uint64_t lowered[GUARD_STEPS], raises[GUARD_STEPS];
};

struct guard_sum { /* since the start, at a time */
	uint64_t ns;
	uint64_t cost_ns;  /* CPU time without what the credit paid */
	uint64_t files_ns; /* what it paid */
	uint64_t samples;
};

#define GUARD_RECENT 5 /* sums: the last four seconds */

struct guard_cpu {
	uint32_t hz;	     /* the most; 0: as configured */
	uint32_t stack_level; /* 0: whole; 1: an eighth of the budget; 2: none */
	struct guard_look last;
	struct guard_sum now, window, recent[GUARD_RECENT]; /* the newest last */
	uint32_t recent_count;
	uint64_t window_length_ns;
	int64_t credit_ns; /* left for reading files; negative: a debt */
	struct cost_line line;
	uint64_t share, files_share; /* of one CPU, in the last window so far, like cpu_permyriad */
};

struct guard {
	struct guard_limits limits;
	struct guard_ladder ladder[GUARD_CAUSES]; /* of the CPU: level 1 is the rate, 2 and 3 are stacks */
	struct guard_cpu cpu;
};

/* What a look has changed, for one log line. */
struct guard_change {
	enum guard_cause cause;
	enum guard_step step; /* the last one that was given up or restored */
	bool lowered;
	bool at_end; /* no step is left */
	uint64_t used, limit; /* hundredths of a percent of one CPU, or bytes */
};

void guard_limits(struct guard *g, const struct guard_limits *limits); /* at any time; what is given up stays */
/* true: orders have changed, ret holds the reason. */
bool guard_look(struct guard *g, const struct guard_look *look, struct guard_change *ret);
void guard_orders(const struct guard *g, struct guard_orders *ret);

const char *guard_cause_name(enum guard_cause cause);
const char *guard_step_name(enum guard_step step);

#endif
