// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/config_keys.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"

#define CPU_MAX 8191

/* Digits, then *ret_rest; strtoull would also take signs and blanks. */
static int value_digits(const char *s, uint64_t *ret, const char **ret_rest)
{
	uint64_t n = 0;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	for (; isdigit((unsigned char)*s); s++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
			return -EINVAL;
	*ret = n;
	*ret_rest = s;
	return 0;
}

int value_u64(const char *s, uint64_t *ret)
{
	const char *rest;
	uint64_t n;

	if (value_digits(s, &n, &rest) || *rest)
		return -EINVAL;
	*ret = n;
	return 0;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static int value_with_unit(const char *s, const struct unit *units, size_t nr, uint64_t *ret)
{
	const char *rest;
	uint64_t n;

	if (value_digits(s, &n, &rest))
		return -EINVAL;
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(rest, units[i].name))
			return __builtin_mul_overflow(n, units[i].factor, ret) ? -EINVAL : 0;
	return -EINVAL;
}

int value_size(const char *s, uint64_t *ret)
{
	static const struct unit units[] = {{"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}};

	return value_with_unit(s, units, ARRAY_SIZE(units), ret);
}

int value_duration(const char *s, uint64_t *ret)
{
	static const struct unit units[] = {{"ms", NSEC_PER_MSEC},
					    {"s", NSEC_PER_SEC},
					    {"m", 60 * NSEC_PER_SEC},
					    {"h", 3600 * NSEC_PER_SEC}};

	return value_with_unit(s, units, ARRAY_SIZE(units), ret);
}

int value_milli(const char *s, uint64_t *ret)
{
	uint64_t n, factor = 1000;
	const char *rest;

	if (value_digits(s, &n, &rest) || __builtin_mul_overflow(n, factor, &n))
		return -EINVAL;
	if (*rest == '.' && !isdigit((unsigned char)*++rest))
		return -EINVAL;
	for (; isdigit((unsigned char)*rest) && factor > 1; rest++)
		n += (uint64_t)(*rest - '0') * (factor /= 10);
	if (*rest)
		return -EINVAL;
	*ret = n;
	return 0;
}

int value_bool(const char *s, bool *ret)
{
	static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {"no", "false", "off", "0"};

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		if (strcasecmp(s, yes[i]) && strcasecmp(s, no[i]))
			continue;
		*ret = !strcasecmp(s, yes[i]);
		return 0;
	}
	return -EINVAL;
}

bool value_is_text(const char *s)
{
	return utf8_is_clean(s, strlen(s));
}

bool value_is_cpu_list(const char *s)
{
	uint64_t first, last;

	for (;; s++) {
		if (value_digits(s, &first, &s))
			return false;
		last = first;
		if (*s == '-' && value_digits(s + 1, &last, &s))
			return false;
		if (last < first || last > CPU_MAX)
			return false;
		if (!*s)
			return true;
		if (*s != ',')
			return false;
	}
}

static bool value_has_blank(const char *s)
{
	for (; *s; s++)
		if (isspace((unsigned char)*s))
			return true;
	return false;
}

/* The form that gRPC's own libraries take. */
static bool value_is_host_port(const char *s)
{
	const char *colon = strrchr(s, ':');
	uint64_t port;

	return colon && colon > s && !strpbrk(s, "/?#@") && !value_u64(colon + 1, &port) && port >= 1 && port <= 65535;
}

int value_endpoint(const char *s, const char **ret_what)
{
	static const char http[] = "http://", https[] = "https://", file[] = "file://";
	const char *rest;

	*ret_what = "expected http://HOST[:PORT][/PATH], https://..., HOST:PORT for gRPC, or file:///DIR";
	if (value_has_blank(s) || !value_is_text(s))
		return -EINVAL;
	if (!strncmp(s, file, strlen(file))) {
		rest = s + strlen(file);
		return rest[0] == '/' && rest[1] && !strstr(rest, "/../") ? 0 : -EINVAL;
	}
	if (!strncmp(s, http, strlen(http)))
		rest = s + strlen(http);
	else if (!strncmp(s, https, strlen(https)))
		rest = s + strlen(https);
	else
		return value_is_host_port(s) ? 0 : -EINVAL;
	return *rest && *rest != '/' && *rest != ':' ? 0 : -EINVAL;
}

#define URLS_MAX       8
#define URLS_BYTES_MAX 2000

static bool value_is_url(const char *s, size_t len)
{
	size_t scheme = len > 8 && !strncmp(s, "https://", 8) ? 8 : len > 7 && !strncmp(s, "http://", 7) ? 7 : 0;

	return scheme && s[scheme] != '/' && s[scheme] != ':' && !memchr(s, '#', len) && !memchr(s, '?', len);
}

int value_urls(const char *s, const char **ret_what)
{
	unsigned int n = 0;

	*ret_what = "off, environment, or up to 8 URLs http://HOST[:PORT][/PATH] or https://..., separated by spaces";
	if (!value_is_text(s) || strlen(s) > URLS_BYTES_MAX)
		return -EINVAL;
	for (s += strspn(s, URLS_BETWEEN); *s; s += strspn(s, URLS_BETWEEN)) {
		size_t len = strcspn(s, URLS_BETWEEN);

		/* A password would be shown wherever the URL is. */
		if (memchr(s, '@', len)) {
			*ret_what = "no user and password in a URL";
			return -EINVAL;
		}
		if (!value_is_url(s, len) || ++n > URLS_MAX)
			return -EINVAL;
		s += len;
	}
	return n ? 0 : -EINVAL;
}

bool value_is_loopback(const char *s)
{
	static const char *const hosts[] = {"127.0.0.1:", "localhost:", "[::1]:"};
	uint64_t port;

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
		if (!strncmp(s, hosts[i], strlen(hosts[i])))
			return !value_u64(s + strlen(hosts[i]), &port) && port >= 1 && port <= 65535;
	return false;
}

#define UNIX_PATH_MAX 107 /* of struct sockaddr_un, with its NUL 108 */

static bool is_unix_path(const char *s)
{
	size_t n = strlen(s);

	return s[0] == '/' && n > 1 && n <= UNIX_PATH_MAX && s[n - 1] != '/' && !strstr(s, "/../") && value_is_text(s) &&
	       !strchr(s, ' ');
}

/* An IPv4 address, or an IPv6 one in brackets; no name, since the monitor reads no answers of name servers. */
static bool is_host(const char *s, size_t len)
{
	char text[INET6_ADDRSTRLEN + 2];
	unsigned char address[sizeof(struct in6_addr)];

	if (!len || len >= sizeof(text))
		return false;
	memcpy(text, s, len);
	text[len] = '\0';
	if (text[0] != '[')
		return inet_pton(AF_INET, text, address) == 1;
	text[len - 1] = text[len - 1] == ']' ? '\0' : text[len - 1];
	return inet_pton(AF_INET6, text + 1, address) == 1;
}

enum config_address config_hub_address(const char *s)
{
	const char *colon = strrchr(s, ':');
	uint64_t port;

	if (!strncmp(s, CONFIG_UNIX, strlen(CONFIG_UNIX)))
		return is_unix_path(s + strlen(CONFIG_UNIX)) ? ADDRESS_UNIX : ADDRESS_BAD;
	if (value_is_loopback(s))
		return ADDRESS_LOOPBACK;
	if (!colon || !is_host(s, (size_t)(colon - s)) || value_u64(colon + 1, &port) || port < 1 || port > 65535)
		return ADDRESS_BAD;
	return ADDRESS_NETWORK;
}
