// SPDX-License-Identifier: Apache-2.0
#include "profile/clean.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static bool clean_is_blank(const struct str *s)
{
	return !s || strspn(s->s, " ") == s->len;
}

static struct str *clean_copy(const struct str *s, size_t max)
{
	size_t cap = MIN(max, (size_t)s->len);
	_cleanup_(freep) char *out = malloc(MAX(cap, (size_t)1));

	return out ? str_get(out, utf8_clean(out, cap, s->s, s->len)) : NULL;
}

enum text { TEXT_UNSEEN, TEXT_CLEAN, TEXT_BAD, TEXT_BLANK };

static enum text clean_state_of(struct str *s)
{
	if (!s)
		return TEXT_BLANK;
	if (s->text == TEXT_UNSEEN)
		s->text = clean_is_blank(s) ? TEXT_BLANK : utf8_is_clean(s->s, s->len) ? TEXT_CLEAN : TEXT_BAD;
	return s->text;
}

struct str *clean_str(struct str *s, size_t max)
{
	enum text text = clean_state_of(s);

	if (text == TEXT_BLANK)
		return str_get_c("[unknown]");
	return text == TEXT_CLEAN && s->len <= max ? str_ref(s) : clean_copy(s, max);
}
