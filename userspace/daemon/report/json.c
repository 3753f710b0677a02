// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/json.h"

#include <inttypes.h>
#include <string.h>

static void separate(struct json *j)
{
	if (!j->first)
		buf_add_str(j->to, ",");
	j->first = false;
}

static void string(struct json *j, const char *s, size_t max)
{
	buf_add_str(j->to, "\"");
	for (; max && *s; s++, max--) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			buf_printf(j->to, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			buf_printf(j->to, "\\u%04x", c);
		else
			buf_add(j->to, s, 1);
	}
	buf_add_str(j->to, "\"");
}

static void key(struct json *j, const char *name)
{
	separate(j);
	if (!name)
		return;
	string(j, name, SIZE_MAX);
	buf_add_str(j->to, ":");
}

static void begin(struct json *j, const char *name, const char *bracket)
{
	key(j, name);
	buf_add_str(j->to, bracket);
	j->first = true;
}

static void end(struct json *j, const char *bracket)
{
	buf_add_str(j->to, bracket);
	j->first = false;
}

void json_open(struct json *j, const char *name)
{
	begin(j, name, "{");
}

void json_close(struct json *j)
{
	end(j, "}");
}

void json_open_list(struct json *j, const char *name)
{
	begin(j, name, "[");
}

void json_close_list(struct json *j)
{
	end(j, "]");
}

void json_number(struct json *j, const char *name, uint64_t n)
{
	key(j, name);
	buf_printf(j->to, "%" PRIu64, n);
}

void json_text_max(struct json *j, const char *name, const char *s, size_t max)
{
	key(j, name);
	string(j, s, max);
}

void json_text(struct json *j, const char *name, const char *s)
{
	json_text_max(j, name, s, SIZE_MAX);
}

void json_boolean(struct json *j, const char *name, bool b)
{
	key(j, name);
	buf_add_str(j->to, b ? "true" : "false");
}
