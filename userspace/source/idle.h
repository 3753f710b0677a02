/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle time of CPUs, by the kernel's own account.
 *
 * Called by events.c, one thread. Some kernels and hypervisors do not wake an
 * idle CPU for a tick: a tick due then is not a missed sample.
 * Cost: one read of /proc/stat, slow on large hosts: only where the figure is
 * needed.
 */
#ifndef OTP_SOURCE_IDLE_H
#define OTP_SOURCE_IDLE_H

#include <stdint.h>
#include <stdio.h>

/* Idle and waiting for I/O since boot, by CPU, in ns; CPUs that the text does not name keep their value. */
void idle_parse(FILE *stat, uint64_t tick_ns, uint64_t *ns, uint32_t nr);
int idle_read(uint64_t *ns, uint32_t nr);

#endif
