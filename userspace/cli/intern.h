/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned byte strings with dense numbers: the first key is 0, the next new
 * one 1, and so on. All tables of a recording and the nodes of a call tree
 * are made of this: what is equal gets one number.
 *
 * Called by the command line tool, one thread. Keys are compared byte by
 * byte, so structures used as keys must have no padding.
 * Lifetime: intern_init, intern_done. Keys are copied, 8-byte aligned, and
 * stay where they are until intern_done.
 * Bounds: at most max keys, -ENOSPC beyond.
 */
#ifndef OTP_CLI_INTERN_H
#define OTP_CLI_INTERN_H

#include <stddef.h>
#include <stdint.h>

struct intern_chunk;

struct intern_entry {
	const void *key; /* borrowed from a chunk */
	uint64_t hash;
	size_t len;
};

struct intern {
	struct intern_chunk *chunks; /* owned list */
	struct intern_entry *entries;
	uint32_t *slots; /* number + 1, 0: free */
	uint32_t count, cap, nr_slots, max;
};

void intern_init(struct intern *t, uint32_t max);
void intern_done(struct intern *t);
/* 0 and the number of the key, new or known; -ENOSPC, -ENOMEM. */
int intern_add(struct intern *t, const void *key, size_t len, uint32_t *ret_number);

static inline const void *intern_key(const struct intern *t, uint32_t number)
{
	return t->entries[number].key;
}

static inline size_t intern_len(const struct intern *t, uint32_t number)
{
	return t->entries[number].len;
}

#endif
