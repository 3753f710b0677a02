/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs of a name have needed of their stacks: so that the tenth
 * compiler of a build is copied deep enough from its first sample on, though
 * none of them lives long enough for a plan of its own.
 *
 * Called by the engine when a process' copy changes its size, one thread.
 * Bounded by HINTS_MAX names; the one that was said longest ago goes first.
 */
#ifndef OTP_DAEMON_HINTS_H
#define OTP_DAEMON_HINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "kmod/uapi/otprof.h"

#define HINTS_MAX 512

struct hint {
	char comm[OTP_COMM_LEN];
	uint32_t stack_bytes; /* 0: free */
	uint64_t said;        /* order */
};

struct hints {
	struct hint all[HINTS_MAX];
	uint64_t said;
	void (*tell)(void *ctx, const char comm[OTP_COMM_LEN], uint32_t stack_bytes); /* 0: forget it */
	void *ctx;
};

/*
 * A process of this name now has stack_bytes, which is more than what
 * processes start with (start_bytes), or less than before.
 */
void hints_learn(struct hints *h, const char comm[OTP_COMM_LEN], uint32_t stack_bytes, uint32_t start_bytes);

#endif
