// SPDX-License-Identifier: Apache-2.0
#include "export/response.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "otlp/wire.h"

enum { RESPONSE_PARTIAL_SUCCESS = 1 };                    /* ExportProfilesServiceResponse */
enum { PARTIAL_REJECTED_PROFILES = 1, PARTIAL_MESSAGE = 2 }; /* ExportProfilesPartialSuccess */
enum { STATUS_MESSAGE = 2 };                              /* google.rpc.Status */

void response_text(const void *from, size_t len, char ret_text[RESPONSE_TEXT])
{
	const unsigned char *s = from;
	size_t i;

	for (i = 0; i < len && i < RESPONSE_TEXT - 1 && s[i] != '\n' && s[i] != '\r'; i++)
		ret_text[i] = s[i] >= ' ' && s[i] < 0x7f ? (char)s[i] : '?';
	ret_text[i] = '\0';
}

static int response_parse_partial(const struct wire_field *partial, struct response *r)
{
	struct wire w = wire_of(partial->data, partial->len);
	struct wire_field f;
	int rc;

	while ((rc = wire_next(&w, &f)) > 0) {
		if (f.number == PARTIAL_REJECTED_PROFILES && f.type == WIRE_VARINT)
			/* int64: a negative count is invalid */
			r->rejected = (int64_t)f.value < 0 ? 0 : f.value;
		else if (f.number == PARTIAL_MESSAGE && f.type == WIRE_BYTES)
			response_text(f.data, f.len, r->message);
	}
	return rc;
}

int response_parse(const void *body, size_t len, struct response *ret)
{
	struct wire w = wire_of(body, len);
	struct response r = {0};
	struct wire_field f;
	int rc;

	while ((rc = wire_next(&w, &f)) > 0)
		if (f.number == RESPONSE_PARTIAL_SUCCESS &&
		    (f.type != WIRE_BYTES || response_parse_partial(&f, &r) < 0))
			return -EBADMSG;
	if (rc < 0)
		return rc;
	*ret = r;
	return 0;
}

static void response_status_text(const void *body, size_t len, char ret_text[RESPONSE_TEXT])
{
	struct wire w = wire_of(body, len);
	struct wire_field f;

	while (wire_next(&w, &f) > 0)
		if (f.number == STATUS_MESSAGE && f.type == WIRE_BYTES)
			response_text(f.data, f.len, ret_text);
}

void response_refusal(const char *content_type, const void *body, size_t len, char ret_text[RESPONSE_TEXT])
{
	ret_text[0] = '\0';
	if (!content_type || !len)
		return;
	if (!strcasecmp(content_type, "application/x-protobuf"))
		response_status_text(body, len, ret_text);
	else if (!strncasecmp(content_type, "text/plain", 10) ||
		 !strncasecmp(content_type, "application/json", 16))
		response_text(body, len, ret_text);
}
