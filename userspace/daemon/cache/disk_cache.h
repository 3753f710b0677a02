/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of our own (0700) of files that can be made again: bounded by
 * bytes, the least recently used file is removed first.
 *
 * Called by the caches of the monitor. No other user can put a file into it or
 * rename one in. A file gets its name when it is whole; files whose names begin
 * with a dot are being written and do not count. Subdirectories are left alone.
 * Descriptors that are returned are owned by the caller. Blocks as a disk does.
 */
#ifndef OTP_DAEMON_CACHE_DISK_CACHE_H
#define OTP_DAEMON_CACHE_DISK_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#define DISK_CACHE_NAME_MAX 80 /* with its NUL */

/* Descriptor of the directory, which is created if missing. -EPERM: another user owns it. */
int disk_cache_open(const char *path);
/* Descriptor for reading, or -errno. */
int disk_cache_find(int dir, const char *name);
/* The access time records the last use; the change time of the inode dates the content. */
void disk_cache_touch(int dir, const char *name);
bool disk_cache_is_older(int fd, uint64_t now_unix_s, uint64_t age_s);
/* Descriptor of an empty file to write; an older file of this name is replaced. */
int disk_cache_new(int dir, const char *name);
void disk_cache_trim(int dir, uint64_t max_bytes);
/* Trims for a file that is written and has no name of its own yet. -EFBIG: it alone exceeds max_bytes; it is removed. */
int disk_cache_admit(int dir, const char *name, uint64_t max_bytes);
void disk_cache_drop(int dir, const char *suffix); /* all files whose names end in suffix */
uint64_t disk_cache_bytes(int dir);

#endif
