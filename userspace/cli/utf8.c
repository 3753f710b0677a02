// SPDX-License-Identifier: Apache-2.0
#include "cli/utf8.h"

#include <stdint.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

/* Length of the sequence at s and its code point; 0 where it is none (RFC 3629, section 4). */
static size_t decode(const uint8_t *s, size_t len, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2, i;
	uint32_t c;

	if (n == 1) {
		*ret = s[0];
		return 1;
	}
	if (s[0] < 0xc2 || s[0] > 0xf4 || n > len)
		return 0;
	c = s[0] & (0x7f >> n);
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret = c;
	return n;
}

static bool showable(uint32_t c)
{
	return c >= 0x20 && !(c >= 0x7f && c < 0xa0) && c != 0xfffe && c != 0xffff;
}

void utf8_clean(struct buf *out, const char *s, size_t len)
{
	size_t i, n;
	uint32_t c;

	for (i = 0; i < len; i += n ? n : 1) {
		n = decode((const uint8_t *)s + i, len - i, &c);
		if (n && showable(c))
			buf_add(out, s + i, n);
		else
			buf_add_str(out, REPLACEMENT);
	}
}

void utf8_fix(char *s)
{
	size_t len = strlen(s), n, i;
	uint32_t c;

	for (i = 0; i < len; i += n ? n : 1) {
		n = decode((const uint8_t *)s + i, len - i, &c);
		if (!n)
			s[i] = '?';
		else if (!showable(c))
			memset(s + i, '?', n);
	}
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

void xml_escape(struct buf *out, const char *s, size_t len)
{
	size_t i, from = 0;

	for (i = 0; i < len; i++) {
		const char *entity = s[i] == '&' ? "&amp;" : s[i] == '<' ? "&lt;" : s[i] == '>' ? "&gt;" :
				     s[i] == '"' ? "&quot;" : NULL;

		if (!entity)
			continue;
		buf_add(out, s + from, i - from);
		buf_add_str(out, entity);
		from = i + 1;
	}
	if (from < len)
		buf_add(out, s + from, len - from);
}
