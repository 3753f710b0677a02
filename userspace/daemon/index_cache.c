// SPDX-License-Identifier: Apache-2.0
#include "daemon/index_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "process/sha256.h"

#define MAKING	   ".making"
#define SCRATCH	   ".scratch"
#define SUFFIX	   ".idx"  /* with debug information */
#define POOR	   ".poor" /* of symbols alone */
#define NONE	   ".none" /* an empty file */
#define POOR_AGE_S 3600
#define NONE_AGE_S 86400
#define FILES_MAX  65536

/* Each directory of the path; the last one is ours alone. */
static int make_path(const char *path)
{
	char part[1100];
	size_t len = strlen(path);

	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, i == len ? 0700 : 0755) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

int index_cache_open(const char *path)
{
	_cleanup_(closep) int dir = -1;
	struct stat st;
	int err = make_path(path);

	if (err)
		return err;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0 || fstat(dir, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	if (st.st_mode & 077 && fchmod(dir, 0700) < 0)
		return -errno;
	unlinkat(dir, MAKING, 0);
	unlinkat(dir, SCRATCH, 0);
	return steal_fd(&dir);
}

void index_cache_key(const struct stat *st, const uint64_t content[2], const char *settings, char to[INDEX_KEY_MAX])
{
	const uint64_t id[] = {(uint64_t)st->st_size,	     (uint64_t)st->st_mtim.tv_sec,
			       (uint64_t)st->st_mtim.tv_nsec, st->st_dev,
			       st->st_ino,		     content[0],
			       content[1]};
	uint8_t digest[SHA256_LEN];
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, id, sizeof(id));
	sha256_add(&h, settings, strlen(settings));
	sha256_end(&h, digest);
	for (size_t i = 0; i < SHA256_LEN; i++)
		snprintf(to + 2 * i, 3, "%02x", digest[i]);
}

static void name_with(const char *key, const char *suffix, char to[INDEX_KEY_MAX + 8])
{
	snprintf(to, INDEX_KEY_MAX + 8, "%s%s", key, suffix);
}

static bool is_older(int fd, uint64_t now_s, uint64_t age_s)
{
	struct stat st;

	return fstat(fd, &st) < 0 || (uint64_t)st.st_ctim.tv_sec + age_s < now_s;
}

static int open_kind(int dir, const char *key, const char *suffix)
{
	char name[INDEX_KEY_MAX + 8];
	int fd;

	name_with(key, suffix, name);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* The time of access says when it was used last; that of the inode's change stays out of it. */
static void touch(int dir, const char *key, const char *suffix)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
	char name[INDEX_KEY_MAX + 8];

	name_with(key, suffix, name);
	utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

int index_cache_find(int dir, const char *key, uint64_t now_s)
{
	_cleanup_(closep) int poor = -1, none = -1;
	int fd = open_kind(dir, key, SUFFIX);

	if (fd >= 0) {
		touch(dir, key, SUFFIX);
		return fd;
	}
	poor = open_kind(dir, key, POOR);
	/* Its age is that of its content, which the touching would hide: so it is not touched. */
	if (poor >= 0)
		return is_older(poor, now_s, POOR_AGE_S) ? -ENOENT : steal_fd(&poor);
	none = open_kind(dir, key, NONE);
	return none >= 0 && !is_older(none, now_s, NONE_AGE_S) ? -ENODATA : -ENOENT;
}

int index_cache_new(int dir, int *ret_index, int *ret_scratch)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	_cleanup_(closep) int index = -1, scratch = -1;

	unlinkat(dir, MAKING, 0);
	unlinkat(dir, SCRATCH, 0);
	index = openat(dir, MAKING, flags, 0600);
	scratch = index < 0 ? -1 : openat(dir, SCRATCH, flags, 0600);
	if (scratch < 0)
		return -errno;
	unlinkat(dir, SCRATCH, 0);
	*ret_index = steal_fd(&index);
	*ret_scratch = steal_fd(&scratch);
	return 0;
}

int index_cache_keep(int dir, const char *key, bool poor, uint64_t max_bytes)
{
	char name[INDEX_KEY_MAX + 8], other[INDEX_KEY_MAX + 8];
	struct stat st;

	if (fstatat(dir, MAKING, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if ((uint64_t)st.st_size > max_bytes) {
		unlinkat(dir, MAKING, 0);
		return -EFBIG;
	}
	index_cache_trim(dir, max_bytes - (uint64_t)st.st_size);
	name_with(key, poor ? POOR : SUFFIX, name);
	name_with(key, poor ? SUFFIX : POOR, other);
	if (renameat(dir, MAKING, dir, name) < 0)
		return -errno;
	unlinkat(dir, other, 0);
	return 0;
}

void index_cache_refuse(int dir, const char *key)
{
	_cleanup_(closep) int fd = -1;
	char name[INDEX_KEY_MAX + 8];

	name_with(key, NONE, name);
	unlinkat(dir, name, 0);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* --- making room --- */

struct kept {
	char name[INDEX_KEY_MAX + 8];
	uint64_t bytes;
	struct timespec used;
};

static int by_use(const void *pa, const void *pb)
{
	const struct kept *a = pa, *b = pb;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	return a->used.tv_nsec < b->used.tv_nsec ? -1 : a->used.tv_nsec > b->used.tv_nsec;
}

/* An empty one takes its inode and its name. */
static uint64_t bytes_of(const struct stat *st)
{
	return MAX((uint64_t)st->st_blocks * 512, 4096u);
}

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

static int list(int dir, struct kept **ret, uint32_t *ret_count, uint64_t *ret_bytes)
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
		*k = (struct kept){.bytes = bytes_of(&st), .used = st.st_atim};
		strcpy(k->name, e->d_name);
		*ret_bytes += k->bytes;
	}
	return 0;
}

void index_cache_trim(int dir, uint64_t max_bytes)
{
	_cleanup_(freep) struct kept *all = NULL;
	uint64_t bytes = 0;
	uint32_t count = 0;

	if (list(dir, &all, &count, &bytes) < 0 || bytes <= max_bytes)
		return;
	qsort(all, count, sizeof(*all), by_use);
	for (uint32_t i = 0; i < count && bytes > max_bytes; i++) {
		unlinkat(dir, all[i].name, 0);
		bytes -= all[i].bytes;
	}
}
