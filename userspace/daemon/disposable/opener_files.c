// SPDX-License-Identifier: Apache-2.0
/*
 * The file behind a mapping. First through /proc/PID/map_files, which is the
 * mapped file itself whatever happened to its name; else by name inside the
 * target's root, or, when the process is gone, inside that of a living process
 * of the same container. Nothing but regular files is ever opened: an O_PATH
 * descriptor is looked at first, and opened through itself.
 */
#include "daemon/disposable/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

/* A file system that may never answer is read here, under the deadline, and passed as a copy. */
#define COPY_FILE_MAX  (64u << 20)
#define COPY_TOTAL_MAX (256u << 20) /* of one opener's life: copies are memory that the engine may keep */
#define COPY_BLOCK     65536

/* Magic numbers: Linux, include/uapi/linux/magic.h, and the file systems' own sources. */
static const uint32_t may_hang[] = {
	0x65735546, /* FUSE, virtiofs */
	0x6969,	    /* NFS */
	0xff534d42, /* CIFS */
	0xfe534d42, /* SMB2 */
	0x517b,	    /* SMB */
	0x01021997, /* 9P */
	0x00c36400, /* Ceph */
	0x5346414f, /* AFS */
	0x6b414653, /* kAFS */
	0x73757245, /* Coda */
	0x0bd00bd0, /* Lustre */
	0x01161970, /* GFS2 */
	0x7461636f, /* OCFS2 */
};

/* Their "files" are the kernel's answers, not programs. */
static const uint32_t no_programs[] = {
	0x9fa0,	    /* procfs */
	0x62656572, /* sysfs */
	0x64626720, /* debugfs */
	0x74726163, /* tracefs */
	0x73636673, /* securityfs */
	0x27e0eb,   /* cgroup */
	0x63677270, /* cgroup2 */
	0xcafe4a11, /* bpf */
	0xf97cff8c, /* selinuxfs */
	0xde5e81e4, /* efivarfs */
};

#define OVERLAY 0x794c7630

static bool opener_fs_is(uint32_t type, const uint32_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == type)
			return true;
	return false;
}

/* An O_PATH descriptor of the mapped file: the link's text is not followed as a path. */
static int opener_open_mapping(const struct ipc_ask *ask)
{
	char path[96];
	int fd;

	if (ask->start >= ask->end)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, ask->pid, ask->start, ask->end);
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The first process may be closed to us (more capabilities, another security label): its root is ours then. */
static int opener_open_root(uint32_t pid)
{
	int fd = opener_proc_file(pid, "root", O_PATH | O_DIRECTORY);

	if (fd >= 0 || pid != 1)
		return fd;
	fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int opener_open_name(uint32_t pid, const char *name, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | resolve};
	_cleanup_(closep) int root = -1;
	int fd;

	if (!pid || name[0] != '/')
		return -ENOENT;
	root = opener_open_root(pid);
	if (root < 0)
		return root;
	fd = (int)syscall(SYS_openat2, root, name, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* Devices differ between maps and stat on overlay and btrfs, so the inode alone tells. */
static int opener_check_file(int path_fd, uint64_t ino, struct statfs *fs)
{
	struct stat st;

	if (fstat(path_fd, &st) < 0 || fstatfs(path_fd, fs) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || opener_fs_is((uint32_t)fs->f_type, no_programs, ARRAY_SIZE(no_programs)))
		return -EPERM;
	return ino && st.st_ino != ino && (uint32_t)fs->f_type != OVERLAY ? -ESTALE : 0;
}

static int opener_reopen(int path_fd)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static bool opener_block_is_zero(const uint8_t *data, size_t len)
{
	return !data[0] && !memcmp(data, data + 1, len - 1);
}

/* Sparse: blocks of zeros stay holes. */
static int opener_copy_blocks(struct opener *o, int from, int to, size_t size)
{
	static uint8_t block[COPY_BLOCK];
	size_t at = 0;

	while (at < size) {
		ssize_t n = pread(from, block, MIN(sizeof(block), size - at), (off_t)at);

		if (n < 0)
			return -errno;
		if (n == 0)
			break; /* it shrank: the rest reads as zeros */
		if (!opener_block_is_zero(block, (size_t)n)) {
			int err = file_write_at(to, block, (size_t)n, at);

			if (err)
				return err;
			o->copied_bytes += (size_t)n;
		}
		at += (size_t)n;
	}
	return 0;
}

static int opener_copy(struct opener *o, int fd, int *ret_fd)
{
	_cleanup_(closep) int to = -1;
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > COPY_FILE_MAX)
		return -EFBIG;
	if (o->copied_bytes + (uint64_t)st.st_size > COPY_TOTAL_MAX)
		return -ENOSPC;
	to = ipc_memfd_new("copy");
	if (to < 0)
		return to;
	if (ftruncate(to, st.st_size) < 0)
		return -errno;
	err = opener_copy_blocks(o, fd, to, (size_t)st.st_size);
	if (!err)
		err = ipc_memfd_seal(to);
	if (!err)
		*ret_fd = steal_fd(&to);
	return err;
}

static bool opener_is_elf(int fd)
{
	char magic[4];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) && !memcmp(magic, "\177ELF", 4);
}

