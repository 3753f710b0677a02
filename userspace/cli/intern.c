// SPDX-License-Identifier: Apache-2.0
#include "cli/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

#define CHUNK_BYTES 65536
#define FIRST_SLOTS 64

struct intern_chunk {
	struct intern_chunk *next;
	size_t used, size;
	uint64_t data[];
};

void intern_init(struct intern *t, uint32_t max)
{
	*t = (struct intern){.max = max};
}

void intern_done(struct intern *t)
{
	struct intern_chunk *c, *next;

	for (c = t->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	free(t->entries);
	free(t->slots);
	*t = (struct intern){.max = t->max};
}

static void *chunk_alloc(struct intern *t, size_t len)
{
	struct intern_chunk *c = t->chunks;
	size_t size;
	void *p;

	if (len > SIZE_MAX / 2)
		return NULL;
	len = ALIGN_UP(len, sizeof(uint64_t));
	if (!c || c->size - c->used < len) {
		size = MAX(len, (size_t)CHUNK_BYTES);
		c = malloc(sizeof(*c) + size);
		if (!c)
			return NULL;
		*c = (struct intern_chunk){.next = t->chunks, .size = size};
		t->chunks = c;
	}
	p = (uint8_t *)c->data + c->used;
	c->used += len;
	return p;
}

/* The slot of the key, or the free one where it belongs. */
static uint32_t *intern_slot(const struct intern *t, const void *key, size_t len, uint64_t hash)
{
	uint32_t i = hash & (t->nr_slots - 1);

	for (; t->slots[i]; i = (i + 1) & (t->nr_slots - 1)) {
		const struct intern_entry *e = &t->entries[t->slots[i] - 1];

		if (e->hash == hash && e->len == len && memcmp(e->key, key, len) == 0)
			break;
	}
	return &t->slots[i];
}

static int grow_slots(struct intern *t)
{
	uint32_t n = t->nr_slots ? t->nr_slots * 2 : FIRST_SLOTS, i, at;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (i = 0; i < t->count; i++) {
		for (at = t->entries[i].hash & (n - 1); slots[at]; at = (at + 1) & (n - 1))
			;
		slots[at] = i + 1;
	}
	free(t->slots);
	t->slots = slots;
	t->nr_slots = n;
	return 0;
}

static int grow_entries(struct intern *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : FIRST_SLOTS / 2;
	struct intern_entry *e = reallocarray(t->entries, cap, sizeof(*e));

	if (!e)
		return -ENOMEM;
	t->entries = e;
	t->cap = cap;
	return 0;
}

static int intern_new(struct intern *t, const void *key, size_t len, uint64_t hash, uint32_t *slot)
{
	void *copy;

	if (t->count == t->cap && grow_entries(t) < 0)
		return -ENOMEM;
	copy = chunk_alloc(t, len);
	if (!copy)
		return -ENOMEM;
	if (len)
		memcpy(copy, key, len);
	t->entries[t->count] = (struct intern_entry){.key = copy, .hash = hash, .len = len};
	*slot = ++t->count;
	return 0;
}

int intern_add(struct intern *t, const void *key, size_t len, uint32_t *ret_number)
{
	uint64_t hash;
	uint32_t *slot;
	int r;

	if (!len)
		key = ""; /* an empty buffer may be NULL, which memcmp must not see */
	hash = hash_bytes(key, len, 0);
	/* Two thirds full at most: probes stay short and always end. */
	if ((uint64_t)t->count * 3 >= (uint64_t)t->nr_slots * 2 && grow_slots(t) < 0)
		return -ENOMEM;
	slot = intern_slot(t, key, len, hash);
	if (!*slot) {
		if (t->count >= t->max)
			return -ENOSPC;
		r = intern_new(t, key, len, hash, slot);
		if (r < 0)
			return r;
	}
	*ret_number = *slot - 1;
	return 0;
}
