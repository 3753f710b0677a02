// SPDX-License-Identifier: Apache-2.0
/*
 * The indexer: the disposable process that reads the debug information of one
 * file, and exits. It has descriptors, bounded memory, and no rights; it
 * requests other files by name, which the monitor's opener opens.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/handover.h"
#include "daemon/ipc.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"
#include "process/host.h"
#include "symbol/index_build.h"

#define FILE_PATIENCE 5000 /* ms until the engine has sent the file */

struct indexer {
	int sock;
	struct config *config;
	struct index_job job;
	char path[HOST_PATH_MAX], dirs[1024];
	struct ticket_file file;
	int file_sock; /* the engine's end sends the file */
	uint64_t asked;
	struct ipc_message message;
};

static int indexer_take_job(void *ctx, struct ipc_message *m)
{
	struct indexer *x = ctx;
	const struct ipc_index *head = (const void *)m->data;
	const char *text = (const char *)(head + 1);

	if (m->head.type != IPC_INDEX)
		return 0;
	if (m->head.len < sizeof(*head) || ipc_nr_fds(m) != 3 || head->path_len >= sizeof(x->path) ||
	    head->dirs_len >= sizeof(x->dirs) || m->head.len != sizeof(*head) + head->path_len + head->dirs_len)
		return -EBADMSG;
	memcpy(x->path, text, head->path_len);
	memcpy(x->dirs, text + head->path_len, head->dirs_len);
	x->job = (struct index_job){.path = x->path, .debug_dirs = x->dirs, .symbols_only = head->symbols_only,
				    .elf_fd = -1, .out_fd = ipc_take_fd(m, 0), .scratch_fd = ipc_take_fd(m, 1),
				    .ctx = x};
	x->file = head->file;
	x->file_sock = ipc_take_fd(m, 2);
	return 0;
}

/*
 * The engine may be taken over: it must not have another file indexed in the name of the one that its ticket is for.
 * -EAGAIN: it has no use for the index any more.
 */
static int indexer_receive_file(struct indexer *x)
{
	struct pollfd p = {.fd = x->file_sock, .events = POLLIN};
	int err;

	if (poll(&p, 1, FILE_PATIENCE) != 1 || ipc_receive(x->file_sock, &x->message) != 1 ||
	    x->message.head.type != IPC_FILE || !ipc_fits(&x->message, 0, 1))
		return -EAGAIN;
	err = ticket_file_check(&x->file, x->message.fds[0]);
	if (!err)
		x->job.elf_fd = ipc_take_fd(&x->message, 0);
	return err;
}

static int indexer_begin(struct indexer *x)
{
	int r = handover_receive(x->sock, &x->message, "indexer", &x->config, indexer_take_job, x);

	if (r < 0 || !x->config || !x->job.path)
		return r < 0 ? r : -EBADMSG;
	x->job.inlines = x->config->symbols_inline;
	x->job.lines = x->config->symbols_lines;
	return sandbox_indexer(x->config);
}

static int indexer_await_answer(struct indexer *x, int *ret_fd)
{
	struct ipc_message *m = &x->message;
	struct ipc_answer a;
	int r;

	while ((r = ipc_wait(x->sock, &x->message)) == 1) {
		if (m->head.type == IPC_ANSWER && m->head.tag == x->asked && m->head.len >= sizeof(a)) {
			memcpy(&a, m->data, sizeof(a));
			*ret_fd = a.err ? -1 : ipc_take_fd(m, 0);
			ipc_close_fds(m);
			return a.err ? a.err : *ret_fd < 0 ? -EBADMSG : 0;
		}
		ipc_close_fds(m);
	}
	/* Without the monitor nobody needs the index. */
	_exit(1);
}

static int indexer_open_debug(void *ctx, enum index_root root, const char *path, int *ret_fd)
{
	struct indexer *x = ctx;
	struct {
		struct ipc_ask head;
		char path[HOST_PATH_MAX];
	} ask = {.head = {.kind = HOST_OPEN_DEBUG, .len = root}};
	size_t len = strlen(path);

	if (len >= sizeof(ask.path) || (*path != '/' && root != INDEX_ROOT_FETCHED))
		return -ENOENT;
	ask.head.path_len = (uint32_t)len;
	memcpy(ask.path, path, len);
	if (ipc_send(x->sock, IPC_ASK, ++x->asked, &ask, sizeof(ask.head) + len, NULL, 0))
		return -EIO;
	return indexer_await_answer(x, ret_fd);
}

/* On disk before the index is named: after a power failure the cache holds no partial index. */
static int indexer_work(struct indexer *x)
{
	struct index_report report = {0};
	struct ipc_indexed result = {0};

	x->job.open = indexer_open_debug;
	result.err = indexer_receive_file(x);
	if (!result.err)
		result.err = index_build(&x->job, &report);
	if (!result.err && fdatasync(x->job.out_fd) < 0)
		result.err = errno == ENOSPC ? -EDQUOT : -errno;
	result.flags = report.flags;
	result.index_bytes = report.index_bytes;
	result.lines = report.lines;
	return ipc_send(x->sock, IPC_INDEXED, 0, &result, sizeof(result), NULL, 0);
}

int indexer_main(int sock)
{
	static struct indexer x;
	int r;

	log_init("indexer", LOG_LEVEL_INFO);
	x.sock = sock;
	if (sandbox_begin())
		return 1;
	r = indexer_begin(&x);
	if (r < 0)
		return 1;
	ipc_send(sock, IPC_READY, 0, NULL, 0, NULL, 0);
	return indexer_work(&x) ? 1 : 0;
}
