/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration as a worker gets it from the monitor: text in a memfd.
 *
 * Called by the roles, at their start and on reload. The monitor has checked
 * the text; what is wrong with it all the same is logged.
 */
#ifndef OTP_DAEMON_HANDOVER_H
#define OTP_DAEMON_HANDOVER_H

#include <stddef.h>

struct config;
struct ipc_message;

/* The message's first descriptor, which stays the message's. *ret is the caller's. 0 or negative errno. */
int handover_config(const struct ipc_message *m, struct config **ret);
/* Only the second half of it: text that was read already. */
int handover_parse(const char *text, size_t len, struct config **ret);

#endif
