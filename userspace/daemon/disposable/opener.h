/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opener: the disposable process that touches foreign paths and /proc of
 * other users, which can hang or be forged. It answers one question at a time,
 * and is killed at its deadline.
 *
 * Private to opener*.c. Each answer function returns 0 or negative errno, and
 * fills to or ret_fd, which the caller owns. All text is bounded
 * (process/host.h); of the environment only the variables that name a service
 * leave this process.
 */
#ifndef OTP_DAEMON_DISPOSABLE_OPENER_H
#define OTP_DAEMON_DISPOSABLE_OPENER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "daemon/disposable/container_name.h"
#include "daemon/ipc.h"

/* One opener's state, for all its questions. */
struct opener {
	struct config *config; /* owned */
	struct container_names names;
	uint64_t copied_bytes; /* of files that may hang */
};

int opener_file(struct opener *o, const struct ipc_ask *ask, const char *path, int *ret_fd);
int opener_perf_map(struct opener *o, uint32_t pid, int *ret_fd);
int opener_debug(struct opener *o, const struct ipc_ask *ask, const char *path, int *ret_fd);
int opener_maps(uint32_t pid, struct buf *to);
int opener_identity(struct opener *o, uint32_t pid, struct buf *to);
int opener_scan(struct opener *o, const struct ipc_ask *ask, int *ret_fd);
int opener_containers(struct opener *o, const char *ids, struct buf *to);

/* Opens a file of /proc/PID; -ESRCH when the process is gone. */
int opener_proc_file(uint32_t pid, const char *name, int flags);

#endif
