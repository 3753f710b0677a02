/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs of a name (comm of the first thread) have needed of their
 * stacks: so that the tenth compiler of a build is copied deep enough from its
 * first sample on, though none of them lives long enough for a plan of its
 * own, and so that a name that needs little costs little. A name that is not
 * known yet gets what start says, which should do for most.
 *
 * Called by the engine for every unwound stack, one thread. A hint grows with
 * the processes of its name and comes down after a window in which all of
 * them needed less. Bounded by HINTS_MAX names; the one that was heard of
 * longest ago goes first.
 * Cost: a hash lookup a stack.
 */
#ifndef OTP_DAEMON_ENGINE_HINTS_H
#define OTP_DAEMON_ENGINE_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "kmod/uapi/otprof.h"

#define HINTS_MAX 512
#define HINTS_FIRST 64 /* samples after which a new name may be given less: the first are of its start, not of its depth */

struct hint {
	char comm[OTP_COMM_LEN];
	struct otp_hint now; /* stack_bytes 0: free */
	struct otp_hint needed; /* most in this window */
	uint32_t samples;     /* in this window */
	bool told;            /* the sampler knows it */
	uint64_t since_ns;    /* begin of the window */
	uint64_t heard_ns;
};

struct hints {
	struct hint all[HINTS_MAX];
	struct map index; /* hash of the name -> place */
	struct otp_hint start; /* what a name gets that is not known yet */
	void (*tell)(void *ctx, const char comm[OTP_COMM_LEN], const struct otp_hint *h); /* zeros: forget it */
	void *ctx;
};

void hints_done(struct hints *h);
/* What a process of this name is given while it has no plan. */
struct otp_hint hints_given(const struct hints *h, const char comm[OTP_COMM_LEN]);
/* A process of this name has just been given so much, or should have been. */
void hints_grown(struct hints *h, const char comm[OTP_COMM_LEN], const struct otp_hint *given, uint64_t now_ns);
/* A whole stack of a process of this name used so much. */
void hints_used(struct hints *h, const char comm[OTP_COMM_LEN], const struct otp_hint *used, uint64_t now_ns);

#endif
