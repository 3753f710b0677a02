/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files that were fetched, by build-id, below the directory of the
 * indexes; and why others were not.
 *
 * Called by the monitor, which reads no byte of them. dir is what
 * fetch_cache_open gave, the caller's to close; 0 or a descriptor of the
 * caller's, or negative errno. Blocks as a disk does.
 */
#ifndef OTP_DAEMON_CACHE_FETCH_CACHE_H
#define OTP_DAEMON_CACHE_FETCH_CACHE_H

#include <stdint.h>

#include "daemon/fetch.h"

int fetch_cache_open(const char *path); /* as disk_cache_open */
int fetch_cache_find(int dir, const char *id); /* open for reading and used just now, -errno */
/* Why it is not asked for now; NONE: it may be. */
enum fetch_state fetch_cache_refused(int dir, const char *id, uint64_t now_unix_s, uint64_t retry_after_s);
int fetch_cache_new(int dir); /* an empty file to be written */
/* What was written gets its name, and others make room: -EFBIG, where it alone is too large. */
int fetch_cache_keep(int dir, const char *id, uint64_t max_bytes);
void fetch_cache_refuse(int dir, const char *id, enum fetch_state why); /* also one that is there */
void fetch_cache_forget_refusals(int dir);

#endif
