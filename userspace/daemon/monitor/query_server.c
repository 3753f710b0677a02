// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "daemon/monitor/monitor.h"
#include "daemon/monitor/query.h"
#include "daemon/report/json.h"
#include "daemon/report/status.h"
#include "process/proc_stat.h"

#define CLIENT_NS (5 * NSEC_PER_SEC) /* for one client, from accept to the last byte */

enum client_state { FREE, READING, ASKED, WRITING };

struct client {
	enum client_state state;
	int fd;
	uint64_t deadline_ns;
	uint64_t tag; /* ASKED: tag of the question to the engine */
	int answer_fd; /* ASKED: the memfd that the engine writes; else -1 */
	struct query query;
	char line[QUERY_LINE_MAX];
	size_t len;
	struct buf out;
	size_t sent;
};

struct queries {
	int fd;
	uint64_t tags;
	struct client client[QUERY_CLIENTS];
};

int queries_open(struct monitor *m)
{
	struct queries *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->fd = status_socket(m->config->runtime_dir, "query.sock");
	if (q->fd < 0) {
		int err = q->fd;

		free(q);
		return err;
	}
	m->queries = q;
	return 0;
}

static void query_end(struct client *c)
{
	close(c->fd);
	closep(&c->answer_fd);
	buf_done(&c->out);
	*c = (struct client){0};
}

void queries_close(struct monitor *m)
{
	struct queries *q = m->queries;

	if (!q)
		return;
	for (int i = 0; i < QUERY_CLIENTS; i++)
		if (q->client[i].state != FREE)
			query_end(&q->client[i]);
	status_socket_remove(m->config->runtime_dir, "query.sock");
	close(q->fd);
	free(q);
	m->queries = NULL;
}

/* Writing. */

static void query_write(struct client *c)
{
	ssize_t n = send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		c->sent += (size_t)n;
	if (n <= 0 || c->sent == c->out.len)
		query_end(c);
}

static void query_answer(struct client *c)
{
	c->state = WRITING;
	buf_add_str(&c->out, "\n");
	if (c->out.failed)
		query_end(c);
	else
		query_write(c);
}

static void query_refuse(struct client *c, const char *why)
{
	struct json j = {.to = &c->out};

	buf_reset(&c->out);
	json_open(&j, NULL);
	json_text(&j, "error", why);
	json_close(&j);
	query_answer(c);
}

static bool query_is_running(uint32_t pid)
{
	struct proc_stat stat;

	return !proc_stat_read(pid, &stat) && !proc_stat_is_zombie(&stat);
}

static void query_answer_explained(struct monitor *m, struct client *c, const char *text, size_t len)
{
	struct json j = {.to = &c->out};

	json_open(&j, NULL);
	json_text(&j, "version", OTPROF_VERSION);
	json_bool(&j, "running", query_is_running(c->query.pid));
	json_bool(&j, "selected", target_processes_wants(m, c->query.pid));
	json_close_with(&j, "process", text, len);
	query_answer(c);
}

/* What the engine wrote, copied: it may go on writing. */
static void query_take_answer(struct monitor *m, struct client *c)
{
	_cleanup_(buf_done) struct buf text;

	buf_init(&text, IPC_EXPLAINED_MAX);
	if (file_copy(c->answer_fd, IPC_EXPLAINED_MAX, &text) || !text.len)
		query_refuse(c, "the answer would be too large");
	else
		query_answer_explained(m, c, (const char *)text.data, text.len);
}

void queries_answered(struct monitor *m, struct ipc_message *msg)
{
	for (int i = 0; i < QUERY_CLIENTS; i++) {
		struct client *c = &m->queries->client[i];

		if (c->state != ASKED || c->tag != msg->head.tag)
			continue;
		query_take_answer(m, c);
	}
}

/* Reading. */

static void query_ask(struct monitor *m, struct client *c)
{
	int err = -EPIPE;

	c->state = ASKED;
	c->tag = ++m->queries->tags;
	c->answer_fd = ipc_memfd_new("explain");
	if (c->answer_fd >= 0 && m->workers.engine.sock >= 0 && m->workers.engine.ready)
		err = worker_send(&m->workers.engine, IPC_EXPLAIN, c->tag, &c->query.pid, sizeof(c->query.pid),
				  c->answer_fd);
	if (err)
		query_refuse(c, "the engine is busy or just starting: ask again");
}

