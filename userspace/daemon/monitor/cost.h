/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of otprof itself: CPU time of its processes, and memory: the
 * proportional share of all processes, and our buffers in the kernel. Of the
 * CPU time, the part that reads files is known: openers, indexer, fetcher and
 * decoders, and those turns of the monitor's loop that start or serve them.
 *
 * Called by the monitor (status, guard), one thread. Memory is read at
 * most every ten seconds, since the kernel walks all page tables for it.
 */
#ifndef OTP_DAEMON_MONITOR_COST_H
#define OTP_DAEMON_MONITOR_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/monitor/sampler.h"
#include "daemon/monitor/workers.h"
#include "daemon/report/status.h"

struct cost {
	struct status_cost figures; /* as last read */
	uint64_t memory_ns;	    /* when memory was read */
	uint64_t turn_cpu_ns;	    /* the monitor's CPU time at the end of its last turn */
	uint64_t turns_for_files_ns; /* CPU time of such turns */
	bool turn_for_files;	    /* the present one is */
};

void cost_collect(struct cost *c, const struct workers *w, const struct sampler *s);
/* Its parts. tight: memory is near its limit, so it is read every two seconds. */
void cost_cpu(struct cost *c, const struct workers *w, const struct sampler *s);
void cost_memory(struct cost *c, const struct workers *w, const struct sampler *s, bool tight);
uint64_t cost_cpu_ns(const struct cost *c); /* of sampling in the kernel, and of all processes */
uint64_t cost_files_ns(const struct cost *c); /* the part of it that reads files */
uint64_t cost_samples(const struct sampler *s); /* taken since the sampler started, of all origins */
/* The present turn of the loop starts or serves a process that reads files. */
void cost_turn_for_files(struct cost *c);
void cost_end_turn(struct cost *c); /* costs one clock read */

#endif
