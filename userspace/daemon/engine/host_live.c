// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/host_live.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"

struct question {
	struct question *next; /* while it waits to be sent */
	struct host_request req; /* path is the copy below */
	host_answer_fn *fn; /* NULL: cancelled */
	void *ctx;
	char path[];
};

struct host_live {
	struct host host;
	int sock;
	host_tap_fn *tap;
	void *tap_ctx;
	struct map sent; /* tag -> question */
	struct question *first, **last;
	size_t waiting;
	uint64_t next_tag;
};

static struct host_live *host_live_of(struct host *h)
{
	return container_of(h, struct host_live, host);
}

static int host_live_send_question(struct host_live *h, uint64_t tag, const struct question *q)
{
	struct {
		struct ipc_ask ask;
		char path[HOST_PATH_MAX];
	} m;
	size_t path_len = strlen(q->path);

	m.ask = (struct ipc_ask){.kind = q->req.kind, .pid = q->req.pid, .start = q->req.start, .end = q->req.end,
				 .ino = q->req.ino, .len = q->req.len,
				 .alternate_pid = q->req.alternate_pid, .path_len = (uint32_t)path_len};
	memcpy(m.path, q->path, path_len);
	if (q->req.kind == HOST_OPEN_INDEX)
		return ipc_send(h->sock, IPC_ASK, tag, &m, sizeof(m.ask) + path_len, &q->req.elf_fd, 1);
	return ipc_send(h->sock, IPC_ASK, tag, &m, sizeof(m.ask) + path_len, NULL, 0);
}

static void host_live_settle(struct host_live *h, struct question *q, int err, int fd, const void *data, size_t len)
{
	if (h->tap && q->fn)
		h->tap(h->tap_ctx, &q->req, err, fd, data, len);
	if (q->fn)
		q->fn(q->ctx, err, fd, data, len);
	else
		closep(&fd);
	free(q);
}

void host_live_pump(struct host_live *h)
{
	while (h->first && h->sent.count < HOST_LIVE_WINDOW) {
		struct question *q = h->first;

		if (!q->fn || map_put_ptr(&h->sent, h->next_tag, q) < 0 ||
		    host_live_send_question(h, h->next_tag, q) < 0) {
			map_remove(&h->sent, h->next_tag);
			if (q->fn)
				return; /* no room now: the next turn of the loop retries */
		} else {
			h->next_tag++;
		}
		h->first = q->next;
		if (!h->first)
			h->last = &h->first;
		h->waiting--;
		if (!q->fn)
			free(q);
	}
}

static int host_live_ask(struct host *host, const struct host_request *req, host_answer_fn *fn, void *ctx)
{
	struct host_live *h = host_live_of(host);
	const char *path = req->path ? req->path : "";
	size_t path_len = strnlen(path, HOST_PATH_MAX);
	struct question *q;

	if (path_len == HOST_PATH_MAX)
		return -ENAMETOOLONG;
	if (h->waiting >= HOST_LIVE_QUEUE)
		return -EBUSY;
	q = calloc(1, sizeof(*q) + path_len + 1);
	if (!q)
		return -ENOMEM;
	q->req = *req;
	q->fn = fn;
	q->ctx = ctx;
	memcpy(q->path, path, path_len);
	q->req.path = q->path;
	*h->last = q;
	h->last = &q->next;
	h->waiting++;
	host_live_pump(h);
	return 0;
}

static void host_live_cancel(struct host *host, void *ctx)
{
	struct host_live *h = host_live_of(host);

	for (struct question *q = h->first; q; q = q->next)
		if (q->ctx == ctx)
			q->fn = NULL;
	map_for_each(&h->sent, s) {
		struct question *q = (void *)(uintptr_t)s->value;

		if (q->ctx == ctx)
			q->fn = NULL;
	}
}

static const struct host_ops live_ops = {.ask = host_live_ask, .cancel = host_live_cancel};

int host_live_new(int sock, host_tap_fn *tap, void *tap_ctx, struct host_live **ret)
{
	struct host_live *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->host.ops = &live_ops;
	h->sock = sock;
	h->tap = tap;
	h->tap_ctx = tap_ctx;
	h->last = &h->first;
	h->next_tag = 1;
	*ret = h;
	return 0;
}

struct host_live *host_live_free(struct host_live *h)
{
	if (!h)
		return NULL;
	map_for_each(&h->sent, s)
		host_live_settle(h, (void *)(uintptr_t)s->value, -ECANCELED, -1, NULL, 0);
	while (h->first) {
		struct question *q = h->first;

		h->first = q->next;
		host_live_settle(h, q, -ECANCELED, -1, NULL, 0);
	}
	map_done(&h->sent);
	free(h);
	return NULL;
}

struct host *host_live_host(struct host_live *h)
{
	return &h->host;
}

static bool answer_is_file(const struct question *q)
{
	return q->req.kind == HOST_OPEN_MAPPED || q->req.kind == HOST_OPEN_INDEX ||
	       q->req.kind == HOST_OPEN_PERF_MAP || q->req.kind == HOST_SCAN;
}

void host_live_answer(struct host_live *h, struct ipc_message *m)
{
	const struct ipc_answer *a = (const void *)m->data;
	struct question *q = map_find_ptr(&h->sent, m->head.tag);
	_cleanup_(buf_done) struct buf text = {0};
	const void *data = a + 1;
	size_t len;
	int err;

	if (!q || m->head.len < sizeof(*a))
		return;
	map_remove(&h->sent, m->head.tag);
	err = a->err;
	len = m->head.len - sizeof(*a);
	/* Text too long for a message arrives as a memfd; callers receive bytes either way. */
	if (!err && m->fds[0] >= 0 && !answer_is_file(q)) {
		err = file_copy(m->fds[0], HOST_MAPS_MAX, &text);
		data = text.data;
		len = text.len;
	}
	host_live_settle(h, q, err, answer_is_file(q) ? steal_fd(&m->fds[0]) : -1, err ? NULL : data, err ? 0 : len);
	host_live_pump(h);
}

size_t host_live_open(const struct host_live *h)
{
	return h->waiting + h->sent.count;
}
