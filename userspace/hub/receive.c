// SPDX-License-Identifier: Apache-2.0
#include "hub/receive.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "export/gzip.h"
#include "hub/jsonw.h"
#include "hub/receive_json.h"
#include "otlp/decode.h"
#include "otlp/wire.h"

#define PROTOBUF "application/x-protobuf"
#define JSON	 "application/json"

/* Codes of google.rpc.Code. */
enum { RPC_INVALID_ARGUMENT = 3, RPC_RESOURCE_EXHAUSTED = 8, RPC_UNAVAILABLE = 14 };

/* --- answers --- */

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
	if (api_type_is(content_type, JSON)) {
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

static bool receive_is_too_large(int err)
{
	return err == -E2BIG || err == -EFBIG || err == -ENOSPC;
}

static unsigned int receive_status(int err)
{
	return err == -ENOMEM ? 503 : receive_is_too_large(err) ? 413 : 400;
}

static const char *receive_message(int err)
{
	return err == -ENOMEM ? "no memory for a request of this size now" :
	       receive_is_too_large(err) ? "the request is larger than the hub takes" :
	       "the body is no ExportProfilesServiceRequest";
}

static bool receive_unpack(const struct otlp_limits *limits, const struct receive_call *c, struct received *r,
			   struct api_reply *ret)
{
	const char *encoding = c->content_encoding;
	bool json = api_type_is(c->content_type, JSON), plain = !encoding || strcasecmp(encoding, "identity") == 0;
	int err = 0;

	*r = (struct received){.data = c->body, .len = c->len};
	if (!json && !api_type_is(c->content_type, PROTOBUF)) {
		receive_refuse(c->content_type, 415, "profiles are application/x-protobuf or application/json", ret);
		return false;
	}
	if (!plain && strcasecmp(encoding, "gzip") != 0) {
		receive_refuse(c->content_type, 415, "the encoding is gzip or none", ret);
		return false;
	}
	if (!plain) {
		buf_init(&r->inflated, limits->request_bytes); /* a small body may be a large one */
		err = gzip_expand(c->body, c->len, &r->inflated);
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
		receive_accept(api_type_is(c->content_type, JSON), profiles,
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
		receive_accept(api_type_is(c->content_type, JSON), 0, "", ret);
	return err == 0;
}
