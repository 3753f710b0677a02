// SPDX-License-Identifier: GPL-2.0-only
/* 4.11: sched.h was divided. */
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
int probe;
