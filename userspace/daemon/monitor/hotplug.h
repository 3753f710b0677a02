/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPUs that go online and offline while we sample: source and side-band are
 * adapted, and the engine is sent the buffers of new CPUs.
 *
 * Called by the monitor: where its socket is readable, and once a second; one
 * thread. The kernel reports CPUs by uevents, which reach only the first
 * network namespace; so the list of online CPUs is read as well, and every ten
 * seconds the source checks for itself.
 */
#ifndef OTP_DAEMON_MONITOR_HOTPLUG_H
#define OTP_DAEMON_MONITOR_HOTPLUG_H

#include <stdint.h>

#include "daemon/monitor/sampler.h"
#include "daemon/monitor/worker.h"

struct hotplug {
	int fd;		  /* uevents; -1: there are none */
	char online[256]; /* CPUs, as the kernel lists them */
	uint64_t next_ns;
};

void hotplug_open(struct hotplug *h);
void hotplug_close(struct hotplug *h);
void hotplug_read(struct hotplug *h);
void hotplug_run(struct hotplug *h, struct sampler *s, struct worker *engine, uint64_t now);

#endif
