// SPDX-License-Identifier: Apache-2.0
#include "hub/guard.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

/* The length of the name in "name", "name:port", "[::1]:port"; 0: malformed. */
static size_t guard_name_len(const char *host)
{
	size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":"), at;

	if (host[0] == '[' && host[n - 1] != ']')
		return 0;
	if (!host[n])
		return n;
	if (host[n] != ':' || !host[n + 1])
		return 0;
	for (at = n + 1; host[at]; at++)
		if (!isdigit((unsigned char)host[at]))
			return 0;
	return n;
}

static bool guard_is_name(const char *host, size_t len, const char *name)
{
	return strlen(name) == len && strncasecmp(host, name, len) == 0;
}

static bool guard_is_address(const char *host, size_t len)
{
	unsigned char address[sizeof(struct in6_addr)];
	char text[INET6_ADDRSTRLEN];
	bool v6 = len > 2 && host[0] == '[';

	host += v6;
	len -= 2 * (size_t)v6;
	if (len >= sizeof(text))
		return false;
	memcpy(text, host, len);
	text[len] = '\0';
	return inet_pton(v6 ? AF_INET6 : AF_INET, text, address) == 1;
}

static bool guard_knows_host(const struct guard *g, const char *host)
{
	static const char *const loopback[] = {"127.0.0.1", "localhost", "[::1]"};
	size_t len = host ? guard_name_len(host) : 0;

	for (size_t i = 0; len && i < ARRAY_SIZE(loopback); i++)
		if (guard_is_name(host, len, loopback[i]))
			return true;
	for (size_t i = 0; len && i < g->nr_hosts; i++)
		if (guard_is_name(host, len, g->hosts[i]))
			return true;
	return len && g->addresses && guard_is_address(host, len);
}

static bool guard_origin_is(const char *origin, const char *host)
{
	const char *at = strstr(origin, "://");

	return at && strcasecmp(at + 3, host) == 0;
}

static bool guard_same_site(const struct guard_request *r)
{
	if (r->sec_fetch_site)
		return strcmp(r->sec_fetch_site, "same-origin") == 0 || strcmp(r->sec_fetch_site, "none") == 0;
	return !r->origin || guard_origin_is(r->origin, r->host);
}

/* In a time that does not depend on where they differ. */
static bool guard_equal(const char *a, const char *b, size_t len)
{
	unsigned char differ = 0;

	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)(a[i] ^ b[i]);
	return !differ;
}

static bool guard_has_token(const struct guard *g, const char *authorization)
{
	size_t len = strlen(g->token);

	if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
		return false;
	authorization += 7 + strspn(authorization + 7, " ");
	return strlen(authorization) == len && guard_equal(authorization, g->token, len);
}

static bool guard_is_read(const char *method)
{
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

enum guard_verdict guard_check(const struct guard *g, const struct guard_request *r)
{
	if (!guard_knows_host(g, r->host))
		return GUARD_HOST;
	if (r->page && guard_is_read(r->method))
		return GUARD_PASS;
	if (!guard_same_site(r))
		return GUARD_CROSS_SITE;
	return !g->token || guard_has_token(g, r->authorization) ? GUARD_PASS : GUARD_TOKEN;
}
