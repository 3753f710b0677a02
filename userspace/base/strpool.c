// SPDX-License-Identifier: Apache-2.0
#include "base/strpool.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct strpool {
	struct str **slots;
	size_t cap, count;
};

/* One pool for the process: strings are compared by pointer. It holds no references, and one thread uses it. */
static struct strpool pool;

static struct str **strpool_slot(const struct strpool *p, const char *s, size_t len, uint64_t hash)
{
	size_t i = hash & (p->cap - 1);

	while (p->slots[i] && (p->slots[i]->hash != hash || p->slots[i]->len != len ||
			       memcmp(p->slots[i]->s, s, len) != 0))
		i = (i + 1) & (p->cap - 1);
	return &p->slots[i];
}

static int strpool_grow(void)
{
	struct strpool next = {.cap = pool.cap ? pool.cap * 2 : 256, .count = pool.count};

	next.slots = calloc(next.cap, sizeof(*next.slots));
	if (!next.slots)
		return -1;
	for (size_t i = 0; i < pool.cap; i++) {
		struct str *s = pool.slots[i];

		if (s)
			*strpool_slot(&next, s->s, s->len, s->hash) = s;
	}
	free(pool.slots);
	pool = next;
	return 0;
}

struct str *str_get(const char *s, size_t len)
{
	uint64_t hash = hash_bytes(s, len, 0);
	struct str **slot, *n;

	if (len > UINT32_MAX || (pool.count * 4 >= pool.cap * 3 && strpool_grow() < 0))
		return NULL;
	slot = strpool_slot(&pool, s, len, hash);
	if (*slot)
		return str_ref(*slot);
	n = malloc(sizeof(*n) + len + 1);
	if (!n)
		return NULL;
	*n = (struct str){.refs = 1, .len = (uint32_t)len, .hash = hash};
	memcpy(n->s, s, len);
	n->s[len] = '\0';
	*slot = n;
	pool.count++;
	return n;
}

struct str *str_get_c(const char *s)
{
	return str_get(s, strlen(s));
}

struct str *str_ref(struct str *s)
{
	if (s)
		s->refs++;
	return s;
}

static void strpool_remove(struct str *s)
{
	size_t mask = pool.cap - 1, hole = (size_t)(strpool_slot(&pool, s->s, s->len, s->hash) - pool.slots), i;

	for (i = (hole + 1) & mask; pool.slots[i]; i = (i + 1) & mask) {
		if (((i - pool.slots[i]->hash) & mask) >= ((i - hole) & mask)) {
			pool.slots[hole] = pool.slots[i];
			hole = i;
		}
	}
	pool.slots[hole] = NULL;
	pool.count--;
}

struct str *str_put(struct str *s)
{
	if (s && --s->refs == 0) {
		strpool_remove(s);
		free(s);
	}
	return NULL;
}

size_t str_count(void)
{
	return pool.count;
}
