// SPDX-License-Identifier: Apache-2.0
#include "export/http.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "export/http_loop.h"
#include "export/response.h"
#include "export/retry.h"

#define TLS_FILE_MAX (4u << 20)

/* The next bytes of the prefix, or where it is over, of the body. */
static size_t http_copy(struct http *h, char *to, size_t room)
{
	bool begins = h->offset < h->prefix_len;
	const char *from = begins ? (const char *)h->prefix + h->offset :
				    (const char *)h->body.data + (h->offset - h->prefix_len);
	size_t take = MIN(room, (begins ? h->prefix_len : h->len) - h->offset);

	memcpy(to, from, take);
	h->offset += take;
	return take;
}

static size_t http_on_read(char *to, size_t size, size_t n, void *ctx)
{
	size_t take = http_copy(ctx, to, size * n);

	return take + http_copy(ctx, to + take, size * n - take);
}

/*
 * libcurl repeats a request by itself when a reused connection turns out to
 * be closed. If it had the whole request by then, the server may have, too.
 */
static int http_on_seek(void *ctx, curl_off_t offset, int origin)
{
	struct http *h = ctx;

	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > h->len)
		return CURL_SEEKFUNC_FAIL;
	h->sent_before |= h->offset == h->len;
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
	return h->sent_before || h->offset == h->len;
}

static const char *http_content_type(const struct http *h)
{
	char *type = NULL;

	curl_easy_getinfo(h->easy, CURLINFO_CONTENT_TYPE, &type);
	return type;
}

long http_status(const struct http *h)
{
	long status = 0;

	curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static const char *http_find_header(const struct http *h, const char *name, unsigned int origin)
{
	struct curl_header *header;

	return curl_easy_header(h->easy, name, 0, origin, -1, &header) == CURLHE_OK ? header->value : NULL;
}

const char *http_header(const struct http *h, const char *name)
{
	return http_find_header(h, name, CURLH_HEADER);
}

const char *http_trailer(const struct http *h, const char *name)
{
	return http_find_header(h, name, CURLH_TRAILER);
}

static uint64_t http_retry_after(const struct http *h)
{
	const char *value = http_header(h, "Retry-After");
	uint64_t ns;

	return value && retry_after_parse(value, time(NULL), &ns) == 0 ? ns : OUTCOME_NO_WAIT;
}

static void http_describe_status(const struct http *h, long status, char text[RESPONSE_TEXT])
{
	char said[RESPONSE_TEXT], line[2 * RESPONSE_TEXT];
	const char *hint = "";

	response_refusal(http_content_type(h), h->answer.data, h->answer.len, said);
	if (status >= 300 && status < 400)
		hint = ": a redirection, not followed";
	else if (status == 404)
		hint = h->protocol->not_found;
	snprintf(line, sizeof(line), "HTTP %ld%s%s%s", status, hint, *said ? ": " : "", said);
	response_text(line, strlen(line), text);
}

void http_judge_status(const struct http *h, long status, struct outcome *o)
{
	http_describe_status(h, status, o->text);
	if (retry_status(status)) {
		o->kind = OUTCOME_RETRY;
		o->retry_after_ns = http_retry_after(h);
		return;
	}
	o->kind = OUTCOME_REFUSED;
	/* RFC 9110: 415; the Collector and Pyroscope answer 400. */
	o->coding = status == 415 || status == 400;
	o->reason = status == 413 ? OTP_LOSS_TOO_LARGE : OTP_LOSS_REJECTED;
}

void http_judge_failure(const struct http *h, CURLcode result, struct outcome *o)
{
	const char *why = *h->error ? h->error : curl_easy_strerror(result);

	outcome_retry(o, http_all_sent(h), why);
}

static void http_finish(struct http *h)
{
	curl_multi_remove_handle(http_loop_multi(h->loop, h->protocol->http2), h->easy);
	h->busy = false;
	buf_done(&h->answer);
}

void http_finished(CURL *easy, CURLcode result)
{
	struct outcome o = {.retry_after_ns = OUTCOME_NO_WAIT};
	char *private;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
	struct http *h = (struct http *)private;

	h->answered |= http_status(h) != 0;
	h->protocol->judge(h, result, &o);
	http_finish(h);
	h->done(h->done_ctx, &o);
}

int http_send(struct transport *t, const struct body *body, struct outcome *ret_outcome)
{
	struct http *h = container_of(t, struct http, base);

	h->body = *body;
	h->prefix_len = h->protocol->prefix ? h->protocol->prefix(body, h->prefix) : 0;
	h->len = h->prefix_len + body->len;
	h->offset = 0;
	h->sent_before = h->too_long = false;
	h->error[0] = '\0';
	curl_easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)h->len);
	curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, h->headers[body->coding]);
	if (curl_multi_add_handle(http_loop_multi(h->loop, h->protocol->http2), h->easy) != CURLM_OK)
		return -ENOMEM;
	h->busy = true;
	return 0;
}

