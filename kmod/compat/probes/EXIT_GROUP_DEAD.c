// SPDX-License-Identifier: GPL-2.0-only
/* 6.16: the tracepoint of exit says whether the whole group is gone. */
#include <linux/sched.h>
#include <trace/events/sched.h>
static void fn(void *data, struct task_struct *task, bool group_dead) { }
int probe(void);
int probe(void) { return register_trace_sched_process_exit(fn, NULL); }
