/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slot of one workload: its recent samples as one call tree and a bucket of
 * (node, value) pairs for each interval and type, within a bound of bytes.
 *
 * What arrives is never more than the bound for long: the oldest buckets are
 * evicted, and the tree gives up the nodes and names that no bucket uses. Where
 * one interval alone needs more nodes or names than the slot may have, stacks
 * end in a marker, SLOT_FOLDED, below the last function that there was room for;
 * they are counted as folded, and totals stay as they are. Older buckets are
 * merged: after 15 minutes to one a minute, after two hours to one for ten.
 *
 * Called by the store, one thread per slot. Lifetime: slot_new, slot_free.
 * What accessors return is borrowed until the next slot_add or slot_clear.
 * Ids: numbers of nodes and functions hold while the generation is the same.
 * Ledger, of values: taken = kept + folded + evicted + refused, at any time.
 * Cost: 32 bytes a node, some two bytes a pair; an answer decodes the buckets
 * of its range and makes one pass over the nodes. While the tree is made
 * smaller, there are two.
 */
#ifndef OTP_HUB_SLOT_H
#define OTP_HUB_SLOT_H

#include <stdbool.h>

#include "graph/tree.h"
#include "graph/values.h"
#include "hub/bucket.h"
#include "recording/view.h"

#define SLOT_FOLDED    "[folded]"
#define SLOT_TYPES     8
#define SLOT_UNIT      128
#define SLOT_BYTES_MIN (256u << 10)

/* A type of samples. Plain data. */
struct hub_type {
	char name[VIEW_NAME], unit[SLOT_UNIT];
	bool cpu;	/* values are CPU time, each of period ns */
	int64_t period; /* of the newest samples; 0: unknown */
};

void hub_type_of(const struct recording *r, const struct rec_view *v, struct hub_type *ret);

/* Where a function begins; 0: unknown. */
struct slot_place {
	uint32_t file; /* string of the tree */
	uint32_t line;
};

struct slot_counts {
	uint64_t taken, kept, folded, evicted, refused;
};

struct slot {
	struct tree *tree;	   /* owned */
	struct slot_place *places; /* owned, by function of the tree */
	uint32_t places_cap;
	struct bucket *buckets; /* owned, in the order of arrival */
	uint32_t nr_buckets, buckets_cap;
	struct hub_type types[SLOT_TYPES];
	uint32_t nr_types;
	size_t max_bytes, bucket_bytes;
	uint32_t max_nodes; /* of the tree, a part of them for markers only */
	uint32_t generation;
	uint64_t seq; /* of the newest samples; 0: none */
	struct slot_counts counts;
};

/* max_bytes: at least SLOT_BYTES_MIN. -ENOMEM. generation: the first; not 0. */
int slot_new(size_t max_bytes, uint32_t generation, struct slot **ret);
struct slot *slot_free(struct slot *s); /* NULL */
static inline void slot_freep(struct slot **slot)
{
	slot_free(*slot);
}

/* Another bound. Less than before may evict, and is a new generation; -ENOMEM: everything was evicted. */
int slot_resize(struct slot *s, size_t max_bytes);
void slot_clear(struct slot *s); /* evicts everything; a new generation */

/* Samples of one recording that belong to the slot. */
struct slot_input {
	const struct recording *rec;
	const struct rec_views *views; /* of rec */
	const uint32_t *samples;       /* their numbers */
	uint32_t count;
	uint64_t seq;			     /* greater than that of all before */
	uint64_t now_ns, max_past_ns;	     /* Unix; times in the future, or longer ago, become now */
};

/* Every sample is taken: where there is no room for it, it is folded or refused. */
void slot_add(struct slot *s, const struct slot_input *in);

/* The bytes of all that the slot owns. */
size_t slot_memory(const struct slot *s);

/* Which buckets an answer is made of: those whose middle lies in [from_ns, to_ns) and that arrived after a seq. */
struct slot_range {
	uint32_t type;
	uint64_t from_ns, to_ns; /* Unix */
	uint64_t after;		 /* seq; 0: all */
};

struct slot_sum {
	uint64_t start_ns, end_ns; /* that the buckets cover; 0, 0: there are none */
	uint64_t value, folded;
	uint32_t buckets;
};

bool slot_range_has(const struct slot_range *r, const struct bucket *b);
/* The values of a range by node, before values_sum. -ENOMEM. */
int slot_values(const struct slot *s, const struct slot_range *r, struct values *v, struct slot_sum *ret);
void slot_sum(const struct slot *s, const struct slot_range *r, struct slot_sum *ret);
/* The type of that name; "": CPU time, or the first where there is none; -ENOENT. */
int slot_type(const struct slot *s, const char *name, uint32_t *ret);

/* The end of its newest bucket, Unix time; 0: it is empty. */
uint64_t slot_newest_ns(const struct slot *s);

#endif
