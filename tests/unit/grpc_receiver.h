/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A receiver of gRPC calls on a loopback port, in a thread, that answers by
 * script: one step a call, the last step for all that follow. HTTP/2 itself is
 * nghttp2's; what a step says is sent as it is, so that it can be what no gRPC
 * server would send. For the tests of the exporter; everything is static.
 */
#ifndef OTP_TESTS_GRPC_RECEIVER_H
#define OTP_TESTS_GRPC_RECEIVER_H

#include <arpa/inet.h>
#include <check.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/loopback.h"

enum call_kind {
	CALL_ANSWER, /* headers, data, trailers: those that the step has */
	CALL_HANG,   /* says nothing */
	CALL_STALL,  /* reads no more of the call than it has allowed the sender before */
	CALL_DROP,   /* closes the connection */
	CALL_RESET,  /* ends the stream by an error, after the headers and data that the step has */
	CALL_GOAWAY, /* refuses this stream and all later ones of the connection, in order */
	CALL_LEAVES, /* GOAWAY that still serves this call, then closes */
};

#define CALL_FIELDS_MAX 6

struct call_fields {
	const char *name, *value;
};

struct call_step {
	enum call_kind kind;
	const char *status;  /* of HTTP; NULL: 200 */
	const char *type;    /* content-type; NULL: application/grpc */
	struct call_fields headers[CALL_FIELDS_MAX];
	const void *data;    /* NULL: none; the answer is nothing but headers if there are no trailers either */
	size_t len;
	size_t zeros;        /* so many after the data */
	struct call_fields trailers[CALL_FIELDS_MAX];
	uint32_t error;      /* RESET: of HTTP/2 */
	bool early;          /* at the headers of the call, before its message */
	unsigned int late_ms;
};

#define CALLS_MAX 64
#define CALL_CONNECTIONS_MAX 8

struct call {
	char head[2048]; /* "name: value\n" for each header */
	uint8_t *body;
	size_t len;
	bool ended; /* the whole call has arrived */
};

struct grpc_receiver;

struct call_connection {
	struct grpc_receiver *receiver;
	int fd;
	nghttp2_session *session;
	const struct call_step *step;
	struct call *call; /* under way, or NULL */
	int32_t stream;
	size_t sent;	   /* of the answer's data */
	bool close;	   /* when all is sent */
	bool leaving;	   /* the same, but reads to the end first */
};

struct grpc_receiver {
	int listener, quit;
	uint16_t port;
	const struct call_step *steps;
	size_t nr_steps;
	pthread_t thread;
	struct call got[CALLS_MAX];
	size_t n; /* atomic: calls that were answered, or would have been */
	struct call_connection open[CALL_CONNECTIONS_MAX];
};

/* --- answers --- */

static size_t call_fields(const struct call_fields *fields, nghttp2_nv *to)
{
	size_t n = 0;

	for (; n < CALL_FIELDS_MAX && fields[n].name; n++)
		to[n] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)fields[n].name,
				     .namelen = strlen(fields[n].name),
				     .value = (uint8_t *)(uintptr_t)fields[n].value,
				     .valuelen = strlen(fields[n].value)};
	return n;
}

static ssize_t call_read_data(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room, uint32_t *flags,
			      nghttp2_data_source *source, void *ctx)
{
	struct call_connection *c = source->ptr;
	size_t total = c->step->len + c->step->zeros, take = c->sent < c->step->len ? c->step->len - c->sent : total - c->sent;
	nghttp2_nv trailers[CALL_FIELDS_MAX];
	size_t n = call_fields(c->step->trailers, trailers);

	take = take < room ? take : room;
	memset(to, 0, take);
	if (c->sent < c->step->len)
		memcpy(to, (const char *)c->step->data + c->sent, take);
	c->sent += take;
	if (c->sent < total)
		return (ssize_t)take;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (c->step->kind == CALL_RESET) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		nghttp2_submit_rst_stream(session, 0, stream, c->step->error);
	} else if (n) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		nghttp2_submit_trailer(session, stream, trailers, n);
	}
	return (ssize_t)take;
}

static void call_submit(struct call_connection *c)
{
	const struct call_step *s = c->step;
	const struct call_fields first[] = {{":status", s->status ? s->status : "200"},
					    {"content-type", s->type ? s->type : "application/grpc"},
					    {0}};
	nghttp2_data_provider data = {.source.ptr = c, .read_callback = call_read_data};
	nghttp2_nv head[CALL_FIELDS_MAX + 2];
	size_t n;

	n = call_fields(first, head);
	n += call_fields(s->headers, head + n);
	c->sent = 0;
	nghttp2_submit_response(c->session, c->stream, head, n, s->data || s->trailers[0].name ? &data : NULL);
}

static void call_answer(struct call_connection *c)
{
	usleep(c->step->late_ms * 1000);
	switch (c->step->kind) {
	case CALL_ANSWER:
		call_submit(c);
		break;
	case CALL_RESET:
		if (c->step->data)
			call_submit(c);
		else
			nghttp2_submit_rst_stream(c->session, 0, c->stream, c->step->error);
		break;
	case CALL_GOAWAY:
		nghttp2_submit_goaway(c->session, 0, c->stream - 2 > 0 ? c->stream - 2 : 0, NGHTTP2_NO_ERROR, NULL, 0);
		c->leaving = true;
		break;
	case CALL_LEAVES:
		nghttp2_submit_goaway(c->session, 0, c->stream, NGHTTP2_NO_ERROR, NULL, 0);
		call_submit(c);
		c->leaving = true;
		break;
	case CALL_HANG:
	case CALL_STALL:
		break;
	case CALL_DROP:
		c->close = true;
		break;
	}
	__atomic_fetch_add(&c->receiver->n, 1, __ATOMIC_RELEASE);
}

