/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OTLP receiver: POST /v1development/profiles, as the specification of OTLP
 * over HTTP has it (opentelemetry.io, OTLP 1.11, "OTLP/HTTP").
 *
 *   200  taken; the answer is empty. Where a part cannot be taken, the answer
 *        states how many profiles were rejected, and why: never a silent 200.
 *   400  no request at all: not to be sent again; 413, 415 likewise
 *   503  no room now, with Retry-After
 *
 * Answers have the type of the request: protobuf or JSON. What is not of a table
 * or out of its range is rejected, with all profiles of its request, because
 * they share one dictionary.
 *
 * Called by the server, one thread; fuzzers call it without one.
 * Bounds: request_bytes of a request as it was sent and after it was inflated,
 * memory_bytes decoded.
 */
#ifndef OTP_HUB_RECEIVE_H
#define OTP_HUB_RECEIVE_H

#include "hub/api.h"

#define RECEIVE_PATH "/v1development/profiles"

struct receive_call {
	const char *content_type, *content_encoding; /* NULL: missing */
	const void *body;
	size_t len;
	uint64_t now_ns; /* Unix */
};

/* The reply has no etag and no file. True: samples may have been taken. */
bool receive_serve(struct store *s, const struct otlp_limits *limits, const struct receive_call *call,
		   struct api_reply *ret);
/* A refusal in the type of the request, before its body was read. */
void receive_refuse(const char *content_type, unsigned int status, const char *message, struct api_reply *ret);

#endif
