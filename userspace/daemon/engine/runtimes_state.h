/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state behind runtimes.h: runtimes.c has processes and what they run,
 * runtimes_frames.c the frames of samples, runtimes_loops.c the native functions
 * that run interpreted code. Only these include it.
 */
#ifndef OTP_DAEMON_ENGINE_RUNTIMES_STATE_H
#define OTP_DAEMON_ENGINE_RUNTIMES_STATE_H

#include "base/clock.h"
#include "daemon/engine/functions.h"
#include "daemon/engine/runtimes.h"

#define RETRY_NS (10 * NSEC_PER_SEC) /* a decoder that could not be had */
#define RETRY_OVER_NS (60 * NSEC_PER_SEC) /* one that was attached and is over */
#define RETRY_LONG_NS (600 * NSEC_PER_SEC) /* one that failed again and again, perhaps for want of CPU time */

struct loop_range { uint64_t start, end; };

/* What attach found, shared by a process and its forks. */
struct attachment {
	uint32_t refs;
	struct runtime_attached found;
	struct loop_range loops[RUNTIME_LOOPS];
	uint32_t nr_loops;
	bool loops_sought;
};

enum slot_state { SLOT_ASKED, SLOT_READY, SLOT_REFUSED };

struct runtime_slot { /* one runtime of one process */
	struct runtime_process *of;
	const struct runtime_ops *ops;
	struct binary *binary; /* owned */
	uint64_t start, end;   /* of the mapping by which it was found */
	enum slot_state state;
	bool vouched; /* a decoder of this very process made the plan: the monitor sets no other */
	int err; /* REFUSED */
	uint64_t again_ns; /* REFUSED: when to ask again; UINT64_MAX: never */
	char why[RUNTIME_WHY_MAX];
	struct attachment *found; /* READY; owned reference */
	struct decoder *decoder;  /* owned; NULL: none now */
	struct functions functions;
	uint64_t frames, frames_unknown;
};

struct runtime_process {
	struct runtime_process *prev, *next; /* the most recently sampled first */
	struct runtimes *all;
	uint32_t pid;
	uint64_t start_ns, exec_id, group;
	uint32_t generation; /* of its walks; 0: none yet */
	uint32_t nr;
	uint64_t worth_ns; /* of a fork: before, no decoder is asked for */
	uint64_t retry_ns;
	struct runtime_slot slot[OTP_WALK_PLANS];
};

struct runtimes {
	struct runtimes_config cfg;
	struct map by_pid, by_generation; /* of struct runtime_process; the second: a fork's walks are its parent's */
	struct runtime_process *first, *last;
	uint32_t generation;
	uint64_t now_ns;
	struct frame frames[OTP_WALK_PLANS][OTP_WALK_FRAMES];
	uint8_t flags[OTP_WALK_PLANS][OTP_WALK_FRAMES];
	/* Of one half, while it is made: what its words mean, and what is to be decoded. */
	struct runtime_frame read[OTP_WALK_FRAMES], wanted[OTP_WALK_FRAMES];
	uint32_t nr_wanted;
	uint64_t blocks[OTP_WALK_OUT]; /* a copied stack of the current sample */
	struct str *unknown[KIND_NR]; /* names of functions that could not be decoded, by kind; owned */
};

/* The entry of this process, and nothing changes. NULL: it runs no runtime. */
struct runtime_process *runtimes_peek(const struct runtimes *r, const struct process *p);
/* The entry of this process; one whose pid has another exec identity by now is dropped. NULL: it runs no runtime. */
struct runtime_process *runtimes_find(struct runtimes *r, const struct process *p);
/* Whether the innermost native frame is code that this runtime has compiled. */
bool runtimes_is_compiled(const struct runtime_slot *s, const struct unwind_stack *stack);
/* A fork's entry: its parent's runtimes, and functions of its own. NULL: no memory. */
struct runtime_process *runtimes_inherit(struct runtimes *r, const struct process *p, struct runtime_process *parent);
/* A decoder of the process, borrowed; NULL: none can be had now. */
struct decoder *runtimes_decoder(struct runtime_slot *s);
/*
 * Where the functions of all exceed their bytes, the largest tables are emptied: a program that makes code again and again,
 * as closures and strings to evaluate, loses its own. What is in use is asked again.
 */
void runtimes_trim(struct runtimes *r);

#endif
