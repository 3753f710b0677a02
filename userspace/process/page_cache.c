// SPDX-License-Identifier: Apache-2.0
#include "process/page_cache.h"

#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

#define PAGE_CACHE_DEFAULT (4u << 20)

struct cached_page {
	struct cached_page *newer, *older; /* ring of use; the head's older is the oldest */
	struct cached_page *next, **link;  /* of the same source */
	struct page_source *src;
	uint64_t key;
	uint64_t index; /* page number */
	uint32_t len;   /* short at the end of the file only */
	uint8_t data[PAGE_CACHE_PAGE];
};

/* One cache for the process: its limit bounds the memory of all files together. One thread reads files. */
static struct map pages;
static struct cached_page *newest, *oldest;
static size_t limit_bytes = PAGE_CACHE_DEFAULT;

static uint64_t page_key(const struct page_source *src, uint64_t index)
{
	return hash_u64(src->id) ^ index;
}

static void lru_remove(struct cached_page *p)
{
	*(p->newer ? &p->newer->older : &newest) = p->older;
	*(p->older ? &p->older->newer : &oldest) = p->newer;
}

static void lru_add(struct cached_page *p)
{
	p->newer = NULL;
	p->older = newest;
	*(newest ? &newest->newer : &oldest) = p;
	newest = p;
}

static void source_remove(struct cached_page *p)
{
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
}

static void source_add(struct page_source *src, struct cached_page *p)
{
	p->src = src;
	p->next = src->pages;
	p->link = &src->pages;
	if (p->next)
		p->next->link = &p->next;
	src->pages = p;
}

static void page_free(struct cached_page *p)
{
	map_remove(&pages, p->key);
	lru_remove(p);
	source_remove(p);
	free(p);
}

size_t page_cache_used(void)
{
	return pages.count * sizeof(struct cached_page);
}

static void page_cache_shrink(size_t bytes)
{
	while (oldest && page_cache_used() > bytes)
		page_free(oldest);
}

void page_cache_limit(size_t bytes)
{
	limit_bytes = bytes;
	page_cache_shrink(bytes);
	if (!pages.count)
		map_done(&pages);
}

void page_cache_drop(struct page_source *src)
{
	while (src->pages)
		page_free(src->pages);
	if (!pages.count)
		map_done(&pages);
}

/* A short count means the end of the source, so what comes piecemeal is put together here. */
static ssize_t page_cache_fill(struct page_source *src, uint64_t offset, uint8_t *to)
{
	size_t have = 0;

	while (have < PAGE_CACHE_PAGE) {
		ssize_t n = src->read(src->ctx, offset + have, to + have, PAGE_CACHE_PAGE - have);

		if (n < 0)
			return n;
		if (!n)
			break;
		have += MIN((size_t)n, PAGE_CACHE_PAGE - have);
	}
	return (ssize_t)have;
}

static int page_load(struct page_source *src, uint64_t index, struct cached_page **ret)
{
	struct cached_page *p = malloc(sizeof(*p));
	ssize_t n;

	if (!p)
		return -ENOMEM;
	n = page_cache_fill(src, index * PAGE_CACHE_PAGE, p->data);
	p->key = page_key(src, index);
	p->index = index;
	p->len = n > 0 ? (uint32_t)n : 0;
	if (n >= 0)
		page_cache_shrink(limit_bytes > sizeof(*p) ? limit_bytes - sizeof(*p) : 0);
	if (n < 0 || map_put_ptr(&pages, p->key, p) < 0) {
		free(p);
		return n < 0 ? (int)n : -ENOMEM;
	}
	lru_add(p);
	source_add(src, p);
	*ret = p;
	return 0;
}

static int page_get(struct page_source *src, uint64_t index, struct cached_page **ret)
{
	struct cached_page *p = newest;

	/* Reads come in runs: neighbours in a table, the parts of an entry. */
	if (p && p->src == src && p->index == index) {
		*ret = p;
		return 0;
	}
	p = map_find_ptr(&pages, page_key(src, index));
	if (p && (p->src != src || p->index != index)) {
		page_free(p); /* two keys that collide: the newer one stays */
		p = NULL;
	}
	if (!p)
		return page_load(src, index, ret);
	if (p != newest) {
		lru_remove(p);
		lru_add(p);
	}
	*ret = p;
	return 0;
}

ssize_t page_cache_read(struct page_source *src, uint64_t offset, void *to, size_t len)
{
	size_t done = 0;
	uint64_t end;

	len = MIN(len, (size_t)SSIZE_MAX);
	if (__builtin_add_overflow(offset, len, &end) || end > INT64_MAX - PAGE_CACHE_PAGE)
		return -EINVAL;
	while (done < len) {
		uint64_t at = offset + done;
		size_t in = at % PAGE_CACHE_PAGE, n;
		struct cached_page *p = NULL;
		int r = page_get(src, at / PAGE_CACHE_PAGE, &p);

		if (r < 0)
			return done ? (ssize_t)done : r;
		if (in >= p->len)
			break;
		n = MIN(len - done, p->len - in);
		memcpy((uint8_t *)to + done, p->data + in, n);
		done += n;
		if (p->len < PAGE_CACHE_PAGE)
			break;
	}
	return (ssize_t)done;
}
