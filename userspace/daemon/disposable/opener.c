// SPDX-License-Identifier: Apache-2.0
#include "daemon/disposable/opener.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/handover.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"
#include "process/host.h"

#define ANSWER_MAX (8u << 20)

static int opener_take_bans(struct opener *o, const struct ipc_message *m)
{
	if (!ipc_fits(m, sizeof(o->bans), 0) || ((const struct ipc_bans *)(const void *)m->data)->count > BLAME_MAX)
		return -EBADMSG;
	memcpy(&o->bans, m->data, sizeof(o->bans));
	return 0;
}

/* Before START. */
static int opener_take_setup(void *ctx, struct ipc_message *m)
{
	struct opener *o = ctx;

	if (m->head.type == IPC_BANS)
		return opener_take_bans(o, m);
	if (m->head.type != IPC_KEY)
		return 0;
	if (!ipc_fits(m, sizeof(o->key), 0))
		return -EBADMSG;
	memcpy(o->key, m->data, sizeof(o->key));
	return 0;
}

/* Reads messages until START, then enters the sandbox. */
static int opener_begin(struct opener *o, int sock, struct ipc_message *message)
{
	int r = handover_receive(sock, message, "opener", &o->config, opener_take_setup, o);

	if (r < 0 || !o->config)
		return r < 0 ? r : -EBADMSG;
	r = sandbox_opener(o->config);
	return r ? r : ipc_send(sock, IPC_READY, 0, NULL, 0, NULL, 0);
}

static int opener_file_and_ticket(struct opener *o, const struct ipc_ask *ask, const char *path, struct buf *text,
				  int *ret_fd)
{
	int err = opener_file(o, ask, path, ret_fd);

	if (err)
		return err;
	ticket_sign(&o->file, o->key);
	buf_add(text, &o->file, sizeof(o->file));
	return 0;
}

/* Behind the NUL of the first one; empty where there is none. */
static const char *opener_second_path(const struct ipc_ask *ask, const char *path)
{
	size_t len = strlen(path);

	return len < ask->path_len ? path + len + 1 : "";
}

static int opener_find_answer(struct opener *o, const struct ipc_ask *ask, const char *path, struct buf *text, int *ret_fd)
{
	switch (ask->kind) {
	case HOST_OPEN_MAPPED:
		return opener_file_and_ticket(o, ask, path, text, ret_fd);
	case HOST_OPEN_DEBUG:
		return opener_debug(o, ask, path, opener_second_path(ask, path), ret_fd);
	case HOST_OPEN_PERF_MAP:
		return opener_perf_map(o, ask, ret_fd);
	case HOST_OPEN_DECODER:
		return opener_memory(o, ask, text, ret_fd);
	case HOST_OPEN_BESIDE:
		return opener_beside(o, ask, path, ret_fd);
	case HOST_READ_MAPS:
		return opener_maps(ask, text);
	case HOST_READ_IDENTITY:
		return opener_identity(o, ask, text);
	case HOST_SCAN:
		return opener_scan(o, ask, ret_fd);
	case HOST_READ_CONTAINERS:
		return opener_containers(o, path, text);
	default:
		return -EINVAL;
	}
}

#define ROOM_PAUSE_NS NSEC_PER_MSEC /* a socket with room may refuse a message: too many descriptors are in flight */

/* The asker may be busy for longer than files may take: until it reads, no deadline counts. */
static int opener_send_later(int sock, int asker, uint64_t tag, const void *data, size_t len, int fd)
{
	struct pollfd p = {.fd = asker, .events = POLLOUT};
	int r = ipc_send(sock, IPC_FOUND, tag, NULL, 0, NULL, 0);

	if (r)
		return r;
	do {
		poll(&p, 1, -1);
		r = ipc_send(asker, IPC_ANSWER, tag, data, len, &fd, fd >= 0);
		if (r == -EAGAIN)
			nanosleep(&(struct timespec){.tv_nsec = ROOM_PAUSE_NS}, NULL);
	} while (r == -EAGAIN);
	return 0;
}

/*
 * To the asker, who may be dead, and to the monitor that it is done. waits: for an asker that has no room. A decoder reads each
 * answer about a file of lines before it asks again: one that has no room was taken over.
 */
static int opener_send(int sock, int asker, uint64_t tag, const void *data, size_t len, int fd, bool waits)
{
	int r = ipc_send(asker < 0 ? sock : asker, IPC_ANSWER, tag, data, len, &fd, fd >= 0);

	if (asker < 0)
		return r;
	r = r == -EAGAIN && waits ? opener_send_later(sock, asker, tag, data, len, fd) : 0;
	return r ? r : ipc_send(sock, IPC_ANSWERED, tag, NULL, 0, NULL, 0);
}

/* Text is sent inline where it fits, else as a sealed memfd. */
static int opener_send_answer(int sock, int asker, uint64_t tag, int err, struct buf *text, int fd, bool waits)
{
	struct {
		struct ipc_answer head;
		uint8_t data[IPC_DATA_MAX - sizeof(struct ipc_answer)];
	} answer;
	_cleanup_(closep) int memfd = -1;
	size_t len = err ? 0 : text->len;

	if (len > sizeof(answer.data)) {
		memfd = ipc_memfd("answer", text->data, len);
		err = memfd < 0 ? memfd : 0;
		fd = memfd;
		len = 0;
	}
	answer.head = (struct ipc_answer){.err = err};
	if (len)
		memcpy(answer.data, text->data, len);
	return opener_send(sock, asker, tag, &answer, sizeof(answer.head) + len, fd, waits);
}

static int opener_answer(struct opener *o, int sock, struct ipc_message *m)
{
	const struct ipc_ask *ask = (const void *)m->data;
	_cleanup_(closep) int fd = -1, asker = ipc_take_fd(m, 0);
	_cleanup_(buf_done) struct buf text;
	char path[HOST_PATH_MAX];
	int err;

	buf_init(&text, ANSWER_MAX);
	if (m->head.len < sizeof(*ask) || ask->path_len >= sizeof(path) || m->head.len != sizeof(*ask) + ask->path_len)
		return -EBADMSG;
	memcpy(path, ask + 1, ask->path_len);
	path[ask->path_len] = '\0';
	o->ask = ask;
	o->touched = (struct blame){0};
	err = opener_find_answer(o, ask, path, &text, &fd);
	if (!err && text.failed)
		err = -ENOMEM;
	return opener_send_answer(sock, asker, m->head.tag, err, &text, fd, ask->kind != HOST_OPEN_BESIDE);
}

static int opener_handle(struct opener *o, int sock, struct ipc_message *m)
{
	switch (m->head.type) {
	case IPC_ASK:
		return opener_answer(o, sock, m);
	case IPC_BANS:
		return opener_take_bans(o, m);
	default:
		return 0;
	}
}

int opener_main(int sock)
{
	static struct ipc_message message;
	struct opener o = {.monitor = sock};
	int r;

	log_init("opener", LOG_LEVEL_INFO);
	container_names_init(&o.names, "", 0);
	if (sandbox_begin() || opener_begin(&o, sock, &message))
		return 1;
	while ((r = ipc_wait(sock, &message)) == 1) {
		r = opener_handle(&o, sock, &message);
		ipc_close_fds(&message);
		if (r || message.head.type == IPC_STOP)
			break;
	}
	container_names_done(&o.names);
	config_free(o.config);
	return r ? 1 : 0;
}
