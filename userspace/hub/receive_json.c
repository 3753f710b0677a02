// SPDX-License-Identifier: Apache-2.0
#include "hub/receive_json.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "otlp/decode.h"

#define NAME_MAX_BYTES 64

struct converter {
	struct arena arena;
	bool failed; /* without memory */
};

static int converter_message(struct converter *c, const ProtobufCMessageDescriptor *type, const json_t *from, int depth,
			     ProtobufCMessage **ret);

/* --- values --- */

/* "profile_id" is "profileId". */
static void converter_name(const char *field, char to[NAME_MAX_BYTES])
{
	size_t n = 0;
	bool up = false;

	for (; *field && n < NAME_MAX_BYTES - 1; field++) {
		if (*field == '_') {
			up = true;
			continue;
		}
		to[n++] = up ? (char)toupper((unsigned char)*field) : *field;
		up = false;
	}
	to[n] = '\0';
}

static int converter_signed(const json_t *from, int64_t *ret)
{
	const char *text = json_string_value(from);
	char *end;

	if (json_is_integer(from)) {
		*ret = json_integer_value(from);
		return 0;
	}
	if (!text || !*text || isspace((unsigned char)*text))
		return -EBADMSG;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return *end || errno ? -EBADMSG : 0;
}

static int converter_unsigned(const json_t *from, uint64_t *ret)
{
	const char *text = json_string_value(from);
	char *end;

	if (json_is_integer(from)) {
		*ret = (uint64_t)json_integer_value(from);
		return json_integer_value(from) < 0 ? -EBADMSG : 0;
	}
	if (!text || !isdigit((unsigned char)*text))
		return -EBADMSG;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return *end || errno ? -EBADMSG : 0;
}

static int converter_hex(struct converter *c, const char *text, ProtobufCBinaryData *ret)
{
	size_t n = strlen(text) / 2;

	if (strlen(text) % 2 || strspn(text, "0123456789abcdefABCDEF") != 2 * n)
		return -EBADMSG;
	ret->data = arena_make(&c->arena, &c->failed, n, 1);
	ret->len = n;
	for (size_t i = 0; ret->data && i < n; i++) {
		char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};

		ret->data[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return ret->data || !n ? 0 : -ENOMEM;
}

static int converter_base64_digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c == '-' ? '+' : c == '_' ? '/' : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static int converter_base64(struct converter *c, const char *text, ProtobufCBinaryData *ret)
{
	size_t len = strcspn(text, "=");
	uint32_t bits = 0, n = 0;

	if (strspn(text + len, "=") != strlen(text + len) || strlen(text + len) > 2 || len % 4 == 1)
		return -EBADMSG;
	ret->data = arena_make(&c->arena, &c->failed, len, 1);
	ret->len = 0;
	if (!ret->data && len)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++) {
		int digit = converter_base64_digit(text[i]);

		if (digit < 0)
			return -EBADMSG;
		bits = bits << 6 | (uint32_t)digit;
		n += 6;
		if (n >= 8) {
			n -= 8;
			ret->data[ret->len++] = (uint8_t)(bits >> n);
		}
	}
	return 0;
}

static int converter_bytes(struct converter *c, const char *field, const json_t *from, ProtobufCBinaryData *ret)
{
	const char *text = json_string_value(from);
	size_t n = strlen(field);

	if (!text)
		return -EBADMSG;
	if (n > 3 && strcmp(field + n - 3, "_id") == 0)
		return converter_hex(c, text, ret);
	return converter_base64(c, text, ret);
}

static int converter_text(struct converter *c, const json_t *from, char **ret)
{
	const char *text = json_string_value(from);
	size_t n = text ? strlen(text) + 1 : 0;

	if (!text)
		return -EBADMSG;
	*ret = arena_make(&c->arena, &c->failed, n, 1);
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, text, n);
	return 0;
}

static int converter_real(const json_t *from, double *ret)
{
	const char *text = json_string_value(from);
	char *end;

	if (json_is_number(from)) {
		*ret = json_number_value(from);
		return 0;
	}
	*ret = text && *text ? strtod(text, &end) : NAN;
	return text && *text && !*end ? 0 : -EBADMSG;
}

static int converter_int32(const json_t *from, int32_t *ret)
{
	int64_t n;
	int r = converter_signed(from, &n);

	*ret = (int32_t)n;
	return r < 0 || n < INT32_MIN || n > INT32_MAX ? -EBADMSG : 0;
}

