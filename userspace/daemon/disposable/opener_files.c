// SPDX-License-Identifier: Apache-2.0
/*
 * The file behind a mapping: the mapped file itself where the process still
 * has it mapped executable; else by name inside the target's root, or, when
 * the process is gone, inside that of a living process of the same container.
 * A name alone proves nothing, so it leads to fewer files: to those that the
 * process may run. The checks are made on an O_PATH descriptor, which is then
 * reopened through /proc/self/fd.
 */
#include "daemon/disposable/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process/host.h"

#define STATUS_TEXT 65536

/*
 * The first process may be inaccessible (more capabilities, another security label): our own root then replaces its
 * root.
 */
int opener_open_root(struct opener *o, const struct opener_process *p)
{
	int fd, err = p->stat.pid == HOST_PID ? 0 : opener_touch(o, p->stat.pid, 0);

	if (err)
		return err;
	fd = opener_process_file(p, "root", O_PATH | O_DIRECTORY);
	if (fd >= 0 || p->stat.pid != HOST_PID)
		return fd;
	fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int opener_open_in(int root, const char *name, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | resolve};
	int fd;

	if (name[0] != '/')
		return -ENOENT;
	fd = (int)syscall(SYS_openat2, root, name, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int opener_open_name(struct opener *o, const struct opener_process *p, const char *name, uint64_t resolve)
{
	_cleanup_(closep) int root = opener_open_root(o, p);

	return root < 0 ? root : opener_open_in(root, name, resolve);
}

int opener_reopen(int path_fd)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int opener_check_found(enum opener_way way, int path_fd, uint64_t ino, const struct proc_status *user,
			      struct stat *st, struct statfs *fs)
{
	int err = opener_check_kind(path_fd, st, fs);

	if (err)
		return err;
	if (ino && !opener_is_inode(st, fs, ino))
		return -ESTALE;
	return way == WAY_MAPPED || opener_may_run(user, st) ? 0 : -EACCES;
}

int opener_take(struct opener *o, enum opener_way way, const struct opener_process *p, int path_fd, uint64_t ino,
		int *ret_fd)
{
	_cleanup_(buf_done) struct buf text;
	_cleanup_(closep) int fd = -1;
	struct proc_status user;
	struct statfs fs;
	struct stat st;
	int err;

	buf_init(&text, STATUS_TEXT);
	err = opener_process_status(p, &text, &user);
	if (!err)
		err = opener_check_found(way, path_fd, ino, &user, &st, &fs);
	if (err)
		return err;
	fd = opener_reopen(path_fd);
	if (fd < 0)
		return fd;
	err = opener_check_content(fd, &st, way == WAY_MAPPED ? &user : NULL);
	if (err && way == WAY_NAMED)
		err = -EPERM;
	return err ? err : opener_pass(o, &fs, &fd, ret_fd);
}

static int opener_try_name(struct opener *o, const struct opener_process *p, uint64_t ino, const char *path,
			   int *ret_fd)
{
	_cleanup_(closep) int path_fd = opener_open_name(o, p, path, RESOLVE_NO_MAGICLINKS);
	int err = path_fd < 0 ? path_fd : opener_touch_file(o, p->stat.pid, path_fd);

	return err ? err : opener_take(o, WAY_NAMED, p, path_fd, ino, ret_fd);
}

static int opener_try_mapping(struct opener *o, const struct opener_process *p, const struct ipc_ask *ask,
			      const char *path, int *ret_fd)
{
	struct decode_mapping at;
	_cleanup_(closep) int path_fd = opener_mapping_open(o, p, ask->start, ask->end, &at);
	int err = path_fd < 0 ? path_fd : opener_take(o, WAY_MAPPED, p, path_fd, ask->ino, ret_fd);

	/* The mapped file itself was refused: the name leads to the same file, or to a forged one; or it hangs as that does. */
	if (!err || err == -EHOSTDOWN || (path_fd >= 0 && (err == -EPERM || err == -ENOEXEC)))
		return err;
	return opener_try_name(o, p, ask->ino, path, ret_fd);
}

static int opener_of_process(struct opener *o, const struct ipc_ask *ask, const char *path, int *ret_fd)
{
	_cleanup_(opener_process_close) struct opener_process p = {.dir = -1};
	int err = opener_process_open(ask->pid, ask->pid_start_ns, &p);

	return err ? err : opener_try_mapping(o, &p, ask, path, ret_fd);
}

/* An alternative process is named only where the file's inode or build-id is checked. */
static int opener_of_neighbour(struct opener *o, const struct ipc_ask *ask, const char *path, int *ret_fd)
{
	_cleanup_(opener_process_close) struct opener_process p = {.dir = -1};
	int err = opener_process_open(ask->alternate_pid, 0, &p);

	return err ? err : opener_try_name(o, &p, ask->ino, path, ret_fd);
}

int opener_file(struct opener *o, const struct ipc_ask *ask, const char *path, int *ret_fd)
{
	int err = opener_of_process(o, ask, path, ret_fd);

	/* A zombie has no root any more (ENOENT). */
	if ((err == -ESRCH || err == -ENOENT) && ask->alternate_pid)
		err = opener_of_neighbour(o, ask, path, ret_fd);
	return err;
}

/*
 * Anybody can put a file into /tmp, mount something over it, or link another user's file there: the map must belong to
 * the process' user alone, and have no second name; no symbolic link is followed.
 */
static int opener_check_perf_map(int path_fd, const struct proc_status *user, struct statfs *fs)
{
	struct stat st;
	int err = opener_check_kind(path_fd, &st, fs);

	if (err)
		return err;
	return st.st_uid == user->uid && st.st_nlink == 1 ? 0 : -EPERM;
}

static int opener_open_perf_map(struct opener *o, const struct opener_process *p, uint32_t inner_pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", inner_pid ? inner_pid : p->stat.pid);
	return opener_open_name(o, p, path, RESOLVE_NO_SYMLINKS);
}

static int opener_take_perf_map(struct opener *o, const struct opener_process *p, int *ret_fd)
{
	_cleanup_(closep) int path_fd = -1, fd = -1;
	_cleanup_(buf_done) struct buf text;
	struct proc_status user;
	struct statfs fs;
	int err;

	buf_init(&text, STATUS_TEXT);
	err = opener_process_status(p, &text, &user);
	if (err)
		return err;
	path_fd = opener_open_perf_map(o, p, user.inner_pid);
	err = path_fd < 0 ? path_fd : opener_touch_file(o, p->stat.pid, path_fd);
	if (!err)
		err = opener_check_perf_map(path_fd, &user, &fs);
	if (err)
		return err;
	fd = opener_reopen(path_fd);
	return fd < 0 ? fd : opener_pass(o, &fs, &fd, ret_fd);
}

int opener_perf_map(struct opener *o, const struct ipc_ask *ask, int *ret_fd)
{
	_cleanup_(opener_process_close) struct opener_process p = {.dir = -1};
	int err = opener_process_open(ask->pid, ask->pid_start_ns, &p);

	return err ? err : opener_take_perf_map(o, &p, ret_fd);
}
