/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private root of net, which the fetcher enters too: resolver files, CA
 * bundle, and the directories of file destinations. A small tmpfs in the
 * monitor's own mount namespace, or a plain directory where none can be mounted.
 *
 * Called by the monitor, which builds and refreshes it, and by sandbox.c, which
 * enters it. Errors are negative errno, already logged. Blocks as a disk does.
 */
#ifndef OTP_DAEMON_SANDBOX_NETROOT_H
#define OTP_DAEMON_SANDBOX_NETROOT_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/config.h"

/* Before the monitor drops its rights. */
int netroot_build(const struct config *c);
/* Copies resolver files and CA bundle again if they have changed; cheap, needs no rights. */
void netroot_refresh(const struct config *c);
/* Copies the TLS files that a new configuration names, or that have changed. */
void netroot_reload(const struct config *c);
/* Whether net can reach this directory, because it was a file destination's at the start. */
bool netroot_sees(const struct config *c, const char *dir);
void netroot_path(const struct config *c, char *to, size_t size);
bool netroot_exists(const struct config *c);
/*
 * Called by net while it still has its rights. Where there is no private root,
 * opens the directories of file destinations, because net's user may not be
 * allowed to enter their parents. c holds the descriptors.
 */
void netroot_hold(struct config *c);

/* Whether an exporter has a spool. */
bool netroot_wants_spool(const struct config *c);
/* As netroot_hold: the directory of the spools, -1 where it is in the private root, or none is wanted. */
int netroot_hold_spool(const struct config *c);

#endif
