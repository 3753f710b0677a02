// SPDX-License-Identifier: Apache-2.0
#include "hub/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "hub/page.h"
#include "hub/receive.h"
#include "hub/stream.h"

#define CONNECTIONS_OVER 8 /* accepted beyond, while those that make room for them are closed */
#define HEADERS_BYTES	 32768
#define IDLE_NS		 (60 * NSEC_PER_SEC) /* between requests */
#define REQUEST_NS	 (20 * NSEC_PER_SEC) /* for a request as a whole */
#define ANSWER_NS	 (120 * NSEC_PER_SEC) /* for its answer: a large tree over a slow tunnel */
#define GZIP_LEAST	 1024
#define TLS_VERSIONS	 "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"
#define EVENTS_PATH	 API_PREFIX "/events"

struct connection {
	struct connection *next;
	int fd;
	uint64_t deadline_ns, since_ns;
	bool streams;
	bool closing; /* hung up on; the library has not seen it yet */
};

/* One request, from its headers to the end of its answer. */
struct exchange {
	struct buf body; /* owned */
	bool receives;	 /* for the OTLP receiver */
	bool too_large;
};

struct server {
	struct MHD_Daemon *daemon;
	struct server_config config;
	struct store *store;
	struct connection *connections;
	uint32_t nr_connections, receives;
	uint64_t ended; /* connections */
	struct streams streams;
};

/* --- connections --- */

static struct connection *server_connection(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void server_set_deadline(struct MHD_Connection *c, uint64_t after_ns)
{
	struct connection *conn = server_connection(c);

	if (!conn)
		return;
	conn->since_ns = clock_now_ns();
	conn->deadline_ns = after_ns == UINT64_MAX ? UINT64_MAX : conn->since_ns + after_ns;
}

static void server_evict(struct server *s, const struct connection *newest)
{
	struct connection *idlest = NULL;

	for (struct connection *c = s->connections; c; c = c->next)
		if (c != newest && !c->streams && !c->closing && (!idlest || c->since_ns < idlest->since_ns))
			idlest = c;
	if (!idlest)
		return;
	idlest->closing = true;
	shutdown(idlest->fd, SHUT_RDWR);
}

static void server_connected(struct server *s, int fd, void **slot)
{
	struct connection *c = calloc(1, sizeof(*c));

	*slot = c;
	if (!c)
		return;
	*c = (struct connection){.next = s->connections, .fd = fd, .since_ns = clock_now_ns()};
	c->deadline_ns = c->since_ns + REQUEST_NS;
	s->connections = c;
	if (++s->nr_connections > SERVER_CONNECTIONS_MAX)
		server_evict(s, c);
}

static void server_disconnected(struct server *s, struct connection *gone)
{
	for (struct connection **link = &s->connections; *link; link = &(*link)->next) {
		if (*link != gone)
			continue;
		*link = gone->next;
		s->nr_connections--;
		s->ended++;
		free(gone);
		return;
	}
}

static void server_on_connection(void *ctx, struct MHD_Connection *c, void **slot,
				 enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (what == MHD_CONNECTION_NOTIFY_STARTED && info)
		server_connected(ctx, info->connect_fd, slot);
	else if (what == MHD_CONNECTION_NOTIFY_CLOSED && *slot)
		server_disconnected(ctx, *slot);
}

static void server_expire(const struct server *s, uint64_t now)
{
	for (const struct connection *c = s->connections; c; c = c->next)
		if (now >= c->deadline_ns)
			shutdown(c->fd, SHUT_RDWR);
}

/* --- answers --- */

static void server_add_headers(struct MHD_Response *r)
{
	static const char *const headers[][2] = {
		{"Content-Security-Policy",
		 "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
		 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"},
		{"X-Content-Type-Options", "nosniff"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
		MHD_add_response_header(r, headers[i][0], headers[i][1]);
}

static enum MHD_Result server_queue(struct MHD_Connection *c, unsigned int status, struct MHD_Response *r)
{
	enum MHD_Result ok;

	if (!r)
		return MHD_NO;
	server_add_headers(r);
	ok = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ok;
}

static const char *server_header(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static bool server_accepts_gzip(struct MHD_Connection *c)
{
	const char *accept = server_header(c, MHD_HTTP_HEADER_ACCEPT_ENCODING);

	return accept && strcasestr(accept, "gzip") && !strcasestr(accept, "gzip;q=0");
}

/* Level 1: the others take several times as long for a tenth of the bytes. */
static bool server_compress(const struct buf *from, struct buf *to)
{
	z_stream z = {.next_in = from->data, .avail_in = (uInt)from->len};
	size_t room;
	bool ok;

	if (from->len > UINT32_MAX || deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	room = deflateBound(&z, from->len);
	z.next_out = buf_reserve(to, room);
	z.avail_out = (uInt)room;
	ok = z.next_out && deflate(&z, Z_FINISH) == Z_STREAM_END;
	if (ok)
		buf_commit(to, room - z.avail_out);
	deflateEnd(&z);
	return ok;
}

static struct MHD_Response *server_body(struct buf *body)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(body->len, body->data, MHD_RESPMEM_MUST_FREE);

	if (r)
		*body = (struct buf){0};
	return r;
}

static void server_describe(struct MHD_Response *r, const struct api_reply *reply)
{
	char disposition[192];

	MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, *reply->etag ? "no-cache" : "no-store");
	if (reply->type)
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, reply->type);
	if (*reply->etag)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, reply->etag);
	if (reply->allow)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, reply->allow);
	if (reply->status == 503 || reply->status == 429)
		MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "5");
	if (reply->status == 401)
		MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	if (!*reply->file)
		return;
	snprintf(disposition, sizeof(disposition), "attachment; filename=\"%s\"", reply->file);
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_DISPOSITION, disposition);
}

