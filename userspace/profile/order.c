// SPDX-License-Identifier: Apache-2.0
#include "profile/order.h"

#include "base/cleanup.h"

/* What is compared lies beside it: looking each key and stack up again was half the time of sorting. */
struct ordered_sample {
	uint64_t group;       /* workload, slot */
	const uint32_t *root; /* past the outermost frame; the builder's */
	uint32_t nr_frames;
	uint32_t sample;
};

static int order_compare(const void *x, const void *y)
{
	const struct ordered_sample *s = x, *t = y;
	uint32_t shorter = MIN(s->nr_frames, t->nr_frames);

	if (s->group != t->group)
		return s->group < t->group ? -1 : 1;
	for (uint32_t i = 1; i <= shorter; i++) {
		uint32_t a = s->root[-(ptrdiff_t)i], b = t->root[-(ptrdiff_t)i];

		if (a != b)
			return a < b ? -1 : 1;
	}
	return s->nr_frames < t->nr_frames ? -1 : s->nr_frames > t->nr_frames;
}

static struct ordered_sample ordered_sample_of(const struct profile_builder *b, uint32_t number)
{
	const struct sample_key *key = builder_sample(b, number);
	uint32_t count;
	const uint32_t *stack = builder_stack(b, key->stack, &count);

	return (struct ordered_sample){.group = (uint64_t)key->workload << 32 | key->slot,
				       .root = stack + count,
				       .nr_frames = count,
				       .sample = number};
}

int order_samples(const struct profile_builder *b, uint32_t **ret)
{
	uint32_t count = b->samples.count;
	_cleanup_(freep) struct ordered_sample *samples = calloc(MAX(count, 1u), sizeof(*samples));
	uint32_t *order = calloc(MAX(count, 1u), sizeof(*order));

	if (!samples || !order) {
		free(order);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		samples[i] = ordered_sample_of(b, i);
	qsort(samples, count, sizeof(*samples), order_compare);
	for (uint32_t i = 0; i < count; i++)
		order[i] = samples[i].sample;
	*ret = order;
	return 0;
}
