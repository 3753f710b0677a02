// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/metrics.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/report/metrics_clients.h"

#define CONNECTIONS_MAX   8
#define CONNECTIONS_OVER  4 /* accepted beyond, while those that make room for them are closed */
#define BACKLOG           64
#define IDLE_SECONDS      10
#define REQUEST_NS        (15 * NSEC_PER_SEC) /* for a request as a whole, however its bytes arrive */
#define REQUEST_BYTES_MAX 16384
#define WAIT_NS           (2 * NSEC_PER_SEC)
#define CONTENT_TYPE      "text/plain; version=0.0.4; charset=utf-8"

/* A connection whose request waits for the text. */
struct waiter {
	struct waiter *next;
	struct MHD_Connection *connection;
	struct MHD_Response *response; /* owned until queued */
	unsigned int status;
};

struct metrics {
	struct MHD_Daemon *daemon;
	void (*wanted)(void *ctx);
	void *ctx;
	struct metrics_clients clients;
	struct waiter *waiting;
	uint64_t give_up_ns; /* UINT64_MAX: no request waits */
	bool closing;        /* no request may begin to wait */
};

static struct MHD_Response *text_response(const char *text, size_t len, const char *type)
{
	struct MHD_Response *r =
		MHD_create_response_from_buffer(len, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

	if (r)
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	return r;
}

static enum MHD_Result queue(struct MHD_Connection *c, unsigned int status, struct MHD_Response *r)
{
	enum MHD_Result ok;

