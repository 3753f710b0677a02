/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is freed as a whole: a decoded request, or all messages of one
 * that is being written.
 *
 * Called by decoders and writers, one thread per arena.
 * Lifetime: zero-initialise with max set; arena_done frees everything and
 * leaves an empty arena of the same bound.
 * Bound: max bytes of all allocations together. Beyond it, and when out of
 * memory, a call returns NULL.
 * Cost: chunks of 256 KiB, or of one larger allocation.
 */
#ifndef OTP_BASE_ARENA_H
#define OTP_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* owned list */
	size_t used, max;           /* bytes */
};

void *arena_alloc(struct arena *a, size_t len); /* 16-byte aligned, not zeroed */
/* n zeroed objects. On failure *failed is set, for one check at the end. */
void *arena_make(struct arena *a, bool *failed, size_t n, size_t size);
/* One object, initialised. */
#define ARENA_MAKE(arena, failed, type, ...)                               \
	({                                                                 \
		type *_m = arena_make((arena), (failed), 1, sizeof(type)); \
		if (_m)                                                    \
			*_m = (type)__VA_ARGS__;                           \
		_m;                                                        \
	})
void arena_done(struct arena *a);

#endif
