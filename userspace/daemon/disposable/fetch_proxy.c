// SPDX-License-Identifier: Apache-2.0
#include "daemon/disposable/fetch_proxy.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

#define ENTRY_MAX 256

/* --- no_proxy --- */

static bool fetch_proxy_same_bits(const uint8_t *a, const uint8_t *b, unsigned long bits)
{
	size_t bytes = bits / 8;
	unsigned int rest = bits % 8;

	return !memcmp(a, b, bytes) && (!rest || (a[bytes] ^ b[bytes]) >> (8 - rest) == 0);
}

/* entry: ADDRESS or ADDRESS/BITS; it is changed. */
static bool fetch_proxy_is_address_in(int family, unsigned long all_bits, char *entry, const char *host)
{
	char *slash = strchr(entry, '/'), *end = NULL;
	unsigned long bits = slash ? strtoul(slash + 1, &end, 10) : all_bits;
	uint8_t a[16], b[16];
	bool in;

	if (slash && (end == slash + 1 || *end || bits > all_bits))
		return false;
	if (slash)
		*slash = '\0';
	in = inet_pton(family, entry, a) == 1 && inet_pton(family, host, b) == 1 && fetch_proxy_same_bits(a, b, bits);
	if (slash)
		*slash = '/';
	return in;
}

/* example.org and .example.org: the host itself, and what is below it. */
static bool fetch_proxy_is_name_in(const char *entry, const char *host)
{
	size_t len = strlen(host), n;

	entry += *entry == '.';
	n = strlen(entry);
	if (n && entry[n - 1] == '.')
		n--;
	if (len && host[len - 1] == '.')
		len--;
	return n && len >= n && !strncasecmp(host + len - n, entry, n) && (len == n || host[len - n - 1] == '.');
}

static bool fetch_proxy_is_in(char *entry, const char *host)
{
	size_t n = strlen(entry);

	if (entry[0] == '[' && entry[n - 1] == ']') {
		entry[n - 1] = '\0';
		entry++;
	}
	return !strcmp(entry, "*") || fetch_proxy_is_address_in(AF_INET, 32, entry, host) ||
	       fetch_proxy_is_address_in(AF_INET6, 128, entry, host) || fetch_proxy_is_name_in(entry, host);
}

bool fetch_proxy_is_excepted(const char *list, const char *host)
{
	static const char separators[] = ", \t";
	char entry[ENTRY_MAX];

	for (size_t n; *(list += strspn(list, separators)); list += n) {
		n = strcspn(list, separators);
		if (n >= sizeof(entry))
			continue;
		memcpy(entry, list, n);
		entry[n] = '\0';
		if (fetch_proxy_is_in(entry, host))
			return true;
	}
	return false;
}

/* --- the proxy of a URL --- */

static const char *fetch_proxy_variable(const char *name, const char *other)
{
	const char *value = getenv(name);

	value = value && *value ? value : other ? getenv(other) : NULL;
	return value && *value ? value : NULL;
}

/* HTTP_PROXY is not read: in a CGI environment a client could set it. */
static const char *fetch_proxy_of_scheme(const char *scheme)
{
	const char *proxy = !strcasecmp(scheme, "https") ? fetch_proxy_variable("https_proxy", "HTTPS_PROXY") :
							   fetch_proxy_variable("http_proxy", NULL);

	return proxy ? proxy : fetch_proxy_variable("all_proxy", "ALL_PROXY");
}

static void fetch_proxy_freep(char **text)
{
	curl_free(*text);
}

static void fetch_proxy_url_freep(CURLU **u)
{
	curl_url_cleanup(*u);
}

/* As libcurl reads the URL, and with no_proxy's address without the brackets. */
const char *fetch_proxy_of(const char *url)
{
	_cleanup_(fetch_proxy_url_freep) CURLU *u = curl_url();
	_cleanup_(fetch_proxy_freep) char *scheme = NULL, *host = NULL;
	const char *none = fetch_proxy_variable("no_proxy", "NO_PROXY");
	char *name;

	if (!u || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK)
		return NULL;
	name = host + (*host == '[');
	name[strcspn(name, "]")] = '\0';
	return none && fetch_proxy_is_excepted(none, name) ? NULL : fetch_proxy_of_scheme(scheme);
}
