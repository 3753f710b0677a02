// SPDX-License-Identifier: Apache-2.0
#include "hub/bucket.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NUMBER_MAX 10 /* bytes */

static int bucket_by_node(const void *a, const void *b)
{
	const struct bucket_entry *x = a, *y = b;

	return x->node < y->node ? -1 : x->node > y->node;
}

void bucket_sort(struct bucket_entry *entries, uint32_t n)
{
	qsort(entries, n, sizeof(*entries), bucket_by_node);
}

static uint8_t *bucket_put(uint8_t *to, uint64_t n)
{
	for (; n > 0x7f; n >>= 7)
		*to++ = (uint8_t)(n | 0x80);
	*to++ = (uint8_t)n;
	return to;
}

void bucket_write(struct bucket_writer *w, uint32_t node, uint64_t value)
{
	w->at = bucket_put(w->at, node - w->node);
	w->at = bucket_put(w->at, value);
	w->node = node;
}

/* The pair that begins at i; returns where the next one does. */
static uint32_t bucket_join(const struct bucket_entry *e, uint32_t i, uint32_t n, struct bucket_entry *ret)
{
	*ret = e[i];
	while (++i < n && e[i].node == ret->node)
		ret->value += e[i].value;
	return i;
}

int bucket_encode(struct bucket *b, const struct bucket_entry *sorted, uint32_t n)
{
	uint8_t *data = malloc(MAX(n, 1u) * (size_t)(2 * NUMBER_MAX)), *fit;
	struct bucket_writer w = {.at = data};
	struct bucket_entry pair;

	if (!data)
		return -ENOMEM;
	b->value = b->entries = 0;
	for (uint32_t i = 0; i < n; b->entries++) {
		i = bucket_join(sorted, i, n, &pair);
		bucket_write(&w, pair.node, pair.value);
		b->value += pair.value;
	}
	b->len = (uint32_t)(w.at - data);
	/* Where it cannot be made to fit, the block stays as it is, and counts as it is. */
	fit = realloc(data, MAX(b->len, 1u));
	b->data = fit ? fit : data;
	return 0;
}

void bucket_done(struct bucket *b)
{
	free(b->data);
	b->data = NULL;
}

size_t bucket_memory(const struct bucket *b)
{
	return malloc_usable_size(b->data) + sizeof(size_t);
}
