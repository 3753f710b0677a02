// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/fetch_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#define FETCHING ".fetching"
#define SUFFIX	 ".debug"
#define NONE	 ".none" /* its content is the name of the reason */
#define NAME_MAX_ (FETCH_ID_MAX + 8)

_Static_assert(NAME_MAX_ <= DISK_CACHE_NAME_MAX, "the cache sees every name");

static void fetch_cache_name(const char *id, const char *suffix, char to[NAME_MAX_])
{
	snprintf(to, NAME_MAX_, "%s%s", id, suffix);
}

int fetch_cache_open(const char *path, char why[SAFE_PATH_WHY], struct disk_cache *ret)
{
	int err = disk_cache_open(path, why, ret);

	if (err)
		return err;
	unlinkat(ret->dir, FETCHING, 0);
	ret->refusals = NONE;
	return 0;
}

void fetch_cache_limit(struct disk_cache *c, uint64_t max_bytes, uint64_t retry_after_s)
{
	c->refusal_age_s = retry_after_s;
	disk_cache_limit(c, max_bytes);
}

int fetch_cache_find(const struct disk_cache *c, const char *id)
{
	char name[NAME_MAX_];
	int fd;

	fetch_cache_name(id, SUFFIX, name);
	fd = disk_cache_find(c, name);
	if (fd >= 0)
		disk_cache_touch(c, name);
	return fd;
}

enum fetch_state fetch_cache_refused(const struct disk_cache *c, const char *id, uint64_t now_s)
{
	_cleanup_(closep) int fd = -1;
	char name[NAME_MAX_], why[32];
	enum fetch_state state;

	fetch_cache_name(id, NONE, name);
	fd = disk_cache_find(c, name);
	if (fd < 0 || disk_cache_is_older(fd, now_s, c->refusal_age_s))
		return FETCH_NONE;
	file_read_text_fd(fd, why, sizeof(why));
	state = fetch_state_find(why);
	return state > FETCH_FETCHED ? state : FETCH_NOT_FOUND;
}

int fetch_cache_new(const struct disk_cache *c)
{
	return disk_cache_new(c, FETCHING);
}

int fetch_cache_keep(struct disk_cache *c, const char *id)
{
	char name[NAME_MAX_];
	int r;

	fetch_cache_name(id, SUFFIX, name);
	r = disk_cache_keep(c, FETCHING, name);
	if (r < 0)
		return r;
	fetch_cache_name(id, NONE, name);
	disk_cache_remove(c, name);
	return 0;
}

void fetch_cache_refuse(struct disk_cache *c, const char *id, enum fetch_state why)
{
	_cleanup_(closep) int fd = -1;
	const char *text = fetch_state_name(why);
	char name[NAME_MAX_];

	fetch_cache_name(id, SUFFIX, name);
	disk_cache_remove(c, name);
	fetch_cache_name(id, NONE, name);
	fd = disk_cache_put(c, name);
	/* A refusal without its reason is still one. */
	if (fd >= 0)
		file_write(fd, text, strlen(text));
}

void fetch_cache_forget_refusals(struct disk_cache *c)
{
	disk_cache_drop(c, NONE);
}