/* The socket's file lets root and its group connect: who of them it was is kept. */
static void query_peer(const struct client *c, char to[SELECTION_BY])
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		snprintf(to, SELECTION_BY, "somebody");
	else
		snprintf(to, SELECTION_BY, "uid %u, pid %d", peer.uid, peer.pid);
}

static void query_select(struct monitor *m, struct client *c)
{
	char by[SELECTION_BY], why[SELECTION_WHY] = "";
	struct json j = {.to = &c->out};

	query_peer(c, by);
	if (c->query.verb == QUERY_DESELECT)
		selector_end(m, by);
	else if (selector_set(m, &c->query.selection, by, why)) {
		query_refuse(c, why);
		return;
	}
	json_open(&j, NULL);
	status_selection(&j, selector_shown(m));
	json_close(&j);
	query_answer(c);
}

static void query_serve(struct monitor *m, struct client *c)
{
	if (c->query.verb == QUERY_EXPLAIN)
		query_ask(m, c);
	else
		query_select(m, c);
}

static void query_read(struct monitor *m, struct client *c)
{
	ssize_t n = recv(c->fd, c->line + c->len, sizeof(c->line) - c->len, MSG_DONTWAIT);
	char why[SELECTION_WHY] = "";
	int err;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		query_end(c);
		return;
	}
	c->len += (size_t)n;
	err = query_parse(c->line, c->len, &c->query, why);
	if (err == 0)
		query_serve(m, c);
	else if (err == -EDOM)
		query_refuse(c, why);
	else if (err == -ERANGE)
		query_refuse(c, "there can be no such pid");
	else if (err != -EAGAIN)
		query_refuse(c, "no question that is understood");
}

static struct client *queries_free_client(const struct queries *q)
{
	for (int i = 0; i < QUERY_CLIENTS; i++)
		if (q->client[i].state == FREE)
			return (struct client *)&q->client[i];
	return NULL;
}

static void queries_accept(struct queries *q)
{
	struct client *c = queries_free_client(q);
	int fd = c ? accept4(q->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;

	if (fd < 0)
		return;
	*c = (struct client){.state = READING, .fd = fd, .answer_fd = -1, .deadline_ns = clock_now_ns() + CLIENT_NS};
	buf_init(&c->out, IPC_EXPLAINED_MAX + 1024);
}

/* The loop. */

void queries_poll(const struct monitor *m, struct pollfd p[QUERY_POLLS])
{
	const struct queries *q = m->queries;

	/* Clients are accepted only while there is a free place; others wait in the socket's queue. */
	p[0] = (struct pollfd){q && queries_free_client(q) ? q->fd : -1, POLLIN, 0};
	for (int i = 0; i < QUERY_CLIENTS; i++) {
		const struct client *c = q ? &q->client[i] : NULL;
		bool in_use = c && c->state != FREE;

		/* POLLHUP reports a client that is gone, whatever events are requested. */
		p[1 + i] = (struct pollfd){in_use ? c->fd : -1, 0, 0};
		if (in_use && c->state != ASKED)
			p[1 + i].events = c->state == READING ? POLLIN : POLLOUT;
	}
}

void queries_handle(struct monitor *m, const struct pollfd p[QUERY_POLLS])
{
	struct queries *q = m->queries;

	for (int i = 0; q && i < QUERY_CLIENTS; i++) {
		struct client *c = &q->client[i];

		if (c->state == FREE || c->fd != p[1 + i].fd || !p[1 + i].revents)
			continue;
		if (c->state == READING)
			query_read(m, c);
		else if (c->state == WRITING)
			query_write(c);
		else
			query_end(c);
	}
	if (q && p[0].revents)
		queries_accept(q);
}

void queries_engine_died(struct monitor *m)
{
	for (int i = 0; m->queries && i < QUERY_CLIENTS; i++)
		if (m->queries->client[i].state == ASKED)
			query_refuse(&m->queries->client[i], "the engine ended over it: ask again");
}

void queries_run(struct monitor *m, uint64_t now)
{
	for (int i = 0; m->queries && i < QUERY_CLIENTS; i++) {
		struct client *c = &m->queries->client[i];

		if (c->state != FREE && now >= c->deadline_ns)
			query_end(c);
	}
}

uint64_t queries_next_ns(const struct monitor *m)
{
	uint64_t next = UINT64_MAX;

	for (int i = 0; m->queries && i < QUERY_CLIENTS; i++)
		if (m->queries->client[i].state != FREE)
			next = MIN(next, m->queries->client[i].deadline_ns);
	return next;
}