bool http_abort(struct transport *t)
{
	struct http *h = container_of(t, struct http, base);
	bool maybe = h->busy && http_all_sent(h);

	if (h->busy)
		http_finish(h);
	return maybe;
}

int http_add_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

int http_add_coding(struct curl_slist **list, const char *header, enum export_coding coding)
{
	char line[64];

	if (coding == EXPORT_CODING_NONE)
		return 0;
	snprintf(line, sizeof(line), "%s: %s", header, export_coding_names[coding]);
	return http_add_header(list, line);
}

/* No "Expect:", which costs a second for receivers that do not answer it. */
static int http_make_headers(const struct http *h, enum export_coding coding, struct curl_slist **list)
{
	int rc = http_add_header(list, "Expect:");

	if (!rc)
		rc = h->protocol->add_headers(h->cfg, coding, list);
	for (uint32_t i = 0; !rc && i < h->cfg->nr_headers; i++)
		rc = http_add_header(list, h->cfg->headers[i]);
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

/*
 * libcurl 7.88 cannot send a second request on a connection that began with
 * HTTP/2 in plain text: each request gets its own there. TLS connections stay.
 */
static void http_set_version(CURL *easy, const struct http_protocol *protocol, const char *url)
{
	long version = protocol->http2 ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : CURL_HTTP_VERSION_1_1;
	long alone = protocol->http2 && !strncmp(url, "http://", 7);

	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, version);
	curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, alone);
	curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, alone);
	/* A proxy forwards requests of HTTP/1.1 only; all else passes through a tunnel. */
	curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, (long)protocol->http2);
}

static void http_set_behaviour(CURL *easy, const struct export_config *cfg)
{
	uint64_t timeout_ms = MAX(cfg->timeout_ns / NSEC_PER_MSEC, 1);

	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "otprof/" OTPROF_VERSION);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	/* A resolver that hangs ends in its own thread; no call waits for it. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
}

void http_close(struct transport *t)
{
	struct http *h = container_of(t, struct http, base);

	http_abort(t);
	curl_easy_cleanup(h->easy);
	for (int i = 0; i < EXPORT_CODING_NR; i++)
		curl_slist_free_all(h->headers[i]);
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
	rc = h->protocol->url(h->cfg, &url);
	for (int i = 0; !rc && i < EXPORT_CODING_NR; i++)
		rc = http_make_headers(h, (enum export_coding)i, &h->headers[i]);
	if (rc)
		return rc;
	http_set_behaviour(h->easy, h->cfg);
	http_set_version(h->easy, h->protocol, url);
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
bool http_same(const struct export_config *a, const struct export_config *b)
{
	return !http_reads_files(a) && !http_reads_files(b) && !strcmp(a->endpoint, b->endpoint) &&
	       a->endpoint_is_full == b->endpoint_is_full && a->protocol == b->protocol && http_same_headers(a, b) &&
	       a->tls_insecure == b->tls_insecure && a->timeout_ns == b->timeout_ns;
}

int http_open(const struct transport_ops *ops, const struct http_protocol *protocol, const struct export_config *cfg,
	      struct transport_host *host, outcome_fn *done, void *ctx, struct transport **ret)
{
	struct http *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return -ENOMEM;
	*h = (struct http){.base.ops = ops, .protocol = protocol, .cfg = cfg, .loop = host, .done = done, .done_ctx = ctx};
	rc = http_init(h);
	if (rc < 0) {
		http_close(&h->base);
		return rc;
	}
	*ret = &h->base;
	return 0;
}
