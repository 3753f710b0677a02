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

int index_cache_open(const char *path, char why[SAFE_PATH_WHY], struct disk_cache *ret)
{
	int err = disk_cache_open(path, why, ret);

	if (err)
		return err;
	remove_left_over(ret->dir);
	ret->refusals = NONE;
	ret->refusal_age_s = NONE_AGE_S;
	return 0;
}

void index_cache_key(const struct ticket_file *file, const uint64_t content[2], const char *settings, char to[INDEX_KEY_MAX])
{
	const uint64_t id[] = {file->size, (uint64_t)file->mtime_s, (uint64_t)file->mtime_ns, file->dev,
			       file->ino,  content[0],		     content[1],		     file->uid,
			       file->gid,  file->mode & (S_IWGRP | S_IWOTH)};
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

static int open_kind(const struct disk_cache *c, const char *key, const char *suffix)
{
	char name[INDEX_KEY_MAX + 8];

	name_with(key, suffix, name);
	return disk_cache_find(c, name);
}

static void touch(const struct disk_cache *c, const char *key, const char *suffix)
{
	char name[INDEX_KEY_MAX + 8];

	name_with(key, suffix, name);
	disk_cache_touch(c, name);
}

static void remove_kind(struct disk_cache *c, const char *key, const char *suffix)
{
	char name[INDEX_KEY_MAX + 8];

	name_with(key, suffix, name);
	disk_cache_remove(c, name);
}

int index_cache_find(struct disk_cache *c, const char *key, uint64_t now_s)
{
	_cleanup_(closep) int poor = -1, none = -1;
	int fd = open_kind(c, key, SUFFIX);

	if (fd >= 0) {
		touch(c, key, SUFFIX);
		return fd;
	}
	poor = open_kind(c, key, POOR);
	/* Its age is the time since its inode's last change, which a touch would reset: so it is not touched. */
	if (poor >= 0)
		return disk_cache_is_older(poor, now_s, POOR_AGE_S) ? -ENOENT : steal_fd(&poor);
	none = open_kind(c, key, NONE);
	if (none < 0)
		return -ENOENT;
	if (!disk_cache_is_older(none, now_s, NONE_AGE_S))
		return -ENODATA;
	remove_kind(c, key, NONE);
	return -ENOENT;
}

int index_cache_new(const struct disk_cache *c, int *ret_index, int *ret_scratch)
{
	_cleanup_(closep) int index = -1, scratch = -1;
	char name[INDEX_KEY_MAX + 8];

	own_name(SCRATCH, name);
	scratch = disk_cache_new(c, name);
	if (scratch < 0)
		return scratch;
	unlinkat(c->dir, name, 0);
	own_name(MAKING, name);
	index = disk_cache_new(c, name);
	if (index < 0)
		return index;
	*ret_index = steal_fd(&index);
	*ret_scratch = steal_fd(&scratch);
	return 0;
}

int index_cache_keep(struct disk_cache *c, const char *key, bool poor)
{
	char name[INDEX_KEY_MAX + 8], made[INDEX_KEY_MAX + 8];
	int r;

	own_name(MAKING, made);
	name_with(key, poor ? POOR : SUFFIX, name);
	r = disk_cache_keep(c, made, name);
	if (r < 0)
		return r == -ENOSPC ? -EDQUOT : r;
	remove_kind(c, key, poor ? SUFFIX : POOR);
	return 0;
}

void index_cache_drop_new(const struct disk_cache *c)
{
	char name[INDEX_KEY_MAX + 8];

	own_name(MAKING, name);
	unlinkat(c->dir, name, 0);
}

void index_cache_refuse(struct disk_cache *c, const char *key)
{
	_cleanup_(closep) int fd = -1;
	char name[INDEX_KEY_MAX + 8];

	name_with(key, NONE, name);
	fd = disk_cache_put(c, name);
}

void index_cache_forget(struct disk_cache *c, const char *key)
{
	static const char *const suffixes[] = {SUFFIX, POOR, NONE};

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		remove_kind(c, key, suffixes[i]);
}

void index_cache_forget_poor(struct disk_cache *c)
{
	disk_cache_drop(c, POOR);
}
