/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What otprof itself costs: CPU time of its processes, and memory - the
 * proportional share of all processes, and what lies in the kernel for us.
 *
 * Called by the monitor (status, guard), one thread. Memory is looked at no
 * more often than every ten seconds, since the kernel walks all page tables
 * for it.
 */
#ifndef OTP_DAEMON_MONITOR_COST_H
#define OTP_DAEMON_MONITOR_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/monitor/sampler.h"
#include "daemon/monitor/workers.h"
#include "daemon/report/status.h"

struct cost {
	struct status_cost figures; /* as they were last looked at */
	uint64_t memory_ns;	    /* when memory was */
};

void cost_collect(struct cost *c, const struct workers *w, const struct sampler *s);
/* Its parts. tight: memory is near its limit, so it is looked at every two seconds. */
void cost_cpu(struct cost *c, const struct workers *w, const struct sampler *s);
void cost_memory(struct cost *c, const struct workers *w, const struct sampler *s, bool tight);
uint64_t cost_cpu_ns(const struct cost *c); /* kernel and all processes */

#endif
