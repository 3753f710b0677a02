/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of the host, which every workload carries: host.name, host.id,
 * os.type, and those of [resource].
 * Called by the engine at start and on reload, one thread. The engine cannot
 * read files, so the monitor adds host.id to the configuration that it sends.
 */
#ifndef OTP_DAEMON_CONFIG_RESOURCE_H
#define OTP_DAEMON_CONFIG_RESOURCE_H

#include "daemon/config/config.h"
#include "process/workload.h"

struct resource_set {
	struct attribute attributes[WORKLOAD_ATTRIBUTES_MAX]; /* owned */
	size_t count;
};

/* The monitor's part: adds host.id to the configuration, unless it is set. -ENOENT: the host has no id. */
int resource_add_host_id(struct config *c);

int resource_set_new(struct resource_set *r, const struct config *c);
void resource_set_done(struct resource_set *r);

#endif
