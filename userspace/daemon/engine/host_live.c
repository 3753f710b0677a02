// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/host_live.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"

/* The questions of one group. */
struct lane {
	struct lane *next; /* of those whose questions wait, in turn */
	uint64_t group;
	struct question *first, **last; /* that wait to be sent */
	uint32_t waiting, sent;
};

struct question {
	struct question *next; /* while it waits to be sent */
	struct lane *lane;
	struct host_request req; /* path and ticket are the copies below */
	struct host_ticket ticket;
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
	struct map lanes; /* group -> lane, owned: it has questions */
	struct lane *turn, **last_turn;
	struct lane jobs; /* no opener serves these: they take nobody's turn */
	size_t waiting; /* in all lanes */
	uint64_t next_tag;
};

static struct host_live *host_live_of(struct host *h)
{
	return container_of(h, struct host_live, host);
}

/* Questions that a process of their own serves, not an opener; they are about a file, which is known by its ticket. */
static bool host_live_is_job(const struct host_request *req)
{
	return req->kind == HOST_OPEN_INDEX || req->kind == HOST_OPEN_DECODER;
}

/* ipc_ask, for jobs the file's ticket, the path. */
static int host_live_send_question(struct host_live *h, uint64_t tag, const struct question *q)
{
	uint8_t m[sizeof(struct ipc_ask) + sizeof(q->ticket) + HOST_PATH_MAX];
	size_t path_len = strlen(q->path), len = sizeof(struct ipc_ask);
	const struct ipc_ask ask = {.kind = q->req.kind, .pid = q->req.pid, .pid_start_ns = q->req.pid_start_ns,
				    .start = q->req.start, .end = q->req.end, .ino = q->req.ino, .len = q->req.len,
				    .alternate_pid = q->req.alternate_pid, .path_len = (uint32_t)path_len};

	memcpy(m, &ask, sizeof(ask));
	if (host_live_is_job(&q->req)) {
		memcpy(m + len, &q->ticket, sizeof(q->ticket));
		len += sizeof(q->ticket);
	}
	memcpy(m + len, q->path, path_len);
	return ipc_send(h->sock, IPC_ASK, tag, m, len + path_len, NULL, 0);
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

/* --- lanes --- */

static void lane_init(struct lane *l, uint64_t group)
{
	*l = (struct lane){.group = group, .last = &l->first};
}

/* NULL: no memory. */
static struct lane *host_live_lane(struct host_live *h, const struct host_request *req)
{
	struct lane *l = host_live_is_job(req) ? &h->jobs : map_find_ptr(&h->lanes, req->group);

	if (l)
		return l;
	l = malloc(sizeof(*l));
	if (!l || map_put_ptr(&h->lanes, req->group, l) < 0) {
		free(l);
		return NULL;
	}
	lane_init(l, req->group);
	return l;
}

static void host_live_drop_idle(struct host_live *h, struct lane *l)
{
	if (l == &h->jobs || l->waiting || l->sent)
		return;
	map_remove(&h->lanes, l->group);
	free(l);
}

static void host_live_take_turn(struct host_live *h, struct lane *l)
{
	l->next = NULL;
	*h->last_turn = l;
	h->last_turn = &l->next;
}

static void host_live_leave_turn(struct host_live *h, struct lane **at)
{
	struct lane *l = *at;

	*at = l->next;
	if (h->last_turn == &l->next)
		h->last_turn = at;
}

static void host_live_put(struct host_live *h, struct lane *l, struct question *q)
{
	q->lane = l;
	*l->last = q;
	l->last = &q->next;
	h->waiting++;
	if (!l->waiting++ && l != &h->jobs)
		host_live_take_turn(h, l);
}

static struct question *host_live_take(struct host_live *h, struct lane *l)
{
	struct question *q = l->first;

	l->first = q->next;
	if (!l->first)
		l->last = &l->first;
	l->waiting--;
	h->waiting--;
	return q;
}

/* --- sending --- */

/* Nobody's questions are not bounded. */
static uint32_t lane_sent(const struct lane *l)
{
	return l->group ? l->sent : 0;
}

/* Where the lane that is next is linked: the first of those that have the fewest sent. NULL: none may send. */
static struct lane **host_live_next(struct host_live *h)
{
	uint32_t fewest = HOST_LIVE_GROUP;
	struct lane **best = NULL;

	for (struct lane **at = &h->turn; *at && fewest; at = &(*at)->next) {
		if (lane_sent(*at) < fewest) {
			fewest = lane_sent(*at);
			best = at;
		}
	}
	return best;
}

/* False: the socket has no room. The lane's first question was cancelled, or is sent. */
static bool host_live_send_first(struct host_live *h, struct lane *l)
{
	struct question *q = l->first;

	if (!q->fn) {
		free(host_live_take(h, l));
		return true;
	}
	if (map_put_ptr(&h->sent, h->next_tag, q) < 0 || host_live_send_question(h, h->next_tag, q) < 0) {
		map_remove(&h->sent, h->next_tag);
		return false;
	}
	h->next_tag++;
	host_live_take(h, l)->lane->sent++;
	return true;
}

static bool host_live_send_turn(struct host_live *h, struct lane **at)
{
	struct lane *l = *at;

	if (!host_live_send_first(h, l))
		return false;
	host_live_leave_turn(h, at);
	if (l->waiting)
		host_live_take_turn(h, l);
	else
		host_live_drop_idle(h, l);
	return true;
}

static bool host_live_has_room(const struct host_live *h)
{
	return h->sent.count - h->jobs.sent < HOST_LIVE_WINDOW;
}

/* What finds no room in the socket is sent in the next turn of the loop. */
void host_live_pump(struct host_live *h)
{
	struct lane **next;

	while (h->jobs.first)
		if (!host_live_send_first(h, &h->jobs))
			return;
	while (host_live_has_room(h) && (next = host_live_next(h)))
		if (!host_live_send_turn(h, next))
			return;
}

/* One group leaves half of the queue to others. */
static bool host_live_is_full(const struct host_live *h, const struct lane *l)
{
	return h->waiting >= HOST_LIVE_QUEUE || (l->group && l->waiting >= HOST_LIVE_QUEUE / 2);
}

static int host_live_add(struct host_live *h, struct question *q)
{
	struct lane *l = host_live_lane(h, &q->req);

	if (!l)
		return -ENOMEM;
	if (host_live_is_full(h, l)) {
		host_live_drop_idle(h, l);
		return -EBUSY;
	}
	host_live_put(h, l, q);
	host_live_pump(h);
	return 0;
}

static int host_live_ask(struct host *host, const struct host_request *req, host_answer_fn *fn, void *ctx)
{
	struct host_live *h = host_live_of(host);
	const char *path = req->path ? req->path : "";
	size_t path_len = strnlen(path, HOST_PATH_MAX);
	struct question *q;
	int err;

	if (path_len == HOST_PATH_MAX)
		return -ENAMETOOLONG;
	q = calloc(1, sizeof(*q) + path_len + 1);
	if (!q)
		return -ENOMEM;
	q->req = *req;
	q->fn = fn;
	q->ctx = ctx;
	memcpy(q->path, path, path_len);
	q->req.path = q->path;
	if (req->ticket)
		q->ticket = *req->ticket;
	q->req.ticket = &q->ticket;
	err = host_live_add(h, q);
	if (err)
		free(q);
	return err;
}

static void lane_cancel(struct lane *l, const void *ctx)
{
	for (struct question *q = l->first; q; q = q->next)
		if (q->ctx == ctx)
			q->fn = NULL;
}

static void host_live_cancel(struct host *host, void *ctx)
{
	struct host_live *h = host_live_of(host);

	lane_cancel(&h->jobs, ctx);
	for (struct lane *l = h->turn; l; l = l->next)
		lane_cancel(l, ctx);
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
	h->last_turn = &h->turn;
	lane_init(&h->jobs, 0);
	h->next_tag = 1;
	*ret = h;
	return 0;
}

static void host_live_end_lane(struct host_live *h, struct lane *l)
{
	while (l->first)
		host_live_settle(h, host_live_take(h, l), -ECANCELED, -1, NULL, 0);
}

struct host_live *host_live_free(struct host_live *h)
{
	if (!h)
		return NULL;
	map_for_each(&h->sent, s)
		host_live_settle(h, (void *)(uintptr_t)s->value, -ECANCELED, -1, NULL, 0);
	host_live_end_lane(h, &h->jobs);
	map_for_each(&h->lanes, s) {
		struct lane *l = (void *)(uintptr_t)s->value;

		host_live_end_lane(h, l);
		free(l);
	}
	map_done(&h->lanes);
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
	return q->req.kind == HOST_OPEN_MAPPED || host_live_is_job(&q->req) ||
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
	q->lane->sent--;
	host_live_drop_idle(h, q->lane);
	err = ipc_answer_error(a);
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

/* The index that was asked for is to be made now. One who has no use for it any more has closed the file. */
void host_live_send_file(struct host_live *h, struct ipc_message *m)
{
	const struct question *q = map_find_ptr(&h->sent, m->head.tag);

	if (q && q->fn && q->req.kind == HOST_OPEN_INDEX && ipc_fits(m, 0, 1))
		ipc_send(m->fds[0], IPC_FILE, m->head.tag, NULL, 0, &q->req.elf_fd, 1);
}

size_t host_live_open(const struct host_live *h)
{
	return h->waiting + h->sent.count;
}
