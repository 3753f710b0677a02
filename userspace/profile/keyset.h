/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of byte strings that numbers them in order of arrival. Every table of
 * a profile is one: equal entries get one number, whatever they consist of.
 * Keys are compared and hashed as bytes, so structures used as keys have no
 * padding that is not zero.
 *
 * Used within profile/ only. Bounds: max_keys and max_bytes (of the keys).
 * keyset_truncate takes back the latest additions, exactly.
 */
#ifndef OTP_PROFILE_KEYSET_H
#define OTP_PROFILE_KEYSET_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct keyset_key {
	uint32_t at, len, hash;
};

struct keyset {
	struct buf bytes; /* the keys, one after the other */
	struct keyset_key *keys;
	uint32_t *slots; /* number + 1, 0: free */
	uint32_t count, cap, nr_slots, max_keys;
};

void keyset_init(struct keyset *k, uint32_t max_keys, size_t max_bytes);
void keyset_done(struct keyset *k);
/* Empty again. Memory stays while it is not far more than what was in use. */
void keyset_reset(struct keyset *k);
/* 1: new, 0: was there; *ret_number either way. -ENOSPC, -ENOMEM: nothing added. */
int keyset_add(struct keyset *k, const void *key, size_t len, uint32_t *ret_number);
void keyset_truncate(struct keyset *k, uint32_t count);
size_t keyset_memory(const struct keyset *k);

/* Borrowed until the next add. */
static inline const void *keyset_key(const struct keyset *k, uint32_t number)
{
	return k->bytes.data + k->keys[number].at;
}

static inline size_t keyset_len(const struct keyset *k, uint32_t number)
{
	return k->keys[number].len;
}

#endif
