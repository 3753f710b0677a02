/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline's state, and one attempt at a sample. Only pipeline*.c include
 * it; one thread.
 */
#ifndef OTP_DAEMON_ENGINE_PIPELINE_STATE_H
#define OTP_DAEMON_ENGINE_PIPELINE_STATE_H

#include "daemon/config/resource.h"
#include "daemon/engine/adapt.h"
#include "daemon/engine/hints.h"
#include "daemon/engine/jit.h"
#include "daemon/engine/park.h"
#include "daemon/engine/pipeline.h"
#include "daemon/engine/runtimes.h"
#include "profile/profile.h"
#include "unwind/unwind.h"

/* All frames of a sample in the order that is counted: kernel, user, and a marker where the stack was cut. */
struct whole_stack {
	uint32_t count;
	uint32_t inlined; /* of PROFILE_INLINED_MAX */
	uint32_t named; /* frames that hold references to function and file */
	struct frame frames[PROFILE_FRAMES_MAX];
};

struct pipeline {
	const struct config *config;
	const struct pipeline_ops *ops;
	void *ctx;
	struct ledger_engine *ledger;
	struct capture *capture;
	struct process_table *table;
	struct unwinder *unwinder;
	struct symbolizer *symbols;
	struct kernel_symbols *kernel;
	struct profile_config counting;  /* of both builders */
	struct profile_builder *profile;
	struct profile_builder *late; /* samples that wait for names; of this rate and these attributes */
	struct jit jit;
	struct runtimes *runtimes;
	bool ending;
	uint64_t now_ns; /* of the current batch or turn */
	struct resource_set resource;
	struct park park;
	struct adapt_limits adapt;
	uint32_t stack_limit; /* the guard's, beside the configuration's */
	struct hints hints;
	uint32_t plan_gen;
	bool settled; /* an answer that samples wait for has arrived */
	/* Of the current sample; both large. */
	struct unwind_stack stack; /* its native user stack */
	struct whole_stack whole;  /* all of its frames */
	struct unwind_gate gates[RUNTIME_GATES];
	struct runtimes_stack interpreted;
	struct runtimes_context context;
	struct merge_native loops[UNWIND_FRAMES_MAX];
	struct merge_frame merged[MERGE_MAX(UNWIND_FRAMES_MAX, OTP_WALK_PLANS * OTP_WALK_FRAMES)];
};

/*
 * The data of one attempt at a sample: of the live process, or of a parked
 * sample. Borrowed, except the space: mappings that are read again within the
 * attempt replace the process' own, and the frames of pipeline.stack point into
 * those that it was unwound by. The identity is requested by table_find, before
 * the attempt.
 */
struct attempt {
	const struct sample *s;
	struct process *proc; /* NULL: not in the table any more */
	struct space *space;  /* owned */
	struct workload *workload;
	struct str *exe;
	const struct str *comm; /* of its first thread; NULL: not known */
	bool final;
	bool wants_maps; /* its mappings were already requested once */
	struct jit_process *jit; /* of code without a file, NULL: none */
};

static inline void attempt_set_space(struct attempt *a, struct space *s)
{
	space_ref(s);
	space_put(a->space);
	a->space = s;
}

static inline void attempt_done(struct attempt *a)
{
	a->space = space_put(a->space);
}

static inline bool has_user_side(const struct sample *s)
{
	return s->reg && !(s->head.mode & SAMPLE_NO_USER_SIDE);
}

static inline bool same_exec(const struct process *proc, const struct sample *s)
{
	return proc->start_ns == s->head.start_ns && proc->exec_id == s->head.exec_id;
}

/* The sample's process; NULL: it is gone, or runs another program by now. */
static inline struct process *attempt_process(const struct attempt *a)
{
	return a->proc && same_exec(a->proc, a->s) ? a->proc : NULL;
}

/* The walks of a process became known: it is walked from now on, not only from its next sample on. */
void pipeline_send_walks(struct pipeline *p, uint32_t pid);

/* Unwinds the sample's user stack into p->stack. -EAGAIN: it should wait for a file or for mappings. */
int pipeline_unwind(struct pipeline *p, struct attempt *a);

/* Joins the sample's frames in p->whole, from its kernel stack and p->stack. */
void pipeline_stack(struct pipeline *p, const struct attempt *a);
void pipeline_stack_done(struct pipeline *p); /* drops the references that p->whole holds */

#endif
