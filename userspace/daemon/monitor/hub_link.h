/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the monitor does for the hub: a socket between engine and hub, and the
 * token that requests need, in a file that root and the status socket's group
 * may read.
 *
 * Called by the monitor, one thread. Without [hub] listen every call does
 * nothing. The token is made anew at each start of otprofd.
 */
#ifndef OTP_DAEMON_MONITOR_HUB_LINK_H
#define OTP_DAEMON_MONITOR_HUB_LINK_H

#include <stddef.h>

#define HUB_TOKEN      48 /* characters, 192 bits */
#define HUB_TOKEN_FILE "hub.token"

struct monitor;
struct ipc_message;

int hub_link_open(struct monitor *m); /* negative errno, logged */
void hub_link_close(struct monitor *m);
/* After the start of either: connects engine and hub, if both run. */
void hub_link_make(struct monitor *m);
void hub_link_from(struct monitor *m, const struct ipc_message *msg); /* a message of the hub */

#endif