	if (!r)
		return MHD_NO;
	ok = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ok;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned int status, const char *text)
{
	struct MHD_Response *r = text_response(text, strlen(text), "text/plain");

	if (r && status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET");
	return queue(c, status, r);
}

/* --- connections --- */

static struct metrics_client *client_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void set_waiting(struct MHD_Connection *c, bool waits)
{
	struct metrics_client *client = client_of(c);

	if (!client)
		return;
	client->waits = waits;
	if (!waits)
		client->since_ns = clock_now_ns();
}

static void on_connection(void *ctx, struct MHD_Connection *c, void **slot, enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct metrics *m = ctx;

	if (what == MHD_CONNECTION_NOTIFY_STARTED && info)
		*slot = metrics_client_begin(&m->clients, info->connect_fd, CONNECTIONS_MAX, clock_now_ns());
	else if (what == MHD_CONNECTION_NOTIFY_CLOSED && *slot)
		metrics_client_end(&m->clients, *slot);
}

/* --- requests --- */

/* One answer serves all waiting requests. */
static enum MHD_Result wait_for_text(struct metrics *m, struct MHD_Connection *c, void **slot)
{
	struct waiter *w = calloc(1, sizeof(*w));
	bool first = !m->waiting;

	if (!w)
		return MHD_NO;
	w->connection = c;
	w->next = m->waiting;
	m->waiting = w;
	*slot = w;
	set_waiting(c, true);
	MHD_suspend_connection(c);
	if (first) {
		m->give_up_ns = clock_now_ns() + WAIT_NS;
		m->wanted(m->ctx);
	}
	return MHD_YES;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url, const char *method,
				  const char *version, const char *data, size_t *data_len, void **slot)
{
	struct metrics *m = ctx;
	struct waiter *w = *slot;

	if (w)
		return queue(c, w->status, steal_ptr(&w->response));
	if (strcmp(method, MHD_HTTP_METHOD_GET))
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
	if (strcmp(url, "/metrics"))
		return refuse(c, MHD_HTTP_NOT_FOUND, "only /metrics\n");
	return m->closing ? MHD_NO : wait_for_text(m, c, slot);
}

static void on_completed(void *ctx, struct MHD_Connection *c, void **slot, enum MHD_RequestTerminationCode code)
{
	struct metrics *m = ctx;
	struct waiter *w = *slot;

	set_waiting(c, false);
	if (!w)
		return;
	for (struct waiter **link = &m->waiting; *link; link = &(*link)->next)
		if (*link == w) {
			*link = w->next;
			break;
		}
	if (w->response)
		MHD_destroy_response(w->response);
	free(w);
	*slot = NULL;
}

static void answer_all(struct metrics *m, unsigned int status, const char *text, size_t len)
{
	struct waiter *w;

	m->give_up_ns = UINT64_MAX;
	while ((w = m->waiting)) {
		m->waiting = w->next;
		w->status = status;
		w->response = text_response(text, len, CONTENT_TYPE);
		MHD_resume_connection(w->connection);
	}
	MHD_run(m->daemon);
}

void metrics_answer(struct metrics *m, const char *text, size_t len)
{
	answer_all(m, MHD_HTTP_OK, text, len);
}

void metrics_run(struct metrics *m)
{
	static const char late[] = "the monitor did not answer\n";

	metrics_clients_expire(&m->clients, clock_now_ns(), REQUEST_NS);
	MHD_run(m->daemon);
	if (clock_now_ns() >= m->give_up_ns)
		answer_all(m, MHD_HTTP_SERVICE_UNAVAILABLE, late, strlen(late));
}

int metrics_timeout_ms(const struct metrics *m)
{
	MHD_UNSIGNED_LONG_LONG ms = 0;
	uint64_t now, best = UINT64_MAX;

	if (MHD_get_timeout(m->daemon, &ms) == MHD_YES)
		best = ms;
	if (m->give_up_ns != UINT64_MAX) {
		now = clock_now_ns();
		best = MIN(best, m->give_up_ns <= now ? 0 : (m->give_up_ns - now) / NSEC_PER_MSEC + 1);
	}
	return best == UINT64_MAX ? -1 : (int)MIN(best, 3600000ULL);
}

int metrics_fd(const struct metrics *m)
{
	return MHD_get_daemon_info(m->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

static int parse_port(const char *s, uint16_t *ret)
{
	char *end;
	unsigned long port;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	port = strtoul(s, &end, 10);
	if (*end || port > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Loopback by name only: whether other addresses are safe to serve cannot be decided here. */
static int parse_address(const char *s, union address *ret, socklen_t *ret_len)
{
	const char *colon = strrchr(s, ':');
	size_t host = colon ? (size_t)(colon - s) : 0;
	union address a = {0};
	uint16_t port;

	if (!colon || parse_port(colon + 1, &port) < 0)
		return -EINVAL;
	if (host == 5 && !strncmp(s, "[::1]", host)) {
		a.in6 = (struct sockaddr_in6){
			.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
		*ret_len = sizeof(a.in6);
	} else if (host == 9 && (!strncmp(s, "127.0.0.1", host) || !strncmp(s, "localhost", host))) {
		a.in = (struct sockaddr_in){.sin_family = AF_INET,
					    .sin_port = htons(port),
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		*ret_len = sizeof(a.in);
	} else {
		return -EINVAL;
	}
	*ret = a;
	return 0;
}

int metrics_listen(const char *address, int *ret_fd)
{
	_cleanup_(closep) int fd = -1;
	union address a;
	socklen_t len;
	int one = 1;

	if (parse_address(address, &a, &len) < 0)
		return -EINVAL;
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* A restarted net must not wait for its predecessor's connections to time out. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &a.any, len) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	*ret_fd = steal_fd(&fd);
	return 0;
}

int metrics_new(int fd, void (*wanted)(void *ctx), void *ctx, struct metrics **ret)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m) {
		close(fd);
		return -ENOMEM;
	}
	*m = (struct metrics){.wanted = wanted, .ctx = ctx, .give_up_ns = UINT64_MAX};
	m->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, m,
				     MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX + CONNECTIONS_OVER,
				     MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES_MAX,
				     MHD_OPTION_NOTIFY_COMPLETED, on_completed, m,
				     MHD_OPTION_NOTIFY_CONNECTION, on_connection, m, MHD_OPTION_END);
	if (!m->daemon) {
		close(fd);
		free(m);
		return -EIO;
	}
	*ret = m;
	return 0;
}

struct metrics *metrics_free(struct metrics *m)
{
	if (!m)
		return NULL;
	/* The library aborts the process if it is stopped while a connection is suspended. */
	m->closing = true;
	answer_all(m, MHD_HTTP_SERVICE_UNAVAILABLE, "", 0);
	MHD_stop_daemon(m->daemon);
	free(m);
	return NULL;
}
