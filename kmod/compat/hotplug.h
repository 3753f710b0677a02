/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs that come and go, told to any number of instances: by the kernel's own
 * states with instances, or by its older notifiers (before 4.10).
 *
 * add calls online for every CPU that is there, and remove offline, so one
 * pair of functions serves the beginning, the end and what happens between.
 * Both run on the CPU in question or while it stands still for them, may not
 * sleep, and never for two CPUs of one instance at once.
 * Everything here may sleep; add and remove not from within the functions.
 */
#ifndef OTPROF_COMPAT_HOTPLUG_H
#define OTPROF_COMPAT_HOTPLUG_H

#include <linux/types.h>

typedef int otprof_hotplug_fn(unsigned int cpu, struct hlist_node *node);

int otprof_hotplug_init(otprof_hotplug_fn *online, otprof_hotplug_fn *offline);
/* No instance may be left. */
void otprof_hotplug_done(void);

int otprof_hotplug_add(struct hlist_node *node);
void otprof_hotplug_remove(struct hlist_node *node);

/* Between the two, no CPU comes or goes. */
void otprof_hotplug_hold(void);
void otprof_hotplug_release(void);

#endif
