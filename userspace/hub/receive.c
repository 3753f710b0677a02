// SPDX-License-Identifier: Apache-2.0
#include "hub/receive.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "hub/jsonw.h"
#include "hub/receive_json.h"
#include "otlp/decode.h"
#include "otlp/wire.h"

#define GZIP_WINDOW (15 + 16) /* zlib: the largest window, in gzip's format */
#define INFLATE_STEP 65536
#define PROTOBUF     "application/x-protobuf"
#define JSON	     "application/json"

/* Codes of google.rpc.Code. */
enum { RPC_INVALID_ARGUMENT = 3, RPC_RESOURCE_EXHAUSTED = 8, RPC_UNAVAILABLE = 14 };

/* --- answers --- */

static bool receive_type_is(const char *type, const char *want)
{
	size_t n = strlen(want);

	return type && strncasecmp(type, want, n) == 0 && (!type[n] || type[n] == ';' || type[n] == ' ');
}

static void receive_varint(struct buf *b, uint64_t n)
{
	uint8_t byte;

	do {
		byte = (uint8_t)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
		buf_add(b, &byte, 1);
	} while (n >>= 7);
}

static void receive_number_field(struct buf *b, uint32_t field, uint64_t n)
{
	receive_varint(b, field << 3 | WIRE_VARINT);
	receive_varint(b, n);
}

static unsigned int receive_rpc_code(unsigned int status)
{
	return status == 413 ? RPC_RESOURCE_EXHAUSTED : status == 503 ? RPC_UNAVAILABLE : RPC_INVALID_ARGUMENT;
}

/* google.rpc.Status: code 1, message 2. */
void receive_refuse(const char *content_type, unsigned int status, const char *message, struct api_reply *ret)
{
	struct jsonw j = {.to = &ret->body};

	*ret = (struct api_reply){.status = status};
	if (receive_type_is(content_type, JSON)) {
		ret->type = JSON;
		jsonw_open(&j, NULL);
		jsonw_number(&j, "code", receive_rpc_code(status));
		jsonw_text(&j, "message", message);
		jsonw_close(&j);
		return;
	}
	ret->type = PROTOBUF;
	receive_number_field(&ret->body, 1, receive_rpc_code(status));
	wire_append_block(&ret->body, 2, message, strlen(message));
}

/* ExportProfilesServiceResponse: partial_success 1, of rejected_profiles 1 and error_message 2. */
static void receive_accept(bool json, uint64_t rejected, const char *message, struct api_reply *ret)
{
	_cleanup_(buf_done) struct buf partial = {0};
	struct jsonw j = {.to = &ret->body};

	*ret = (struct api_reply){.status = 200, .type = json ? JSON : PROTOBUF};
	if (json) {
		jsonw_open(&j, NULL);
		if (*message) {
			jsonw_open(&j, "partialSuccess");
			jsonw_number(&j, "rejectedProfiles", rejected);
			jsonw_text(&j, "errorMessage", message);
			jsonw_close(&j);
		}
		jsonw_close(&j);
		return;
	}
	if (!*message)
		return;
	receive_number_field(&partial, 1, rejected);
	wire_append_block(&partial, 2, message, strlen(message));
	wire_append_block(&ret->body, 1, partial.data, partial.len);
}

/* --- gzip --- */

/* In steps against the bound of out: a small body may be a large one. -EBADMSG, -E2BIG, -ENOMEM. */
static int receive_inflate_all(z_stream *z, struct buf *out)
{
	int r = Z_OK;

	while (r != Z_STREAM_END) {
		size_t room = MIN((size_t)INFLATE_STEP, out->max - out->len + 1);
		uint8_t *to = out->len < out->max ? buf_reserve(out, MIN(room, out->max - out->len)) : NULL;
		uint8_t over;

		z->next_out = to ? to : &over;
		z->avail_out = to ? (uInt)MIN(room, out->max - out->len) : 1;
		room = z->avail_out;
		r = inflate(z, Z_NO_FLUSH);
		if (r != Z_OK && r != Z_STREAM_END)
			return r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
		if (!to && z->avail_out == 0)
			return out->len < out->max ? -ENOMEM : -E2BIG;
		if (to)
			buf_commit(out, room - z->avail_out);
	}
	return z->avail_in ? -EBADMSG : 0;
}