/* A file is not compressed on its way: what is saved would be named wrongly. */
static enum MHD_Result server_reply(struct MHD_Connection *c, struct api_reply *reply)
{
	_cleanup_(buf_done) struct buf compressed = {0};
	bool gzip = reply->body.len >= GZIP_LEAST && !*reply->file && server_accepts_gzip(c) &&
		    server_compress(&reply->body, &compressed);
	struct MHD_Response *r = server_body(gzip ? &compressed : &reply->body);
	enum MHD_Result ok;

	if (r) {
		server_describe(r, reply);
		MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING);
	}
	if (r && gzip)
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	ok = server_queue(c, reply->status, r);
	api_reply_done(reply);
	return ok;
}

static enum MHD_Result server_refuse(struct MHD_Connection *c, unsigned int status, const char *reason,
				     const char *message)
{
	struct api_reply reply = {0};

	api_fail(&reply, status, reason, NULL, "%s", message);
	return server_reply(c, &reply);
}

/* --- the page --- */

static enum MHD_Result server_page(struct MHD_Connection *c, const char *method, const struct page_file *f)
{
	const char *tags = server_header(c, MHD_HTTP_HEADER_IF_NONE_MATCH);
	bool same = tags && strstr(tags, f->etag);
	struct api_reply reply = {.status = same ? 304 : 200, .type = f->type};

	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		api_fail(&reply, 405, "method", NULL, "only GET");
		reply.allow = "GET, HEAD";
		return server_reply(c, &reply);
	}
	snprintf(reply.etag, sizeof(reply.etag), "%s", f->etag);
	if (!same)
		buf_add(&reply.body, f->data, f->len);
	return server_reply(c, &reply);
}

/* --- what a request is --- */

static enum MHD_Result server_add_param(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct api_call *call = ctx;

	if (call->nr_params == API_PARAMS_MAX)
		return MHD_NO;
	call->params[call->nr_params].name = name;
	call->params[call->nr_params++].value = value ? value : "";
	return MHD_YES;
}

static void server_make_call(struct MHD_Connection *c, const char *url, const char *method, const struct buf *body,
			     struct api_call *ret)
{
	*ret = (struct api_call){
		.method = method,
		.path = url,
		.body = body->data ? (const char *)body->data : "",
		.body_len = body->len,
		.content_type = server_header(c, MHD_HTTP_HEADER_CONTENT_TYPE),
		.if_none_match = server_header(c, MHD_HTTP_HEADER_IF_NONE_MATCH),
		.now_ns = clock_read_ns(CLOCK_REALTIME),
	};
	MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, server_add_param, ret);
}

static enum MHD_Result server_count_header(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	unsigned int *lengths = ctx;

	if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0)
		lengths[0]++;
	else if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0)
		lengths[1]++;
	else if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0)
		lengths[2]++;
	return MHD_YES;
}

/* Two lengths are two requests to somebody between: neither is believed. */
static bool server_is_ambiguous(struct MHD_Connection *c)
{
	unsigned int lengths[3] = {0};

	MHD_get_connection_values(c, MHD_HEADER_KIND, server_count_header, lengths);
	return lengths[0] + lengths[1] > 1 || lengths[2] > 1;
}

