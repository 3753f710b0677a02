/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ticks from the CPU's counter of cycles, through the kernel's own perf
 * events. Its interrupt is an NMI where the CPU supports that: the handler
 * takes no lock, may interrupt any code, and so samples code that runs with
 * interrupts off. UNTESTED UNTIL RUN ON HARDWARE WITH SUCH A COUNTER: most
 * virtual machines have none, and the calls below fail there.
 *
 * All calls: under the session's mutex, may sleep. When close returns, no tick
 * of the session runs or will run.
 */
#ifndef OTPROF_COUNTER_H
#define OTPROF_COUNTER_H

#include <linux/types.h>

struct otprof_session;

/* Whether this kernel supports it. Whether the CPU has a counter, only try finds out. */
bool otprof_counter_possible(void);
/* Opens a counter and closes it again. -ENOENT, -EOPNOTSUPP or another error of perf: there is none. */
int otprof_counter_try(u64 period_ns);
/* Opens counters for wanted CPUs that came online, closes those of CPUs that went offline. */
int otprof_counter_follow(struct otprof_session *s);
void otprof_counter_close(struct otprof_session *s);

#endif
