// SPDX-License-Identifier: Apache-2.0
#include "export/grpc.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "export/gzip.h"
#include "export/retry.h"
#include "otlp/wire.h"

#define DETAILS_MAX 8192 /* headers of an answer are longer only by mistake */

/* --- codes --- */

enum grpc_again { GRPC_NEVER, GRPC_IF_ASKED, GRPC_ALWAYS };

static const struct {
	const char *name;
	enum grpc_again again;
} grpc_codes[GRPC_CODE_NR] = {
#define X(number, NAME, again) [number] = {#NAME, again},
	GRPC_CODES(X)
#undef X
};

enum grpc_code grpc_code_parse(const char *value)
{
	size_t digits = strspn(value, "0123456789");
	unsigned long code = digits && digits <= 2 && !value[digits] ? strtoul(value, NULL, 10) : GRPC_UNKNOWN;

	return code < GRPC_CODE_NR ? (enum grpc_code)code : GRPC_UNKNOWN;
}

bool grpc_code_retries(enum grpc_code code, bool asked)
{
	return grpc_codes[code].again == GRPC_ALWAYS || (grpc_codes[code].again == GRPC_IF_ASKED && asked);
}

bool grpc_code_leaves_doubt(enum grpc_code code)
{
	return code == GRPC_CANCELLED || code == GRPC_DEADLINE_EXCEEDED;
}

static int grpc_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* An escape that is none stays as it is, as gRPC wants it. */
static char grpc_percent(const char **at)
{
	const char *s = *at;
	int high = *s == '%' ? grpc_hex_digit(s[1]) : -1, low = high < 0 ? -1 : grpc_hex_digit(s[2]);

	*at = s + (low < 0 ? 1 : 3);
	return low < 0 ? *s : (char)(high << 4 | low);
}

void grpc_describe(enum grpc_code code, const char *message, char ret_text[RESPONSE_TEXT])
{
	char line[2 * RESPONSE_TEXT];
	size_t n = (size_t)snprintf(line, sizeof(line), "gRPC %s%s", grpc_codes[code].name, *message ? ": " : "");

	while (*message && n < sizeof(line))
		line[n++] = grpc_percent(&message);
	response_text(line, n, ret_text);
}

/* --- RetryInfo --- */

static int grpc_base64_digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* With or without padding. Several values of a header are joined by commas: reads the first. */
static int grpc_base64(const char *s, uint8_t *to, size_t room, size_t *ret_len)
{
	uint32_t bits = 0, have = 0;
	size_t n = 0;
	int digit;

	for (; (digit = grpc_base64_digit(*s)) >= 0; s++) {
		bits = bits << 6 | (uint32_t)digit;
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		if (n == room)
			return -EBADMSG;
		to[n++] = (uint8_t)(bits >> have);
	}
	s += strspn(s, "=");
	*ret_len = n;
	return *s && *s != ',' ? -EBADMSG : 0;
}

enum { STATUS_DETAILS = 3 };			    /* google.rpc.Status */
enum { ANY_TYPE_URL = 1, ANY_VALUE = 2 };	    /* google.protobuf.Any */
enum { RETRY_INFO_DELAY = 1 };			    /* google.rpc.RetryInfo */
enum { DURATION_SECONDS = 1, DURATION_NANOS = 2 };  /* google.protobuf.Duration */

static int grpc_duration(const struct wire_field *duration, uint64_t *ret_ns)
{
	struct wire w = wire_of(duration->data, duration->len);
	int64_t seconds = 0, nanos = 0;
	struct wire_field f;
	int rc;

	while ((rc = wire_next(&w, &f)) > 0) {
		if (f.number == DURATION_SECONDS && f.type == WIRE_VARINT)
			seconds = (int64_t)f.value;
		else if (f.number == DURATION_NANOS && f.type == WIRE_VARINT)
			nanos = (int64_t)f.value;
	}
	if (rc < 0)
		return rc;
	seconds = MIN(seconds, (int64_t)(RETRY_AFTER_MAX_NS / NSEC_PER_SEC));
	nanos = MIN(nanos, (int64_t)NSEC_PER_SEC - 1);
	if (seconds < 0 || nanos < 0)
		seconds = nanos = 0;
	*ret_ns = MIN((uint64_t)seconds * NSEC_PER_SEC + (uint64_t)nanos, RETRY_AFTER_MAX_NS);
	return 0;
}

static int grpc_retry_delay(const struct wire_field *info, uint64_t *ret_ns)
{
	struct wire w = wire_of(info->data, info->len);
	struct wire_field f;
	uint64_t ns = 0;
	int rc;

	while ((rc = wire_next(&w, &f)) > 0)
		if (f.number == RETRY_INFO_DELAY && f.type == WIRE_BYTES && grpc_duration(&f, &ns) < 0)
			return -EBADMSG;
	if (!rc)
		*ret_ns = ns;
	return rc;
}

/* The part of a type's URL behind the last slash names it. */
static bool grpc_is_retry_info(const struct wire_field *url)
{
	static const char name[] = "/google.rpc.RetryInfo";
	size_t n = sizeof(name) - 1;

	return url->len >= n && !memcmp(url->data + url->len - n, name, n);
}

/* -ENOENT: of another type. */
static int grpc_detail(const struct wire_field *any, uint64_t *ret_ns)
{
	struct wire w = wire_of(any->data, any->len);
	struct wire_field f, value = {0};
	bool is_info = false;
	int rc;

	while ((rc = wire_next(&w, &f)) > 0) {
		if (f.number == ANY_TYPE_URL && f.type == WIRE_BYTES)
			is_info = grpc_is_retry_info(&f);
		else if (f.number == ANY_VALUE && f.type == WIRE_BYTES)
			value = f;
	}
	if (rc < 0)
		return rc;
	return is_info ? grpc_retry_delay(&value, ret_ns) : -ENOENT;
}

int grpc_retry_info(const char *details, uint64_t *ret_ns)
{
	uint8_t status[DETAILS_MAX];
	struct wire_field f;
	struct wire w;
	size_t len;
	int rc;

	if (grpc_base64(details, status, sizeof(status), &len) < 0)
		return -EBADMSG;
	w = wire_of(status, len);
	while ((rc = wire_next(&w, &f)) > 0) {
		rc = f.number == STATUS_DETAILS && f.type == WIRE_BYTES ? grpc_detail(&f, ret_ns) : -ENOENT;
		if (rc != -ENOENT)
			return rc;
	}
	return rc < 0 ? rc : -ENOENT;
}

/* --- messages --- */

void grpc_prefix(bool compressed, uint32_t len, uint8_t to[GRPC_PREFIX])
{
	to[0] = compressed;
	for (int i = 0; i < 4; i++)
		to[1 + i] = (uint8_t)(len >> (24 - 8 * i));
}

int grpc_message(const void *answer, size_t len, const char *encoding, struct buf *expanded, struct grpc_message *ret)
{
	const uint8_t *head = answer;
	uint32_t told = 0;
	int rc;

	if (len < GRPC_PREFIX || head[0] > 1)
		return -EBADMSG;
	for (int i = 0; i < 4; i++)
		told = told << 8 | head[1 + i];
	if (told != len - GRPC_PREFIX)
		return -EBADMSG;
	*ret = (struct grpc_message){head + GRPC_PREFIX, told};
	if (!head[0])
		return 0;
	if (!encoding || strcmp(encoding, "gzip") != 0)
		return -ENOTSUP;
	rc = gzip_expand(ret->data, ret->len, expanded);
	*ret = (struct grpc_message){expanded->data, expanded->len};
	return rc;
}
