/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many stack bytes to copy for a process: what unwinding it has really
 * needed lately, no more.
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
	uint32_t start_bytes; /* the default copy */
	uint32_t max_bytes;
};

/*
 * What bytes become after a window whose deepest stack needed so many: twice
 * the need (half a microsecond of copying is cheaper than a stack cut at the
 * next deeper call), a quarter at the least (the deepest may not have been seen).
 */
uint32_t adapt_shrunk(uint32_t bytes, uint32_t needed);

/* true: p->stack_bytes or p->base_bytes changed and the plan has to be sent. */
bool adapt_observe(struct process *p, const struct adapt_limits *limits, const struct sample *s,
		   const struct unwind_stack *out);

#endif
