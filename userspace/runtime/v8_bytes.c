// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/v8.h"

void v8_bytes_open(struct v8_bytes *b, struct memory *m, uint64_t at, uint64_t end)
{
	b->memory = m;
	b->at = at;
	b->end = end < at ? at : end;
	b->nr = b->used = 0;
}

int v8_bytes_next(struct v8_bytes *b, uint8_t *ret)
{
	if (b->used == b->nr) {
		uint64_t n = MIN(b->end - b->at, (uint64_t)sizeof(b->bytes));
		int err = n ? memory_read(b->memory, b->at, b->bytes, n) : -ENOENT;

		if (err)
			return err;
		b->at += n;
		b->nr = (uint32_t)n;
		b->used = 0;
	}
	*ret = b->bytes[b->used++];
	return 0;
}

int v8_bytes_number(struct v8_bytes *b, unsigned bits, uint64_t *ret)
{
	uint64_t n = 0;
	uint8_t byte;

	for (unsigned shift = 0; shift < bits; shift += 7) {
		int err = v8_bytes_next(b, &byte);

		if (err)
			return err;
		n |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		*ret = n;
		return 0;
	}
	return -EBADMSG;
}

int v8_bytes_skip(struct v8_bytes *b, uint64_t nr)
{
	uint64_t here = MIN(nr, (uint64_t)(b->nr - b->used));

	if (nr - here > b->end - b->at)
		return -EBADMSG;
	b->used += (uint32_t)here;
	b->at += nr - here;
	return 0;
}
