// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

/* Unicode 15, table 3-7, as bounds of the second byte: no overlong forms, no surrogates, nothing above U+10FFFF. */
static bool utf8_second_fits(uint8_t first, uint8_t second)
{
	uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
	uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;

	return second >= low && second <= high;
}

/* C1 controls are U+0080 to U+009F; U+FFFE and U+FFFF are EF BF BE and EF BF BF. */
static bool utf8_is_printable(const uint8_t *s, size_t n)
{
	if (n == 2)
		return s[0] != 0xc2 || s[1] >= 0xa0;
	return n != 3 || s[0] != 0xef || s[1] != 0xbf || s[2] < 0xbe;
}

size_t utf8_char(const char *text, size_t left)
{
	const uint8_t *s = (const uint8_t *)text;
	size_t n;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (left < n || !utf8_second_fits(s[0], s[1]))
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return utf8_is_printable(s, n) ? n : 0;
}

bool utf8_is_clean(const char *s, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_char(s + i, len - i);
		if (!n)
			return false;
	}
	return true;
}

size_t utf8_clean(char *to, size_t cap, const char *from, size_t len)
{
	size_t done = 0;

	while (done < len) {
		size_t n = utf8_char(from + done, len - done), take = MAX(n, (size_t)1);

		if (take > cap - done)
			break;
		memmove(to + done, n ? from + done : "?", take);
		done += take;
	}
	return done;
}

void utf8_clean_str(char *s)
{
	size_t len = strlen(s);

	/* Most text is clean, and then nothing is written. */
	if (!utf8_is_clean(s, len))
		utf8_clean(s, len, s, len);
}

void utf8_add_clean(struct buf *out, const char *s, size_t len)
{
	char *to = buf_reserve(out, len);

	if (to)
		buf_commit(out, utf8_clean(to, len, s, len));
}

size_t utf8_count(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

size_t utf8_bytes(const char *s, size_t n)
{
	const char *p = s;

	for (; *p; p++)
		if ((*p & 0xc0) != 0x80 && n-- == 0)
			break;
	return (size_t)(p - s);
}
