// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/json.h"

#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/utf8.h"

/* Takes value, also on failure. Names are cleaned, since destinations' names are foreign text. */
static void json_add(struct json *j, const char *name, json_t *value)
{
	_cleanup_(buf_done) struct buf clean = {0};
	json_t *in = j->depth && j->depth <= JSON_DEPTH ? j->open[j->depth - 1] : NULL;

	if (name && !utf8_is_clean(name, strlen(name))) {
		utf8_add_clean(&clean, name, strlen(name));
		name = buf_cstr(&clean);
	}
	if (!in)
		json_decref(value);
	if (!in || (name ? json_object_set_new(in, name, value) : json_array_append_new(in, value)) < 0)
		j->failed = true;
}

static void json_push(struct json *j, const char *name, json_t *value)
{
	if (j->depth)
		json_add(j, name, value);
	j->failed |= !value;
	/* An object that could not be added is freed: its members are dropped. */
	if (j->depth < JSON_DEPTH)
		j->open[j->depth] = j->failed && j->depth ? NULL : value;
	j->depth++;
}

void json_open(struct json *j, const char *name)
{
	/* Without a seed jansson opens /dev/urandom, which the engine may not. */
	json_object_seed((size_t)hash_seed);
	json_push(j, name, json_object());
}

void json_open_list(struct json *j, const char *name)
{
	json_push(j, name, json_array());
}

static int json_write(const char *text, size_t len, void *ctx)
{
	struct buf *to = ctx;

	buf_add(to, text, len);
	return to->failed ? -1 : 0;
}

/* Writes the whole text, or none and marks the buffer as failed. */
static void json_finish(struct json *j)
{
	size_t before = j->to->len;

	if (!j->failed && json_dump_callback(j->open[0], json_write, j->to, JSON_COMPACT | JSON_ENSURE_ASCII) < 0)
		j->failed = true;
	if (j->failed) {
		j->to->len = before;
		j->to->failed = true;
	}
	json_decref(j->open[0]);
	j->open[0] = NULL;
}

void json_close(struct json *j)
{
	if (!--j->depth)
		json_finish(j);
}

void json_close_list(struct json *j)
{
	json_close(j);
}

void json_close_with(struct json *j, const char *name, const char *text, size_t len)
{
	size_t before = j->to->len;

	json_close(j);
	if (j->to->failed)
		return;
	j->to->len--; /* the closing brace */
	buf_printf(j->to, ",\"%s\":", name);
	buf_add(j->to, text, len);
	buf_add_str(j->to, "}");
	if (j->to->failed)
		j->to->len = before;
}

void json_number(struct json *j, const char *name, uint64_t n)
{
	json_add(j, name, json_integer((json_int_t)MIN(n, (uint64_t)INT64_MAX)));
}

void json_text_max(struct json *j, const char *name, const char *s, size_t max)
{
	size_t len = strnlen(s, max);
	_cleanup_(buf_done) struct buf clean = {0};

	if (!utf8_is_clean(s, len)) {
		utf8_add_clean(&clean, s, len);
		s = buf_cstr(&clean);
		len = clean.len;
	}
	json_add(j, name, json_stringn(s, len));
}

void json_text(struct json *j, const char *name, const char *s)
{
	json_text_max(j, name, s, SIZE_MAX);
}

void json_bool(struct json *j, const char *name, bool b)
{
	json_add(j, name, b ? json_true() : json_false());
}
