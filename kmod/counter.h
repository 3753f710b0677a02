/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ticks from the CPU's counter of cycles, through the kernel's own perf
 * events. Its interrupt is an NMI where the CPU has one for it: it takes no
 * lock, and what it interrupts may be anything, so it sees code that runs with
 * interrupts off. UNTESTED UNTIL RUN ON HARDWARE WITH SUCH A COUNTER: what
 * virtual machines commonly lack, they refuse here.
 *
 * All calls: under the session's mutex, may sleep. When close returns, no tick
 * of the session runs or will run.
 */
#ifndef OTPROF_COUNTER_H
#define OTPROF_COUNTER_H

#include <linux/types.h>

struct otprof_session;

/* Whether this kernel has what it takes; whether there is a counter, only try can tell. */
bool otprof_counter_possible(void);
/* -ENOENT, -EOPNOTSUPP or whatever else perf says where there is none; nothing stays. */
int otprof_counter_try(u64 period_ns);
/* A counter for each wanted CPU that is online and has none, and none for those that went. */
int otprof_counter_follow(struct otprof_session *s);
void otprof_counter_close(struct otprof_session *s);

#endif
