// SPDX-License-Identifier: Apache-2.0
#include "daemon/disposable/fetch_address.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

/* RFC 6890 and later entries of the registry. */
static const struct {
	uint32_t net;
	unsigned int bits;
} special[] = {
	{0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8},	{0xa9fe0000, 16}, {0xac100000, 12},
	{0xc0000000, 24}, {0xc0000200, 24}, {0xc0a80000, 16}, {0xc6120000, 15}, {0xc6336400, 24}, {0xcb007100, 24},
	{0xe0000000, 3},
};

static bool is_public_v4(uint32_t address)
{
	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		if (address >> (32 - special[i].bits) == special[i].net >> (32 - special[i].bits))
			return false;
	return true;
}

static uint32_t v4_at(const uint8_t *b)
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Only 2000::/3 is assigned; within it, 6to4, Teredo and documentation addresses are special. */
static bool is_public_v6(const uint8_t b[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, nat64[12] = {0x00, 0x64, 0xff, 0x9b};

	if (!memcmp(b, mapped, sizeof(mapped)) || !memcmp(b, nat64, sizeof(nat64)))
		return is_public_v4(v4_at(b + 12));
	if (b[0] == 0x20 && b[1] == 0x02)
		return is_public_v4(v4_at(b + 2));
	if (b[0] == 0x20 && b[1] == 0x01 && ((b[2] & 0xfe) == 0 || (b[2] == 0x0d && b[3] == 0xb8)))
		return false;
	return b[0] >> 5 == 1;
}

bool fetch_address_is_public(const struct sockaddr *a)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (a->sa_family == AF_INET) {
		memcpy(&in, a, sizeof(in));
		return is_public_v4(ntohl(in.sin_addr.s_addr));
	}
	if (a->sa_family != AF_INET6)
		return false;
	memcpy(&in6, a, sizeof(in6));
	return is_public_v6(in6.sin6_addr.s6_addr);
}

/* Up to the path. */
static size_t place_len(const char *url)
{
	const char *host = strstr(url, "://");

	return host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?#") : 0;
}

bool fetch_address_is_same_place(const char *url, const char *other)
{
	size_t len = place_len(url);

	return len && len == place_len(other) && !strncasecmp(url, other, len);
}
