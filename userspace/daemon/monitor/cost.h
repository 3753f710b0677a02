/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What otprof itself costs: CPU time of its processes, and memory as design.md
 * counts it - the proportional share of all processes, and what lies in the
 * kernel for us.
 * Called by the monitor when somebody asks; memory is looked at no more often
 * than every ten seconds, since the kernel walks all page tables for it.
 */
#ifndef OTP_DAEMON_MONITOR_COST_H
#define OTP_DAEMON_MONITOR_COST_H

#include <stdbool.h>
#include <stdint.h>

struct monitor;
struct status_cost;

void cost_collect(struct monitor *m, struct status_cost *c);
/* Its parts. tight: memory is near its limit, so it is looked at every two seconds. */
void cost_cpu(struct monitor *m, struct status_cost *c);
void cost_memory(struct monitor *m, struct status_cost *c, bool tight);
uint64_t cost_cpu_ns(const struct status_cost *c); /* kernel and all processes */

#endif
