/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of byte strings (keys) that numbers them from 0 in the order of their
 * arrival: equal keys have one number. The tables of a profile, of a request
 * and of a call tree are sets of this kind.
 *
 * Called by the builders of such tables; one thread per set. Keys are copied
 * and compared as bytes, so a structure used as a key has no padding that is
 * not zero.
 * Lifetime: intern_init, intern_done. A key is aligned to 8 bytes and stays at
 * its address until it is removed.
 * Bounds: max_keys, and max_bytes of all keys together; -ENOSPC beyond.
 * Cost: a hash of the key and, on average, one comparison; 24 bytes a key
 * besides the key itself.
 */
#ifndef OTP_BASE_INTERN_H
#define OTP_BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

struct intern_chunk;

struct intern_entry {
	const void *key; /* borrowed from a chunk */
	uint32_t len, hash;
};

struct intern {
	struct intern_chunk *chunks; /* owned list, the newest first */
	struct intern_entry *entries; /* owned, by number */
	uint32_t *slots;              /* owned hash table: number + 1, 0: free */
	uint32_t count, cap, nr_slots, max_keys;
	size_t bytes, max_bytes; /* of all keys */
	size_t first_chunk;      /* size of the next set's first chunk */
};

void intern_init(struct intern *t, uint32_t max_keys, size_t max_bytes);
void intern_done(struct intern *t); /* frees all; the set is empty and may be used again */
/* Empties the set; its memory is kept unless it is far more than was in use. */
void intern_reset(struct intern *t);
/* 1: new, 0: known; the key's number either way. -ENOSPC, -ENOMEM: nothing was added. */
int intern_add(struct intern *t, const void *key, size_t len, uint32_t *ret_number);
/* Removes the latest keys until count are left. */
void intern_truncate(struct intern *t, uint32_t count);
size_t intern_memory(const struct intern *t); /* bytes allocated */

/* intern_add for callers that do not need to know whether the key is new: 0 or negative errno. */
static inline int intern_number(struct intern *t, const void *key, size_t len, uint32_t *ret_number)
{
	int r = intern_add(t, key, len, ret_number);

	return r < 0 ? r : 0;
}

static inline const void *intern_key(const struct intern *t, uint32_t number)
{
	return t->entries[number].key;
}

static inline size_t intern_len(const struct intern *t, uint32_t number)
{
	return t->entries[number].len;
}

#endif
