/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration that the monitor sends to a worker: text in a memfd.
 *
 * Called by the roles, at their start and on reload. The monitor has checked
 * the text; an error that the worker still finds is logged.
 */
#ifndef OTP_DAEMON_HANDOVER_H
#define OTP_DAEMON_HANDOVER_H

struct config;
struct ipc_message;

/* Parses the message's first descriptor, which the message keeps. *ret is owned by the caller. 0 or negative errno. */
int handover_config(const struct ipc_message *m, struct config **ret);
/* The configuration of a CONFIG message replaces *config (owned by the caller); the role logs by it from then on. */
int handover_begin(const struct ipc_message *m, const char *role, struct config **config);

#endif
