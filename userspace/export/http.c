// SPDX-License-Identifier: Apache-2.0
/*
 * OTLP over HTTP: POST of one protobuf message, by libcurl. HTTP/1.1, because
 * one request at a time gains nothing from more. Proxies come from the
 * environment, as libcurl reads it (http_proxy, HTTPS_PROXY, NO_PROXY).
 */

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "export/http_loop.h"
#include "export/http_url.h"
#include "export/response.h"
#include "export/retry.h"

#define TLS_FILE_MAX (4u << 20)

struct http {
	struct transport base;
	const struct export_config *cfg;
	struct transport_host *loop;
	outcome_fn *done;
	void *done_ctx;
	CURL *easy;
	struct curl_slist *headers, *headers_gzip;
	char error[CURL_ERROR_SIZE];
	/* of the try that is under way */
	bool busy;
	struct body body;
	size_t offset;     /* passed to libcurl */
	bool sent_before;  /* libcurl started again after it had the whole body */
	bool too_long;
	struct buf answer;
};

static size_t http_on_read(char *to, size_t size, size_t n, void *ctx)
{
	struct http *h = ctx;
	size_t take = MIN(size * n, h->body.len - h->offset);

	memcpy(to, (const char *)h->body.data + h->offset, take);
	h->offset += take;
	return take;
}

/*
 * libcurl repeats a request by itself when a reused connection turns out to
 * be closed. If it had the whole body by then, the server may have, too.
 */
static int http_on_seek(void *ctx, curl_off_t offset, int origin)
{
	struct http *h = ctx;

	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > h->body.len)
		return CURL_SEEKFUNC_FAIL;
	h->sent_before |= h->offset == h->body.len;
	h->offset = (size_t)offset;
	return CURL_SEEKFUNC_OK;
}

static size_t http_on_write(char *data, size_t size, size_t n, void *ctx)
{
	struct http *h = ctx;

	buf_add(&h->answer, data, size * n);
	h->too_long |= h->answer.failed;
	return h->answer.failed ? 0 : size * n;
}

/*
 * A byte passed to libcurl counts as sent. libcurl's own count of bytes sent
 * starts again with every connection, even if the next one is refused.
 */
static bool http_all_sent(const struct http *h)
{
	return h->sent_before || h->offset == h->body.len;
}

static const char *http_content_type(const struct http *h)
{
	char *type = NULL;

	curl_easy_getinfo(h->easy, CURLINFO_CONTENT_TYPE, &type);
	return type;
}

/* A 2xx is a success, whatever its body; the body adds a message. */
static void http_judge_success(const struct http *h, CURLcode result, struct outcome *o)
{
	struct response r = {0};

	o->kind = OUTCOME_DELIVERED;
	if (h->too_long) {
		snprintf(o->text, sizeof(o->text), "the answer is longer than %u bytes", RESPONSE_BYTES_MAX);
	} else if (result != CURLE_OK) {
		snprintf(o->text, sizeof(o->text), "the answer is cut off");
	} else if (response_parse(h->answer.data, h->answer.len, &r) < 0) {
		snprintf(o->text, sizeof(o->text), "the answer is no OTLP message: is this an OTLP receiver?");
	} else {
		memcpy(o->text, r.message, sizeof(o->text));
		o->rejected = r.rejected;
		if (r.rejected)
			o->kind = OUTCOME_PARTIAL;
	}
}

static uint64_t http_retry_after(const struct http *h)
{
	struct curl_header *header;
	uint64_t ns;

	if (curl_easy_header(h->easy, "Retry-After", 0, CURLH_HEADER, -1, &header) != CURLHE_OK ||
	    retry_after_parse(header->value, time(NULL), &ns) < 0)
		return OUTCOME_NO_WAIT;
	return ns;
}

static void http_describe_status(const struct http *h, long status, char text[RESPONSE_TEXT])
{
	char said[RESPONSE_TEXT], line[2 * RESPONSE_TEXT];
	const char *hint = "";

	response_refusal(http_content_type(h), h->answer.data, h->answer.len, said);
	if (status >= 300 && status < 400)
		hint = ": a redirection, not followed";
	else if (status == 404)
		hint = ": is the path of the endpoint right?";
	snprintf(line, sizeof(line), "HTTP %ld%s%s%s", status, hint, *said ? ": " : "", said);
	response_text(line, strlen(line), text);
}

