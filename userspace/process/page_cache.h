/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of files that were read, over all files, bounded, least recently used
 * out first. Only process/ uses it; the engine's one thread.
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
	uint64_t id; /* unique among all sources that ever were */
	ssize_t (*read)(void *ctx, uint64_t offset, void *to, size_t len);
	void *ctx;
	struct cached_page *pages; /* of this source */
};

/* Bytes copied, fewer where the source ends; negative errno if not one could be had. */
ssize_t page_cache_read(struct page_source *src, uint64_t offset, void *to, size_t len);
/* Forget the pages of src, which is about to go. */
void page_cache_drop(struct page_source *src);
void page_cache_limit(size_t bytes);
size_t page_cache_used(void);

#endif
