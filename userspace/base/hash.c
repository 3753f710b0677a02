// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/clock.h"

#define MAP_FIRST 16

/* The process' own: tables in different objects exchange hashes, so all use one seed. Constant after hash_seed_init. */
uint64_t hash_seed = 0x9e3779b97f4a7c15ULL;

void hash_seed_init(void)
{
	/* AT_RANDOM needs no file and no system call: the engine has neither. */
	const void *random = (const void *)getauxval(AT_RANDOM);

	if (random)
		memcpy(&hash_seed, random, sizeof(hash_seed));
	hash_seed = hash_u64(hash_seed ^ clock_now_ns());
}

uint64_t hash_content(const void *data, size_t len, uint64_t seed)
{
	const uint8_t *p = data;
	uint64_t h = seed ^ (len * 0x9e3779b97f4a7c15ULL), word;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		h = hash_u64(h ^ word);
	}
	if (len) {
		word = 0;
		memcpy(&word, p, len);
		h = hash_u64(h ^ word);
	}
	return h;
}

uint64_t hash_bytes(const void *data, size_t len, uint64_t seed)
{
	return hash_content(data, len, seed ^ hash_seed);
}

static size_t map_home(const struct map *m, uint64_t key)
{
	return hash_u64(key ^ hash_seed) & (m->cap - 1);
}

static struct map_slot *map_slot(const struct map *m, uint64_t key)
{
	size_t i = map_home(m, key);

	while (m->slots[i].used && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

void map_done(struct map *m)
{
	free(m->slots);
	*m = (struct map){0};
}

void map_clear(struct map *m)
{
	if (m->slots)
		memset(m->slots, 0, m->cap * sizeof(*m->slots));
	m->count = 0;
}

uint64_t *map_find(const struct map *m, uint64_t key)
{
	struct map_slot *s;

	if (!m->cap)
		return NULL;
	s = map_slot(m, key);
	return s->used ? &s->value : NULL;
}

static int map_grow(struct map *m)
{
	struct map next = {.cap = m->cap ? m->cap * 2 : MAP_FIRST, .count = m->count};

	next.slots = calloc(next.cap, sizeof(*next.slots));
	if (!next.slots)
		return -ENOMEM;
	map_for_each(m, s)
		*map_slot(&next, s->key) = *s;
	free(m->slots);
	*m = next;
	return 0;
}

int map_put(struct map *m, uint64_t key, uint64_t value)
{
	struct map_slot *s;

	/* Three quarters full at most: probes stay short and always end. */
	if (m->count * 4 >= m->cap * 3 && map_grow(m) < 0)
		return -ENOMEM;
	s = map_slot(m, key);
	if (!s->used)
		m->count++;
	*s = (struct map_slot){.key = key, .value = value, .used = true};
	return 0;
}

bool map_remove(struct map *m, uint64_t key)
{
	struct map_slot *s;
	size_t hole, i;

	if (!m->cap)
		return false;
	s = map_slot(m, key);
	if (!s->used)
		return false;
	hole = (size_t)(s - m->slots);
	/* Backward shift: every follower that may lie here moves up, no tombstones. */
	for (i = (hole + 1) & (m->cap - 1); m->slots[i].used; i = (i + 1) & (m->cap - 1)) {
		size_t home = map_home(m, m->slots[i].key);

		if (((i - home) & (m->cap - 1)) >= ((i - hole) & (m->cap - 1))) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole].used = false;
	m->count--;
	return true;
}
