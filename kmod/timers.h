/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The source of ticks: a timer on each online CPU of each started session,
 * pinned, expiring in hard interrupt context on -rt too, or the CPU's counter
 * of cycles instead (counter.h). Follows CPUs that go online and offline.
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
/* A new period from the next tick on. Ticks expected so far stay counted. */
int otprof_timers_period(struct otprof_session *s, u64 period_ns);
/* Ticks due in the time that the timers ran. */
u64 otprof_timers_expected(const struct otprof_session *s);
void otprof_timers_cpus(struct otprof_session *s, struct otprof_cpus *ret);

/* One tick of the timer or the counter; on c's CPU, in a hard interrupt or an NMI. Returns its duration in ns. */
u64 otprof_timers_tick(struct otprof_cpu *c, struct pt_regs *regs);

#endif