/* named: found by its name, which anybody may have chosen: then it must be a program. */
static int opener_take(struct opener *o, int path_fd, uint64_t ino, bool named, int *ret_fd)
{
	_cleanup_(closep) int fd = -1;
	struct statfs fs;
	int err = opener_check_file(path_fd, ino, &fs);

	if (err)
		return err;
	fd = opener_reopen(path_fd);
	if (fd < 0)
		return fd;
	if (named && !opener_is_elf(fd))
		return -EPERM;
	if (opener_fs_is((uint32_t)fs.f_type, may_hang, ARRAY_SIZE(may_hang)))
		return opener_copy(o, fd, ret_fd);
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int opener_try_name(struct opener *o, uint32_t pid, const struct ipc_ask *ask, const char *path, int *ret_fd)
{
	_cleanup_(closep) int path_fd = opener_open_name(pid, path, RESOLVE_NO_MAGICLINKS);

	return path_fd < 0 ? path_fd : opener_take(o, path_fd, ask->ino, true, ret_fd);
}

int opener_file(struct opener *o, const struct ipc_ask *ask, const char *path, int *ret_fd)
{
	_cleanup_(closep) int path_fd = opener_open_mapping(ask);
	int err = path_fd < 0 ? path_fd : opener_take(o, path_fd, ask->ino, false, ret_fd);

	/* Refused for what it is: a name would lead to the same file, or to a forged one. */
	if (!err || (path_fd >= 0 && err == -EPERM))
		return err;
	err = opener_try_name(o, ask->pid, ask, path, ret_fd);
	/* A zombie has no root any more (ENOENT). An alternative is named only where the file can prove itself. */
	if ((err == -ESRCH || err == -ENOENT) && ask->alternate_pid)
		err = opener_try_name(o, ask->alternate_pid, ask, path, ret_fd);
	return err;
}

/* A debug file, by its name in the root of the process or, where that is gone, of its neighbour. */
int opener_debug(struct opener *o, const struct ipc_ask *ask, const char *path, int *ret_fd)
{
	const struct ipc_ask any = {.kind = ask->kind};
	int err = opener_try_name(o, ask->pid, &any, path, ret_fd);

	if ((err == -ESRCH || err == -ENOENT) && ask->alternate_pid)
		err = opener_try_name(o, ask->alternate_pid, &any, path, ret_fd);
	return err;
}

/* Its pid as it knows it itself, and the user that it is; -ESRCH. */
static int opener_read_owner(uint32_t pid, uint32_t *ret_inner, uint32_t *ret_uid)
{
	_cleanup_(buf_done) struct buf text;
	int fd = opener_proc_file(pid, "status", O_RDONLY), err;
	const char *line, *last;

	buf_init(&text, 65536);
	if (fd < 0)
		return fd;
	err = file_read(fd, 65535, &text);
	close(fd);
	line = err ? NULL : strstr(buf_cstr(&text), "\nUid:");
	if (!line || sscanf(line, "\nUid: %*u %u", ret_uid) != 1)
		return -ESRCH;
	*ret_inner = pid;
	line = strstr(buf_cstr(&text), "\nNSpid:");
	if (!line)
		return 0;
	last = line + 1 + strcspn(line + 1, "\n");
	while (last > line && last[-1] >= '0' && last[-1] <= '9')
		last--;
	*ret_inner = (uint32_t)strtoul(last, NULL, 10);
	return 0;
}

/* Anybody can put a file into /tmp: it must be the process' own, and no link leads out of there. */
int opener_perf_map(struct opener *o, uint32_t pid, int *ret_fd)
{
	_cleanup_(closep) int path_fd = -1, fd = -1;
	uint32_t inner, uid;
	struct statfs fs;
	struct stat st;
	char path[64];
	int err = opener_read_owner(pid, &inner, &uid);

	if (err)
		return err;
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", inner);
	path_fd = opener_open_name(pid, path, RESOLVE_NO_SYMLINKS);
	if (path_fd < 0)
		return path_fd;
	err = opener_check_file(path_fd, 0, &fs);
	if (err || fstat(path_fd, &st) < 0)
		return err ? err : -errno;
	if (st.st_uid != uid && st.st_uid != 0)
		return -EPERM;
	fd = opener_reopen(path_fd);
	if (fd < 0)
		return fd;
	if (opener_fs_is((uint32_t)fs.f_type, may_hang, ARRAY_SIZE(may_hang)))
		return opener_copy(o, fd, ret_fd);
	*ret_fd = steal_fd(&fd);
	return 0;
}
