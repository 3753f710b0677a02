// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define READ_STEP 16384

/* At most len bytes, fewer only at the end of the file; offset -1: from the descriptor's position. */
static ssize_t file_read_some(int fd, void *to, size_t len, off_t offset)
{
	size_t have = 0;
	ssize_t n;

	while (have < len) {
		char *at = (char *)to + have;

		n = offset < 0 ? read(fd, at, len - have) : pread(fd, at, len - have, offset + (off_t)have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

ssize_t file_read_text_fd(int fd, char *to, size_t size)
{
	ssize_t n = file_read_some(fd, to, size - 1, -1);

	to[MAX(n, 0)] = '\0';
	return n;
}

ssize_t file_read_text(const char *path, char *to, size_t size)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	to[0] = '\0';
	return fd < 0 ? -errno : file_read_text_fd(fd, to, size);
}

ssize_t file_read_proc(uint32_t pid, const char *name, char *to, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return file_read_text(path, to, size);
}

int file_read(int fd, size_t max, struct buf *to)
{
	while (max) {
		size_t step = MIN(max, READ_STEP);
		void *at = buf_reserve(to, step);
		ssize_t n = at ? file_read_some(fd, at, step, -1) : -ENOMEM;

		if (n < 0)
			return (int)n;
		buf_commit(to, (size_t)n);
		if ((size_t)n < step)
			return 0;
		max -= step;
	}
	return 0;
}

/* Room for all of the file at once: it may hold secrets, and a buffer that grows leaves copies. */
int file_copy(int fd, size_t max, struct buf *to)
{
	size_t got = 0, step;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || (uint64_t)st.st_size > max)
		return -EFBIG;
	/* Some file systems report no size: reading goes on to the end. */
	for (step = (size_t)st.st_size + 1;; step = READ_STEP) {
		void *at = buf_reserve(to, step);

		n = at ? file_read_some(fd, at, step, (off_t)got) : -ENOMEM;
		if (n < 0)
			return (int)n;
		buf_commit(to, (size_t)n);
		got += (size_t)n;
		if (got > max)
			return -EFBIG;
		if ((size_t)n < step)
			return 0;
	}
}

int file_load(const char *path, size_t max, struct buf *to, struct stat *ret_st)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, ret_st) < 0)
		return -errno;
	if (!S_ISREG(ret_st->st_mode))
		return S_ISDIR(ret_st->st_mode) ? -EISDIR : -ENODEV;
	return file_copy(fd, max, to);
}

int file_read_at(int fd, void *to, size_t len, uint64_t offset)
{
	ssize_t n = offset <= INT64_MAX ? file_read_some(fd, to, len, (off_t)offset) : -EIO;

	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -EIO;
}

static int file_write_some(int fd, const void *data, size_t len, off_t offset)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		const char *at = (const char *)data + done;

		n = offset < 0 ? write(fd, at, len - done) : pwrite(fd, at, len - done, offset + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

int file_write(int fd, const void *data, size_t len)
{
	return file_write_some(fd, data, len, -1);
}

int file_write_at(int fd, const void *data, size_t len, uint64_t offset)
{
	return offset <= INT64_MAX ? file_write_some(fd, data, len, (off_t)offset) : -EFBIG;
}

/* --- replacing a file --- */

static int file_temporary_name(const char *name, char to[PATH_MAX])
{
	const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
	int n = snprintf(to, PATH_MAX, "%.*s.%s.tmp", (int)(last - name), name, last);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int file_write_new(int dir, const char *name, mode_t mode, const void *data, size_t len, file_prepare_fn *prepare,
			  void *ctx)
{
	_cleanup_(closep) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	int err;

	if (fd < 0)
		return -errno;
	err = fchmod(fd, mode) < 0 ? -errno : file_write(fd, data, len);
	if (!err && prepare)
		err = prepare(ctx, fd);
	/* Some file systems report a full disk or quota only now. */
	if (close(steal_fd(&fd)) < 0 && !err)
		err = -errno;
	return err;
}

int file_replace(int dir, const char *name, mode_t mode, const void *data, size_t len, file_prepare_fn *prepare, void *ctx)
{
	char temporary[PATH_MAX];
	int err = file_temporary_name(name, temporary);

	if (err)
		return err;
	unlinkat(dir, temporary, 0); /* of a process that ended between write and rename */
	err = file_write_new(dir, temporary, mode, data, len, prepare, ctx);
	if (!err && renameat(dir, temporary, dir, name) < 0)
		err = -errno;
	if (err)
		unlinkat(dir, temporary, 0);
	return err;
}

static int file_make_dir(const char *path, mode_t mode)
{
	if (mkdir(path, mode) < 0)
		return errno == EEXIST ? 0 : -errno;
	return chmod(path, mode) < 0 ? -errno : 0;
}

int file_make_dirs(const char *path, mode_t parents, mode_t mode)
{
	size_t len = strlen(path);
	char part[PATH_MAX];
	int err;

	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		err = file_make_dir(part, i == len ? mode : parents);
		if (err)
			return err;
	}
	return 0;
}

int file_own_directory(char *to, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", to, size);
	char *slash;

	if (n < 0)
		return -errno;
	if ((size_t)n == size)
		return -ENAMETOOLONG;
	to[n] = '\0';
	slash = strrchr(to, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}
