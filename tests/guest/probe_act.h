/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that act a part which a test writes, and the samples taken of them.
 * For tests of tasks whose registers, memory or stacks are unusual; ordinary
 * children are in probe.h. The acts run in the child and share a struct act with
 * the test.
 */
#ifndef OTP_TESTS_GUEST_PROBE_ACT_H
#define OTP_TESTS_GUEST_PROBE_ACT_H

#include "probe.h"

#define ACT_MS 1500 /* that a session watches an act */
/* Of a stack pointer below the end of a stack from child_make_stack: less than the stack, more than is ever copied. */
#define ACT_DEPTH 400000

/* Shared with the child. */
struct act {
	struct stage stage;
	volatile uint64_t tls_near; /* the base of a thread's storage, near its stack pointer */
	volatile uint64_t tls_end;  /* not 0: a base that is the end of a stack */
	volatile int pid;	    /* of the process that spins, where it is not the child */
};

/* What the child of a test does. Returns where the kernel does not provide it. */
typedef void play_fn(struct act *act);

struct act *act_new(void);
/* Forks the child and waits until its stage is ready. -1: it could not act, and act is freed. */
pid_t act_begin(struct act *act, play_fn *play);
void act_end(struct act *act, pid_t pid);
/* Runs a session beside the child; ctx begins with the child's pid. *ret_ran: the child could act. */
int act_watch(play_fn *play, const struct source_config *cfg, unsigned int ms, record_fn *fn, void *ctx,
	      bool *ret_ran);

/* The samples of a child that spins on a stack of known words. */
struct stack_tally {
	pid_t pid;
	const struct act *act;
	unsigned int samples, with_end, bases, wrong;
	uint64_t want, end; /* bytes of a right stack; the end that those with one should have */
	bool any_words; /* the stack is in use */
	uint64_t seq;
	uint32_t cpu;
};

/* Watches the process that spins in the play, with copies and bases of other sizes than usual. Takes act. */
enum verdict act_watch_stack(struct act *act, play_fn *play, uint32_t stack_bytes, struct stack_tally *t);

#endif
