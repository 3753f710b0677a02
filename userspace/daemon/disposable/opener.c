// SPDX-License-Identifier: Apache-2.0
#include "daemon/disposable/opener.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/handover.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"
#include "process/host.h"

#define ANSWER_MAX (8u << 20)

/* An opener gets its questions after START. */
static int opener_skip(void *ctx, struct ipc_message *m)
{
	return 0;
}

/* Reads messages until START, then enters the sandbox. */
static int opener_begin(struct opener *o, int sock, struct ipc_message *message)
{
	int r = handover_receive(sock, message, "opener", &o->config, opener_skip, NULL);

	if (r < 0 || !o->config)
		return r < 0 ? r : -EBADMSG;
	r = sandbox_opener(o->config);
	return r ? r : ipc_send(sock, IPC_READY, 0, NULL, 0, NULL, 0);
}

static int opener_find_answer(struct opener *o, const struct ipc_ask *ask, const char *path, struct buf *text, int *ret_fd)
{
	switch (ask->kind) {
	case HOST_OPEN_MAPPED:
		return opener_file(o, ask, path, ret_fd);
	case HOST_OPEN_PERF_MAP:
		return opener_perf_map(o, ask->pid, ret_fd);
	case HOST_OPEN_DEBUG:
		return opener_debug(o, ask, path, ret_fd);
	case HOST_READ_MAPS:
		return opener_maps(ask->pid, text);
	case HOST_READ_IDENTITY:
		return opener_identity(o, ask->pid, text);
	case HOST_SCAN:
		return opener_scan(o, ask, ret_fd);
	case HOST_READ_CONTAINERS:
		return opener_containers(o, path, text);
	default:
		return -EINVAL;
	}
}

/* Text is sent inline where it fits, else as a sealed memfd. */
static int opener_send_answer(int sock, uint64_t tag, int err, struct buf *text, int fd)
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
	return ipc_send(sock, IPC_ANSWER, tag, &answer, sizeof(answer.head) + len, &fd, fd >= 0);
}

static int opener_answer(struct opener *o, int sock, const struct ipc_message *m)
{
	const struct ipc_ask *ask = (const void *)m->data;
	_cleanup_(closep) int fd = -1;
	_cleanup_(buf_done) struct buf text;
	char path[HOST_PATH_MAX];
	int err;

	buf_init(&text, ANSWER_MAX);
	if (m->head.len < sizeof(*ask) || ask->path_len >= sizeof(path) || m->head.len != sizeof(*ask) + ask->path_len)
		return -EBADMSG;
	memcpy(path, ask + 1, ask->path_len);
	path[ask->path_len] = '\0';
	err = opener_find_answer(o, ask, path, &text, &fd);
	if (!err && text.failed)
		err = -ENOMEM;
	return opener_send_answer(sock, m->head.tag, err, &text, fd);
}

int opener_main(int sock)
{
	static struct ipc_message message;
	struct opener o = {0};
	int r;

	log_init("opener", LOG_LEVEL_INFO);
	container_names_init(&o.names, "", 0);
	if (sandbox_begin() || opener_begin(&o, sock, &message))
		return 1;
	while ((r = ipc_wait(sock, &message)) == 1) {
		r = message.head.type == IPC_ASK ? opener_answer(&o, sock, &message) : 0;
		ipc_close_fds(&message);
		if (r || message.head.type == IPC_STOP)
			break;
	}
	container_names_done(&o.names);
	config_free(o.config);
	return r ? 1 : 0;
}