/* --- calls --- */

static int call_begins(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
	static struct call spare;
	struct call_connection *c = ctx;
	struct grpc_receiver *r = c->receiver;
	size_t i = __atomic_load_n(&r->n, __ATOMIC_RELAXED);

	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	c->step = &r->steps[i < r->nr_steps ? i : r->nr_steps - 1];
	c->call = i < CALLS_MAX ? &r->got[i] : &spare;
	free(c->call->body);
	*c->call = (struct call){0};
	c->stream = frame->hd.stream_id;
	return 0;
}

static int call_has_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
			   const uint8_t *value, size_t value_len, uint8_t flags, void *ctx)
{
	struct call_connection *c = ctx;
	size_t have = strlen(c->call->head);

	snprintf(c->call->head + have, sizeof(c->call->head) - have, "%.*s: %.*s\n", (int)name_len, (const char *)name,
		 (int)value_len, (const char *)value);
	return 0;
}

static int call_has_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data, size_t len,
			 void *ctx)
{
	struct call_connection *c = ctx;
	uint8_t *longer = realloc(c->call->body, c->call->len + len);

	if (!longer)
		abort();
	memcpy(longer + c->call->len, data, len);
	c->call->body = longer;
	c->call->len += len;
	if (c->step->kind != CALL_STALL)
		nghttp2_session_consume(session, stream, len);
	return 0;
}

static int call_has_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
	struct call_connection *c = ctx;
	bool headers = frame->hd.type == NGHTTP2_HEADERS, ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if ((!headers && frame->hd.type != NGHTTP2_DATA) || !c->call || frame->hd.stream_id != c->stream)
		return 0;
	c->call->ended = ends;
	if (c->step->early ? headers : ends)
		call_answer(c);
	return 0;
}

/* --- connections --- */

static void call_close(struct call_connection *c)
{
	nghttp2_session_del(c->session);
	close(c->fd);
	*c = (struct call_connection){.fd = -1};
}

static void call_open(struct grpc_receiver *r)
{
	static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100}};
	nghttp2_session_callbacks *callbacks;
	struct call_connection *c = r->open;
	nghttp2_option *option;
	const int yes = 1;

	while (c->fd >= 0)
		c++;
	*c = (struct call_connection){.receiver = r, .fd = accept(r->listener, NULL, NULL)};
	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, call_begins);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, call_has_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, call_has_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, call_has_frame);
	nghttp2_option_new(&option);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_session_server_new2(&c->session, callbacks, c, option);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	nghttp2_submit_settings(c->session, 0, settings, 1);
}

/* False: the other side is gone. */
static bool call_flush(struct call_connection *c)
{
	const uint8_t *data;
	ssize_t len;

	while ((len = nghttp2_session_mem_send(c->session, &data)) > 0)
		for (ssize_t done = 0, n; done < len; done += n)
			if ((n = send(c->fd, data + done, (size_t)(len - done), MSG_NOSIGNAL)) <= 0)
				return false;
	if (c->leaving)
		shutdown(c->fd, SHUT_WR);
	return len == 0;
}

static bool call_receive(struct call_connection *c)
{
	uint8_t data[16384];
	ssize_t n = recv(c->fd, data, sizeof(data), 0);

	return n > 0 && nghttp2_session_mem_recv(c->session, data, (size_t)n) >= 0;
}

/* False: the test is over. */
static bool grpc_receiver_turn(struct grpc_receiver *r)
{
	struct pollfd p[2 + CALL_CONNECTIONS_MAX] = {{.fd = r->quit, .events = POLLIN},
						     {.fd = r->listener, .events = POLLIN}};

	for (int i = 0; i < CALL_CONNECTIONS_MAX; i++)
		p[2 + i] = (struct pollfd){.fd = r->open[i].fd, .events = POLLIN};
	poll(p, 2 + CALL_CONNECTIONS_MAX, -1);
	for (int i = 0; i < CALL_CONNECTIONS_MAX; i++) {
		struct call_connection *c = &r->open[i];

		if (c->fd >= 0 && ((p[2 + i].revents && !call_receive(c)) || !call_flush(c) || c->close))
			call_close(c);
	}
	if (p[1].revents)
		call_open(r);
	return !p[0].revents;
}

static void *grpc_receiver_main(void *ctx)
{
	struct grpc_receiver *r = ctx;

	while (grpc_receiver_turn(r))
		;
	for (int i = 0; i < CALL_CONNECTIONS_MAX; i++)
		if (r->open[i].fd >= 0)
			call_close(&r->open[i]);
	return NULL;
}

static void grpc_receiver_start(struct grpc_receiver *r, const struct call_step *steps, size_t n)
{
	*r = (struct grpc_receiver){.steps = steps, .nr_steps = n};
	for (int i = 0; i < CALL_CONNECTIONS_MAX; i++)
		r->open[i].fd = -1;
	r->quit = eventfd(0, EFD_CLOEXEC);
	r->listener = loopback_listen(&r->port);
	ck_assert_int_eq(pthread_create(&r->thread, NULL, grpc_receiver_main, r), 0);
}

static void grpc_receiver_stop(struct grpc_receiver *r)
{
	ck_assert_int_eq(eventfd_write(r->quit, 1), 0);
	pthread_join(r->thread, NULL);
	close(r->listener);
	close(r->quit);
	for (size_t i = 0; i < CALLS_MAX; i++)
		free(r->got[i].body);
}

static size_t grpc_receiver_count(struct grpc_receiver *r)
{
	return __atomic_load_n(&r->n, __ATOMIC_ACQUIRE);
}

#endif
