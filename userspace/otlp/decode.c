// SPDX-License-Identifier: Apache-2.0
/*
 * protobuf-c decodes nested messages by recursion without a limit and
 * allocates a hundred bytes for a message of two: requests are checked for
 * depth first, and decoded into an arena with a bound.
 */
#include "otlp/decode.h"

#include <errno.h>

#include "otlp/wire.h"

static void *decode_alloc(void *arena, size_t len)
{
	return arena_alloc(arena, len);
}

static void decode_free(void *arena, void *p)
{
	/* The arena is freed as a whole. */
}

/* Messages of types that hold no others need no check of depth; most of a request are such. */
static bool decode_holds_messages(const ProtobufCMessageDescriptor *type)
{
	for (unsigned int i = 0; i < type->n_fields; i++)
		if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
			return true;
	return false;
}

static int decode_check_depth(const ProtobufCMessageDescriptor *type, struct wire w, unsigned int depth)
{
	const ProtobufCFieldDescriptor *f;
	struct wire_field field;
	int r;

	if (depth > OTLP_DEPTH_MAX)
		return -EBADMSG;
	while ((r = wire_next(&w, &field)) > 0) {
		if (field.type != WIRE_BYTES)
			continue;
		f = protobuf_c_message_descriptor_get_field(type, field.number);
		if (!f || f->type != PROTOBUF_C_TYPE_MESSAGE || !decode_holds_messages(f->descriptor))
			continue;
		r = decode_check_depth(f->descriptor, wire_of(field.data, field.len), depth + 1);
		if (r < 0)
			return r;
	}
	return r;
}

int otlp_decode(const ProtobufCMessageDescriptor *type, const void *data, size_t len, struct arena *a,
		ProtobufCMessage **ret)
{
	ProtobufCAllocator allocator = {.alloc = decode_alloc, .free = decode_free, .allocator_data = a};
	ProtobufCMessage *m;
	int r = decode_check_depth(type, wire_of(data, len), 0);

	if (r < 0)
		return r;
	m = protobuf_c_message_unpack(type, &allocator, len, data);
	if (!m)
		/* A message that is well-formed on the wire fails only for lack of memory or for its types. */
		return a->used > a->max / 2 ? -E2BIG : -EBADMSG;
	*ret = m;
	return 0;
}
