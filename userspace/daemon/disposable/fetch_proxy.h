/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which proxy a URL is requested through, by the variables that libcurl reads:
 * http_proxy, https_proxy, all_proxy and no_proxy. Decided here, and told to
 * libcurl, since what may be connected to depends on it: a proxy resolves the
 * names itself and decides what it reaches, and where none applies that is our
 * own task.
 *
 * Called by fetch_http.c, one thread. Reads the environment and changes nothing.
 */
#ifndef OTP_DAEMON_DISPOSABLE_FETCH_PROXY_H
#define OTP_DAEMON_DISPOSABLE_FETCH_PROXY_H

#include <stdbool.h>

/* The proxy of this http or https URL, borrowed from the environment; NULL: none, also for a URL that cannot be read. */
const char *fetch_proxy_of(const char *url);
/*
 * Whether host is in a no_proxy list: "*", names (of a host or of a domain and what is below it), addresses, and
 * networks as ADDRESS/BITS, separated by commas or blanks.
 */
bool fetch_proxy_is_excepted(const char *list, const char *host);

#endif
