// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/index_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/cache/disk_cache.h"
#include "process/sha256.h"
#include "source/pids.h"

#define MAKING	   ".making"
#define SCRATCH	   ".scratch"
#define SUFFIX	   ".idx"  /* with debug information */
#define POOR	   ".poor" /* of symbols alone */
#define NONE	   ".none" /* an empty file */
#define POOR_AGE_S 3600
#define NONE_AGE_S 86400

/* A recording runs an otprofd of its own beside the service's, and both store their indexes here. */
static void own_name(const char *kind, char to[INDEX_KEY_MAX + 8])
{
	snprintf(to, INDEX_KEY_MAX + 8, "%s-%d", kind, getpid());
}

static bool is_left_over(const char *name)
{
	size_t len = strlen(MAKING);
	int pid;

	if (strncmp(name, MAKING, len) != 0)
		return !strncmp(name, SCRATCH, strlen(SCRATCH));
	return sscanf(name + len, "-%d", &pid) != 1 || pid == getpid() || pid_is_gone((uint32_t)pid);
}

static void remove_left_over(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		closep(&fd);
		return;
	}
	while ((e = readdir(d)))
		if (is_left_over(e->d_name))
			unlinkat(dir, e->d_name, 0);
	closedir(d);
}

int index_cache_open(const char *path)
{
	int dir = disk_cache_open(path);

	if (dir >= 0)
		remove_left_over(dir);
	return dir;
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

static int open_kind(int dir, const char *key, const char *suffix)
{
	char name[INDEX_KEY_MAX + 8];

	name_with(key, suffix, name);
	return disk_cache_find(dir, name);
}

static void touch(int dir, const char *key, const char *suffix)
{
	char name[INDEX_KEY_MAX + 8];

	name_with(key, suffix, name);
	disk_cache_touch(dir, name);
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
	/* Its age is the time since its inode's last change, which a touch would reset: so it is not touched. */
	if (poor >= 0)
		return disk_cache_is_older(poor, now_s, POOR_AGE_S) ? -ENOENT : steal_fd(&poor);
	none = open_kind(dir, key, NONE);
	return none >= 0 && !disk_cache_is_older(none, now_s, NONE_AGE_S) ? -ENODATA : -ENOENT;
}

int index_cache_new(int dir, int *ret_index, int *ret_scratch)
{
	_cleanup_(closep) int index = -1, scratch = -1;
	char name[INDEX_KEY_MAX + 8];

	own_name(SCRATCH, name);
	scratch = disk_cache_new(dir, name);
	if (scratch < 0)
		return scratch;
	unlinkat(dir, name, 0);
	own_name(MAKING, name);
	index = disk_cache_new(dir, name);
	if (index < 0)
		return index;
	*ret_index = steal_fd(&index);
	*ret_scratch = steal_fd(&scratch);
	return 0;
}

int index_cache_keep(int dir, const char *key, bool poor, uint64_t max_bytes)
{
	char name[INDEX_KEY_MAX + 8], other[INDEX_KEY_MAX + 8], made[INDEX_KEY_MAX + 8];
	int r;

	own_name(MAKING, made);
	r = disk_cache_admit(dir, made, max_bytes);
	if (r < 0)
		return r;
	name_with(key, poor ? POOR : SUFFIX, name);
	name_with(key, poor ? SUFFIX : POOR, other);
	if (renameat(dir, made, dir, name) < 0)
		return errno == ENOSPC ? -EDQUOT : -errno;
	unlinkat(dir, other, 0);
	return 0;
}

void index_cache_drop_new(int dir)
{
	char name[INDEX_KEY_MAX + 8];

	own_name(MAKING, name);
	unlinkat(dir, name, 0);
}

void index_cache_refuse(int dir, const char *key)
{
	_cleanup_(closep) int fd = -1;
	char name[INDEX_KEY_MAX + 8];

	name_with(key, NONE, name);
	fd = disk_cache_new(dir, name);
}

void index_cache_forget(int dir, const char *key)
{
	static const char *const suffixes[] = {SUFFIX, POOR, NONE};
	char name[INDEX_KEY_MAX + 8];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		name_with(key, suffixes[i], name);
		unlinkat(dir, name, 0);
	}
}

void index_cache_forget_poor(int dir)
{
	disk_cache_drop(dir, POOR);
}