static bool server_is_api(const char *url)
{
	size_t n = strlen(API_PREFIX);

	return strncmp(url, API_PREFIX, n) == 0 && url[n] == '/';
}

static enum guard_verdict server_guard(const struct server *s, struct MHD_Connection *c, const char *url,
				       const char *method)
{
	struct guard_request r = {
		.method = method,
		.page = !server_is_api(url) && strcmp(url, RECEIVE_PATH) != 0,
		.host = server_header(c, MHD_HTTP_HEADER_HOST),
		.origin = server_header(c, MHD_HTTP_HEADER_ORIGIN),
		.sec_fetch_site = server_header(c, "Sec-Fetch-Site"),
		.authorization = server_header(c, MHD_HTTP_HEADER_AUTHORIZATION),
	};

	return guard_check(&s->config.guard, &r);
}

static enum MHD_Result server_refuse_guarded(struct MHD_Connection *c, enum guard_verdict why)
{
	if (why == GUARD_HOST)
		return server_refuse(c, 421, "host", "Host is no name of this hub");
	if (why == GUARD_CROSS_SITE)
		return server_refuse(c, 403, "cross_site", "the request was made by another site");
	return server_refuse(c, 401, "unauthorized", "the token is missing or wrong: otprof ui has it");
}

/* --- requests --- */

static enum MHD_Result server_events(struct server *s, struct MHD_Connection *c, const struct api_call *call)
{
	struct connection *conn = server_connection(c);
	struct api_reply refusal;
	struct MHD_Response *r;
	struct workload *w;
	const char *type;

	if (!api_events(&s->config.api, call, &w, &type, &refusal))
		return server_reply(c, &refusal);
	r = conn ? stream_new(&s->streams, c, conn->fd, w, type) : NULL;
	if (!r)
		return server_refuse(c, 503, "overload", "there are as many streams of events as there may be");
	conn->streams = true;
	server_set_deadline(c, UINT64_MAX);
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
	MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	return server_queue(c, 200, r);
}

static enum MHD_Result server_receive(struct server *s, struct MHD_Connection *c, const struct exchange *x)
{
	struct receive_call call = {
		.content_type = server_header(c, MHD_HTTP_HEADER_CONTENT_TYPE),
		.content_encoding = server_header(c, MHD_HTTP_HEADER_CONTENT_ENCODING),
		.body = x->body.data,
		.len = x->body.len,
		.now_ns = clock_read_ns(CLOCK_REALTIME),
	};
	struct api_reply reply = {0};

	if (x->too_large)
		receive_refuse(call.content_type, 413, "the request is larger than the hub takes", &reply);
	else if (receive_serve(s->store, &s->config.limits, &call, &reply))
		streams_workloads(&s->streams, call.now_ns);
	return server_reply(c, &reply);
}

static enum MHD_Result server_serve(struct server *s, struct MHD_Connection *c, const char *url, const char *method,
				    const struct exchange *x)
{
	const struct page_file *file = server_is_api(url) ? NULL : page_find(url);
	struct api_reply reply;
	struct api_call call;

	server_set_deadline(c, ANSWER_NS);
	if (x->receives)
		return server_receive(s, c, x);
	if (x->too_large)
		return server_refuse(c, 413, "too_large", "the body is too large");
	if (file)
		return server_page(c, method, file);
	if (!server_is_api(url))
		return server_refuse(c, 404, "unknown_path", "no such path");
	server_make_call(c, url, method, &x->body, &call);
	if (strcmp(url, EVENTS_PATH) == 0 && strcmp(method, "GET") == 0)
		return server_events(s, c, &call);
	api_serve(&s->config.api, &call, &reply);
	return server_reply(c, &reply);
}

/* The headers are there, nothing of the body yet: what is refused now is not read. */
static enum MHD_Result server_begin(struct server *s, struct MHD_Connection *c, const char *url, const char *method,
				    void **slot)
{
	enum guard_verdict verdict = server_guard(s, c, url, method);
	struct exchange *x;

	if (server_is_ambiguous(c))
		return server_refuse(c, 400, "bad_request", "more than one Host or length of the body");
	if (verdict != GUARD_PASS)
		return server_refuse_guarded(c, verdict);
	x = calloc(1, sizeof(*x));
	if (!x)
		return MHD_NO;
	*slot = x;
	x->receives = s->config.receive && strcmp(url, RECEIVE_PATH) == 0 && strcmp(method, "POST") == 0;
	buf_init(&x->body, x->receives ? s->config.limits.request_bytes : API_BODY_MAX);
	if (!x->receives)
		return MHD_YES;
	if (s->receives++ < SERVER_RECEIVES_MAX)
		return MHD_YES;
	return server_refuse(c, 503, "overload", "too many requests of profiles at once");
}

