// SPDX-License-Identifier: Apache-2.0
/* What a server answers: the response, the status, Retry-After, gRPC's fields; and the count of a request's profiles. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "export/grpc.h"
#include "export/request.h"
#include "export/response.h"
#include "export/retry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char text[RESPONSE_TEXT])
{
	size_t len = strnlen(text, RESPONSE_TEXT);

	if (len == RESPONSE_TEXT)
		abort();
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			abort();
}

static void check_header(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *value = malloc(size + 1);
	uint64_t ns = 0;

	if (!value)
		return;
	memcpy(value, data, size);
	value[size] = '\0';
	if (!retry_after_parse(value, 1783000000, &ns) && ns > RETRY_AFTER_MAX_NS)
		abort();
}

#define EXPANDED_MAX 65536

/* The bytes as a message, once for each encoding that a server may name. */
static void check_message(const uint8_t *data, size_t size)
{
	static const char *const encodings[] = {NULL, "gzip", "zstd"};

	for (size_t i = 0; i < ARRAY_SIZE(encodings); i++) {
		_cleanup_(buf_done) struct buf expanded;
		struct grpc_message m;

		buf_init(&expanded, EXPANDED_MAX);
		if (!grpc_message(data, size, encodings[i], &expanded, &m) && m.len > MAX(size, EXPANDED_MAX))
			abort();
	}
}

/* The bytes as each field of a status. */
static void check_grpc(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *value = malloc(size + 1);
	char text[RESPONSE_TEXT];
	uint64_t ns = 0;

	if (!value)
		return;
	memcpy(value, data, size);
	value[size] = '\0';
	grpc_describe(grpc_code_parse(value), value, text);
	check_text(text);
	if (!grpc_retry_info(value, &ns) && ns > RETRY_AFTER_MAX_NS)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const types[] = {"application/x-protobuf", "text/plain; charset=utf-8", "text/html", NULL};
	struct response r = {0};
	char text[RESPONSE_TEXT];

	if (!response_parse(data, size, &r))
		check_text(r.message);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		response_refusal(types[i], data, size, text);
		check_text(text);
	}
	check_header(data, size);
	check_message(data, size);
	check_grpc(data, size);
	/* A profile takes two bytes at the least. */
	if (request_count_profiles(data, size) > size / 2)
		abort();
	return 0;
}
