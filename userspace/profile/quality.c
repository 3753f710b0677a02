// SPDX-License-Identifier: Apache-2.0
#include "profile/quality.h"

#include "base/cleanup.h"

_Static_assert(UNWIND_END_NR <= LEDGER_ENDS_MAX, "every end of a stack has a counter");
_Static_assert(KIND_NR <= LEDGER_KINDS_MAX, "every kind of frame has a counter");
_Static_assert(FRAME_GUESS_NR <= LEDGER_GUESSES_MAX, "every guess has a counter");

/* l is not a marker. */
static void quality_count_frame(const struct named_location *l, uint64_t weight, struct ledger_quality *q)
{
	q->frames += weight;
	q->by[l->source] += weight;
	q->kinds[l->kind] += weight;
}

static void quality_count_sample(const struct profile_builder *b, const struct names *n, uint32_t sample,
				 struct ledger_quality *q)
{
	const struct sample_count *c = &b->counts[sample];
	uint64_t end = UNWIND_END_NR;
	bool user = false;
	uint32_t count;
	const uint32_t *stack = builder_stack(b, builder_sample(b, sample)->stack, &count);

	for (uint32_t i = 0; i < count; i++) {
		const struct named_location *l = &n->locations[stack[i]];

		if (l->kind == KIND_MARKER) {
			uint64_t marker = builder_location(b, stack[i])->address;

			/* Others are about interpreted frames, which may stand further out than the cut. */
			end = marker < UNWIND_END_NR ? marker : end;
			continue;
		}
		user |= l->kind != KIND_KERNEL;
		quality_count_frame(l, c->samples, q);
	}
	for (int i = 0; i < FRAME_GUESS_NR; i++)
		q->guessed[i] += c->guessed[i];
	if (!user && end >= UNWIND_END_NR)
		return;
	q->stacks += c->samples;
	if (end >= UNWIND_END_NR)
		q->stacks_root += c->samples;
	else
		q->cut[end] += c->samples;
}

void quality_report(const struct profile_builder *b, const struct names *n, const uint32_t *order)
{
	struct ledger_quality q = {0};
	uint64_t samples = 0;

	for (uint32_t i = 0; b->cfg->quality && i < b->samples.count; i++) {
		const struct sample_key *key = builder_sample(b, order[i]);
		const struct sample_key *next = i + 1 < b->samples.count ? builder_sample(b, order[i + 1]) : NULL;

		quality_count_sample(b, n, order[i], &q);
		samples += b->counts[order[i]].samples;
		if (next && next->workload == key->workload && next->exe == key->exe)
			continue;
		b->cfg->quality(b->cfg->ctx, builder_workload(b, key->workload), key->exe, samples, &q);
		q = (struct ledger_quality){0};
		samples = 0;
	}
}
