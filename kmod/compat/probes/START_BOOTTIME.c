// SPDX-License-Identifier: GPL-2.0-only
/* 5.5: real_start_time got another name. */
#include <linux/sched.h>
u64 probe(const struct task_struct *t);
u64 probe(const struct task_struct *t) { return t->start_boottime; }
