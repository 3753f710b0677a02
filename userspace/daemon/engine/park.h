/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that wait for a file to be opened, for mappings to be read again, or
 * for the name of their process. Each is copied out of the ring and waits at
 * most until its deadline; then it is processed with the data at hand.
 *
 * Called by the engine, one thread. Bounded by PARK_BYTES, and a process by
 * PARK_SHARE times what all of them leave: where openers hang, programs with
 * deep stacks leave room for those of others. A sample that does not fit is not
 * parked (the caller processes it at once).
 */
#ifndef OTP_DAEMON_ENGINE_PARK_H
#define OTP_DAEMON_ENGINE_PARK_H

#include <stddef.h>

#include "daemon/engine/sample.h"
#include "process/table.h"

#define PARK_BYTES (8u << 20)
#define PARK_SHARE 2   /* alone a process has two thirds */
#define PARK_HELD  256 /* sums of bytes, by pid: processes may share one */

struct parked {
	struct parked *next;
	struct sample sample; /* points into this object */
	struct space *space;  /* as of the sample's time; owned */
	struct workload *workload; /* owned */
	struct str *exe;           /* owned, may be NULL */
	struct str *comm;          /* of the first thread; owned, may be NULL */
	uint64_t deadline_ns;
	size_t bytes;
	bool wants_maps; /* waits for mappings: the retry uses the process' new ones */
	uint64_t data[];
};

struct park {
	struct parked *first, **last;
	size_t count, bytes;
	size_t held[PARK_HELD];
};

void park_init(struct park *p);
void park_done(struct park *p);
/* -ENOSPC: no room, or none for this process; -ENOMEM: not parked. */
int park_add(struct park *p, const struct sample *s, const struct process *proc, uint64_t deadline_ns, bool wants_maps);
void park_remove(struct park *p, struct parked **slot); /* frees it */

#endif
