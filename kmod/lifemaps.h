/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The executable mappings of a task that has just executed a program, as
 * MMAP2 records. Called by the task itself, from its tracepoint: it may not
 * sleep, and it does not wait for whoever looks at its memory.
 */
#ifndef OTPROF_LIFEMAPS_H
#define OTPROF_LIFEMAPS_H

#include <linux/perf_event.h>
#include <linux/types.h>

#include "kmod/uapi/otprof.h"

struct task_struct;

/* The sample id that ends every record (PERF_SAMPLE_TID and PERF_SAMPLE_TIME). */
struct otprof_life_tail {
	u32 pid, tid;
	u64 time_ns;
};

/* Fills what all records begin and end with. */
void otprof_life_head(struct otp_life *event, struct perf_event_header *header, u32 len, u32 type, u16 misc);
void otprof_life_tail(struct otprof_life_tail *tail);

typedef void otprof_life_fn(void *ctx, const void *record, u32 len);

/*
 * Records are fn's for the call. -EAGAIN or -ENOMEM where the mappings could
 * not be looked at; 0 also on a kernel where they never can.
 */
int otprof_life_maps(struct task_struct *task, otprof_life_fn *fn, void *ctx);

#endif
