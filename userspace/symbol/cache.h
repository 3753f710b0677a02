/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results by (binary, address); the least recently used is evicted first.
 * Bounded by number and, since a hostile file chooses the names' length, by
 * bytes. Binary ids are never reused, so an entry of a closed binary is never
 * found again, and is evicted in time. Used within symbol/ only.
 */
#ifndef OTP_SYMBOL_CACHE_H
#define OTP_SYMBOL_CACHE_H

#include "base/hash.h"
#include "symbol/symbol.h"

struct cache_entry;

struct symbol_cache {
	struct map map;
	struct cache_entry *first, *last;
	uint32_t max;
	size_t bytes, max_bytes;
};

void symbol_cache_init(struct symbol_cache *c, uint32_t max);
void symbol_cache_done(struct symbol_cache *c);
void symbol_cache_limit(struct symbol_cache *c, size_t max_bytes);
/* true: ret is filled, with references of its own. */
bool symbol_cache_find(struct symbol_cache *c, uint32_t binary, uint64_t vaddr, struct symbol_result *ret);
/* Keeps a copy; without memory it does nothing. */
void symbol_cache_put(struct symbol_cache *c, uint32_t binary, uint64_t vaddr, const struct symbol_result *r);

#endif
