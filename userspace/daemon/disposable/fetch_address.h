/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a server on the internet may lead us. Pure; called by fetch_http.c.
 */
#ifndef OTP_DAEMON_DISPOSABLE_FETCH_ADDRESS_H
#define OTP_DAEMON_DISPOSABLE_FETCH_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/* Not of this host, of a private, shared or local network, or of a group (IANA's special-purpose registries). */
bool fetch_address_is_public(const struct sockaddr *a);
/* The same scheme, host and port, as they are written. */
bool fetch_address_is_same_place(const char *url, const char *other);

#endif
