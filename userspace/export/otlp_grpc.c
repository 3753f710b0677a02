// SPDX-License-Identifier: Apache-2.0
/*
 * OTLP over gRPC: one unary call of the signal's Export a request, over
 * libcurl's HTTP/2. A call is a POST of one message with five bytes before it;
 * its outcome is the status in the trailers of the answer, or in its headers
 * where the answer has no message. Where there is no such status, the status of
 * HTTP decides, as gRPC maps it to its own codes.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "export/grpc.h"
#include "export/http.h"
#include "export/http_url.h"

static int otlp_grpc_url(const struct export_config *cfg, char **ret_url)
{
	if (cfg->signal == EXPORT_SIGNAL_METRICS)
		return metrics_url(cfg, ret_url);
	return grpc_url(cfg->endpoint, ret_url);
}

/*
 * "TE: trailers" finds proxies that would drop the status. The server may use
 * the time that is left to end a call that nobody waits for any more.
 */
static int otlp_grpc_add_headers(const struct export_config *cfg, enum export_coding coding, struct curl_slist **list)
{
	char timeout[64];
	int rc = http_add_header(list, "Content-Type: application/grpc");

	snprintf(timeout, sizeof(timeout), "grpc-timeout: %llum", MAX(cfg->timeout_ns / NSEC_PER_MSEC, 1ULL));
	if (!rc)
		rc = http_add_header(list, "TE: trailers");
	if (!rc)
		rc = http_add_header(list, timeout);
	return rc ? rc : http_add_coding(list, "grpc-encoding", coding);
}

static size_t otlp_grpc_prefix(const struct body *body, uint8_t to[HTTP_PREFIX_MAX])
{
	_Static_assert(GRPC_PREFIX <= HTTP_PREFIX_MAX, "the prefix of a message fits");
	_Static_assert(EXPORT_REQUEST_MAX <= UINT32_MAX, "the length of a message fits its prefix");
	grpc_prefix(body->coding != EXPORT_CODING_NONE, (uint32_t)body->len, to);
	return GRPC_PREFIX;
}

/* A field of the status: among the trailers, or the headers where the answer is nothing but headers. */
static const char *otlp_grpc_field(const struct http *h, const char *name)
{
	const char *value = http_trailer(h, name);

	return value ? value : http_header(h, name);
}

/* The status alone makes a success; the message adds what was rejected. */
static void otlp_grpc_judge_success(const struct http *h, struct outcome *o)
{
	_cleanup_(buf_done) struct buf expanded;
	const char *encoding = http_header(h, "grpc-encoding");
	struct grpc_message m;

	buf_init(&expanded, RESPONSE_BYTES_MAX);
	o->kind = OUTCOME_DELIVERED;
	if (grpc_message(h->answer.data, h->answer.len, encoding, &expanded, &m) < 0)
		snprintf(o->text, sizeof(o->text), "the answer is not one message of gRPC");
	else
		outcome_answered(o, m.data, m.len);
}

static void otlp_grpc_judge_refusal(const struct http *h, enum grpc_code code, struct outcome *o)
{
	const char *details = otlp_grpc_field(h, "grpc-status-details-bin");
	const char *message = otlp_grpc_field(h, "grpc-message");
	uint64_t wait = OUTCOME_NO_WAIT;
	bool asked = details && grpc_retry_info(details, &wait) == 0;

	grpc_describe(code, message ? message : "", o->text);
	o->kind = grpc_code_retries(code, asked) ? OUTCOME_RETRY : OUTCOME_REFUSED;
	o->maybe = grpc_code_leaves_doubt(code);
	/* As gRPC specifies it for a compression that the server does not have. */
	o->coding = code == GRPC_UNIMPLEMENTED;
	o->reason = OTP_LOSS_REJECTED;
	o->retry_after_ns = wait;
}

static bool otlp_grpc_is_grpc(const struct http *h)
{
	static const char type[] = "application/grpc";
	const char *value = http_header(h, "content-type");

	return value && !strncmp(value, type, sizeof(type) - 1);
}

/*
 * The answer does not say how the call ended; the receiver may have stored the
 * request. One of gRPC has lost its end: a proxy dropped it, or libcurl 7.88,
 * where the server leaves the connection in the same moment.
 */
static void otlp_grpc_judge_silence(const struct http *h, struct outcome *o)
{
	if (otlp_grpc_is_grpc(h) && !h->too_long) {
		outcome_retry(o, true, "the answer has no grpc-status");
		return;
	}
	o->kind = OUTCOME_REFUSED;
	o->maybe = true;
	o->reason = OTP_LOSS_REJECTED;
	if (h->too_long)
		snprintf(o->text, sizeof(o->text), "the answer is longer than %u bytes", RESPONSE_BYTES_MAX);
	else
		snprintf(o->text, sizeof(o->text), "the answer has no grpc-status: is this an OTLP/gRPC receiver?");
}

/* A server that closes what it does not understand says nothing else; one that has answered before does. */
static void otlp_grpc_judge_failure(const struct http *h, CURLcode result, struct outcome *o)
{
	bool closed = result == CURLE_GOT_NOTHING || result == CURLE_SEND_ERROR || result == CURLE_RECV_ERROR ||
		      result == CURLE_HTTP2;
	char line[2 * RESPONSE_TEXT];

	http_judge_failure(h, result, o);
	if (!closed || h->answered)
		return;
	snprintf(line, sizeof(line), "is this an OTLP/gRPC receiver? %s", o->text);
	response_text(line, strlen(line), o->text);
}

static void otlp_grpc_judge(const struct http *h, CURLcode result, struct outcome *o)
{
	const char *code = otlp_grpc_field(h, "grpc-status");
	long status = http_status(h);

	if (code && grpc_code_parse(code) == GRPC_OK)
		otlp_grpc_judge_success(h, o);
	else if (code)
		otlp_grpc_judge_refusal(h, grpc_code_parse(code), o);
	else if (status >= 200 && status < 300 && (result == CURLE_OK || h->too_long))
		otlp_grpc_judge_silence(h, o);
	else if (status >= 300)
		http_judge_status(h, status, o);
	else
		otlp_grpc_judge_failure(h, result, o);
}

static const struct http_protocol otlp_grpc = {
	.http2 = true,
	.not_found = ": is this an OTLP/gRPC receiver?",
	.url = otlp_grpc_url,
	.add_headers = otlp_grpc_add_headers,
	.judge = otlp_grpc_judge,
	.prefix = otlp_grpc_prefix,
};

static int otlp_grpc_open(const struct export_config *cfg, struct transport_host *host, outcome_fn *done, void *ctx,
			  struct transport **ret)
{
	return http_open(&transport_grpc, &otlp_grpc, cfg, host, done, ctx, ret);
}

const struct transport_ops transport_grpc = HTTP_OPS("http://", EXPORT_PROTOCOL_GRPC, grpc_check, otlp_grpc_open);
const struct transport_ops transport_grpcs = HTTP_OPS("https://", EXPORT_PROTOCOL_GRPC, grpc_check, otlp_grpc_open);
