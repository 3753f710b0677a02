/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The source of ticks: a timer on each online CPU of each started session,
 * pinned, expiring in hard interrupt context on -rt too, or the CPU's counter
 * of cycles instead (counter.h). A timer's ticks are at random places of their
 * periods (schedule.h). Follows CPUs that go online and offline.
 *
 * After a tick, no session interrupts that CPU for about four times the tick's
 * length: ticks of all sessions together take about a fifth of its time at
 * most. Of a tick that took longer than usual, four times the usual length and
 * 100 us count. A timer's tick that falls into this rest is put off; a
 * counter's cannot be, and is skipped and counted.
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

/* Whether this CPU is to have no tick now; on that CPU, in a hard interrupt or an NMI, as is the next. */
bool otprof_timers_resting(void);
/* One tick of the timer or the counter, after which c's CPU rests. */
void otprof_timers_tick(struct otprof_cpu *c, struct pt_regs *regs);

#endif
