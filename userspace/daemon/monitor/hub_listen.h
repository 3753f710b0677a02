/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hub's listening socket, and its certificate and key: opened by the monitor,
 * which may, and handed to the hub, which has neither files nor new sockets.
 *
 * Called by the monitor, one thread. Descriptors that are returned belong to the
 * caller. Errors are negative errno with a sentence in why. Nothing is resolved:
 * addresses are numbers.
 */
#ifndef OTP_DAEMON_MONITOR_HUB_LISTEN_H
#define OTP_DAEMON_MONITOR_HUB_LISTEN_H

#include <stddef.h>

#define HUB_LISTEN_WHY	  320
#define HUB_TLS_FILE_MAX (256u << 10)

/* A listener at an address of [hub] listen. */
int hub_listen_open(const char *address, int *ret_fd, char why[HUB_LISTEN_WHY]);
/* Removes the file of a UNIX socket; nothing for another address. */
void hub_listen_remove(const char *address);
/* Where clients on this host connect: the wildcard's loopback address in place of the wildcard. */
void hub_listen_near(const char *address, char *to, size_t size);
/* The whole of a PEM file, in a sealed memfd. */
int hub_listen_read_pem(const char *path, const char *name, int *ret_fd, char why[HUB_LISTEN_WHY]);

#endif
