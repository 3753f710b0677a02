/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address indexes on disk: one file each, named by the identity of the ELF
 * file that it is for; the least recently used file is removed first.
 *
 * Called by the monitor, in a directory of its own (0700), in which no other user
 * can create or rename a file. A file appears there whole or not at all. No
 * content is trusted: the engine checks each index against the file whose
 * addresses it resolves. Several monitors may share a directory; each makes one
 * index at a time. Descriptors that are returned are owned by the caller.
 */
#ifndef OTP_DAEMON_CACHE_INDEX_CACHE_H
#define OTP_DAEMON_CACHE_INDEX_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/safe_path.h"
#include "daemon/cache/disk_cache.h"
#include "daemon/ticket.h"

#define INDEX_KEY_MAX 65 /* hexadecimal SHA-256 and its NUL */

/* As disk_cache_open; removes unfinished files of a predecessor. The caller sets the limit. */
int index_cache_open(const char *path, char why[SAFE_PATH_WHY], struct disk_cache *ret);
/*
 * Name of the index of this file; content is a hash of samples of its bytes. Files that other users may write have
 * other names: an inode may be reused, and its size, time and samples made to fit.
 */
void index_cache_key(const struct ticket_file *file, const uint64_t content[2], const char *settings, char to[INDEX_KEY_MAX]);

/*
 * Descriptor for reading; counts as a use. -ENOENT: there is no index, or an
 * old one that was made without debug information, which may have been installed
 * since. -ENODATA: an index was tried, and cannot be made.
 */
int index_cache_find(struct disk_cache *c, const char *key, uint64_t now_unix_s);
/* An empty file for the index to be made, and an unnamed scratch file. */
int index_cache_new(const struct disk_cache *c, int *ret_index, int *ret_scratch);
/* Names the index that was made, and makes room for it, as disk_cache_keep. */
int index_cache_keep(struct disk_cache *c, const char *key, bool poor);
/* Removes the unfinished index. */
void index_cache_drop_new(const struct disk_cache *c);
/* Records that no index can be made. */
void index_cache_refuse(struct disk_cache *c, const char *key);
/* Removes an index that can be made better now, or all that were made without debug information. */
void index_cache_forget(struct disk_cache *c, const char *key);
void index_cache_forget_poor(struct disk_cache *c);

#endif
