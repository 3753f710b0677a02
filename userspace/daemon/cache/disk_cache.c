// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/disk_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"

#define BLOCK 4096u /* what an empty file counts, for its inode and its name */

static int disk_cache_close_to_others(int dir, char why[SAFE_PATH_WHY])
{
	struct stat st;
	int err = fstat(dir, &st) < 0 ? -errno : 0;

	if (!err && st.st_uid != geteuid()) {
		snprintf(why, SAFE_PATH_WHY, "it belongs to user %u", (unsigned int)st.st_uid);
		return -EPERM;
	}
	if (!err && st.st_mode & 077 && fchmod(dir, 0700) < 0)
		err = -errno;
	if (err)
		snprintf(why, SAFE_PATH_WHY, "%s", strerror(-err));
	return err;
}

int disk_cache_open(const char *path, char why[SAFE_PATH_WHY], struct disk_cache *ret)
{
	_cleanup_(closep) int dir = safe_path_make(path, SAFE_PATH_ANYONES, 0700, why);
	int err = dir < 0 ? dir : disk_cache_close_to_others(dir, why);

	if (err)
		return err;
	*ret = (struct disk_cache){.dir = steal_fd(&dir), .max_bytes = UINT64_MAX};
	return 0;
}

void disk_cache_close(struct disk_cache *c)
{
	closep(&c->dir);
	c->dir = -1;
}

static bool disk_cache_stat_is_older(const struct stat *st, uint64_t now_s, uint64_t age_s)
{
	return (uint64_t)st->st_ctim.tv_sec + age_s < now_s;
}

bool disk_cache_is_older(int fd, uint64_t now_s, uint64_t age_s)
{
	struct stat st;

	return fstat(fd, &st) < 0 || disk_cache_stat_is_older(&st, now_s, age_s);
}

int disk_cache_find(const struct disk_cache *c, const char *name)
{
	int fd = openat(c->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

void disk_cache_touch(const struct disk_cache *c, const char *name)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};

	utimensat(c->dir, name, times, AT_SYMLINK_NOFOLLOW);
}

