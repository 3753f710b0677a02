/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many stack bytes to copy for a process: what unwinding it has really
 * needed lately, no more. That is so many innermost bytes, and, where a frame
 * too large to copy or a switch of stacks lies between, so many outermost: its
 * base.
 *
 * Called by the engine after each unwound stack, one thread. A stack that was
 * cut for want of bytes makes the copy twice as large at once; after a window
 * in which all stacks stayed well below, it comes down again. A process that
 * grew again after it was made smaller waits ever longer before the next try,
 * so that deep stacks now and then are not cut again and again.
 * Cost: a few comparisons.
 */
#ifndef OTP_DAEMON_ENGINE_ADAPT_H
#define OTP_DAEMON_ENGINE_ADAPT_H

#include "daemon/engine/sample.h"
#include "process/table.h"
#include "unwind/unwind.h"

#define ADAPT_MIN_BYTES 1024u
#define ADAPT_WINDOW_NS (20ULL * 1000000000)
#define ADAPT_WINDOW_SAMPLES 64u

struct adapt_limits {
	uint32_t max_bytes;
	uint32_t base_max;
};

/*
 * What bytes become after a window whose deepest stack needed so many: twice
 * the need (half a microsecond of copying is cheaper than a stack cut at the
 * next deeper call), a quarter at the least (the deepest may not have been seen).
 */
uint32_t adapt_shrunk(uint32_t bytes, uint32_t needed);

/* The base that covers so many bytes of the outermost; 0: none. */
uint32_t adapt_base(uint32_t needed);

/* What a sample that was cut should have been given, *now being what it was given. true: that is more. */
bool adapt_deepen(struct otp_hint *now, const struct adapt_limits *limits, const struct sample *s,
		  const struct unwind_stack *out);

/* The base that a sample was given whose process has no plan of its own: its parent's, else that of its name. */
uint32_t adapt_base_given(const struct sample *s, const struct process *parent, uint32_t by_name);

/*
 * true: p->stack_bytes or p->base_bytes changed and the plan has to be sent.
 * Without a plan of its own, p->base_bytes is what the sample was given.
 */
bool adapt_observe(struct process *p, const struct adapt_limits *limits, const struct sample *s,
		   const struct unwind_stack *out);

#endif
