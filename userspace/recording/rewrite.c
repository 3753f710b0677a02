// SPDX-License-Identifier: Apache-2.0
/* Drops or changes samples of a recording; its other tables stay. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "recording/recording.h"

struct rewritten {
	struct intern samples;
	uint64_t *sums; /* owned */
	uint32_t sums_cap;
	uint64_t total, frames;
};

static int rewritten_add(struct rewritten *to, const struct recording *r, const struct rec_sample *s, uint64_t value)
{
	uint32_t number;
	size_t depth;
	int e = intern_add(&to->samples, s, sizeof(*s), &number);

	if (e < 0 || array_reach(&to->sums, number, &to->sums_cap, sizeof(*to->sums)) < 0)
		return e < 0 ? e : -ENOMEM;
	recording_stack(r, s->stack, &depth);
	to->sums[number] += value;
	to->total += value;
	to->frames += e ? depth + 1 : 0;
	return 0;
}

static void rewritten_done(struct rewritten *to)
{
	intern_done(&to->samples);
	free(to->sums);
}

/* Exchanges the samples of the recording and of to, so that rewritten_done frees the old ones. */
static void rewritten_swap(struct rewritten *to, struct recording *r)
{
	struct rewritten old = {.samples = r->samples, .sums = r->sums, .sums_cap = r->sums_cap};

	r->samples = to->samples;
	r->sums = to->sums;
	r->sums_cap = to->sums_cap;
	r->total = to->total;
	r->frames = to->frames;
	*to = old;
}

int recording_rewrite(struct recording *r, recording_rewrite_fn *rewrite, void *ctx)
{
	_cleanup_(rewritten_done) struct rewritten to = {0};
	uint32_t i;
	int e = 0;

	intern_init(&to.samples, r->limits.entries, r->limits.bytes);
	for (i = 0; i < r->samples.count && e >= 0; i++) {
		struct rec_sample s = *(const struct rec_sample *)intern_key(&r->samples, i);

		e = rewrite(ctx, &s);
		if (e > 0)
			e = rewritten_add(&to, r, &s, r->sums[i]);
	}
	if (e < 0)
		return e;
	rewritten_swap(&to, r);
	return 0;
}
