/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The executable mappings of a task that has just executed a program, as
 * MMAP2 records. Called in that task, from the exec tracepoint: may not sleep,
 * and does not wait for the lock of the address space.
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

/* Fill the beginning and the end of a record; len: of the whole record. */
void otprof_life_head(struct otp_life *event, struct perf_event_header *header, u32 len, u32 type, u16 misc);
void otprof_life_tail(struct otprof_life_tail *tail);

typedef void otprof_life_fn(void *ctx, const void *record, u32 len);

/*
 * Calls fn with each record, borrowed for the call. -EAGAIN, -ENOMEM: the
 * mappings could not be read. 0 also on kernels that do not allow reading them.
 */
int otprof_life_maps(struct task_struct *task, otprof_life_fn *fn, void *ctx);

#endif
