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

static struct config *opener_config;
static struct ipc_message message;

/* Until START; then the sandbox. */
static int begin(int sock)
{
	int r;

	while ((r = ipc_wait(sock, &message)) == 1 && message.head.type != IPC_START) {
		r = message.head.type == IPC_CONFIG ? handover_begin(&message, "opener", &opener_config) : 0;
		ipc_close_fds(&message);
		if (r)
			return r;
	}
	if (r != 1 || !opener_config)
		return r < 0 ? r : -EBADMSG;
	r = sandbox_opener(opener_config);
	return r ? r : ipc_send(sock, IPC_READY, 0, NULL, 0, NULL, 0);
}

static int find_answer(const struct ipc_ask *ask, const char *path, struct buf *text, int *ret_fd)
{
	switch (ask->kind) {
	case HOST_OPEN_MAPPED:
		return opener_file(ask, path, ret_fd);
	case HOST_OPEN_PERF_MAP:
		return opener_perf_map(ask->pid, ret_fd);
	case HOST_OPEN_DEBUG:
		return opener_debug(ask, path, ret_fd);
	case HOST_READ_MAPS:
		return opener_maps(ask->pid, text);
	case HOST_READ_IDENTITY:
		return opener_identity(ask->pid, text);
	case HOST_SCAN:
		return opener_scan(ask, ret_fd);
	default:
		return -EINVAL;
	}
}

/* Text goes inline where it fits, else as a sealed memfd. */
static int send_answer(int sock, uint64_t tag, int err, struct buf *text, int fd)
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

static int answer(int sock, const struct ipc_message *m)
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
	err = find_answer(ask, path, &text, &fd);
	if (!err && text.failed)
		err = -ENOMEM;
	return send_answer(sock, m->head.tag, err, &text, fd);
}

int opener_main(int sock)
{
	int r;

	log_init("opener", LOG_LEVEL_INFO);
	if (sandbox_begin() || begin(sock))
		return 1;
	while ((r = ipc_wait(sock, &message)) == 1) {
		r = message.head.type == IPC_ASK ? answer(sock, &message) : 0;
		ipc_close_fds(&message);
		if (message.head.type == IPC_STOP)
			return 0;
		if (r)
			break;
	}
	return r ? 1 : 0;
}
