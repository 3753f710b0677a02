/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the whole: clients of RUNTIME_DIR/status.sock read one JSON text
 * and the end, net is sent the metrics for its listener, and the last state is
 * written to RUNTIME_DIR/last-status.json.
 *
 * Called by the monitor, one thread. Nothing is read from clients, and one
 * that does not read costs nothing. Texts are 1 MiB at most; the metrics are
 * half a second old at most.
 */
#ifndef OTP_DAEMON_MONITOR_STATUS_SERVER_H
#define OTP_DAEMON_MONITOR_STATUS_SERVER_H

#include <stddef.h>
#include <stdint.h>

struct monitor;
struct status;

struct status_server {
	int fd;		 /* -1 */
	uint64_t start_unix_ns;
	uint64_t missed; /* ticks, as last reported: the figure never falls */
	char *metrics;	 /* last answer to STATUS_WANTED; owned */
	size_t metrics_len;
	uint64_t metrics_ns;
};

int status_server_open(struct monitor *m);
void status_server_close(struct monitor *m); /* also the socket's file */
void status_server_accept(struct monitor *m);
void status_server_metrics(struct monitor *m); /* STATUS_WANTED */
void status_server_save(struct monitor *m);
void status_server_collect(struct monitor *m, struct status *ret);

/* A listener in the runtime directory, of our user and group; owned. */
int status_socket(const char *runtime_dir, const char *name);
void status_socket_remove(const char *runtime_dir, const char *name);

#endif
