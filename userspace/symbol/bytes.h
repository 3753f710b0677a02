/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of bytes, read from its front. Private to symbol/.
 * A read beyond the end returns 0 and sets bad for good. The bytes are borrowed.
 */
#ifndef OTP_SYMBOL_BYTES_H
#define OTP_SYMBOL_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

struct bytes {
	const uint8_t *p, *end;
	bool bad;
};

/* The first eight of len bytes, as a little-endian number. */
static inline uint64_t bytes_take(struct bytes *b, size_t len)
{
	uint64_t v = 0;

	if ((size_t)(b->end - b->p) < len) {
		b->bad = true;
		b->p = b->end;
		return 0;
	}
	memcpy(&v, b->p, MIN(len, sizeof(v)));
	b->p += len;
	return v;
}

/* At most 64 bits; a longer number is bad. */
static inline uint64_t bytes_uleb(struct bytes *b)
{
	uint64_t v = 0;

	for (unsigned shift = 0; b->p < b->end && shift < 64; shift += 7) {
		uint8_t byte = *b->p++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	b->bad = true;
	return 0;
}

#endif
