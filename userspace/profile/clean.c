// SPDX-License-Identifier: Apache-2.0
#include "profile/clean.h"

#include <string.h>

#include "base/cleanup.h"

/*
 * Bytes of the character at s, 0 if it is none. Unicode 15, table 3-7: no
 * overlong forms, no surrogates, nothing above U+10FFFF.
 */
static size_t char_len(const uint8_t *s, size_t left)
{
	uint8_t low = 0x80, high = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (left < n || s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* C1 control characters are two bytes long. */
	return s[0] == 0xc2 && s[1] < 0xa0 ? 0 : n;
}

bool clean_is(const char *s, size_t len)
{
	const uint8_t *p = (const uint8_t *)s;

	for (size_t i = 0, n; i < len; i += n) {
		n = char_len(p + i, len - i);
		if (!n)
			return false;
	}
	return true;
}

static bool is_blank(const struct str *s)
{
	return !s || strspn(s->s, " ") == s->len;
}

static struct str *clean_copy(const struct str *s, size_t max)
{
	_cleanup_(freep) char *out = malloc(MAX(max, (size_t)1));
	const uint8_t *p = (const uint8_t *)s->s;
	size_t len = 0;

	if (!out)
		return NULL;
	for (size_t i = 0; i < s->len;) {
		size_t n = char_len(p + i, s->len - i), take = MAX(n, (size_t)1);

		if (len + take > max)
			break;
		memcpy(out + len, n ? (const char *)p + i : "?", take);
		len += take;
		i += take;
	}
	return str_get(out, len);
}

enum text { TEXT_UNSEEN, TEXT_CLEAN, TEXT_BAD, TEXT_BLANK };

static enum text text_of(struct str *s)
{
	if (!s)
		return TEXT_BLANK;
	if (s->text == TEXT_UNSEEN)
		s->text = is_blank(s) ? TEXT_BLANK : clean_is(s->s, s->len) ? TEXT_CLEAN : TEXT_BAD;
	return s->text;
}

struct str *clean_str(struct str *s, size_t max)
{
	enum text text = text_of(s);

	if (text == TEXT_BLANK)
		return str_get_c("[unknown]");
	return text == TEXT_CLEAN && s->len <= max ? str_ref(s) : clean_copy(s, max);
}
