// SPDX-License-Identifier: Apache-2.0
/*
 * The process that a question is about. Its directory of /proc is opened once:
 * whatever is opened below it belongs to that very process, or fails when it
 * has ended, even if another process has the pid by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "daemon/disposable/opener.h"

#define STATUS_READ 65535 /* the line of groups may be long */

int opener_process_file(const struct opener_process *p, const char *name, int flags)
{
	int fd = openat(p->dir, name, flags | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

static int opener_process_read(const struct opener_process *p, const char *name, size_t max, struct buf *to)
{
	_cleanup_(closep) int fd = opener_process_file(p, name, O_RDONLY);

	return fd < 0 ? fd : file_read(fd, max, to);
}

static int opener_process_stat(struct opener_process *p)
{
	_cleanup_(buf_done) struct buf text;
	int err;

	buf_init(&text, 4096);
	err = opener_process_read(p, "stat", 1023, &text);
	return err ? err : text.len ? proc_stat_parse(buf_cstr(&text), &p->stat) : -ESRCH;
}

int opener_process_open(uint32_t pid, uint64_t start_ns, struct opener_process *ret)
{
	struct opener_process p;
	char path[32];
	int err;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	p.dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p.dir < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	err = opener_process_stat(&p);
	if (!err && !proc_stat_started_at(&p.stat, start_ns))
		err = -ESRCH;
	if (err)
		close(p.dir);
	else
		*ret = p;
	return err;
}

void opener_process_close(const struct opener_process *p)
{
	closep(&p->dir);
}

int opener_process_status(const struct opener_process *p, struct buf *text, struct proc_status *ret)
{
	int err = opener_process_read(p, "status", STATUS_READ, text);

	if (err)
		return err;
	return proc_status_parse(buf_cstr(text), ret) ? -ESRCH : 0;
}
