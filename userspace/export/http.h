/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request at a time through libcurl: what OTLP over HTTP and OTLP over gRPC
 * share. The form of a request and the meaning of an answer belong to a
 * protocol, a struct http_protocol in a file of its own.
 *
 * Called by otlp_http.c and otlp_grpc.c, one thread. A struct http lives from
 * http_open to http_close and borrows its configuration; what a protocol reads
 * of an answer is borrowed until judge returns. Proxies come from the
 * environment, as libcurl reads it (http_proxy, HTTPS_PROXY, NO_PROXY).
 * Errors are negative errno. Cost: memory for one answer, RESPONSE_BYTES_MAX.
 */
#ifndef OTP_EXPORT_HTTP_H
#define OTP_EXPORT_HTTP_H

#include <curl/curl.h>

#include "base/buf.h"
#include "export/transport.h"

#define HTTP_PREFIX_MAX 8

struct http;

struct http_protocol {
	bool http2; /* without an upgrade from HTTP/1.1; through a proxy by CONNECT */
	const char *not_found; /* what status 404 hints at */
	int (*url)(const struct export_config *cfg, char **ret_url); /* owned by the caller */
	/* Adds its own headers; those of the configuration follow. */
	int (*add_headers)(const struct export_config *cfg, enum export_coding coding, struct curl_slist **list);
	/* result: how libcurl ended the try; o is zero, and without a wait. */
	void (*judge)(const struct http *h, CURLcode result, struct outcome *o);
	/* Optional: writes the bytes that precede the body, and returns their number. */
	size_t (*prefix)(const struct body *body, uint8_t to[HTTP_PREFIX_MAX]);
};

struct http {
	struct transport base;
	const struct http_protocol *protocol;
	const struct export_config *cfg;
	struct transport_host *loop;
	outcome_fn *done;
	void *done_ctx;
	CURL *easy;
	struct curl_slist *headers[EXPORT_CODING_NR]; /* by the coding of the body */
	char error[CURL_ERROR_SIZE];
	bool answered; /* some try had a status */
	/* of the try that is under way */
	bool busy;
	struct body body;
	uint8_t prefix[HTTP_PREFIX_MAX];
	size_t prefix_len, len; /* len: of prefix and body */
	size_t offset;     /* passed to libcurl */
	bool sent_before;  /* libcurl started again after it had the whole request */
	bool too_long;     /* the answer exceeds RESPONSE_BYTES_MAX */
	struct buf answer;
};

int http_add_header(struct curl_slist **list, const char *line); /* -ENOMEM; line is copied */

/* Adds "header: CODING", or nothing for a body that is not compressed. */
int http_add_coding(struct curl_slist **list, const char *header, enum export_coding coding);

/* The answer's status; 0: there is none. */
long http_status(const struct http *h);
/* A header of the answer, or of its end (trailers); NULL: none. Borrowed. */
const char *http_header(const struct http *h, const char *name);
const char *http_trailer(const struct http *h, const char *name);
/* The outcome of an answer whose status alone says that it is no success. */
void http_judge_status(const struct http *h, long status, struct outcome *o);
/* The outcome of a try without a whole answer. */
void http_judge_failure(const struct http *h, CURLcode result, struct outcome *o);

int http_open(const struct transport_ops *ops, const struct http_protocol *protocol, const struct export_config *cfg,
	      struct transport_host *host, outcome_fn *done, void *ctx, struct transport **ret);

/* Slots of struct transport_ops. */
bool http_same(const struct export_config *a, const struct export_config *b);
void http_close(struct transport *t);
int http_send(struct transport *t, const struct body *body, struct outcome *ret_outcome);
bool http_abort(struct transport *t);

#define HTTP_OPS(with_scheme, with_protocol, with_check, with_open)                                  \
	{                                                                                            \
		.scheme = (with_scheme), .protocol = (with_protocol), .expired = OTP_LOSS_RETRY_EXPIRED, \
		.stopped = OTP_LOSS_SHUTDOWN, .compresses = true, .patient = true,                   \
		.check = (with_check), .open = (with_open), .same = http_same, .close = http_close,  \
		.send = http_send, .abort = http_abort,                                              \
	}

#endif
