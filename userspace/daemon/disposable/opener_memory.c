// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of a process, for a decoder: only if the file that the monitor
 * names is mapped executable there. The mapping is found before the memory is
 * opened and again after it: an exec in between moves it, or ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "daemon/disposable/opener.h"

static int opener_memory_mapping(struct opener *o, const struct opener_process *p, const struct ipc_ask *ask,
				 struct decode_mapping *ret)
{
	_cleanup_(closep) int fd = opener_mapping_open(o, p, ask->start, ask->end, ret);
	struct stat st;

	if (fd < 0)
		return fd == -ENOENT ? -EPERM : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_dev == ask->program.dev && st.st_ino == ask->program.ino ? 0 : -ESTALE;
}

static int opener_memory_open(struct opener *o, const struct opener_process *p, const struct ipc_ask *ask,
			      struct decode_mapping *ret, int *ret_fd)
{
	_cleanup_(closep) int fd = -1;
	struct decode_mapping again;
	int err = opener_memory_mapping(o, p, ask, ret);

	if (err)
		return err;
	fd = opener_process_file(p, "mem", O_RDONLY);
	if (fd < 0)
		return fd;
	err = opener_memory_mapping(o, p, ask, &again);
	if (err)
		return err;
	if (again.start != ret->start || again.offset != ret->offset)
		return -ESTALE;
	/* The decoder will touch memory, whatever was touched here. */
	err = opener_touch(o, p->stat.pid, 0);
	if (!err)
		*ret_fd = steal_fd(&fd);
	return err;
}

int opener_memory(struct opener *o, const struct ipc_ask *ask, struct buf *to, int *ret_fd)
{
	_cleanup_(opener_process_close) struct opener_process p = {.dir = -1};
	struct decode_mapping at;
	int err = ask->pid_start_ns ? opener_process_open(ask->pid, ask->pid_start_ns, &p) : -ESRCH;

	if (!err)
		err = opener_memory_open(o, &p, ask, &at, ret_fd);
	if (!err)
		buf_add(to, &at, sizeof(at));
	return err;
}
