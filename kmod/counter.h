/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ticks from the CPU's counter of cycles, through the kernel's own perf
 * events. Its interrupt is an NMI where the CPU supports that: the handler
 * takes no lock, may interrupt any code, and so samples code that runs with
 * interrupts off. UNTESTED UNTIL RUN ON HARDWARE WITH SUCH A COUNTER: most
 * virtual machines have none, and the calls below fail there.
 *
 * The kernel chooses how many cycles make a tick and corrects that number by
 * itself, at overflows and at its own timer's ticks, so that ticks come at the
 * session's rate; cycles stop while the CPU is idle. Nothing here moves ticks at
 * random, as schedule.h does for the timer: a handler may not change the period
 * of an event by frequency, and what it is corrected to is independent of a
 * program's own timers only as far as cycles and time are. A tick that falls
 * into the rest after another session's cannot be put off: it is skipped.
 *
 * All calls: under the session's mutex, may sleep. When close returns, no tick
 * of the session runs or will run.
 */
#ifndef OTPROF_COUNTER_H
#define OTPROF_COUNTER_H

#include <linux/types.h>

struct otprof_cpu;
struct otprof_session;

/* Whether this kernel supports it. Whether the CPU has a counter, only try finds out. */
bool otprof_counter_possible(void);
/*
 * Opens a counter and closes it again. -EBUSY: others hold all; -ENOENT,
 * -EOPNOTSUPP or another error of perf: there is none.
 */
int otprof_counter_try(u64 period_ns);
/* Whether the CPU has a counter that counts: one that others took is open but counts nothing. */
bool otprof_counter_runs(const struct otprof_cpu *c);
/*
 * Opens counters for wanted CPUs that came online, closes those of CPUs that
 * went offline, and enables anew those that others took.
 */
int otprof_counter_follow(struct otprof_session *s);
void otprof_counter_close(struct otprof_session *s);

#endif