static void http_judge_refusal(const struct http *h, long status, struct outcome *o)
{
	http_describe_status(h, status, o->text);
	if (retry_status(status)) {
		o->kind = OUTCOME_RETRY;
		o->retry_after_ns = http_retry_after(h);
		return;
	}
	o->kind = OUTCOME_REFUSED;
	o->reason = status == 413 ? OTP_LOSS_TOO_LARGE : OTP_LOSS_REJECTED;
}

static void http_judge_failure(const struct http *h, CURLcode result, struct outcome *o)
{
	const char *why = *h->error ? h->error : curl_easy_strerror(result);

	outcome_retry(o, http_all_sent(h), why);
}

static void http_judge(const struct http *h, CURLcode result, struct outcome *o)
{
	long status = 0;

	*o = (struct outcome){.retry_after_ns = OUTCOME_NO_WAIT};
	curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300)
		http_judge_success(h, result, o);
	else if (status >= 300)
		http_judge_refusal(h, status, o);
	else
		http_judge_failure(h, result, o);
}

static void http_finish(struct http *h)
{
	curl_multi_remove_handle(http_loop_multi(h->loop), h->easy);
	h->busy = false;
	buf_done(&h->answer);
}

void http_finished(CURL *easy, CURLcode result)
{
	struct outcome o;
	char *private;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
	struct http *h = (struct http *)private;

	http_judge(h, result, &o);
	http_finish(h);
	h->done(h->done_ctx, &o);
}

static int http_send(struct transport *t, const struct body *body, struct outcome *ret_outcome)
{
	struct http *h = container_of(t, struct http, base);

	h->body = *body;
	h->offset = 0;
	h->sent_before = h->too_long = false;
	h->error[0] = '\0';
	curl_easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->len);
	curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, body->gzip ? h->headers_gzip : h->headers);
	if (curl_multi_add_handle(http_loop_multi(h->loop), h->easy) != CURLM_OK)
		return -ENOMEM;
	h->busy = true;
	return 0;
}

static bool http_abort(struct transport *t)
{
	struct http *h = container_of(t, struct http, base);
	bool maybe = h->busy && http_all_sent(h);

	if (h->busy)
		http_finish(h);
	return maybe;
}

static int http_add_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

/* No "Expect:", which costs a second for receivers that do not answer it. */
static int http_make_headers(const struct export_config *cfg, bool gzip, struct curl_slist **list)
{
	static const char *const fixed[] = {"Content-Type: application/x-protobuf", "Expect:"};
	int rc = 0;

	for (size_t i = 0; !rc && i < ARRAY_SIZE(fixed); i++)
		rc = http_add_header(list, fixed[i]);
	if (!rc && gzip)
		rc = http_add_header(list, "Content-Encoding: gzip");
	for (uint32_t i = 0; !rc && i < cfg->nr_headers; i++)
		rc = http_add_header(list, cfg->headers[i]);
	return rc;
}

/*
 * By content: after a reload the file may hold another key, and libcurl must
 * not reuse an older connection for it. A file that cannot be read is left to
 * libcurl, which then fails every try.
 */
static void http_set_file(CURL *easy, CURLoption by_path, CURLoption by_content, const char *path)
{
	_cleanup_(buf_done) struct buf b = {0};
	struct curl_blob blob;
	struct stat st;

	if (!path)
		return;
	if (file_load(path, TLS_FILE_MAX, &b, &st) < 0 || !b.len) {
		curl_easy_setopt(easy, by_path, path);
		return;
	}
	blob = (struct curl_blob){.data = b.data, .len = b.len, .flags = CURL_BLOB_COPY};
	curl_easy_setopt(easy, by_content, &blob);
	explicit_bzero(b.data, b.len);
}

