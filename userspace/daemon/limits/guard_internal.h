/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard's CPU part and what it shares with the memory part. Included by
 * guard.c and guard_cpu.c only; context, units and errors as in guard.h.
 */
#ifndef OTP_DAEMON_LIMITS_GUARD_INTERNAL_H
#define OTP_DAEMON_LIMITS_GUARD_INTERNAL_H

#include "daemon/limits/guard.h"

#define GUARD_RETURNS_MAX 5 /* of memory; fewer count for the CPU */

/* Books a move to level; within_ns: a step down so soon after a raise shows that the raise was too early. */
void guard_book(struct guard_ladder *l, uint32_t level, bool lowered, enum guard_step step, uint64_t now,
		uint64_t within_ns);

void guard_cpu_limits(struct guard *g);
bool guard_cpu_look(struct guard *g, const struct guard_look *look, struct guard_change *ret);

#endif
