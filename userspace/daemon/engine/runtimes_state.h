/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state behind runtimes.h: runtimes.c has processes and what they run,
 * runtimes_meet.c how that is found, runtimes_walks.c whose walks a sample has,
 * runtimes_frames.c their frames, runtimes_code.c those on the native stack,
 * runtimes_functions.c the functions of both, runtimes_epochs.c which epochs a
 * sample is of, runtimes_loops.c the native functions that run interpreted code,
 * runtimes_context.c what samples have besides frames, runtimes_seen.c what
 * attaching may look at. Only these and their test include it.
 */
#ifndef OTP_DAEMON_ENGINE_RUNTIMES_STATE_H
#define OTP_DAEMON_ENGINE_RUNTIMES_STATE_H

#include "base/clock.h"
#include "daemon/engine/codes.h"
#include "daemon/engine/functions.h"
#include "daemon/engine/labels.h"
#include "daemon/engine/runtimes.h"

#define RETRY_NS (10 * NSEC_PER_SEC) /* a decoder that could not be had */
#define SHOW_NS	 (50 * NSEC_PER_MSEC) /* between samples that are shown to a decoder that has not attached */
#define RETRY_OVER_NS (60 * NSEC_PER_SEC) /* one that was attached and is over */
#define RETRY_LONG_NS (600 * NSEC_PER_SEC) /* one that failed again and again, perhaps for want of CPU time */

#define RUNTIMES_LOADED_MAX 4096 /* in a capture, steps that read more are of no use */

struct loop_range { uint64_t start, end; };

/* What attach found, shared by a process and its forks. */
struct attachment {
	uint32_t refs;
	struct runtime_attached found;
	struct loop_range loops[RUNTIME_LOOPS];
	uint32_t nr_loops;
	struct loop_range resume; /* 0 to 0: none */
	bool loops_sought;
};

enum slot_state { SLOT_ASKED, SLOT_READY, SLOT_REFUSED };

/* The latest epochs of a heap: when the runtime's code was first seen to run in it; 0: not yet, as in a collection. */
#define RUNTIMES_HEAPS 64
struct runtime_runs {
	struct { uint64_t epoch, ran_ns; } of[2];
	uint64_t met_ns; /* a sample of then has the latest */
};

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
	struct codes codes;
	uint64_t functions_after_ns; /* of the sample at hand: functions that were last read before are read again */
	uint64_t attached_ns; /* after found was read */
	/* Of the sample whose native stack is unwound; 0: not known. */
	uint64_t epoch;
	bool epoch_is_bound; /* it is at least this one */
	uint64_t code_epoch; /* likewise, of regions, by ops->code_epoch; 0 where it is only bounded: */
	uint64_t code_bound; /* of a sample without the walk's words, an epoch of before; 0: it may be an earlier one */
	uint64_t moved; /* likewise, by ops->moved */
	uint64_t stamp; /* likewise, by ops->stamp */
	struct runtime_runs *runs; /* of heaps, the one that was sampled last first; owned */
	uint32_t nr_runs, cap_runs;
	bool heaps_recur; /* an epoch has fallen: epochs do not tell */
	uint64_t frames, frames_unknown;
	struct labels labels;
};

struct runtime_process {
	struct runtime_process *prev, *next; /* the most recently sampled first */
	struct runtimes *all;
	uint32_t pid;
	uint64_t start_ns, exec_id, group;
	uint64_t thread; /* thread pointer of a sample of it; 0: unknown */
	uint32_t generation; /* of its walks; 0: none yet */
	uint32_t nr;
	uint64_t worth_ns; /* of a fork: before, no decoder is asked for */
	uint64_t retry_ns;
	uint64_t show_ns; /* when the next sample is shown to decoders that have not attached */
	struct runtime_slot slot[OTP_WALK_PLANS];
};

/* Whether an address is where a coroutine's creator goes on, as its code says: the last answers. */
#define CONTEXT_CHECKED 64
struct context_checked {
	uint64_t address; /* in the file; 0: none */
	uint32_t binary;
	bool holds;
};

