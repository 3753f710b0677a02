/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may send which request: a browser on this host runs pages of anybody, which
 * may send requests to the hub, by its address or by a name of their own that they
 * point at it (DNS rebinding).
 *
 *   Host            must be a loopback name or one that is configured: a name of
 *                   others is refused (421), whatever address it leads to. The
 *                   port may be any, because ports are forwarded.
 *   Sec-Fetch-Site  must be same-origin or none, for changes and for data. Where
 *                   it is missing, Origin must name the Host that was asked;
 *                   where both are, it is no browser.
 *   Authorization   the token, where there is one: other users of this host can
 *                   connect as well.
 *
 * Called by the server before a request is served. Pure functions.
 */
#ifndef OTP_HUB_GUARD_H
#define OTP_HUB_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#define GUARD_TOKEN_MAX 128

struct guard {
	const char *const *hosts; /* borrowed: names besides loopback's; without ports */
	size_t nr_hosts;
	bool addresses;	   /* numbers are names too: no name of others leads to a Host that is one */
	const char *token; /* borrowed; NULL: none is needed */
};

struct guard_request {
	const char *method;
	bool page; /* one of the page's own files, which hold no data */
	const char *host, *origin, *sec_fetch_site, *authorization; /* NULL: missing */
};

enum guard_verdict { GUARD_PASS, GUARD_HOST, GUARD_CROSS_SITE, GUARD_TOKEN };

enum guard_verdict guard_check(const struct guard *g, const struct guard_request *r);

#endif