static int receive_inflate(const void *data, size_t len, size_t max, struct buf *out)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)len};
	int r;

	if (len > UINT32_MAX)
		return -E2BIG;
	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return -ENOMEM;
	buf_init(out, max);
	r = receive_inflate_all(&z, out);
	inflateEnd(&z);
	return r;
}

/* --- a request --- */

struct received {
	const void *data;
	size_t len;
	struct buf inflated, converted; /* owned */
};

static void received_done(struct received *r)
{
	buf_done(&r->inflated);
	buf_done(&r->converted);
}

static unsigned int receive_status(int err)
{
	return err == -ENOMEM ? 503 : err == -E2BIG || err == -ENOSPC ? 413 : 400;
}

static const char *receive_message(int err)
{
	return err == -ENOMEM ? "no memory for a request of this size now" :
	       err == -E2BIG || err == -ENOSPC ? "the request is larger than the hub takes" :
	       "the body is no ExportProfilesServiceRequest";
}

static bool receive_unpack(const struct otlp_limits *limits, const struct receive_call *c, struct received *r,
			   struct api_reply *ret)
{
	const char *encoding = c->content_encoding;
	bool json = receive_type_is(c->content_type, JSON), plain = !encoding || strcasecmp(encoding, "identity") == 0;
	int err = 0;

	*r = (struct received){.data = c->body, .len = c->len};
	if (!json && !receive_type_is(c->content_type, PROTOBUF)) {
		receive_refuse(c->content_type, 415, "profiles are application/x-protobuf or application/json", ret);
		return false;
	}
	if (!plain && strcasecmp(encoding, "gzip") != 0) {
		receive_refuse(c->content_type, 415, "the encoding is gzip or none", ret);
		return false;
	}
	if (!plain) {
		err = receive_inflate(c->body, c->len, limits->request_bytes, &r->inflated);
		r->data = r->inflated.data;
		r->len = r->inflated.len;
	}
	if (!err && json) {
		err = receive_json(r->data, r->len, limits, &r->converted);
		r->data = r->converted.data;
		r->len = r->converted.len;
	}
	if (err < 0)
		receive_refuse(c->content_type, receive_status(err), receive_message(err), ret);
	return err == 0;
}

/* The profiles of a request that cannot be taken; -EBADMSG: it is none at all. */
static int receive_count(const struct received *r, const struct otlp_limits *limits, uint64_t *ret)
{
	_cleanup_(arena_done) struct arena arena = {.max = limits->memory_bytes};
	ProtobufCMessage *m;
	const OtlpRequest *q;
	int err = otlp_decode(&OTLP_REQUEST_DESCRIPTOR, r->data, r->len, &arena, &m);

	if (err < 0)
		return err;
	q = (const OtlpRequest *)m;
	*ret = 0;
	for (size_t i = 0; i < q->n_resource_profiles; i++)
		for (size_t k = 0; k < q->resource_profiles[i]->n_scope_profiles; k++)
			*ret += q->resource_profiles[i]->scope_profiles[k]->n_profiles;
	return 0;
}

static void receive_reject(const struct received *r, const struct otlp_limits *limits, const struct receive_call *c,
			   int err, struct api_reply *ret)
{
	uint64_t profiles;
	int e = err == -EBADMSG ? receive_count(r, limits, &profiles) : err;

	if (e < 0)
		receive_refuse(c->content_type, receive_status(e), receive_message(e), ret);
	else
		receive_accept(receive_type_is(c->content_type, JSON), profiles,
			       "an index, a value or a time is out of its range; no profile was taken", ret);
}

bool receive_serve(struct store *s, const struct otlp_limits *limits, const struct receive_call *c,
		   struct api_reply *ret)
{
	_cleanup_(received_done) struct received r;
	int err;

	if (!receive_unpack(limits, c, &r, ret)) {
		s->past.rejected++;
		return false;
	}
	err = store_take(s, r.data, r.len, limits, c->now_ns);
	if (err < 0)
		receive_reject(&r, limits, c, err, ret);
	else
		receive_accept(receive_type_is(c->content_type, JSON), 0, "", ret);
	return err == 0;
}
