// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/disk_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"

#define FILES_MAX 65536

int disk_cache_open(const char *path)
{
	_cleanup_(closep) int dir = -1;
	struct stat st;
	int err = file_make_dirs(path, 0755, 0700);

	if (err)
		return err;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0 || fstat(dir, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	if (st.st_mode & 077 && fchmod(dir, 0700) < 0)
		return -errno;
	return steal_fd(&dir);
}

bool disk_cache_is_older(int fd, uint64_t now_s, uint64_t age_s)
{
	struct stat st;

	return fstat(fd, &st) < 0 || (uint64_t)st.st_ctim.tv_sec + age_s < now_s;
}

int disk_cache_find(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

void disk_cache_touch(int dir, const char *name)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};

	utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

int disk_cache_new(int dir, const char *name)
{
	int fd;

	unlinkat(dir, name, 0);
	fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

/* --- making room --- */

struct kept {
	char name[DISK_CACHE_NAME_MAX];
	uint64_t bytes;
	struct timespec used;
};

static int disk_cache_by_use(const void *pa, const void *pb)
{
	const struct kept *a = pa, *b = pb;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	return a->used.tv_nsec < b->used.tv_nsec ? -1 : a->used.tv_nsec > b->used.tv_nsec;
}

/* An empty file counts as a block, for its inode and its name. */
static uint64_t disk_cache_file_bytes(const struct stat *st)
{
	return MAX((uint64_t)st->st_blocks * 512, 4096u);
}

static int disk_cache_list(int dir, struct kept **ret, uint32_t *ret_count, uint64_t *ret_bytes)
{
	_cleanup_(closedirp) DIR *d = NULL;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *e;
	uint32_t cap = 0;
	struct stat st;

	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		closep(&fd);
		return -errno;
	}
	while ((e = readdir(d)) && *ret_count < FILES_MAX) {
		struct kept *k;

		if (e->d_name[0] == '.' || strlen(e->d_name) >= sizeof(k->name) ||
		    fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (array_reserve(ret, *ret_count, &cap, sizeof(**ret)) < 0)
			return -ENOMEM;
		k = &(*ret)[(*ret_count)++];
		*k = (struct kept){.bytes = disk_cache_file_bytes(&st), .used = st.st_atim};
		strcpy(k->name, e->d_name);
		*ret_bytes += k->bytes;
	}
	return 0;
}

void disk_cache_trim(int dir, uint64_t max_bytes)
{
	_cleanup_(freep) struct kept *all = NULL;
	uint64_t bytes = 0;
	uint32_t count = 0;

	if (disk_cache_list(dir, &all, &count, &bytes) < 0 || bytes <= max_bytes)
		return;
	qsort(all, count, sizeof(*all), disk_cache_by_use);
	for (uint32_t i = 0; i < count && bytes > max_bytes; i++) {
		unlinkat(dir, all[i].name, 0);
		bytes -= all[i].bytes;
	}
}

int disk_cache_admit(int dir, const char *name, uint64_t max_bytes)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if ((uint64_t)st.st_size > max_bytes) {
		unlinkat(dir, name, 0);
		return -EFBIG;
	}
	disk_cache_trim(dir, max_bytes - (uint64_t)st.st_size);
	return 0;
}

void disk_cache_drop(int dir, const char *suffix)
{
	_cleanup_(freep) struct kept *all = NULL;
	uint64_t bytes = 0;
	uint32_t count = 0;

	disk_cache_list(dir, &all, &count, &bytes);
	for (uint32_t i = 0; i < count; i++) {
		size_t len = strlen(all[i].name), end = strlen(suffix);

		if (len >= end && !strcmp(all[i].name + len - end, suffix))
			unlinkat(dir, all[i].name, 0);
	}
}

uint64_t disk_cache_bytes(int dir)
{
	_cleanup_(freep) struct kept *all = NULL;
	uint64_t bytes = 0;
	uint32_t count = 0;

	disk_cache_list(dir, &all, &count, &bytes);
	return bytes;
}
