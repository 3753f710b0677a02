// SPDX-License-Identifier: Apache-2.0
#include "base/intern.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

#define CHUNK_FIRST   1024u
#define CHUNK_LARGEST (256u << 10)
#define KEYS_FIRST    64u
/* A reset keeps at most this many times the memory that was in use. */
#define RESET_SLACK 8

struct intern_chunk {
	struct intern_chunk *next; /* older */
	size_t used, size;
	uint64_t data[];
};

void intern_init(struct intern *t, uint32_t max_keys, size_t max_bytes)
{
	*t = (struct intern){.max_keys = MIN(max_keys, UINT32_MAX / 4), .max_bytes = max_bytes, .first_chunk = CHUNK_FIRST};
}

static void intern_pop_chunk(struct intern *t)
{
	struct intern_chunk *c = t->chunks;

	t->chunks = c->next;
	free(c);
}

void intern_done(struct intern *t)
{
	while (t->chunks)
		intern_pop_chunk(t);
	free(t->entries);
	free(t->slots);
	intern_init(t, t->max_keys, t->max_bytes);
}

/* Replaces several chunks by one, of the size that the next set needs if it is like this one. */
static void intern_reset_chunks(struct intern *t)
{
	if (t->chunks && !t->chunks->next) {
		t->chunks->used = 0;
		return;
	}
	while (t->chunks)
		intern_pop_chunk(t);
	t->first_chunk = MAX(ALIGN_UP(t->bytes, 4096u), (size_t)CHUNK_FIRST);
}

void intern_reset(struct intern *t)
{
	bool slack = t->cap > 4096 && t->cap / RESET_SLACK > t->count;
	bool slack_bytes = t->chunks && t->chunks->size > 65536 && t->chunks->size / RESET_SLACK > t->bytes;

	if (slack || slack_bytes) {
		intern_done(t);
		return;
	}
	intern_reset_chunks(t);
	t->count = 0;
	t->bytes = 0;
	if (t->slots)
		memset(t->slots, 0, t->nr_slots * sizeof(*t->slots));
}

static struct intern_chunk *intern_push_chunk(struct intern *t, size_t len)
{
	size_t size = t->chunks ? MIN(t->chunks->size * 2, (size_t)CHUNK_LARGEST) : t->first_chunk;
	struct intern_chunk *c;

	size = MAX(size, len);
	c = malloc(sizeof(*c) + size);
	if (!c)
		return NULL;
	*c = (struct intern_chunk){.next = t->chunks, .size = size};
	t->chunks = c;
	return c;
}

static void *intern_copy(struct intern *t, const void *key, size_t len)
{
	struct intern_chunk *c = t->chunks;
	size_t room = ALIGN_UP(len, sizeof(uint64_t));
	void *to;

	if (!c || c->size - c->used < room)
		c = intern_push_chunk(t, room);
	if (!c)
		return NULL;
	to = (uint8_t *)c->data + c->used;
	c->used += room;
	if (len)
		memcpy(to, key, len);
	return to;
}

static uint32_t *intern_free_slot(uint32_t *slots, uint32_t nr_slots, uint32_t hash)
{
	uint32_t i = hash & (nr_slots - 1);

	while (slots[i])
		i = (i + 1) & (nr_slots - 1);
	return &slots[i];
}

/* Slots are filled in the order of numbers, as additions did: intern_truncate relies on it. */
static int intern_grow_slots(struct intern *t, uint32_t nr_slots)
{
	uint32_t *slots = calloc(nr_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->count; i++)
		*intern_free_slot(slots, nr_slots, t->entries[i].hash) = i + 1;
	free(t->slots);
	t->slots = slots;
	t->nr_slots = nr_slots;
	return 0;
}

static int intern_grow(struct intern *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : KEYS_FIRST;
	struct intern_entry *entries;

	if (t->count < t->cap)
		return 0;
	entries = reallocarray(t->entries, cap, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	t->entries = entries;
	/* Half full at most: probes stay short and always end. */
	if (t->nr_slots < cap * 2 && intern_grow_slots(t, cap * 2) < 0)
		return -ENOMEM;
	t->cap = cap;
	return 0;
}

static const uint32_t *intern_find(const struct intern *t, const void *key, size_t len, uint32_t hash)
{
	uint32_t i = hash & (t->nr_slots - 1);

	for (; t->nr_slots && t->slots[i]; i = (i + 1) & (t->nr_slots - 1)) {
		const struct intern_entry *e = &t->entries[t->slots[i] - 1];

		if (e->hash == hash && e->len == len && (!len || memcmp(e->key, key, len) == 0))
			return &t->slots[i];
	}
	return NULL;
}

static int intern_append(struct intern *t, const void *key, size_t len, uint32_t hash)
{
	const void *copy;

	if (t->count >= t->max_keys || len > UINT32_MAX || len > t->max_bytes - t->bytes)
		return -ENOSPC;
	if (intern_grow(t) < 0 || !(copy = intern_copy(t, key, len)))
		return -ENOMEM;
	t->entries[t->count] = (struct intern_entry){.key = copy, .len = (uint32_t)len, .hash = hash};
	t->bytes += len;
	t->count++;
	*intern_free_slot(t->slots, t->nr_slots, hash) = t->count;
	return 1;
}

int intern_add(struct intern *t, const void *key, size_t len, uint32_t *ret_number)
{
	uint32_t hash = (uint32_t)hash_bytes(key, len, 0);
	const uint32_t *slot = intern_find(t, key, len, hash);
	int r;

	if (slot) {
		*ret_number = *slot - 1;
		return 0;
	}
	r = intern_append(t, key, len, hash);
	if (r > 0)
		*ret_number = t->count - 1;
	return r;
}

/* The newest key's bytes are the last of the newest chunk that is not empty. */
static void intern_free_bytes(struct intern *t, const struct intern_entry *e)
{
	const uint8_t *key = e->key, *data = (const uint8_t *)t->chunks->data;

	while (key < data || key > data + t->chunks->size) {
		intern_pop_chunk(t);
		data = (const uint8_t *)t->chunks->data;
	}
	t->chunks->used = (size_t)(key - data);
	t->bytes -= e->len;
}

void intern_truncate(struct intern *t, uint32_t count)
{
	/*
	 * In reverse order of arrival: each key then is the last one of its
	 * probe sequence, and its slot can simply become free.
	 */
	while (t->count > count) {
		const struct intern_entry *e = &t->entries[t->count - 1];
		uint32_t i = e->hash & (t->nr_slots - 1);

		while (t->slots[i] != t->count)
			i = (i + 1) & (t->nr_slots - 1);
		t->slots[i] = 0;
		intern_free_bytes(t, e);
		t->count--;
	}
}

size_t intern_memory(const struct intern *t)
{
	size_t bytes = t->cap * sizeof(*t->entries) + t->nr_slots * sizeof(*t->slots);

	for (const struct intern_chunk *c = t->chunks; c; c = c->next)
		bytes += sizeof(*c) + c->size;
	return bytes;
}
