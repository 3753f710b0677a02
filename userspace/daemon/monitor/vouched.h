/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks that decoders vouch for. A walk copies words from wherever its plan
 * points, so the engine, which may be taken over, does not choose plans: a
 * decoder makes them from the memory of one process, and they are set for that
 * process alone, and the program that it ran then.
 *
 * Called by the monitor for each WALKABLE of a decoder, and each WALK of the
 * engine; one thread. Bound: VOUCHED_MAX processes, the oldest go first.
 */
#ifndef OTP_DAEMON_MONITOR_VOUCHED_H
#define OTP_DAEMON_MONITOR_VOUCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/hash.h"
#include "kmod/uapi/otprof_walk.h"

#define VOUCHED_MAX    2048
#define VOUCHED_PLANS  (OTP_WALK_PLANS + 1) /* a runtime that had two walks may have to leave one to another runtime */
#define VOUCHED_USE_NS (30 * NSEC_PER_SEC) /* until the first walks are set: they fix the program */

struct vouched_process {
	uint32_t pid, nr;
	uint64_t start_ns;
	uint64_t until_ns; /* 0: used */
	uint64_t exec_id;  /* once used */
	struct otp_walk plan[VOUCHED_PLANS];
};

struct vouched {
	struct vouched_process *all; /* owned, VOUCHED_MAX; NULL until the first */
	struct map by_pid;	     /* index + 1 */
	uint32_t next;
};

void vouched_done(struct vouched *v);
/* -ENOMEM: the walk will be refused. A plan beyond VOUCHED_PLANS of one process replaces the oldest. */
int vouched_add(struct vouched *v, uint32_t pid, uint64_t start_ns, const struct otp_walk *plan, uint64_t now_ns);
/* Whether these walks may be set for the process. */
bool vouched_allows(struct vouched *v, uint32_t pid, const struct otp_walks *w, uint64_t now_ns);

#endif
