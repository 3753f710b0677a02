/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When ticks come: a timer on each online CPU of each started session, pinned,
 * expiring in hard interrupt context on -rt too, or the CPU's counter of
 * cycles in its place (counter.h). CPUs that come and go are followed.
 *
 * Start, stop, period and cpus: under the session's mutex, may sleep. When
 * stop returns, no tick of the session runs or will run.
 */
#ifndef OTPROF_TIMERS_H
#define OTPROF_TIMERS_H

#include <linux/types.h>

struct otprof_cpu;
struct otprof_cpus;
struct otprof_session;
struct pt_regs;

int otprof_timers_init(void);
void otprof_timers_done(void);

void otprof_timers_init_cpu(struct otprof_cpu *c);
int otprof_timers_start(struct otprof_session *s);
void otprof_timers_stop(struct otprof_session *s);
/* Another period from the next tick on. What was expected until now still is. */
int otprof_timers_period(struct otprof_session *s, u64 period_ns);
/* By the time that the timers ran; what came of them is in the counters. */
u64 otprof_timers_expected(const struct otprof_session *s);
void otprof_timers_cpus(struct otprof_session *s, struct otprof_cpus *ret);

/* One tick, whoever makes it; on c's CPU, in a hard interrupt or an NMI. Returns its nanoseconds. */
u64 otprof_timers_tick(struct otprof_cpu *c, struct pt_regs *regs);

#endif
