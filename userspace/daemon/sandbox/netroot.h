/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private root of net, which the fetcher enters too: resolver files, CA
 * bundle, and the directories of file destinations. A small tmpfs in the
 * monitor's own mount namespace, or a plain directory where there can be none.
 *
 * Called by the monitor, which builds it and keeps it new, and by sandbox.c,
 * which enters it. Negative errno, already logged. Blocks as a disk does.
 */
#ifndef OTP_DAEMON_SANDBOX_NETROOT_H
#define OTP_DAEMON_SANDBOX_NETROOT_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/config.h"

/* Makes it, before the monitor drops its rights. */
int netroot_build(const struct config *c);
/* Copies anew what changed since (resolver files, CA bundle); cheap, needs no rights. */
void netroot_refresh(const struct config *c);
/* Files of TLS that a new configuration names, or that have changed. */
void netroot_reload(const struct config *c);
/* Whether net reaches this directory: it was a file destination's at start. */
bool netroot_sees(const struct config *c, const char *dir);
void netroot_path(const struct config *c, char *to, size_t size);
bool netroot_exists(const struct config *c);
/*
 * net, while it still has rights: where there is no private root, the
 * directories of file destinations are opened, because their parents may be
 * closed to net's user.
 */
void netroot_hold(struct config *c);

#endif
