/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On whose behalf a process runs: its real user, or, in a user namespace, the
 * user who made the outermost one, because inside it a user can be thousands.
 * And whether a file lies on a mount that only root could have made.
 *
 * Called by openers; reads /proc only, which does not hang. No state.
 */
#ifndef OTP_DAEMON_DISPOSABLE_OWNER_H
#define OTP_DAEMON_DISPOSABLE_OWNER_H

#include <stdbool.h>
#include <stdint.h>

/* 0; -ESRCH: the process is gone. */
int owner_of(uint32_t pid, uint32_t *ret_uid);
/*
 * Whether the open file lies on a mount of pid's mount namespace, and that
 * belongs to our user namespace. False also where it cannot be known.
 */
bool owner_made_mount(uint32_t pid, int fd);

#endif
