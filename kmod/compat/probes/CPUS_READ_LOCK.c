// SPDX-License-Identifier: GPL-2.0-only
/* 4.13: the lock of CPU hotplug got another name. */
#include <linux/cpu.h>
void probe(void);
void probe(void) { cpus_read_lock(); }
