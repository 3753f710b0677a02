// SPDX-License-Identifier: GPL-2.0-only
/* A task says that it executes a program. */
#include <linux/sched.h>
int probe(const struct task_struct *t);
int probe(const struct task_struct *t) { return t->in_execve; }
