/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the monitor does for the hub: its listener with certificate and key, the
 * token that requests need, in a file that root and the status socket's group
 * may read, a socket between engine and hub, and what the hub asks for.
 *
 * Called by the monitor, one thread. Without [hub] listen every call does
 * nothing. The token is made anew at each start of otprofd. Where the address
 * cannot be listened on there is no hub process: that is logged once, shown by
 * status and doctor, and tried again, after a minute at the latest.
 */
#ifndef OTP_DAEMON_MONITOR_HUB_LINK_H
#define OTP_DAEMON_MONITOR_HUB_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/monitor/hub_listen.h"

#define HUB_TOKEN      48 /* characters, 192 bits */
#define HUB_TOKEN_FILE "hub.token"
#define HUB_CERT_FILE  "hub.crt" /* the first certificate of tls_cert_file: clients of this host expect it */

struct config;
struct monitor;
struct ipc_message;

struct hub_link {
	char token[HUB_TOKEN + 1]; /* "": none */
	int listener, cert, key;   /* owned; -1: none */
	char why[HUB_LISTEN_WHY];  /* there is no listener; "": there is, or the hub is off */
	uint64_t retry_ns, pause_ns;
	uint64_t asked_ns; /* when the hub asked for a selection */
	uint64_t data_bytes; /* the bound of memory that the running hub was started with */
};

void hub_link_init(struct hub_link *l);
int hub_link_open(struct monitor *m); /* negative errno, logged */
void hub_link_close(struct monitor *m);
void hub_link_run(struct monitor *m, uint64_t now); /* tries to listen again */
bool hub_link_may_start(const struct monitor *m);
/* After the start of either: connects engine and hub, if both run. */
void hub_link_make(struct monitor *m);
/* What a new hub is sent, but START. Negative errno. */
int hub_link_hand_over(struct monitor *m);
/* After a reload in which a key of [hub] has changed; before: the former configuration. */
void hub_link_reload(struct monitor *m, const struct config *before);
void hub_link_from(struct monitor *m, const struct ipc_message *msg); /* a message of the hub */
/* Sends the hub what is selected; why: that a request of its own was refused, NULL: none was. */
void hub_link_tell(struct monitor *m, const char *why);

#endif