struct runtimes {
	struct runtimes_config cfg;
	struct map by_pid, by_generation; /* of struct runtime_process; the second: a fork's walks are its parent's */
	struct runtime_process *first, *last;
	uint32_t generation;
	uint64_t now_ns;
	uint64_t expected_ns; /* when the youngest process that was met is old enough */
	struct frame frames[OTP_WALK_PLANS][OTP_WALK_FRAMES];
	uint16_t flags[OTP_WALK_PLANS][OTP_WALK_FRAMES];
	/* Of one half, while it is made: what its words mean, and what is to be decoded. */
	struct runtime_frame read[OTP_WALK_FRAMES], wanted[OTP_WALK_FRAMES];
	uint32_t nr_wanted;
	uint64_t blocks[OTP_WALK_OUT]; /* a copied stack of the current sample, and its frame records */
	struct unwind_record records[OTP_WALK_BLOCKS * OTP_WALK_WORDS / 2];
	/* The native stack that is unwound: of whom, and which frames said themselves what runs in them. */
	struct runtime_process *stack_of; /* NULL: of a process without a runtime */
	const struct process *stack_process;
	const struct sample *stack_sample;
	uint64_t stack_time_ns;
	bool stack_has_waited; /* as long as a sample can: it is unwound for the last time */
	bool stack_is_code;    /* its innermost frame is code that a runtime made, or brings along */
	uint32_t nr_own;
	struct own_frame {
		uint64_t index;
		struct runtime_frame frame;
		uint64_t place; /* what runs in the frame, where its pc does not tell it; 0: it does */
		uint8_t wraps; /* index of the slot + 1, whose loop the frame only calls; 0: it is one of its own */
		uint8_t inner; /* likewise, whose loop it is called by */
		uint8_t data;  /* likewise, which interprets it */
		bool loop; /* it is the interpreter's, whose code follows */
	} own[UNWIND_FRAMES_MAX];
	uint64_t left_sp, left_low; /* of the sample whose stack is unwound, as of struct runtime_place */
	bool left_none;
	struct runtime_slot *data_of; /* whose interpreter's code the last step led to */
	uint32_t walked; /* bit per slot: of this sample there are walked frames */
	uint64_t library_sought; /* generation + 1 of its mappings, in which a library was looked for; 0: none */
	struct unwind_code hook;
	uint64_t loaded[RUNTIMES_LOADED_MAX], loaded_regs; /* words and registers that steps read */
	uint32_t nr_loaded;
	struct str *labels; /* of the current sample; owned; NULL: none */
	struct context_checked checked[CONTEXT_CHECKED];
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
/*
 * What pc stands for in the process' runtimes, with its slot. 0; -EAGAIN: it was asked; -ENOENT: nothing that holds for
 * the sample.
 */
int runtimes_code_at(struct runtimes *r, uint64_t pc, struct runtime_slot **ret_slot, struct code_entry **ret);
/* Of the stack that was unwound last: the slot whose loop the frame wraps (RUNTIME_STEP_WRAPS), as its index + 1; 0: none. */
uint8_t runtimes_wrapped(const struct runtimes *r, uint32_t index);
/* Likewise, whose loop the frame is called by (RUNTIME_STEP_INNER). */
uint8_t runtimes_inner(const struct runtimes *r, uint32_t index);
/* The slot of a frame in code that only the walk's innermost frame runs in, as its index + 1; 0: it is not so. */
uint8_t runtimes_folded(struct runtimes *r, const struct unwind_stack *stack, uint32_t index);
/* Where in its function the innermost frame of the walk is, by the innermost code of that slot; 0: not known. */
uint32_t runtimes_walked_position(struct runtimes *r, const struct runtime_slot *of, const struct unwind_stack *stack);
/* Whose walks these are, by their generation; NULL: they are of a former plan. */
struct runtime_process *runtimes_of_walk(struct runtimes *r, const struct process *p, uint32_t generation);
/* The slot whose plan walked, in this section of a sample of the process; NULL: nobody knows its walks any more. */
struct runtime_slot *runtimes_slot(struct runtimes *r, const struct process *p, const struct otp_walked *w, uint32_t plan);
/* Looks at a mapping's file, when that is open: asks for a decoder where it holds a runtime. */
void runtimes_meet_mapping(struct runtimes *r, const struct process *p, const struct mapping *m);
/* The slot that has the last plan's place for its second walk; NULL: none. */
struct runtime_slot *runtimes_more(struct runtime_process *p);
/*
 * When a decoder may be started for the process: to start one and to read a runtime's tables takes some ms of CPU time,
 * which are not spent on a process that has ended (UINT64_MAX), or may be over at any moment, as most that scripts start.
 */
uint64_t runtimes_worth_from(const struct process *p);
/* A new entry; an older one goes where they are too many. NULL: no memory. */
struct runtime_process *runtime_process_add(struct runtimes *r, const struct process *p);
/* All that a slot owns. It may be used anew. */
void runtime_slot_done(struct runtime_slot *s);
/* Asks for a decoder, borrowed; in a replay its answer arrives during the call. NULL: none can be had. */
struct decoder *runtimes_ask(struct runtime_slot *s);
/* No decoder decodes the slot's runtime until it is asked again; why: one line, "": none. */
void runtimes_refuse(struct runtime_slot *s, int err, const char *why);
/* Functions that are to be asked for: f[0] to f[nr - 1], together. In a replay the answers arrive during the call. */
void runtimes_want(struct runtimes *r, struct runtime_slot *s, const struct runtime_frame *f, uint32_t nr);
/* Whether functions of these frames may still be named. */
bool runtimes_is_pending(const struct runtime_slot *s, const struct runtime_frame *f, uint32_t nr);
/* A named frame, whose strings are borrowed. e NULL: an unknown function. */
void runtimes_name(struct runtimes *r, struct runtime_slot *s, const struct function_entry *e,
		   const struct runtime_frame *f, struct frame *to);
/* Whether a runtime of the process makes code: what is not known of it may be that runtime's. p may be NULL. */
bool runtimes_has_code(const struct runtime_process *p);
bool runtimes_makes_code(const struct runtime_slot *s);
/*
 * Of the sample whose stack is unwound. 0: its process' runtimes are known as far as they can be; -EAGAIN: the file of
 * *ret_wait is to be opened.
 */
int runtimes_meet_library(struct runtimes *r, const struct mapping **ret_wait);
/* A file whose own code is asked for: it may hold a runtime that brings such code along. */
void runtimes_meet_brought(struct runtimes *r, const struct mapping *m);
/* Words of the sample that is unwound, and of what was found, that attaching may look at. */
void runtimes_see(struct runtimes *r, const struct runtime_slot *s, struct runtime_seen *ret);
/* A decoder of the process, borrowed; NULL: none can be had now. */
struct decoder *runtimes_decoder(struct runtime_slot *s);
size_t runtimes_bytes(void); /* of all functions and regions */
/*
 * Where functions and regions of code of all exceed their bytes, the tables of whoever has most are emptied: a program that
 * makes code again and again, as closures and strings to evaluate, loses its own. What is in use is asked again.
 */
void runtimes_trim(struct runtimes *r);

/* runtimes_epochs.c: the epochs of a sample in the slot of this plan. */
void runtimes_find_epoch(struct runtimes *r, const struct process *p, const struct sample *sample, uint32_t plan);
/* Its innermost frame is code of a runtime: its epoch has begun in whole. */
void runtimes_see_run(const struct runtimes *r, struct runtime_slot *s);
/* When the runtime's code was first seen to run in its epoch; 0: not yet, or it is not known. */
uint64_t runtimes_ran_ns(const struct runtime_slot *s);
/* Whether it may be of a collection that goes on, which has raised the counter: it is in native code, before that. */
bool runtimes_epoch_begins(const struct runtimes *r, const struct runtime_slot *s);
/* For all slots, which answers about functions are too old for it. */
void runtimes_renew_functions(struct runtimes *r, const struct sample *sample);

#endif
