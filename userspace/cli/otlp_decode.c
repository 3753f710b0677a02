// SPDX-License-Identifier: Apache-2.0
/*
 * protobuf-c decodes nested messages by recursion without a limit and gives
 * a two-byte message a hundred bytes of memory: hostile files are checked for
 * depth first, and decoded into an arena with a bound.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/otlp.h"

#define ARENA_CHUNK (256u << 10)
#define ARENA_ALIGN 16u

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, size;
	uint8_t data[] __attribute__((aligned(16)));
};

static struct arena_chunk *arena_grow(struct arena *a, size_t len)
{
	size_t size = MAX(len, (size_t)ARENA_CHUNK);
	struct arena_chunk *c = malloc(sizeof(*c) + size);

	if (!c)
		return NULL;
	c->next = a->chunks;
	c->used = 0;
	c->size = size;
	a->chunks = c;
	return c;
}

void *arena_alloc(struct arena *a, size_t len)
{
	struct arena_chunk *c = a->chunks;
	void *p;

	if (len > a->max || a->used > a->max - len)
		return NULL;
	len = ALIGN_UP(MAX(len, (size_t)1), (size_t)ARENA_ALIGN);
	if (!c || c->size - c->used < len)
		c = arena_grow(a, len);
	if (!c)
		return NULL;
	p = c->data + c->used;
	c->used += len;
	a->used += len;
	return p;
}

void *arena_make(struct arena *a, bool *failed, size_t n, size_t size)
{
	size_t len;
	void *p = NULL;

	if (!__builtin_mul_overflow(n, size, &len))
		p = arena_alloc(a, len);
	if (p)
		memset(p, 0, len);
	else
		*failed = true;
	return p;
}

void arena_done(struct arena *a)
{
	struct arena_chunk *c, *next;

	for (c = a->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	*a = (struct arena){.max = a->max};
}

static void *arena_pb_alloc(void *arena, size_t len)
{
	return arena_alloc(arena, len);
}

static void arena_pb_free(void *arena, void *p)
{
	/* The arena goes as a whole. */
}

struct wire {
	const uint8_t *p, *end;
};

static int wire_varint(struct wire *w, uint64_t *ret)
{
	uint64_t v = 0;
	unsigned int shift;

	for (shift = 0; shift < 64 && w->p < w->end; shift += 7) {
		v |= (uint64_t)(*w->p & 0x7f) << shift;
		if (!(*w->p++ & 0x80)) {
			*ret = v;
			return 0;
		}
	}
	return -EBADMSG;
}

static int wire_skip(struct wire *w, uint64_t n)
{
	if (n > (uint64_t)(w->end - w->p))
		return -EBADMSG;
	w->p += n;
	return 0;
}

static int check_depth(const ProtobufCMessageDescriptor *type, struct wire w, unsigned int depth);

static int check_nested(const ProtobufCMessageDescriptor *type, uint64_t number, struct wire *w, unsigned int depth)
{
	const ProtobufCFieldDescriptor *f;
	struct wire inner;
	uint64_t len;

	if (wire_varint(w, &len) < 0)
		return -EBADMSG;
	inner = *w;
	if (wire_skip(w, len) < 0)
		return -EBADMSG;
	inner.end = w->p;
	f = number <= UINT32_MAX ? protobuf_c_message_descriptor_get_field(type, (unsigned int)number) : NULL;
	if (!f || f->type != PROTOBUF_C_TYPE_MESSAGE)
		return 0;
	return check_depth(f->descriptor, inner, depth + 1);
}

static int check_depth(const ProtobufCMessageDescriptor *type, struct wire w, unsigned int depth)
{
	uint64_t tag, skipped;
	int r = 0;

	if (depth > OTLP_DEPTH_MAX)
		return -EBADMSG;
	while (!r && w.p < w.end) {
		if (wire_varint(&w, &tag) < 0)
			return -EBADMSG;
		switch (tag & 7) {
		case 0:
			r = wire_varint(&w, &skipped);
			break;
		case 1:
			r = wire_skip(&w, 8);
			break;
		case 2:
			r = check_nested(type, tag >> 3, &w, depth);
			break;
		case 5:
			r = wire_skip(&w, 4);
			break;
		default:
			return -EBADMSG;
		}
	}
	return r;
}

int otlp_decode(const ProtobufCMessageDescriptor *type, const void *data, size_t len, struct arena *a,
		ProtobufCMessage **ret)
{
	ProtobufCAllocator allocator = {.alloc = arena_pb_alloc, .free = arena_pb_free, .allocator_data = a};
	struct wire w = {.p = data, .end = (const uint8_t *)data + len};
	ProtobufCMessage *m;
	int r = check_depth(type, w, 0);

	if (r < 0)
		return r;
	m = protobuf_c_message_unpack(type, &allocator, len, data);
	if (!m)
		/* A message that is whole on the wire fails for want of memory only, or in its types. */
		return a->used > a->max / 2 ? -E2BIG : -EBADMSG;
	*ret = m;
	return 0;
}
