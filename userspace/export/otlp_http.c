// SPDX-License-Identifier: Apache-2.0
/*
 * OTLP over HTTP: POST of one protobuf message. HTTP/1.1, because one request
 * at a time gains nothing from more.
 */
#include "base/cleanup.h"
#include "export/http.h"
#include "export/http_url.h"

static int otlp_http_url(const struct export_config *cfg, char **ret_url)
{
	if (cfg->signal == EXPORT_SIGNAL_METRICS)
		return metrics_url(cfg, ret_url);
	return http_url(cfg->endpoint, cfg->endpoint_is_full, ret_url);
}

static int otlp_http_add_headers(const struct export_config *cfg, enum export_coding coding, struct curl_slist **list)
{
	int rc = http_add_header(list, "Content-Type: application/x-protobuf");

	return rc ? rc : http_add_coding(list, "Content-Encoding", coding);
}

/* A 2xx is a success, whatever its body; the body adds a message. */
static void otlp_http_judge_success(const struct http *h, CURLcode result, struct outcome *o)
{
	o->kind = OUTCOME_DELIVERED;
	if (h->too_long)
		snprintf(o->text, sizeof(o->text), "the answer is longer than %u bytes", RESPONSE_BYTES_MAX);
	else if (result != CURLE_OK)
		snprintf(o->text, sizeof(o->text), "the answer is cut off");
	else
		outcome_answered(o, h->answer.data, h->answer.len);
}

static void otlp_http_judge(const struct http *h, CURLcode result, struct outcome *o)
{
	long status = http_status(h);

	if (status >= 200 && status < 300)
		otlp_http_judge_success(h, result, o);
	else if (status >= 300)
		http_judge_status(h, status, o);
	else
		http_judge_failure(h, result, o);
}

static const struct http_protocol otlp_http = {
	.not_found = ": is the path of the endpoint right?",
	.url = otlp_http_url,
	.add_headers = otlp_http_add_headers,
	.judge = otlp_http_judge,
};

static int otlp_http_open(const struct export_config *cfg, struct transport_host *host, outcome_fn *done, void *ctx,
			  struct transport **ret)
{
	return http_open(&transport_http, &otlp_http, cfg, host, done, ctx, ret);
}

const struct transport_ops transport_http = HTTP_OPS("http://", EXPORT_PROTOCOL_HTTP, http_check, otlp_http_open);
const struct transport_ops transport_https = HTTP_OPS("https://", EXPORT_PROTOCOL_HTTP, http_check, otlp_http_open);
