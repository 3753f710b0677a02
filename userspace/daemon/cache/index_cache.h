/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address indexes on disk: one file each, named by the identity of the ELF
 * file that it is for, the ones used longest ago out first.
 *
 * Called by the monitor, in a directory of its own (0700), which no other user
 * can put a file into or rename one in. A file appears there whole or not at
 * all. Nothing in it is believed: the engine checks each index against the
 * file that it is to name. Several monitors may share one; each makes one index at a time.
 */
#ifndef OTP_DAEMON_CACHE_INDEX_CACHE_H
#define OTP_DAEMON_CACHE_INDEX_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define INDEX_KEY_MAX 65 /* hexadecimal SHA-256 and its NUL */

/* Descriptor of the directory, as disk_cache_open gives it; what a predecessor left half made is gone. */
int index_cache_open(const char *path);
/* Name of the index of this file; content is a hash of samples of its bytes. */
void index_cache_key(const struct stat *st, const uint64_t content[2], const char *settings, char to[INDEX_KEY_MAX]);

/*
 * Open for reading, and used just now. -ENOENT: not there, or old and made
 * without debug information, which may have been installed since. -ENODATA: it
 * was tried, and cannot be made.
 */
int index_cache_find(int dir, const char *key, uint64_t now_unix_s);
/* An empty file for the index that is being made, and a nameless one for scratch. */
int index_cache_new(int dir, int *ret_index, int *ret_scratch);
/* What was made gets its name, and others make room: at most so many bytes, this one included. */
int index_cache_keep(int dir, const char *key, bool poor, uint64_t max_bytes);
/* It is not finished: its room is given back. */
void index_cache_drop_new(int dir);
/* Nothing can be made: that is remembered. */
void index_cache_refuse(int dir, const char *key);
/* It can be made better now; perhaps all can that were made without debug information. */
void index_cache_forget(int dir, const char *key);
void index_cache_forget_poor(int dir);

#endif