static void http_set_tls(CURL *easy, const struct export_config *cfg)
{
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	http_set_file(easy, CURLOPT_CAINFO, CURLOPT_CAINFO_BLOB, cfg->tls_ca);
	http_set_file(easy, CURLOPT_SSLCERT, CURLOPT_SSLCERT_BLOB, cfg->tls_cert);
	http_set_file(easy, CURLOPT_SSLKEY, CURLOPT_SSLKEY_BLOB, cfg->tls_key);
	if (cfg->tls_insecure) {
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

static void http_set_callbacks(struct http *h)
{
	curl_easy_setopt(h->easy, CURLOPT_READFUNCTION, http_on_read);
	curl_easy_setopt(h->easy, CURLOPT_READDATA, h);
	curl_easy_setopt(h->easy, CURLOPT_SEEKFUNCTION, http_on_seek);
	curl_easy_setopt(h->easy, CURLOPT_SEEKDATA, h);
	curl_easy_setopt(h->easy, CURLOPT_WRITEFUNCTION, http_on_write);
	curl_easy_setopt(h->easy, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(h->easy, CURLOPT_ERRORBUFFER, h->error);
	curl_easy_setopt(h->easy, CURLOPT_PRIVATE, h);
}

static void http_set_behaviour(CURL *easy, const struct export_config *cfg)
{
	uint64_t timeout_ms = MAX(cfg->timeout_ns / NSEC_PER_MSEC, 1);

	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "otprof/" OTPROF_VERSION);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	/* A resolver that hangs ends in its own thread; no call waits for it. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
}

static void http_close(struct transport *t)
{
	struct http *h = container_of(t, struct http, base);

	http_abort(t);
	curl_easy_cleanup(h->easy);
	curl_slist_free_all(h->headers);
	curl_slist_free_all(h->headers_gzip);
	buf_done(&h->answer);
	free(h);
}

static int http_init(struct http *h)
{
	_cleanup_(freep) char *url = NULL;
	int rc;

	h->easy = curl_easy_init();
	if (!h->easy)
		return -ENOMEM;
	buf_init(&h->answer, RESPONSE_BYTES_MAX);
	rc = http_url(h->cfg->endpoint, h->cfg->endpoint_is_full, &url);
	if (!rc)
		rc = http_make_headers(h->cfg, false, &h->headers);
	if (!rc)
		rc = http_make_headers(h->cfg, true, &h->headers_gzip);
	if (rc)
		return rc;
	http_set_behaviour(h->easy, h->cfg);
	http_set_callbacks(h);
	http_set_tls(h->easy, h->cfg);
	return curl_easy_setopt(h->easy, CURLOPT_URL, url) == CURLE_OK ? 0 : -ENOMEM;
}

static bool http_same_headers(const struct export_config *a, const struct export_config *b)
{
	if (a->nr_headers != b->nr_headers)
		return false;
	for (uint32_t i = 0; i < a->nr_headers; i++)
		if (strcmp(a->headers[i], b->headers[i]))
			return false;
	return true;
}

/* The files' contents may have changed under the same name. */
static bool http_reads_files(const struct export_config *cfg)
{
	return cfg->tls_ca || cfg->tls_cert || cfg->tls_key;
}

/* Compares the fields that http_init reads; compression is a property of each request. */
static bool http_same(const struct export_config *a, const struct export_config *b)
{
	return !http_reads_files(a) && !http_reads_files(b) && !strcmp(a->endpoint, b->endpoint) &&
	       a->endpoint_is_full == b->endpoint_is_full && a->protocol == b->protocol && http_same_headers(a, b) &&
	       a->tls_insecure == b->tls_insecure && a->timeout_ns == b->timeout_ns;
}

static int http_open(const struct export_config *cfg, struct transport_host *host, outcome_fn *done, void *ctx,
		     struct transport **ret)
{
	struct http *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return -ENOMEM;
	*h = (struct http){
		.base.ops = &transport_http, .cfg = cfg, .loop = host, .done = done, .done_ctx = ctx};
	rc = http_init(h);
	if (rc < 0) {
		http_close(&h->base);
		return rc;
	}
	*ret = &h->base;
	return 0;
}

#define HTTP_OPS(with_scheme)                                                               \
	{                                                                                   \
		.scheme = with_scheme, .protocol = EXPORT_PROTOCOL_HTTP,                    \
		.expired = OTP_LOSS_RETRY_EXPIRED,                                          \
		.stopped = OTP_LOSS_SHUTDOWN, .compresses = true, .patient = true,          \
		.check = http_check, .open = http_open, .same = http_same,                  \
		.close = http_close, .send = http_send, .abort = http_abort,                \
	}

const struct transport_ops transport_http = HTTP_OPS("http://");
const struct transport_ops transport_https = HTTP_OPS("https://");
