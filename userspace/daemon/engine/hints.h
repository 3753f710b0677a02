/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many stack bytes programs of a name (comm of the first thread) have
 * needed: so that the tenth compiler of a build is copied deep enough from its
 * first sample on, though none of them lives long enough for a plan of its
 * own, and so that a name that needs little costs little. A new name starts
 * with the sizes in start, which suffice for most.
 *
 * Called by the engine for every unwound stack, one thread. A hint grows with
 * the processes of its name and shrinks after a window in which all of them
 * needed less. Bounded by HINTS_MAX names; the least recently used is dropped.
 * Cost: a hash lookup a stack.
 */
#ifndef OTP_DAEMON_ENGINE_HINTS_H
#define OTP_DAEMON_ENGINE_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "kmod/uapi/otprof.h"

#define HINTS_MAX 512
#define HINTS_FIRST 64 /* samples before a new name may shrink: the first ones show its start, not its depth */

struct hint {
	char comm[OTP_COMM_LEN];
	struct otp_hint now; /* stack_bytes 0: free */
	struct otp_hint needed; /* most in this window */
	uint32_t samples;     /* in this window */
	bool sent;            /* to the sampler */
	uint64_t since_ns;    /* begin of the window */
	uint64_t used_ns;     /* last use */
};

struct hints {
	struct hint all[HINTS_MAX];
	struct map index; /* hash of the name -> place */
	struct otp_hint start; /* the sizes of a new name */
	void (*send)(void *ctx, const char comm[OTP_COMM_LEN], const struct otp_hint *h); /* zeros: remove it */
	void *ctx;
};

void hints_done(struct hints *h);
/* The sizes for a process of this name without a plan. */
struct otp_hint hints_given(const struct hints *h, const char comm[OTP_COMM_LEN]);
/* A process of this name was just raised to these sizes, or would have needed them. */
void hints_grown(struct hints *h, const char comm[OTP_COMM_LEN], const struct otp_hint *given, uint64_t now_ns);
/*
 * A copy was cut because nobody knew the program (OTP_MODE_BOUNDED): from now on
 * its name is known by the sizes of a new name, at least.
 */
void hints_met(struct hints *h, const char comm[OTP_COMM_LEN], uint64_t now_ns);
/* A whole stack of a process of this name used these sizes. */
void hints_used(struct hints *h, const char comm[OTP_COMM_LEN], const struct otp_hint *used, uint64_t now_ns);

#endif
