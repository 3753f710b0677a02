/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard against overload: otprof keeps its own CPU time below a share of
 * the machine and its memory below a limit, and gives up quality before
 * anything else has to give.
 *
 * Here are decisions only: looks go in, orders come out; who measures and who
 * obeys is guard_run.c. One thread, no clock of its own.
 *
 * Two causes, each with its own ladder. CPU time: shorter stacks, then half
 * the rate, a quarter, and so on. Memory: half the caches, a quarter, an
 * eighth, then shorter stacks, then the rate. What holds is the stricter of
 * both. Down goes as far as is needed at once; up goes after a quiet time that
 * doubles with every return, so that nothing swings.
 */
#ifndef OTP_DAEMON_LIMITS_GUARD_H
#define OTP_DAEMON_LIMITS_GUARD_H

#include <stdbool.h>
#include <stdint.h>

enum guard_cause { GUARD_CPU, GUARD_MEMORY, GUARD_CAUSES };
enum guard_step { GUARD_CACHES, GUARD_STACKS, GUARD_RATE, GUARD_STEPS };

struct guard_limits {
	uint64_t cpu_permyriad; /* of one CPU, hundredths of a percent, all CPUs' shares added; 0: no limit */
	uint32_t hz;		/* what is wanted */
};

struct guard_look { /* totals since the start, or what is now */
	uint64_t now_ns;
	uint64_t cpu_ns;
	uint64_t memory_bytes, memory_limit; /* limit 0: none */
};

struct guard_orders {
	uint32_t hz;		  /* not above */
	uint32_t cache_shift;	  /* caches are 2^n times smaller */
	uint32_t stack_shift;	  /* so is the budget of stack bytes above the default */
};
#define GUARD_STACK_NONE 32 /* stack_shift: nothing above the default at all */

struct guard_ladder {
	uint32_t level;		 /* 0: nothing is given up */
	uint32_t returns;	 /* raised, and soon down again */
	uint64_t changed_ns;	 /* 0: never */
	bool raised;		 /* the last change was one up */
	uint64_t lowered[GUARD_STEPS], raises[GUARD_STEPS];
};

struct guard {
	struct guard_limits limits;
	struct guard_ladder ladder[GUARD_CAUSES];
	uint64_t window_ns, window_cpu_ns; /* when the window began, and the total then */
	uint64_t window_length_ns;
	uint64_t cpu_share; /* of the last window, like cpu_permyriad */
	bool started;
};

/* What a look has changed; said once. */
struct guard_change {
	enum guard_cause cause;
	enum guard_step step; /* the lowest that was taken or given back */
	bool lowered;
	bool at_end; /* nothing is left to give up */
	uint64_t used, limit; /* hundredths of a percent of one CPU, or bytes */
};

void guard_limits(struct guard *g, const struct guard_limits *limits); /* also later: levels stay */
/* true: orders have changed, and why. */
bool guard_look(struct guard *g, const struct guard_look *look, struct guard_change *ret);
void guard_orders(const struct guard *g, struct guard_orders *ret);

const char *guard_cause_name(enum guard_cause cause);
const char *guard_step_name(enum guard_step step);

#endif
