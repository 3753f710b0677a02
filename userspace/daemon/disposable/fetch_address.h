/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of the addresses that a server on the internet may redirect to. Pure;
 * called by fetch_http.c.
 */
#ifndef OTP_DAEMON_DISPOSABLE_FETCH_ADDRESS_H
#define OTP_DAEMON_DISPOSABLE_FETCH_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/* false: of this host, of a private, shared or local network, or multicast (IANA's special-purpose registries). */
bool fetch_address_is_public(const struct sockaddr *a);
/* Whether scheme, host and port are the same text. */
bool fetch_address_is_same_place(const char *url, const char *other);

#endif