static void server_take_body(struct exchange *x, const char *data, size_t len)
{
	if (x->too_large)
		return;
	buf_add(&x->body, data, len);
	if (!x->body.failed)
		return;
	x->too_large = true;
	buf_done(&x->body);
}

static enum MHD_Result server_on_request(void *ctx, struct MHD_Connection *c, const char *url, const char *method,
					 const char *version, const char *data, size_t *data_len, void **slot)
{
	struct server *s = ctx;
	struct exchange *x = *slot;

	if (!x)
		return server_begin(s, c, url, method, slot);
	if (*data_len) {
		server_take_body(x, data, *data_len);
		*data_len = 0;
		return MHD_YES;
	}
	return server_serve(s, c, url, method, x);
}

static void server_on_completed(void *ctx, struct MHD_Connection *c, void **slot, enum MHD_RequestTerminationCode code)
{
	struct server *s = ctx;
	struct exchange *x = *slot;

	server_set_deadline(c, IDLE_NS);
	if (!x)
		return;
	s->receives -= x->receives;
	buf_done(&x->body);
	free(x);
	*slot = NULL;
}

/* --- the server --- */

static void server_on_change(void *ctx, struct workload *w, enum store_change change)
{
	struct server *s = ctx;

	streams_changed(&s->streams, w, change);
}

int server_new(int fd, const struct server_config *config, struct server **ret)
{
	struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)config->cert},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)config->key},
		{MHD_OPTION_HTTPS_PRIORITIES, 0, TLS_VERSIONS},
		{MHD_OPTION_END, 0, NULL},
	};
	struct server *s = calloc(1, sizeof(*s));

	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->config = *config;
	s->store = config->api.store;
	s->streams.store = s->store;
	s->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (config->cert ? MHD_USE_TLS : 0), 0, NULL,
				     NULL, server_on_request, s, MHD_OPTION_ARRAY, config->cert ? tls : plain,
				     MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				     (unsigned int)(SERVER_CONNECTIONS_MAX + CONNECTIONS_OVER),
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS_BYTES,
				     MHD_OPTION_NOTIFY_COMPLETED, server_on_completed, s,
				     MHD_OPTION_NOTIFY_CONNECTION, server_on_connection, s, MHD_OPTION_END);
	if (!s->daemon) {
		close(fd);
		free(s);
		return -EIO;
	}
	s->store->changed = server_on_change;
	s->store->ctx = s;
	*ret = s;
	return 0;
}

struct server *server_free(struct server *s)
{
	if (!s)
		return NULL;
	/* The library aborts the process if it is stopped while a connection is suspended. */
	streams_end(&s->streams);
	MHD_run(s->daemon);
	MHD_stop_daemon(s->daemon);
	if (s->store->ctx == s) /* not where another server has taken its place */
		s->store->changed = NULL;
	free(s);
	return NULL;
}

int server_fd(const struct server *s)
{
	return MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

static uint64_t server_next_ns(const struct server *s)
{
	uint64_t next = streams_next_ns(&s->streams);

	for (const struct connection *c = s->connections; c; c = c->next)
		next = MIN(next, c->deadline_ns);
	return next;
}

int server_timeout_ms(const struct server *s)
{
	MHD_UNSIGNED_LONG_LONG ms = UINT64_MAX;
	uint64_t now = clock_now_ns(), next = server_next_ns(s);

	if (MHD_get_timeout(s->daemon, &ms) != MHD_YES)
		ms = UINT64_MAX;
	if (next != UINT64_MAX)
		ms = MIN(ms, next <= now ? 0 : (next - now) / NSEC_PER_MSEC + 1);
	return ms == UINT64_MAX ? -1 : (int)MIN(ms, 3600000ULL);
}

/*
 * Where there are as many connections as there may be, the library does not look at the listening socket until the run
 * after one has ended, which nothing would begin.
 */
static void server_turn(struct server *s)
{
	uint64_t ended;

	do {
		ended = s->ended;
		MHD_run(s->daemon);
	} while (s->ended != ended);
}

void server_run(struct server *s)
{
	server_expire(s, clock_now_ns());
	streams_run(&s->streams);
	server_turn(s);
}

void server_taken(struct server *s)
{
	streams_workloads(&s->streams, clock_read_ns(CLOCK_REALTIME));
	server_turn(s);
}
