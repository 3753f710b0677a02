/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interpreted code of processes, in the engine: which process runs a runtime,
 * the walks by which its frames are copied, and what the copied frames mean.
 *
 * Called by the pipeline, one thread. Nothing blocks: a decoder (decoders.h)
 * answers later, and samples wait for it as they wait for files.
 * Bounds: RUNTIME_PROCESSES_MAX processes, the least recently sampled go first; the bytes
 * of all functions and regions of code.
 * A forked process has its parent's walks and runtime until it executes another
 * program; its functions are its own, as memory that is freed and used again
 * after the fork differs.
 */
#ifndef OTP_DAEMON_ENGINE_RUNTIMES_H
#define OTP_DAEMON_ENGINE_RUNTIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/ledger.h"
#include "daemon/engine/decoders.h"
#include "daemon/engine/merge.h"
#include "daemon/engine/sample.h"
#include "process/frame.h"
#include "process/table.h"
#include "unwind/unwind.h"

#define RUNTIME_PROCESSES_MAX 1024
#define RUNTIME_YOUNG_NS      OTP_YOUNG_FROM_NS /* no decoder is started for a process as young */

struct runtimes;

struct runtimes_config {
	struct decoders *decoders;    /* borrowed; NULL: nothing is walked or decoded */
	struct ledger_engine *ledger; /* borrowed */
	size_t bytes_max;	      /* of functions and regions of code */
	/* A runtime that is not known was met: once for each process. */
	void (*unknown)(void *ctx, uint32_t pid, const char *runtime, const char *why);
	void (*walks)(void *ctx, uint32_t pid); /* of this process there are walks now, or others; may be NULL */
	void (*settled)(void *ctx); /* answers have arrived that samples wait for */
	void *ctx;
};

int runtimes_new(const struct runtimes_config *cfg, struct runtimes **ret);
struct runtimes *runtimes_free(struct runtimes *r); /* NULL */
void runtimes_limit(struct runtimes *r, size_t bytes_max);

/* The process' stack has frames in these mappings: asks for a decoder where a file of them holds a runtime. */
void runtimes_meet(struct runtimes *r, const struct process *p, const struct unwind_stack *stack, uint64_t now_ns);
/* Whether a process was met that is too young for a decoder, and will soon be old enough. */
bool runtimes_is_expecting(const struct runtimes *r, uint64_t now_ns);
/*
 * Whether a decoder of the process is still to attach, or to be asked for. A fork
 * keeps its parent's walks until then, if it gets no plan of its own.
 */
bool runtimes_wait(const struct runtimes *r, const struct process *p);
/* The walks of this process, if they are known and p->walks is another generation; false: nothing to send. */
bool runtimes_walks(struct runtimes *r, const struct process *p, struct otp_walks *ret);

/* The interpreted frames of one sample, one half for each runtime. Borrowed until the next call. */
struct runtimes_half {
	struct frame *frames; /* FRAME_NAMED, innermost first; their strings are borrowed */
	uint16_t *flags;      /* enum runtime_frame_flags */
	uint32_t nr;
	bool whole;
	bool unseen; /* of runtime_attached */
};
struct runtimes_stack {
	struct runtimes_half half[OTP_WALK_PLANS];
	uint32_t nr;
};
/*
 * -EAGAIN: functions are being decoded, and the sample should wait; not with
 * final. A sample without walks has no halves. stack: its native half.
 */
int runtimes_frames(struct runtimes *r, const struct process *p, const struct sample *s,
		    const struct unwind_stack *stack, bool final, struct runtimes_stack *ret);
/* By which functions the process' runtimes enter code that they compiled, for unwinding: how many. p may be NULL. */
#define RUNTIME_GATES (OTP_WALK_PLANS * RUNTIME_LOOPS)
uint32_t runtimes_gates(const struct runtimes *r, const struct process *p, struct unwind_gate to[RUNTIME_GATES]);
/*
 * The stack that the thread left, if the sample has a copy of it; its bytes are borrowed until the next call. Before
 * runtimes_begin_stack of the same sample: steps out of code are passed where that stack goes on.
 */
