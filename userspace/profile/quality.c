// SPDX-License-Identifier: Apache-2.0
#include "profile/quality.h"

#include "base/cleanup.h"

_Static_assert(UNWIND_END_NR <= LEDGER_ENDS_MAX, "every end of a stack has a counter");

/* A marker is known by its text's place; -1: one that says nothing of a stack's end. */
static int end_of_marker(const struct location_key *key)
{
	for (int end = 0; end < UNWIND_END_NR; end++) {
		const char *marker = unwind_end_marker((enum unwind_end)end);

		if (marker && (uintptr_t)marker == key->address)
			return end;
	}
	return -1;
}

static void count_sample(const struct profile_builder *b, const struct names *n, uint32_t sample,
			 struct ledger_quality *q)
{
	uint64_t weight = b->counts[sample].samples;
	bool user = false;
	uint32_t count;
	const uint32_t *stack = builder_stack(b, builder_sample(b, sample)->stack, &count);
	int end = -1;

	for (uint32_t i = 0; i < count; i++) {
		const struct named_location *l = &n->locations[stack[i]];

		if (l->marker) {
			end = end_of_marker(intern_key(&b->locations, stack[i]));
			continue;
		}
		user |= !l->kernel;
		q->frames += weight;
		q->by[l->source] += weight;
	}
	if (!user && end < 0)
		return;
	q->stacks += weight;
	if (end < 0)
		q->stacks_root += weight;
	else
		q->cut[end] += weight;
}

void quality_tell(const struct profile_builder *b, const struct names *n, const uint32_t *order)
{
	struct ledger_quality q = {0};
	uint64_t samples = 0;

	for (uint32_t i = 0; b->cfg.quality && i < b->samples.count; i++) {
		const struct sample_key *key = builder_sample(b, order[i]);
		const struct sample_key *next = i + 1 < b->samples.count ? builder_sample(b, order[i + 1]) : NULL;

		count_sample(b, n, order[i], &q);
		samples += b->counts[order[i]].samples;
		if (next && next->workload == key->workload && next->exe == key->exe)
			continue;
		b->cfg.quality(b->cfg.ctx, builder_workload(b, key->workload), key->exe, samples, &q);
		q = (struct ledger_quality){0};
		samples = 0;
	}
}