static int converter_uint32(const json_t *from, uint32_t *ret)
{
	uint64_t n;
	int r = converter_unsigned(from, &n);

	*ret = (uint32_t)n;
	return r < 0 || n > UINT32_MAX ? -EBADMSG : 0;
}

static int converter_value(struct converter *c, const ProtobufCFieldDescriptor *f, const json_t *from, int depth,
			   void *to)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_ENUM:
		return converter_int32(from, to);
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		return converter_uint32(from, to);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		return converter_signed(from, to);
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		return converter_unsigned(from, to);
	case PROTOBUF_C_TYPE_DOUBLE:
		return converter_real(from, to);
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)to = json_is_true(from);
		return json_is_boolean(from) ? 0 : -EBADMSG;
	case PROTOBUF_C_TYPE_STRING:
		return converter_text(c, from, to);
	case PROTOBUF_C_TYPE_BYTES:
		return converter_bytes(c, f->name, from, to);
	case PROTOBUF_C_TYPE_MESSAGE:
		return converter_message(c, f->descriptor, from, depth - 1, to);
	default:
		return -EBADMSG; /* OTLP Profiles has no other */
	}
}

static size_t converter_size(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return sizeof(uint64_t);
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	default:
		return sizeof(uint32_t);
	}
}

/* --- fields --- */

static int converter_list(struct converter *c, const ProtobufCFieldDescriptor *f, const json_t *from, int depth,
			  uint8_t *message)
{
	size_t n = json_array_size(from), size = converter_size(f->type);
	uint8_t *items = arena_make(&c->arena, &c->failed, n, size);
	int r = 0;

	if (!json_is_array(from))
		return -EBADMSG;
	if (!items && n)
		return -ENOMEM;
	for (size_t i = 0; !r && i < n; i++)
		r = converter_value(c, f, json_array_get(from, i), depth, items + i * size);
	*(size_t *)(void *)(message + f->quantifier_offset) = n;
	*(void **)(void *)(message + f->offset) = items;
	return r;
}

static int converter_field(struct converter *c, const ProtobufCFieldDescriptor *f, const json_t *from, int depth,
			   uint8_t *message)
{
	int r;

	if (!from || json_is_null(from))
		return 0;
	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		return converter_list(c, f, from, depth, message);
	r = converter_value(c, f, from, depth, message + f->offset);
	if (!r && (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
		*(uint32_t *)(void *)(message + f->quantifier_offset) = f->id;
	return r;
}

static int converter_message(struct converter *c, const ProtobufCMessageDescriptor *type, const json_t *from, int depth,
			     ProtobufCMessage **ret)
{
	uint8_t *m;
	int r = 0;

	if (!json_is_object(from) || depth < 0)
		return -EBADMSG;
	m = arena_make(&c->arena, &c->failed, 1, type->sizeof_message);
	if (!m)
		return -ENOMEM;
	*ret = (ProtobufCMessage *)(void *)m;
	protobuf_c_message_init(type, m);
	for (unsigned int i = 0; !r && i < type->n_fields; i++) {
		char name[NAME_MAX_BYTES];

		converter_name(type->fields[i].name, name);
		r = converter_field(c, &type->fields[i], json_object_get(from, name), depth, m);
	}
	return r;
}

static void converter_done(struct converter *c)
{
	arena_done(&c->arena);
}

int receive_json(const void *text, size_t len, const struct otlp_limits *limits, struct buf *out)
{
	_cleanup_(json_decrefp) json_t *from = NULL;
	_cleanup_(converter_done) struct converter c = {.arena = {.max = limits->memory_bytes}};
	ProtobufCMessage *m;
	size_t size;
	void *to;
	int r;

	if (len > RECEIVE_JSON_MAX)
		return -E2BIG;
	from = json_loadb(text ? text : "", len, 0, NULL);
	r = from ? converter_message(&c, &OTLP_REQUEST_DESCRIPTOR, from, OTLP_DEPTH_MAX, &m) : -EBADMSG;
	if (r < 0)
		return r;
	size = protobuf_c_message_get_packed_size(m);
	if (size > limits->request_bytes)
		return -E2BIG;
	to = buf_reserve(out, MAX(size, (size_t)1));
	if (!to)
		return -ENOMEM;
	buf_commit(out, protobuf_c_message_pack(m, to));
	return 0;
}
