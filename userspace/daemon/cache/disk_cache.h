/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of our own (0700) of files that can be made again: bounded by
 * bytes and by DISK_CACHE_FILES_MAX, the least recently used file is removed first.
 *
 * Called by the caches of the monitor. No other user can put a file into it or
 * rename one in. A file gets its name when it is whole; files whose names begin
 * with a dot are being written and do not count. Subdirectories are left alone.
 * Descriptors that are returned are owned by the caller. Blocks as a disk does.
 *
 * The totals are in memory. All files are listed when the limit is set, when the
 * totals exceed it, which is rare because a trim leaves an eighth free, and when
 * an eighth of it was added: other monitors may share the directory. A list has
 * at most DISK_CACHE_FILES_MAX files (7 MB); where there are more, each file that
 * is added removes some, until there are not.
 */
#ifndef OTP_DAEMON_CACHE_DISK_CACHE_H
#define OTP_DAEMON_CACHE_DISK_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/safe_path.h"

#define DISK_CACHE_NAME_MAX  80 /* with its NUL */
#define DISK_CACHE_FILES_MAX 65536

struct disk_cache {
	int dir; /* -1: closed */
	uint64_t max_bytes;
	const char *refusals; /* a suffix: files of that name are removed when they are older than refusal_age_s; or NULL */
	uint64_t refusal_age_s;
	uint64_t bytes, files; /* what there is; a file counts as a block at least */
	uint64_t added;	       /* bytes, since all files were listed */
	bool cut;	       /* there were more files than a list holds */
};

/*
 * Opens the directory, which is created if missing; without a limit. -EPERM: it, or a directory on the way to it, is
 * another user's. On failure why is a text for a log line.
 */
int disk_cache_open(const char *path, char why[SAFE_PATH_WHY], struct disk_cache *ret);
void disk_cache_close(struct disk_cache *c); /* the totals stay */
void disk_cache_limit(struct disk_cache *c, uint64_t max_bytes);
/* Descriptor for reading, or -errno. */
int disk_cache_find(const struct disk_cache *c, const char *name);
/* The access time records the last use; the change time of the inode dates the content. */
void disk_cache_touch(const struct disk_cache *c, const char *name);
bool disk_cache_is_older(int fd, uint64_t now_unix_s, uint64_t age_s);
/* Descriptor of an empty file to write, which does not count yet; an older file of this name is replaced. */
int disk_cache_new(const struct disk_cache *c, const char *name);
/* Gives a file from disk_cache_new its name, and makes room for it. -EFBIG: it alone exceeds the limit; it is removed. */
int disk_cache_keep(struct disk_cache *c, const char *made, const char *name);
/* Descriptor of an empty file that counts at once, as a block; an older file of this name is replaced. */
int disk_cache_put(struct disk_cache *c, const char *name);
void disk_cache_remove(struct disk_cache *c, const char *name);
void disk_cache_drop(struct disk_cache *c, const char *suffix); /* all files whose names end in suffix */

#endif
