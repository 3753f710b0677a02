/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON for people and programs, by jansson: members in the order in which they
 * are added, into a buffer when the outermost object is closed.
 *
 * Called by the monitor (status) and the engine (explain), one thread each.
 * Begin with {.to = buffer}, open the outermost object, close it: then nothing
 * is owned any more. Without memory, or beyond the buffer's bound, the buffer is
 * marked as failed and holds no part of the text.
 * Strings may hold any bytes: they are cleaned (base/utf8.h), and written as ASCII.
 * Numbers above 2^63 - 1, which no counter reaches, are cut to that.
 */
#ifndef OTP_DAEMON_REPORT_JSON_H
#define OTP_DAEMON_REPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define JSON_DEPTH 8

struct json_t;

struct json {
	struct buf *to; /* borrowed */
	struct json_t *open[JSON_DEPTH]; /* open objects and lists; the first is owned, and owns the others */
	uint32_t depth;
	bool failed;
};

/* name NULL: in a list, or the outermost. */
void json_open(struct json *j, const char *name);
void json_close(struct json *j);
void json_open_list(struct json *j, const char *name);
void json_close_list(struct json *j);
/*
 * Closes the outermost object with one more member: JSON that another process
 * has written, passed on unparsed and so perhaps malformed.
 */
void json_close_with(struct json *j, const char *name, const char *text, size_t len);

void json_number(struct json *j, const char *name, uint64_t n);
void json_text(struct json *j, const char *name, const char *s);
void json_text_max(struct json *j, const char *name, const char *s, size_t max); /* up to a NUL or max bytes */
void json_bool(struct json *j, const char *name, bool b);

#endif
