// SPDX-License-Identifier: Apache-2.0
#include "daemon/cache/fetch_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "daemon/cache/disk_cache.h"

#define FETCHING ".fetching"
#define SUFFIX	 ".debug"
#define NONE	 ".none" /* its content is the name of the reason */
#define NAME_MAX_ (FETCH_ID_MAX + 8)

_Static_assert(NAME_MAX_ <= DISK_CACHE_NAME_MAX, "the cache sees every name");

static void fetch_cache_name(const char *id, const char *suffix, char to[NAME_MAX_])
{
	snprintf(to, NAME_MAX_, "%s%s", id, suffix);
}

int fetch_cache_open(const char *path)
{
	int dir = disk_cache_open(path);

	if (dir >= 0)
		unlinkat(dir, FETCHING, 0);
	return dir;
}

int fetch_cache_find(int dir, const char *id)
{
	char name[NAME_MAX_];
	int fd;

	fetch_cache_name(id, SUFFIX, name);
	fd = disk_cache_find(dir, name);
	if (fd >= 0)
		disk_cache_touch(dir, name);
	return fd;
}

enum fetch_state fetch_cache_refused(int dir, const char *id, uint64_t now_s, uint64_t retry_after_s)
{
	_cleanup_(closep) int fd = -1;
	char name[NAME_MAX_], why[32];
	enum fetch_state state;

	fetch_cache_name(id, NONE, name);
	fd = disk_cache_find(dir, name);
	if (fd < 0 || disk_cache_is_older(fd, now_s, retry_after_s))
		return FETCH_NONE;
	file_read_text_fd(fd, why, sizeof(why));
	state = fetch_state_find(why);
	return state > FETCH_FETCHED ? state : FETCH_NOT_FOUND;
}

int fetch_cache_new(int dir)
{
	return disk_cache_new(dir, FETCHING);
}

int fetch_cache_keep(int dir, const char *id, uint64_t max_bytes)
{
	char name[NAME_MAX_];
	int r = disk_cache_admit(dir, FETCHING, max_bytes);

	if (r < 0)
		return r;
	fetch_cache_name(id, SUFFIX, name);
	if (renameat(dir, FETCHING, dir, name) < 0)
		return -errno;
	fetch_cache_name(id, NONE, name);
	unlinkat(dir, name, 0);
	return 0;
}

void fetch_cache_refuse(int dir, const char *id, enum fetch_state why)
{
	_cleanup_(closep) int fd = -1;
	const char *text = fetch_state_name(why);
	char name[NAME_MAX_];

	fetch_cache_name(id, SUFFIX, name);
	unlinkat(dir, name, 0);
	fetch_cache_name(id, NONE, name);
	fd = disk_cache_new(dir, name);
	/* A refusal without its reason is still one. */
	if (fd >= 0)
		file_write(fd, text, strlen(text));
}

void fetch_cache_forget_refusals(int dir)
{
	disk_cache_drop(dir, NONE);
}
