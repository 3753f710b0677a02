// SPDX-License-Identifier: Apache-2.0
#include "symbol/cache.h"

#include <string.h>

#include "base/cleanup.h"

/* Average size of a result, names included, within the bound on bytes. */
#define CACHE_ENTRY_BYTES 384

struct cache_entry {
	struct cache_entry *prev, *next;
	uint64_t key, vaddr;
	uint32_t binary;
	uint16_t count;
	bool hot; /* found since the end of the list was last checked */
	size_t bytes;
	const char *resolver;
	bool function_start;
	struct symbol_line lines[];
};

static uint64_t cache_key(uint32_t binary, uint64_t vaddr)
{
	return hash_u64(vaddr ^ (uint64_t)binary << 40 ^ binary);
}

static void cache_list_remove(struct symbol_cache *c, struct cache_entry *e)
{
	*(e->prev ? &e->prev->next : &c->first) = e->next;
	*(e->next ? &e->next->prev : &c->last) = e->prev;
}

static void cache_list_add_first(struct symbol_cache *c, struct cache_entry *e)
{
	e->prev = NULL;
	e->next = c->first;
	*(e->next ? &e->next->prev : &c->last) = e;
	c->first = e;
}

static void cache_entry_free(struct symbol_cache *c, struct cache_entry *e)
{
	cache_list_remove(c, e);
	map_remove(&c->map, e->key);
	c->bytes -= e->bytes;
	for (uint32_t i = 0; i < e->count; i++)
		symbol_line_done(&e->lines[i]);
	free(e);
}

void symbol_cache_init(struct symbol_cache *c, uint32_t max)
{
	*c = (struct symbol_cache){.max = max, .max_bytes = (size_t)max * CACHE_ENTRY_BYTES};
}

void symbol_cache_done(struct symbol_cache *c)
{
	while (c->first)
		cache_entry_free(c, c->first);
	map_done(&c->map);
}

bool symbol_cache_find(struct symbol_cache *c, uint32_t binary, uint64_t vaddr, struct symbol_result *ret)
{
	struct cache_entry *e = map_find_ptr(&c->map, cache_key(binary, vaddr));

	if (!e || e->binary != binary || e->vaddr != vaddr)
		return false;
	e->hot = true;
	ret->count = e->count;
	ret->resolver = e->resolver;
	ret->function_start = e->function_start;
	for (uint32_t i = 0; i < e->count; i++)
		symbol_line_copy(&ret->lines[i], &e->lines[i]);
	return true;
}

static size_t cache_entry_bytes(const struct symbol_result *r)
{
	size_t bytes = sizeof(struct cache_entry) + r->count * sizeof(r->lines[0]);

	for (uint32_t i = 0; i < r->count; i++) {
		const struct symbol_line *l = &r->lines[i];

		bytes += (l->name ? l->name->len : 0) + (l->file ? l->file->len : 0);
	}
	return bytes;
}

/*
 * An entry that was found since the last check is kept, once: moving entries at
 * each find would touch their neighbours too.
 */
static struct cache_entry *symbol_cache_victim(struct symbol_cache *c)
{
	struct cache_entry *e;

	while ((e = c->last)->hot) {
		e->hot = false;
		cache_list_remove(c, e);
		cache_list_add_first(c, e);
	}
	return e;
}

static void symbol_cache_make_room(struct symbol_cache *c, size_t bytes)
{
	while (c->last && (c->map.count >= c->max || c->bytes + bytes > c->max_bytes))
		cache_entry_free(c, symbol_cache_victim(c));
}

void symbol_cache_limit(struct symbol_cache *c, size_t max_bytes)
{
	c->max_bytes = max_bytes;
	symbol_cache_make_room(c, 0);
}

void symbol_cache_put(struct symbol_cache *c, uint32_t binary, uint64_t vaddr, const struct symbol_result *r)
{
	uint64_t key = cache_key(binary, vaddr);
	struct cache_entry *e = map_find_ptr(&c->map, key);
	size_t bytes = cache_entry_bytes(r);

	if (e)
		cache_entry_free(c, e); /* another address with this key, or a new result */
	if (bytes > c->max_bytes)
		return;
	symbol_cache_make_room(c, bytes);
	e = malloc(sizeof(*e) + r->count * sizeof(e->lines[0]));
	if (!e || map_put_ptr(&c->map, key, e) < 0) {
		free(e);
		return;
	}
	*e = (struct cache_entry){.key = key, .vaddr = vaddr, .binary = binary, .count = (uint16_t)r->count,
				  .bytes = bytes, .resolver = r->resolver,
				  .function_start = r->function_start};
	for (uint32_t i = 0; i < r->count; i++)
		symbol_line_copy(&e->lines[i], &r->lines[i]);
	c->bytes += bytes;
	cache_list_add_first(c, e);
}