bool runtimes_other_stack(struct runtimes *r, const struct process *p, const struct sample *s, struct unwind_other *ret);
/* Likewise, the frames that the thread has in the heap; where there are none, or they do not agree: false. */
bool runtimes_frozen(struct runtimes *r, const struct process *p, const struct sample *s, struct unwind_frozen *ret);
/*
 * What the sample has besides its frames, by the coroutine that it is of: who began that (pc 0: not known), and its labels,
 * as labels.h writes them. Borrowed until the next call. stack: the sample's, as it was unwound.
 */
struct runtimes_context {
	struct frame creator;
	struct str *labels; /* NULL: none */
};
/* -EAGAIN: a label is being decoded, and the sample should wait; not with final. */
int runtimes_want_context(struct runtimes *r, const struct process *p, const struct sample *s, bool final);
/* Whether the sample's section of this plan is such a second walk. */
bool runtimes_is_context(struct runtimes *r, const struct process *p, const struct sample *s, uint32_t plan);
void runtimes_context(struct runtimes *r, const struct process *p, const struct sample *s, const struct unwind_stack *stack,
		      struct runtimes_context *ret);
/* Which native frames are in loops of the process' runtimes; to has room for stack->count. */
void runtimes_loops(struct runtimes *r, const struct process *p, const struct unwind_stack *stack,
		    struct merge_native *to);

/*
 * Code of a runtime on the native stack. First the sample, borrowed until the next call: p is the process that it is of,
 * as it runs now, NULL: it is gone. The hook serves unwinding until then; NULL: nothing is decoded.
 */
const struct unwind_code *runtimes_begin_stack(struct runtimes *r, const struct process *p, const struct sample *s,
					       uint64_t now_ns);
/* Of the stack that was unwound so. -EAGAIN: its functions are being decoded, and the sample should wait; not with final. */
int runtimes_stack(struct runtimes *r, const struct unwind_stack *stack, bool final);
/*
 * What the i-th frame of that stack stands for: returns the number of frames, innermost first, 0: the frame is not of a
 * runtime, or not known. FRAME_NAMED; their strings are borrowed.
 */
#define RUNTIMES_EXPANDED RUNTIME_CODE_DEPTH
/* Whether a frame of it is an interpreter's, whose code follows as its caller: it shows nothing of its own. */
bool runtimes_is_loop(const struct runtimes *r, uint32_t index);
uint32_t runtimes_expand(struct runtimes *r, const struct unwind_stack *stack, uint32_t i,
			 struct frame to[RUNTIMES_EXPANDED]);
/* f is that native frame. If it is in a copy of code of the runtime's file, it becomes one in the file. */
void runtimes_set_original(struct runtimes *r, uint32_t i, struct frame *f);

/* Whether a runtime of the process whose stack was begun makes code: what is not known of it may be that runtime's. */
bool runtimes_own_code(const struct runtimes *r);
/* Likewise, and its decoder reads it: what is not known was there once, if a file that the runtime has written names it. */
bool runtimes_read_code(const struct runtimes *r);
/* Where in its stack the steps out of runtimes' code have read, for a capture, and which registers. Borrowed as the hook. */
const uint64_t *runtimes_loaded(const struct runtimes *r, uint32_t *ret_nr, uint64_t *ret_regs);

/* For explain: the i-th runtime of the process; false: it has no more. r may be NULL. */
struct runtimes_state {
	const char *label;
	const char *version; /* "": not known yet */
	bool walked;
	const char *state;   /* where it is not walked: why; "": its frames are on the native stack */
	uint32_t functions;
	uint64_t frames, frames_unknown;
};
bool runtimes_state(const struct runtimes *r, const struct process *p, uint32_t i, struct runtimes_state *ret);

#endif
