// SPDX-License-Identifier: Apache-2.0
#include "otlp/wire.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"

#define WIRE_NUMBER_MAX 0x1fffffffu /* field numbers have 29 bits */

static int wire_read_long_varint(struct wire *w, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte;

		if (w->at == w->end)
			return -EBADMSG;
		byte = *w->at++;
		if (shift == 63 && byte > 1)
			return -EBADMSG;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return 0;
		}
	}
	return -EBADMSG;
}

/* Most varints have one byte: keys, and the lengths of small messages. */
static inline int wire_read_varint(struct wire *w, uint64_t *ret)
{
	if (w->at == w->end || *w->at & 0x80)
		return wire_read_long_varint(w, ret);
	*ret = *w->at++;
	return 0;
}

static int wire_read_fixed(struct wire *w, size_t size, uint64_t *ret)
{
	uint64_t value = 0;

	if ((size_t)(w->end - w->at) < size)
		return -EBADMSG;
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)w->at[i] << (8 * i);
	w->at += size;
	*ret = value;
	return 0;
}

static int wire_read_bytes(struct wire *w, struct wire_field *ret)
{
	uint64_t len;

	if (wire_read_varint(w, &len) < 0 || len > (size_t)(w->end - w->at))
		return -EBADMSG;
	ret->data = w->at;
	ret->len = (size_t)len;
	w->at += len;
	return 0;
}

static int wire_read_value(struct wire *w, struct wire_field *ret)
{
	switch (ret->type) {
	case WIRE_VARINT:
		return wire_read_varint(w, &ret->value);
	case WIRE_FIXED64:
		return wire_read_fixed(w, 8, &ret->value);
	case WIRE_FIXED32:
		return wire_read_fixed(w, 4, &ret->value);
	case WIRE_BYTES:
		return wire_read_bytes(w, ret);
	default: /* groups: not in proto3 */
		return -EBADMSG;
	}
}

int wire_next(struct wire *w, struct wire_field *ret)
{
	struct wire_field field = {0};
	uint64_t key;

	if (w->at == w->end)
		return 0;
	if (wire_read_varint(w, &key) < 0 || key >> 3 == 0 || key >> 3 > WIRE_NUMBER_MAX)
		return -EBADMSG;
	field.number = (uint32_t)(key >> 3);
	field.type = key & 7;
	if (wire_read_value(w, &field) < 0)
		return -EBADMSG;
	*ret = field;
	return 1;
}

static size_t wire_put_varint(uint8_t *to, uint64_t value)
{
	size_t n = 0;

	do
		to[n++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
	while (value >>= 7);
	return n;
}

void wire_append_block(struct buf *out, uint32_t number, const void *data, size_t len)
{
	uint8_t head[16];
	size_t n = wire_put_varint(head, (uint64_t)number << 3 | WIRE_BYTES);

	n += wire_put_varint(head + n, len);
	buf_add(out, head, n);
	buf_add(out, data, len);
}
