// SPDX-License-Identifier: Apache-2.0
#include "profile/keyset.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

#define KEYSET_FIRST 64
/* What a quiet interval may keep of a busy one's memory, as a multiple of its own need. */
#define KEYSET_SLACK 8

void keyset_init(struct keyset *k, uint32_t max_keys, size_t max_bytes)
{
	*k = (struct keyset){.max_keys = MIN(max_keys, UINT32_MAX / 4)};
	/* Positions are 32 bits wide; 0 would be no bound at all. */
	buf_init(&k->bytes, MAX(MIN(max_bytes, (size_t)UINT32_MAX), 1));
}

void keyset_done(struct keyset *k)
{
	buf_done(&k->bytes);
	free(k->keys);
	free(k->slots);
	*k = (struct keyset){.max_keys = k->max_keys, .bytes.max = k->bytes.max};
}

void keyset_reset(struct keyset *k)
{
	bool slack = k->cap > 4096 && k->cap / KEYSET_SLACK > k->count;
	bool slack_bytes = k->bytes.cap > 65536 && k->bytes.cap / KEYSET_SLACK > k->bytes.len;

	if (slack || slack_bytes) {
		keyset_done(k);
		return;
	}
	buf_reset(&k->bytes);
	k->count = 0;
	if (k->slots)
		memset(k->slots, 0, k->nr_slots * sizeof(*k->slots));
}

static uint32_t *free_slot(const struct keyset *k, uint32_t *slots, uint32_t nr_slots, uint32_t hash)
{
	uint32_t i = hash & (nr_slots - 1);

	while (slots[i])
		i = (i + 1) & (nr_slots - 1);
	return &slots[i];
}

/* Slots are filled in the order of numbers, as additions did: truncate relies on it. */
static int grow_slots(struct keyset *k, uint32_t nr_slots)
{
	uint32_t *slots = calloc(nr_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < k->count; i++)
		*free_slot(k, slots, nr_slots, k->keys[i].hash) = i + 1;
	free(k->slots);
	k->slots = slots;
	k->nr_slots = nr_slots;
	return 0;
}

static int grow(struct keyset *k)
{
	uint32_t cap = k->cap ? k->cap * 2 : KEYSET_FIRST;
	struct keyset_key *keys;

	if (k->count < k->cap)
		return 0;
	keys = reallocarray(k->keys, cap, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	k->keys = keys;
	k->cap = cap;
	/* Half full at most. */
	return k->nr_slots < cap * 2 ? grow_slots(k, cap * 2) : 0;
}

static uint32_t *find(const struct keyset *k, const void *key, size_t len, uint32_t hash)
{
	uint32_t i = hash & (k->nr_slots - 1);

	for (; k->slots[i]; i = (i + 1) & (k->nr_slots - 1)) {
		uint32_t number = k->slots[i] - 1;

		if (k->keys[number].hash == hash && k->keys[number].len == len &&
		    (!len || memcmp(keyset_key(k, number), key, len) == 0))
			return &k->slots[i];
	}
	return NULL;
}

int keyset_add(struct keyset *k, const void *key, size_t len, uint32_t *ret_number)
{
	uint32_t hash = (uint32_t)hash_bytes(key, len, 0), *slot;
	size_t at = k->bytes.len;

	slot = k->nr_slots ? find(k, key, len, hash) : NULL;
	if (slot) {
		*ret_number = *slot - 1;
		return 0;
	}
	if (k->count >= k->max_keys || len > k->bytes.max - k->bytes.len)
		return -ENOSPC;
	if (grow(k) < 0)
		return -ENOMEM;
	buf_add(&k->bytes, key, len);
	if (k->bytes.failed) {
		k->bytes.failed = false;
		return -ENOMEM;
	}
	k->keys[k->count] = (struct keyset_key){.at = (uint32_t)at, .len = (uint32_t)len, .hash = hash};
	*free_slot(k, k->slots, k->nr_slots, hash) = k->count + 1;
	*ret_number = k->count++;
	return 1;
}

void keyset_truncate(struct keyset *k, uint32_t count)
{
	/*
	 * In reverse order of arrival: each key then is the last one of its
	 * probe sequence, and its slot can simply become free.
	 */
	while (k->count > count) {
		uint32_t number = k->count - 1, i = k->keys[number].hash & (k->nr_slots - 1);

		while (k->slots[i] != number + 1)
			i = (i + 1) & (k->nr_slots - 1);
		k->slots[i] = 0;
		k->bytes.len = k->keys[number].at;
		k->count = number;
	}
}

size_t keyset_memory(const struct keyset *k)
{
	return k->bytes.cap + k->cap * sizeof(*k->keys) + k->nr_slots * sizeof(*k->slots);
}
