/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash functions and a map from 64-bit keys to pointers or numbers.
 * The map uses open addressing with backward-shift deletion. Pointers in it are
 * borrowed: their objects stay the caller's. The caller bounds its growth
 * (check count before map_put). Hashes are seeded per process: hostile input
 * cannot aim at one slot.
 */
#ifndef OTP_BASE_HASH_H
#define OTP_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *data, size_t len, uint64_t seed);
/* The same in every process, so that one may tell another of it. Not for keys of a map: hostile input could aim at a slot. */
uint64_t hash_content(const void *data, size_t len, uint64_t seed);

static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	x ^= x >> 33;
	return x;
}

/* Random per process; call hash_seed_init once, before any table exists. */
extern uint64_t hash_seed;
void hash_seed_init(void);

struct map_slot {
	uint64_t key;
	uint64_t value;
	bool used;
};

struct map {
	struct map_slot *slots; /* owned */
	size_t cap;             /* power of two, or 0 */
	size_t count;
};

void map_done(struct map *m);
/* Address of the value, borrowed until the next put or remove; NULL if absent. */
uint64_t *map_find(const struct map *m, uint64_t key);
int map_put(struct map *m, uint64_t key, uint64_t value); /* replaces; -ENOMEM */
bool map_remove(struct map *m, uint64_t key);
void map_clear(struct map *m);

static inline void *map_find_ptr(const struct map *m, uint64_t key)
{
	uint64_t *v = map_find(m, key);

	return v ? (void *)(uintptr_t)*v : NULL;
}

static inline int map_put_ptr(struct map *m, uint64_t key, void *p)
{
	return map_put(m, key, (uint64_t)(uintptr_t)p);
}

#define map_for_each(m, slot)                                                          \
	for (struct map_slot *slot = (m)->slots; slot && slot < (m)->slots + (m)->cap; \
	     slot++)                                                                   \
		if (slot->used)

#endif
