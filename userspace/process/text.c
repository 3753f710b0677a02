// SPDX-License-Identifier: Apache-2.0
#include "process/text.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

#define REPLACEMENT     "\xef\xbf\xbd"
#define REPLACEMENT_LEN 3u

/* Length by the first byte, 0 if none begins so (RFC 3629, section 4). */
static size_t sequence_length(uint8_t first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/* Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte. */
static bool second_byte_fits(uint8_t first, uint8_t second)
{
	uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
	uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;

	return second >= low && second <= high;
}

/* Bytes of the valid, printable character at p, else 0. */
static size_t character(const uint8_t *p, size_t len)
{
	size_t n = sequence_length(p[0]);

	if (!n || n > len)
		return 0;
	if (n == 1)
		return p[0] >= 0x20 && p[0] != 0x7f;
	if (!second_byte_fits(p[0], p[1]))
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

size_t text_clean(const char *from, size_t len, char *to, size_t cap)
{
	size_t done = 0;

	for (size_t at = 0; at < len;) {
		size_t n = character((const uint8_t *)from + at, len - at);
		const char *c = n ? from + at : REPLACEMENT;
		size_t put = n ? n : REPLACEMENT_LEN;

		if (put > cap - 1 - done)
			break;
		memcpy(to + done, c, put);
		done += put;
		at += n ? n : 1;
	}
	to[done] = '\0';
	return done;
}

struct str *text_str(const char *from, size_t len, size_t max)
{
	char text[TEXT_MAX + 1];
	size_t n = text_clean(from, len, text, MIN(max, (size_t)TEXT_MAX) + 1);

	return str_get(text, n);
}

const char *text_basename(const char *path, size_t len, size_t *ret_len)
{
	const char *slash;

	while (len > 1 && path[len - 1] == '/')
		len--;
	slash = len ? memrchr(path, '/', len) : NULL;
	if (slash && len > 1) {
		len -= (size_t)(slash + 1 - path);
		path = slash + 1;
	}
	*ret_len = len;
	return path;
}
