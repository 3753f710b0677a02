/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON, written into a buffer as it comes. Text may be anything: what is no
 * ASCII goes out byte by byte, as code points up to U+00FF, and the bytes can
 * be had back.
 * Begin with {.to = buffer, .first = true}.
 */
#ifndef OTP_DAEMON_REPORT_JSON_H
#define OTP_DAEMON_REPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct json {
	struct buf *to;
	bool first; /* of its object or list: no comma before it */
};

/* name NULL: in a list, or the outermost. */
void json_open(struct json *j, const char *name);
void json_close(struct json *j);
void json_open_list(struct json *j, const char *name);
void json_close_list(struct json *j);

void json_number(struct json *j, const char *name, uint64_t n);
void json_text(struct json *j, const char *name, const char *s);
void json_text_max(struct json *j, const char *name, const char *s, size_t max); /* up to a NUL or max bytes */
void json_boolean(struct json *j, const char *name, bool b);

#endif
