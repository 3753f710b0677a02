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

typedef int handover_job_fn(void *ctx, struct ipc_message *m);
/*
 * For the disposable roles: receives into m until START. CONFIG is as above,
 * any other message is job's, whose error ends it; job may take descriptors of it.
 * -EPIPE: the monitor is gone. Whether there was a CONFIG is the caller's to check.
 */
int handover_receive(int sock, struct ipc_message *m, const char *role, struct config **config,
		     handover_job_fn *job, void *ctx);

#endif
