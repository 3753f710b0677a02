/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard against overload: otprof keeps its own CPU time below a share of
 * the machine and its memory below a limit, and gives up quality for that.
 *
 * This file only decides: it turns looks (measurements) into orders. The
 * monitor's guard_run.c measures and carries out. Pure; one thread, no clock
 * of its own.
 *
 * Two causes, each with its own ladder. CPU time: shorter stacks, then half
 * the rate, a quarter, and so on. Memory: half the caches, a quarter, an
 * eighth, then shorter stacks, then the rate. The stricter order of both holds.
 * Quality is lowered at once as far as needed; it is raised after a quiet time,
 * which doubles each time that a raise has to be taken back, so that nothing
 * oscillates.
 */
#ifndef OTP_DAEMON_LIMITS_GUARD_H
#define OTP_DAEMON_LIMITS_GUARD_H

#include <stdbool.h>
#include <stdint.h>

enum guard_cause { GUARD_CPU, GUARD_MEMORY, GUARD_CAUSES };
enum guard_step { GUARD_CACHES, GUARD_STACKS, GUARD_RATE, GUARD_STEPS };

struct guard_limits {
	uint64_t cpu_permyriad; /* of one CPU, hundredths of a percent, all CPUs' shares added; 0: no limit */
	uint32_t hz;		/* as configured */
};

struct guard_look { /* cpu_ns since the start, memory at now_ns */
	uint64_t now_ns;
	uint64_t cpu_ns;
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

struct guard {
	struct guard_limits limits;
	struct guard_ladder ladder[GUARD_CAUSES];
	uint64_t window_ns, window_cpu_ns; /* start of the window, and cpu_ns at that time */
	uint64_t window_length_ns;
	uint64_t cpu_share; /* of the last window, like cpu_permyriad */
	bool started;
};

/* What a look has changed, for one log line. */
struct guard_change {
	enum guard_cause cause;
	enum guard_step step; /* the last one that was given up or restored */
	bool lowered;
	bool at_end; /* no step is left */
	uint64_t used, limit; /* hundredths of a percent of one CPU, or bytes */
};

void guard_limits(struct guard *g, const struct guard_limits *limits); /* at any time; levels stay */
/* true: orders have changed, ret holds the reason. */
bool guard_look(struct guard *g, const struct guard_look *look, struct guard_change *ret);
void guard_orders(const struct guard *g, struct guard_orders *ret);

const char *guard_cause_name(enum guard_cause cause);
const char *guard_step_name(enum guard_step step);

#endif