int disk_cache_new(const struct disk_cache *c, const char *name)
{
	int fd;

	unlinkat(c->dir, name, 0);
	fd = openat(c->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

/* --- the totals --- */

static uint64_t disk_cache_file_bytes(const struct stat *st)
{
	return MAX((uint64_t)st->st_blocks * 512, BLOCK);
}

static void disk_cache_count(struct disk_cache *c, uint64_t bytes)
{
	c->bytes += bytes;
	c->files++;
}

static void disk_cache_unlink(struct disk_cache *c, const char *name, uint64_t bytes)
{
	if (unlinkat(c->dir, name, 0) < 0 && errno != ENOENT)
		return;
	c->bytes -= MIN(c->bytes, bytes);
	c->files -= MIN(c->files, 1u);
}

void disk_cache_remove(struct disk_cache *c, const char *name)
{
	struct stat st;

	if (fstatat(c->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		disk_cache_unlink(c, name, disk_cache_file_bytes(&st));
}

/* --- the files --- */

struct kept {
	char name[DISK_CACHE_NAME_MAX];
	uint64_t bytes;
	struct timespec used;
};

/* Room for FILES_MAX at most. */
struct listing {
	struct kept *all; /* owned */
	uint32_t count, cap;
};

static int disk_cache_by_use(const void *pa, const void *pb)
{
	const struct kept *a = pa, *b = pb;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	return a->used.tv_nsec < b->used.tv_nsec ? -1 : a->used.tv_nsec > b->used.tv_nsec;
}

/* NULL: errno. */
static DIR *disk_cache_files(const struct disk_cache *c)
{
	int fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		closep(&fd);
	return d;
}

static bool disk_cache_is_kept(const struct disk_cache *c, const char *name, struct stat *ret)
{
	return name[0] != '.' && strlen(name) < DISK_CACHE_NAME_MAX &&
	       fstatat(c->dir, name, ret, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(ret->st_mode);
}

static bool disk_cache_has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), end = strlen(suffix);

	return len >= end && !strcmp(name + len - end, suffix);
}

static bool disk_cache_is_over_age(const struct disk_cache *c, const char *name, const struct stat *st)
{
	return c->refusals && disk_cache_has_suffix(name, c->refusals) &&
	       disk_cache_stat_is_older(st, (uint64_t)time(NULL), c->refusal_age_s);
}

/* -E2BIG, -ENOMEM: there is no room for it in the list. */
static int disk_cache_list_one(struct disk_cache *c, const char *name, struct listing *l)
{
	struct kept *k;
	struct stat st;

	if (!disk_cache_is_kept(c, name, &st))
		return 0;
	if (disk_cache_is_over_age(c, name, &st) && unlinkat(c->dir, name, 0) == 0)
		return 0;
	if (l->count == DISK_CACHE_FILES_MAX)
		return -E2BIG;
	if (array_reserve(&l->all, l->count, &l->cap, sizeof(*l->all)) < 0)
		return -ENOMEM;
	k = &l->all[l->count++];
	*k = (struct kept){.bytes = disk_cache_file_bytes(&st), .used = st.st_atim};
	strcpy(k->name, name);
	disk_cache_count(c, k->bytes);
	return 0;
}

static void disk_cache_list(struct disk_cache *c, struct listing *l)
{
	_cleanup_(closedirp) DIR *d = disk_cache_files(c);
	const struct dirent *e;

	if (!d)
		return;
	c->bytes = c->files = c->added = 0;
	c->cut = false;
	while (!c->cut && (e = readdir(d)))
		c->cut = disk_cache_list_one(c, e->d_name, l) < 0;
}

/* --- making room --- */

static bool disk_cache_is_above(const struct disk_cache *c, uint64_t more, uint64_t bytes, uint64_t files)
{
	return c->bytes + more > bytes || c->files + 1 > files;
}

static bool disk_cache_is_over(const struct disk_cache *c, uint64_t more)
{
	return c->cut || disk_cache_is_above(c, more, c->max_bytes, DISK_CACHE_FILES_MAX);
}

/* Down to seven eighths, so that the next listing is far. Where there are more files than a list holds, others follow. */
static void disk_cache_trim(struct disk_cache *c, uint64_t more)
{
	struct listing l = {0};

	disk_cache_list(c, &l);
	if (disk_cache_is_over(c, more)) {
		qsort(l.all, l.count, sizeof(*l.all), disk_cache_by_use);
		for (uint32_t i = 0; i < l.count && disk_cache_is_above(c, more, c->max_bytes / 8 * 7,
									 DISK_CACHE_FILES_MAX / 8 * 7); i++)
			disk_cache_unlink(c, l.all[i].name, l.all[i].bytes);
	}
	free(l.all);
}

/* Other monitors may add files here too: they are found when an eighth was added. */
static void disk_cache_make_room(struct disk_cache *c, uint64_t more)
{
	c->added += more;
	if (disk_cache_is_over(c, more) || c->added > c->max_bytes / 8)
		disk_cache_trim(c, more);
}

void disk_cache_limit(struct disk_cache *c, uint64_t max_bytes)
{
	c->max_bytes = max_bytes;
	disk_cache_trim(c, 0);
}

int disk_cache_keep(struct disk_cache *c, const char *made, const char *name)
{
	uint64_t bytes;
	struct stat st;

	if (fstatat(c->dir, made, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if ((uint64_t)st.st_size > c->max_bytes) {
		unlinkat(c->dir, made, 0);
		return -EFBIG;
	}
	bytes = disk_cache_file_bytes(&st);
	disk_cache_remove(c, name);
	disk_cache_make_room(c, bytes);
	if (renameat(c->dir, made, c->dir, name) < 0)
		return -errno;
	disk_cache_count(c, bytes);
	return 0;
}

int disk_cache_put(struct disk_cache *c, const char *name)
{
	int fd;

	disk_cache_remove(c, name);
	disk_cache_make_room(c, BLOCK);
	fd = disk_cache_new(c, name);
	if (fd >= 0)
		disk_cache_count(c, BLOCK);
	return fd;
}

void disk_cache_drop(struct disk_cache *c, const char *suffix)
{
	_cleanup_(closedirp) DIR *d = disk_cache_files(c);
	const struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d)))
		if (disk_cache_has_suffix(e->d_name, suffix) && disk_cache_is_kept(c, e->d_name, &st))
			disk_cache_unlink(c, e->d_name, disk_cache_file_bytes(&st));
}
