/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader of protobuf's wire format that allocates nothing: one field a
 * call, borrowed from the message. And the writing of a field whose content is
 * there already.
 *
 * Called by the exporter, on a server's answer and on requests of which it needs
 * only a count, and by the decoder before it decodes. The input may be hostile:
 * a general decoder stores every unknown field on the heap, in some thirty times
 * its encoded bytes.
 */
#ifndef OTP_OTLP_WIRE_H
#define OTP_OTLP_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire {
	const uint8_t *at, *end;
};

struct wire_field {
	uint32_t number;
	uint32_t type; /* enum wire_type */
	uint64_t value;      /* VARINT, FIXED */
	const uint8_t *data; /* BYTES: borrowed as long as the message */
	size_t len;
};

static inline struct wire wire_of(const void *data, size_t len)
{
	return (struct wire){.at = data, .end = len ? (const uint8_t *)data + len : data};
}

/* 1 and a field, 0 at the end, -EBADMSG. */
int wire_next(struct wire *w, struct wire_field *ret);

struct buf;
/* Appends data as the content of the bytes field of that number; failure: out->failed. */
void wire_append_block(struct buf *out, uint32_t number, const void *data, size_t len);

#endif
