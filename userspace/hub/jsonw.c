// SPDX-License-Identifier: Apache-2.0
#include "hub/jsonw.h"

#include <string.h>

#define NUMBER_MAX 20 /* digits of 2^64 - 1 */

static void jsonw_begin(struct jsonw *w, const char *name)
{
	if (w->comma)
		buf_add(w->to, ",", 1);
	w->comma = true;
	if (!name)
		return;
	buf_add(w->to, "\"", 1);
	buf_add(w->to, name, strlen(name));
	buf_add(w->to, "\":", 2);
}

static void jsonw_bracket(struct jsonw *w, const char *name, const char *bracket)
{
	jsonw_begin(w, name);
	buf_add(w->to, bracket, 1);
	w->comma = false;
}

static void jsonw_end(struct jsonw *w, const char *bracket)
{
	buf_add(w->to, bracket, 1);
	w->comma = true;
}

void jsonw_open(struct jsonw *w, const char *name)
{
	jsonw_bracket(w, name, "{");
}

void jsonw_close(struct jsonw *w)
{
	jsonw_end(w, "}");
}

void jsonw_open_list(struct jsonw *w, const char *name)
{
	jsonw_bracket(w, name, "[");
}

void jsonw_close_list(struct jsonw *w)
{
	jsonw_end(w, "]");
}

void jsonw_number(struct jsonw *w, const char *name, uint64_t n)
{
	char digits[NUMBER_MAX];
	size_t at = sizeof(digits);

	jsonw_begin(w, name);
	do {
		digits[--at] = (char)('0' + n % 10);
	} while (n /= 10);
	buf_add(w->to, digits + at, sizeof(digits) - at);
}

void jsonw_signed(struct jsonw *w, const char *name, int64_t n)
{
	jsonw_begin(w, name);
	buf_printf(w->to, "%lld", (long long)n);
}

void jsonw_real(struct jsonw *w, const char *name, double n)
{
	jsonw_begin(w, name);
	buf_printf(w->to, "%.4f", n);
}

/* Control characters do not occur in clean text, but what a client sent may be answered to it. */
#define ESCAPED "\"\\\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f" \
		"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f"

static void jsonw_escaped(struct buf *to, const char *s)
{
	size_t n;

	for (;; s += n + 1) {
		n = strcspn(s, ESCAPED);
		buf_add(to, s, n);
		if (!s[n])
			return;
		if (s[n] == '"' || s[n] == '\\')
			buf_printf(to, "\\%c", s[n]);
		else
			buf_printf(to, "\\u%04x", (unsigned int)s[n]);
	}
}

void jsonw_text(struct jsonw *w, const char *name, const char *s)
{
	jsonw_begin(w, name);
	buf_add(w->to, "\"", 1);
	jsonw_escaped(w->to, s);
	buf_add(w->to, "\"", 1);
}

void jsonw_bool(struct jsonw *w, const char *name, bool b)
{
	jsonw_begin(w, name);
	buf_add_str(w->to, b ? "true" : "false");
}

void jsonw_null(struct jsonw *w, const char *name)
{
	jsonw_begin(w, name);
	buf_add_str(w->to, "null");
}

void jsonw_text_or_null(struct jsonw *w, const char *name, const char *s)
{
	if (*s)
		jsonw_text(w, name, s);
	else
		jsonw_null(w, name);
}
