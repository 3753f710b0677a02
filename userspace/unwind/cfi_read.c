// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/cfi.h"
#include "unwind/dwarf.h"

void reader_init(struct cfi_reader *r, struct binary *b, bool by_offset, uint64_t pos, uint64_t end)
{
	/* Not the window: clearing it would cost more than most reads. */
	r->binary = b;
	r->pos = pos;
	r->end = end;
	r->window_at = 0;
	r->window_len = 0;
	r->error = pos > end ? -EBADMSG : 0;
	r->by_offset = by_offset;
}

static bool window_holds(const struct cfi_reader *r, unsigned size)
{
	return r->pos >= r->window_at && r->pos - r->window_at < r->window_len &&
	       r->window_len - (r->pos - r->window_at) >= size;
}

static bool window_fill(struct cfi_reader *r, unsigned size)
{
	size_t len = MIN((uint64_t)sizeof(r->window), r->end - r->pos);
	ssize_t n = cfi_read(r->binary, r->by_offset, r->pos, r->window, len);

	/* A window may reach past its segment where the entry itself does not. */
	if (n < 0 && len > size)
		n = cfi_read(r->binary, r->by_offset, r->pos, r->window, size);
	r->window_at = r->pos;
	r->window_len = n > 0 ? (uint32_t)n : 0;
	if (r->window_len >= size)
		return true;
	r->error = n == -ENOMEM ? -ENOMEM : -EBADMSG;
	return false;
}

uint64_t reader_uint(struct cfi_reader *r, unsigned size)
{
	uint64_t v = 0;

	if (r->error)
		return 0;
	if (size > r->end - r->pos) {
		r->error = -EBADMSG;
		return 0;
	}
	if (!window_holds(r, size) && !window_fill(r, size))
		return 0;
	memcpy(&v, r->window + (r->pos - r->window_at), size);
	r->pos += size;
	return v;
}

/* More than ten bytes cannot be a 64-bit number: broken, however it goes on. */
static uint64_t leb(struct cfi_reader *r, unsigned *ret_bits)
{
	uint64_t v = 0, byte;
	unsigned shift = 0;

	do {
		byte = reader_uint(r, 1);
		if (shift < 64)
			v |= (byte & 0x7f) << shift;
		else
			r->error = -EBADMSG;
		shift += 7;
	} while ((byte & 0x80) && !r->error);
	*ret_bits = shift;
	return r->error ? 0 : v;
}

uint64_t reader_uleb(struct cfi_reader *r)
{
	unsigned bits;

	return leb(r, &bits);
}

int64_t reader_sleb(struct cfi_reader *r)
{
	unsigned bits;
	uint64_t v = leb(r, &bits);

	if (bits < 64 && (v >> (bits - 1)) & 1)
		v |= ~0ULL << bits;
	return (int64_t)v;
}

void reader_skip(struct cfi_reader *r, uint64_t len)
{
	if (r->error)
		return;
	if (len > r->end - r->pos)
		r->error = -EBADMSG;
	else
		r->pos += len;
}

unsigned encoded_size(uint8_t encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		return 8;
	case PE_UDATA4:
	case PE_SDATA4:
		return 4;
	case PE_UDATA2:
	case PE_SDATA2:
		return 2;
	default:
		return 0;
	}
}

static uint64_t encoded_value(struct cfi_reader *r, uint8_t encoding)
{
	switch (encoding & PE_FORMAT) {
	case PE_ULEB128:
		return reader_uleb(r);
	case PE_SLEB128:
		return (uint64_t)reader_sleb(r);
	case PE_SDATA2:
		return (uint64_t)(int64_t)(int16_t)reader_uint(r, 2);
	case PE_SDATA4:
		return (uint64_t)(int64_t)(int32_t)reader_uint(r, 4);
	default:
		if (encoded_size(encoding))
			return reader_uint(r, encoded_size(encoding));
		r->error = -EBADMSG;
		return 0;
	}
}

uint64_t reader_encoded(struct cfi_reader *r, uint8_t encoding, uint64_t data_base)
{
	uint64_t base;

	switch (encoding & ~PE_FORMAT) {
	case PE_ABS:
		base = 0;
		break;
	case PE_PCREL:
		base = r->pos;
		break;
	case PE_DATAREL:
		base = data_base;
		break;
	default:
		r->error = -EBADMSG;
		return 0;
	}
	return base + encoded_value(r, encoding);
}
