/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of the spools, as net opens it: inside its private root, where
 * the monitor has mounted it, or, without such a root, while it still has its
 * rights. All that is written there is written by way of this descriptor.
 *
 * Called by net, one thread, around the closing of its sandbox.
 */
#ifndef OTP_DAEMON_NET_NET_SPOOL_H
#define OTP_DAEMON_NET_NET_SPOOL_H

#include "daemon/config/config.h"
#include "export/export.h"

/* Before the sandbox. Where there is a private root, nothing is opened yet. */
void net_spool_hold(const struct config *c, struct export_spool *ret);
/* After it. A directory that cannot be opened is left to the destinations, which report it. */
void net_spool_open(const struct config *c, struct export_spool *s);
void net_spool_close(struct export_spool *s);
/* Lets the exporters of c use it; s is borrowed for the life of c. */
void net_spool_lend(struct config *c, const struct export_spool *s);
/* Logs which spools have no destination in c: they stay as they are. */
void net_spool_log_orphans(struct config *c, const struct export_spool *s);

#endif
