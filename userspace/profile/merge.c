// SPDX-License-Identifier: Apache-2.0
/* Merges one profile's samples into another one, whose tables number the same entries differently. */
#include <string.h>

#include "base/cleanup.h"
#include "profile/builder.h"

struct merge {
	struct profile_builder *to;
	const struct profile_builder *from;
	uint32_t *locations; /* by address: number in to + 1, 0: not there yet; owned */
	uint32_t workload;   /* of the current sample: its number in to */
};

/* A location by address, with the number that its image has in to. */
static int merge_address(struct merge *m, uint32_t number, uint32_t *ret)
{
	struct location_key key = *builder_location(m->from, number);
	int image;

	if (key.image >= IMAGE_FILE) {
		image = images_take(&m->to->images, &m->from->images.list[key.image]);
		if (image < 0)
			return image;
		key.image = (uint32_t)image;
	}
	return builder_add_location(m->to, &key, m->workload, ret);
}

static int merge_location(struct merge *m, uint32_t number, uint32_t *ret)
{
	int r;

	/* Which of its text code keeps depends on the workload. */
	if (builder_location_head(m->from, number)->is_code)
		return builder_add_code(m->to, builder_code(m->from, number), m->workload, ret);
	if (m->locations[number]) {
		*ret = m->locations[number] - 1;
		return 0;
	}
	r = merge_address(m, number, ret);
	if (r == 0)
		m->locations[number] = *ret + 1;
	return r;
}

static int merge_stack(struct merge *m, uint32_t number, uint32_t *ret)
{
	uint32_t count;
	const uint32_t *stack = builder_stack(m->from, number, &count);
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = merge_location(m, stack[i], &m->to->scratch[i]);
	if (r == 0)
		r = intern_add(&m->to->stacks, m->to->scratch, count * sizeof(uint32_t), ret);
	return MIN(r, 0);
}

static int merge_sample(struct merge *m, uint32_t number)
{
	struct sample_key key = *builder_sample(m->from, number);
	int r = builder_add_workload(m->to, builder_workload(m->from, key.workload), &m->workload);

	key.workload = m->workload;
	if (r == 0)
		r = merge_stack(m, key.stack, &key.stack);
	return r < 0 ? r : builder_count(m->to, &key, &m->from->counts[number]);
}

void profile_merge(struct profile_builder *to, struct profile_builder *from, struct ledger_counts *ret_lost)
{
	struct merge m = {.to = to, .from = from};

	*ret_lost = (struct ledger_counts){0};
	m.locations = calloc(MAX(from->locations.count, 1u), sizeof(*m.locations));
	for (uint32_t i = 0; i < from->samples.count; i++)
		if (!m.locations || merge_sample(&m, i) < 0)
			ret_lost->of[builder_sample(from, i)->slot] += from->counts[i].samples;
	free(m.locations);
	builder_reset(from);
}
