/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of pages of all files, bounded; the least recently used page is
 * evicted first. Used within process/ only; the engine's one thread.
 * A page is copied on every read: nothing that a caller holds can change.
 * Failure: a page that cannot be read is not kept, the next read tries again.
 */
#ifndef OTP_PROCESS_PAGE_CACHE_H
#define OTP_PROCESS_PAGE_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE_CACHE_PAGE 4096u

struct cached_page;

/* Embedded in what is read; zero but for id, read and ctx. */
struct page_source {
	uint64_t id; /* unique, never reused */
	ssize_t (*read)(void *ctx, uint64_t offset, void *to, size_t len);
	void *ctx;
	struct cached_page *pages; /* of this source */
};

/* Bytes copied, fewer where the source ends; negative errno if none could be read. */
ssize_t page_cache_read(struct page_source *src, uint64_t offset, void *to, size_t len);
/* Drops the pages of src; call it before src is freed. */
void page_cache_drop(struct page_source *src);
void page_cache_limit(size_t bytes);
size_t page_cache_used(void);

#endif
