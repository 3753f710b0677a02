/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of one interval and one type in a slot: pairs of node and value,
 * in ascending order of nodes, each as two variable-length numbers (the
 * distance to the node before, the value): some two bytes a pair.
 *
 * Called by the slot, one thread. A bucket owns its bytes.
 * Errors: -ENOMEM.
 */
#ifndef OTP_HUB_BUCKET_H
#define OTP_HUB_BUCKET_H

#include <stddef.h>
#include <stdint.h>

struct bucket_entry {
	uint32_t node;
	uint64_t value;
};

struct bucket {
	uint8_t *data; /* owned */
	uint32_t len;
	uint32_t entries;
	uint64_t start_ns, end_ns; /* Unix */
	uint64_t seq;		   /* of the newest samples in it */
	uint64_t value, folded;	   /* sums; folded is part of value */
	uint32_t type;
};

void bucket_sort(struct bucket_entry *entries, uint32_t n); /* by node */
/* Fills data, len, entries and value from sorted entries, which stay; equal nodes become one pair. */
int bucket_encode(struct bucket *b, const struct bucket_entry *sorted, uint32_t n);
void bucket_done(struct bucket *b);
size_t bucket_memory(const struct bucket *b); /* allocated for it, beside the struct */

/* Writes pairs of ascending nodes to bytes that have room for them. */
struct bucket_writer {
	uint8_t *at;
	uint32_t node;
};

void bucket_write(struct bucket_writer *w, uint32_t node, uint64_t value);

struct bucket_reader {
	const uint8_t *at, *end;
	uint32_t node;
};

static inline struct bucket_reader bucket_read(const struct bucket *b)
{
	return (struct bucket_reader){.at = b->data, .end = b->data + b->len};
}

static inline uint64_t bucket_number(struct bucket_reader *r)
{
	uint64_t n = 0;
	unsigned int shift = 0;

	do {
		n |= (uint64_t)(*r->at & 0x7f) << shift;
		shift += 7;
	} while (*r->at++ & 0x80);
	return n;
}

/* Whether there is one more. */
static inline int bucket_next(struct bucket_reader *r, struct bucket_entry *ret)
{
	if (r->at >= r->end)
		return 0;
	r->node += (uint32_t)bucket_number(r);
	*ret = (struct bucket_entry){.node = r->node, .value = bucket_number(r)};
	return 1;
}

#endif
