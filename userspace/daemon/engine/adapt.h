/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many stack bytes to copy for a process: as many as unwinding it has
 * lately needed. That is a number of innermost bytes, and, where a frame too
 * large to copy or a switch of stacks lies between, a number of outermost bytes:
 * the base.
 *
 * Called by the engine after each unwound stack, one thread. A stack that was
 * cut for want of bytes makes the copy twice as large at once; after a window
 * in which all stacks stayed well below, the copy is made smaller. Each time
 * that it grows again after that, the next window is longer, so that rare deep
 * stacks are not cut again and again.
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
 * The new size after a window whose deepest stack needed this many bytes: twice
 * the need (half a microsecond of copying is cheaper than a stack cut at the
 * next deeper call), but a quarter of bytes at least (the deepest stack may not
 * have been sampled).
 */
uint32_t adapt_shrunk(uint32_t bytes, uint32_t needed);

/* The base that covers this many outermost bytes; 0: none. */
uint32_t adapt_base(uint32_t needed);

/* Raises *now, the sizes that a cut sample was copied with, to those that it needed. true: *now has changed. */
bool adapt_deepen(struct otp_hint *now, const struct adapt_limits *limits, const struct sample *s,
		  const struct unwind_stack *out);

/*
 * The base that a sample was copied with whose process has no plan of its own:
 * its parent's, or its name's, or what the bound on a tick left of it.
 */
uint32_t adapt_base_given(const struct sample *s, const struct process *parent, uint32_t by_name);

/*
 * A process that grew by a sample that was cut because nobody knew it: its plan
 * copies at least what an unknown program's copy would hold without the bound.
 */
void adapt_at_least(struct process *p, const struct adapt_limits *limits, const struct otp_hint *sizes);

/*
 * true: p->stack_bytes or p->base_bytes changed and the plan has to be sent.
 * Where p has no plan of its own, p->base_bytes is the base of the sample's copy.
 */
bool adapt_observe(struct process *p, const struct adapt_limits *limits, const struct sample *s,
		   const struct unwind_stack *out);

#endif
