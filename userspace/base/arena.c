// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define ARENA_CHUNK (256u << 10)
#define ARENA_ALIGN 16u

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, size;
	uint8_t data[] __attribute__((aligned(16)));
};

static struct arena_chunk *arena_grow(struct arena *a, size_t len)
{
	size_t size = MAX(len, (size_t)ARENA_CHUNK);
	struct arena_chunk *c = malloc(sizeof(*c) + size);

	if (!c)
		return NULL;
	c->next = a->chunks;
	c->used = 0;
	c->size = size;
	a->chunks = c;
	return c;
}

void *arena_alloc(struct arena *a, size_t len)
{
	struct arena_chunk *c = a->chunks;
	void *p;

	if (len > a->max || a->used > a->max - len)
		return NULL;
	len = ALIGN_UP(MAX(len, (size_t)1), (size_t)ARENA_ALIGN);
	if (!c || c->size - c->used < len)
		c = arena_grow(a, len);
	if (!c)
		return NULL;
	p = c->data + c->used;
	c->used += len;
	a->used += len;
	return p;
}

void *arena_make(struct arena *a, bool *failed, size_t n, size_t size)
{
	size_t len;
	void *p = NULL;

	if (!__builtin_mul_overflow(n, size, &len))
		p = arena_alloc(a, len);
	if (p)
		memset(p, 0, len);
	else
		*failed = true;
	return p;
}

void arena_done(struct arena *a)
{
	struct arena_chunk *c, *next;

	for (c = a->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	*a = (struct arena){.max = a->max};
}
