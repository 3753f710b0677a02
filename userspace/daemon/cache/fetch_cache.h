/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files that were fetched, by build-id, below the directory of the
 * indexes, and the reasons why others could not be fetched.
 *
 * Called by the monitor, which reads no byte of them. dir is what
 * fetch_cache_open returned. Functions return 0 or a descriptor that the caller
 * owns, or negative errno. Blocks as a disk does.
 */
#ifndef OTP_DAEMON_CACHE_FETCH_CACHE_H
#define OTP_DAEMON_CACHE_FETCH_CACHE_H

#include <stdint.h>

#include "daemon/fetch.h"

int fetch_cache_open(const char *path); /* as disk_cache_open */
int fetch_cache_find(int dir, const char *id); /* descriptor for reading; counts as a use */
/* Why the file is not requested now; NONE: it may be requested. */
enum fetch_state fetch_cache_refused(int dir, const char *id, uint64_t now_unix_s, uint64_t retry_after_s);
int fetch_cache_new(int dir); /* descriptor of an empty file to write */
/* Names the file that was written, and removes others for room. -EFBIG: it alone exceeds max_bytes. */
int fetch_cache_keep(int dir, const char *id, uint64_t max_bytes);
void fetch_cache_refuse(int dir, const char *id, enum fetch_state why); /* also removes a cached file */
void fetch_cache_forget_refusals(int dir);

#endif
