/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A timer on each online CPU of each started session, pinned, expiring in hard
 * interrupt context on -rt too; CPUs that come and go are followed by the
 * kernel's own hotplug states.
 *
 * Start and stop: under the session's mutex, may sleep. When stop returns, no
 * tick of the session runs or will run.
 */
#ifndef OTPROF_TIMERS_H
#define OTPROF_TIMERS_H

#include <linux/types.h>

struct otprof_cpu;
struct otprof_cpus;
struct otprof_session;

int otprof_timers_init(void);
void otprof_timers_done(void);

void otprof_timers_init_cpu(struct otprof_cpu *c);
int otprof_timers_start(struct otprof_session *s);
void otprof_timers_stop(struct otprof_session *s);
/* By the time that the timers ran; what came of them is in the counters. */
u64 otprof_timers_expected(const struct otprof_session *s);
void otprof_timers_cpus(struct otprof_session *s, struct otprof_cpus *ret);

#endif
