// SPDX-License-Identifier: Apache-2.0
/*
 * A portable PDB, for a decoder, which the memory that it reads may have taken
 * over. The directory is that of a file which the process has mapped at this
 * moment, if that is found there by its name in the process' root; only the last
 * name is the decoder's choice. It leads to a regular file of that file system,
 * through no link, that is a portable PDB and that the process itself may read:
 * its profile tells nothing that it could not. Nobody chooses the lines who could
 * not have written the mapped file, or be the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/disposable/opener.h"
#include "process/beside.h"

#define STATUS_TEXT 65536
#define MAGIC	    "BSJB" /* ECMA-335, II.24.2.1 */

/* By O_PATH, and touched. */
static int beside_find(struct opener *o, const struct opener_process *p, int dir, const char *name)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
	_cleanup_(closep) int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
	int err = fd < 0 ? -errno : opener_touch_file(o, p->stat.pid, fd);

	return err ? err : steal_fd(&fd);
}

static bool beside_is_same(int a, int b)
{
	struct stat one, other;

	return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* As the process sees the path that we see: its root may lie within ours. */
static char *beside_path_inside(const struct opener_process *p, char *path)
{
	char root[HOST_PATH_MAX];
	ssize_t n = readlinkat(p->dir, "root", root, sizeof(root));

	return n > 1 && (size_t)n < sizeof(root) && !strncmp(path, root, (size_t)n) && path[n] == '/' ? path + n : path;
}

/* By O_PATH: where path leads to the mapped file in the process' root. */
static int beside_open_directory(struct opener *o, const struct opener_process *p, int mapped, char *path)
{
	_cleanup_(closep) int root = -1, dir = -1, there = -1;
	char *inside = beside_path_inside(p, path), *last = strrchr(inside, '/');

	if (!last)
		return -ENOENT;
	root = opener_open_root(o, p);
	if (root < 0)
		return root;
	*last++ = '\0';
	dir = opener_open_in(root, *inside ? inside : "/", RESOLVE_NO_MAGICLINKS);
	if (dir < 0)
		return dir;
	there = beside_find(o, p, dir, last);
	if (there < 0)
		return there;
	return beside_is_same(there, mapped) ? steal_fd(&dir) : -ENOENT;
}

/* of: the mapped file. */
static bool beside_is_as_safe(const struct stat *st, const struct stat *of, const struct proc_status *user)
{
	return opener_is_as_safe(st, of->st_uid, of->st_gid, of->st_mode) ||
	       opener_is_as_safe(st, user->uid, of->st_gid, of->st_mode);
}

static int beside_check(const struct opener_process *p, int path_fd, const struct stat *of, struct statfs *ret_fs)
{
	_cleanup_(buf_done) struct buf text;
	struct proc_status user;
	struct stat st;
	int err;

	buf_init(&text, STATUS_TEXT);
	err = opener_process_status(p, &text, &user);
	if (!err)
		err = opener_check_kind(path_fd, &st, ret_fs);
	if (err)
		return err;
	/* A decoder may outlive the start of a program with other rights. */
	if (user.real_uid != user.uid || !opener_may_read(&user, &st))
		return -EACCES;
	if (!beside_is_as_safe(&st, of, &user))
		return -EPERM;
	return st.st_size > BESIDE_BYTES_MAX ? -EFBIG : 0;
}

static int beside_pass(struct opener *o, const struct statfs *fs, int *fd, int *ret_fd)
{
	const uint64_t programs = o->copied_bytes;
	int err;

	o->copied_bytes = o->beside_bytes;
	err = opener_pass(o, fs, fd, ret_fd);
	o->beside_bytes = o->copied_bytes;
	o->copied_bytes = programs;
	return err;
}

static int beside_take(struct opener *o, const struct opener_process *p, int path_fd, const struct stat *of, int *ret_fd)
{
	_cleanup_(closep) int fd = -1;
	char magic[sizeof(MAGIC) - 1];
	struct statfs fs;
	int err = beside_check(p, path_fd, of, &fs);

	if (err)
		return err;
	fd = opener_reopen(path_fd);
	if (fd < 0)
		return fd;
	if (pread(fd, magic, sizeof(magic), 0) != sizeof(magic) || memcmp(magic, MAGIC, sizeof(magic)) != 0)
		return -EBADMSG;
	return beside_pass(o, &fs, &fd, ret_fd);
}

static int beside_open(struct opener *o, const struct opener_process *p, const struct ipc_ask *ask, const char *name,
		       int *ret_fd)
{
	char path[HOST_PATH_MAX];
	_cleanup_(closep) int mapped = opener_mapping_open_at(o, p, ask->start, path), dir = -1, found = -1;
	struct stat of;

	if (mapped < 0)
		return mapped;
	if (fstat(mapped, &of) < 0)
		return -errno;
	dir = beside_open_directory(o, p, mapped, path);
	if (dir < 0)
		return dir;
	found = beside_find(o, p, dir, name);
	return found < 0 ? found : beside_take(o, p, found, &of, ret_fd);
}

int opener_beside(struct opener *o, const struct ipc_ask *ask, const char *name, int *ret_fd)
{
	_cleanup_(opener_process_close) struct opener_process p = {.dir = -1};
	int err = ask->pid_start_ns ? opener_process_open(ask->pid, ask->pid_start_ns, &p) : -ESRCH;

	if (!err && !beside_name_is_sound(name, strlen(name)))
		err = -EPERM;
	return err ? err : beside_open(o, &p, ask, name, ret_fd);
}
