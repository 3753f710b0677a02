// SPDX-License-Identifier: Apache-2.0
/*
 * Debug files. The index that is made from them serves every process that runs
 * the program, so nobody may choose one who could not write the program as
 * well. The monitor describes the program. A file is opened
 * - below a debug directory of the host's root, which is the host's choice;
 * - else where the program's path leads to the program in the same root, and
 *   only those may write the file who may write the program. In the root of a
 *   process both must lie on the file system of that root: by other mounts a
 *   user could put any file anywhere.
 * The rule holds whichever process is asked for, so a pid that was reused and
 * a process that changes its root do no harm.
 */
#include <errno.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/config/config.h"
#include "daemon/disposable/opener.h"
#include "process/host.h"

static bool debug_is_in_directory(const char *path, const char *dir, size_t len)
{
	return !strncmp(path, dir, len) && path[len] == '/' && !strstr(path + len, "/../");
}

static bool debug_is_the_hosts_choice(const struct opener *o, const struct ipc_ask *ask, const char *path)
{
	const char *dirs = o->config->symbols_debug_dirs;

	if (ask->pid != HOST_PID)
		return false;
	for (; *(dirs += strspn(dirs, " ")); dirs += strcspn(dirs, " "))
		if (debug_is_in_directory(path, dirs, strcspn(dirs, " ")))
			return true;
	return false;
}

static bool debug_finds_program(int root, const struct ipc_program *p, const char *path, uint64_t resolve)
{
	_cleanup_(closep) int fd = opener_open_in(root, path, resolve);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == p->dev && st.st_ino == p->ino;
}

/* Only the program's own writers, and root, may write it. */
static bool debug_is_as_safe(int path_fd, const struct ipc_program *p)
{
	struct statfs fs;
	struct stat st;

	/* The owners of a file on a server are what the server reports. */
	if (fstat(path_fd, &st) < 0 || fstatfs(path_fd, &fs) < 0 || opener_may_hang(&fs))
		return false;
	return opener_is_as_safe(&st, p->uid, p->gid, p->mode);
}

static int debug_open(struct opener *o, const struct opener_process *p, const struct ipc_ask *ask, const char *path,
		      const char *program, int *ret_fd)
{
	_cleanup_(closep) int root = opener_open_root(o, p), path_fd = -1;
	uint64_t resolve = RESOLVE_NO_MAGICLINKS | (ask->pid == HOST_PID ? 0 : RESOLVE_NO_XDEV);
	bool chosen = debug_is_the_hosts_choice(o, ask, path);
	int err;

	if (root < 0)
		return root;
	if (!chosen && !debug_finds_program(root, &ask->program, program, resolve))
		return -ENOENT;
	path_fd = opener_open_in(root, path, resolve);
	err = path_fd < 0 ? path_fd : opener_touch_file(o, p->stat.pid, path_fd);
	if (err)
		return err;
	return chosen || debug_is_as_safe(path_fd, &ask->program) ? opener_take(o, WAY_NAMED, p, path_fd, 0, ret_fd) :
								    -EPERM;
}

int opener_debug(struct opener *o, const struct ipc_ask *ask, const char *path, const char *program, int *ret_fd)
{
	_cleanup_(opener_process_close) struct opener_process p = {.dir = -1};
	int err = opener_process_open(ask->pid, ask->pid_start_ns, &p);

	return err ? err : debug_open(o, &p, ask, path, program, ret_fd);
}
