/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of our own (0700) full of files that can be made again: bounded
 * by bytes, the ones used longest ago out first.
 *
 * Called by the caches of the monitor. No other user can put a file into it or
 * rename one in. A file gets its name when it is whole; names that begin with
 * a dot are being made, and are no part of it. Directories in it are left alone.
 */
#ifndef OTP_DAEMON_CACHE_DISK_CACHE_H
#define OTP_DAEMON_CACHE_DISK_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#define DISK_CACHE_NAME_MAX 80 /* with its NUL */

/* Descriptor of the directory, made where it is missing. -EPERM: it is somebody else's. */
int disk_cache_open(const char *path);
/* Open for reading, -errno. */
int disk_cache_find(int dir, const char *name);
/* The time of access says when it was used last; that of the inode's change says how old the content is. */
void disk_cache_touch(int dir, const char *name);
bool disk_cache_is_older(int fd, uint64_t now_unix_s, uint64_t age_s);
/* An empty file to be written, in place of an older one of this name. */
int disk_cache_new(int dir, const char *name);
void disk_cache_trim(int dir, uint64_t max_bytes);
/* Trims for a file that is written and has no name of its own yet. -EFBIG: it alone exceeds max_bytes; it is removed. */
int disk_cache_admit(int dir, const char *name, uint64_t max_bytes);
void disk_cache_drop(int dir, const char *suffix); /* all whose names end so */
uint64_t disk_cache_bytes(int dir);

#endif
