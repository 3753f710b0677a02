/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files that were fetched, by build-id, below the directory of the
 * indexes, and the reasons why others could not be fetched.
 *
 * Called by the monitor, which reads no byte of them. Functions return 0 or a descriptor that the caller
 * owns, or negative errno. Blocks as a disk does.
 */
#ifndef OTP_DAEMON_CACHE_FETCH_CACHE_H
#define OTP_DAEMON_CACHE_FETCH_CACHE_H

#include <stdint.h>

#include "base/safe_path.h"
#include "daemon/cache/disk_cache.h"
#include "daemon/fetch.h"

int fetch_cache_open(const char *path, char why[SAFE_PATH_WHY], struct disk_cache *ret); /* as disk_cache_open */
/* Refusals hold for retry_after_s. */
void fetch_cache_limit(struct disk_cache *c, uint64_t max_bytes, uint64_t retry_after_s);
int fetch_cache_find(const struct disk_cache *c, const char *id); /* descriptor for reading; counts as a use */
/* Why the file is not requested now; NONE: it may be requested. */
enum fetch_state fetch_cache_refused(const struct disk_cache *c, const char *id, uint64_t now_unix_s);
int fetch_cache_new(const struct disk_cache *c); /* descriptor of an empty file to write */
/* Names the file that was written, and makes room for it. -EFBIG: it alone exceeds the limit. */
int fetch_cache_keep(struct disk_cache *c, const char *id);
void fetch_cache_refuse(struct disk_cache *c, const char *id, enum fetch_state why); /* also removes a cached file */
void fetch_cache_forget_refusals(struct disk_cache *c);

#endif
