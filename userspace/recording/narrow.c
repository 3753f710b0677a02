// SPDX-License-Identifier: Apache-2.0
/* Leaves attributes of resources and samples out; what is alike without them becomes one. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "recording/recording.h"

/* What numbers of the recording become: the new number + 1, 0: not known yet. Owned; as many as there are at first. */
struct narrow {
	struct recording *rec;
	const struct recording_keep *keep;
	uint32_t *series, *sets;
	uint32_t *scratch; /* owned: one set */
	size_t scratch_cap;
};

static void narrow_done(struct narrow *n)
{
	free(n->series);
	free(n->sets);
	free(n->scratch);
}

static int narrow_init(struct narrow *n, struct recording *r, const struct recording_keep *keep)
{
	*n = (struct narrow){.rec = r, .keep = keep};
	n->series = calloc(MAX(r->series.count, 1u), sizeof(*n->series));
	n->sets = calloc(MAX(r->sets.count, 1u), sizeof(*n->sets));
	return n->series && n->sets ? 0 : -ENOMEM;
}

static int narrow_reserve(struct narrow *n, size_t count)
{
	uint32_t *more;

	if (count <= n->scratch_cap)
		return 0;
	more = reallocarray(n->scratch, count, sizeof(*more));
	if (!more)
		return -ENOMEM;
	n->scratch = more;
	n->scratch_cap = count;
	return 0;
}

/* The part of a set whose keys stay. Its order does, so it is ascending. */
static int narrow_set(struct narrow *n, uint32_t set, recording_keep_fn *keeps, uint32_t *ret)
{
	size_t count, kept = 0;
	const uint32_t *numbers = recording_set(n->rec, set, &count);
	int e = narrow_reserve(n, count);

	for (size_t i = 0; !e && i < count; i++) {
		const struct rec_attribute *a = intern_key(&n->rec->attributes, numbers[i]);

		if (keeps(n->keep->ctx, recording_str(n->rec, a->key)))
			n->scratch[kept++] = numbers[i];
	}
	return e ? e : intern_number(&n->rec->sets, kept ? n->scratch : (const void *)"", kept * sizeof(uint32_t), ret);
}

static int narrow_resource(struct narrow *n, uint32_t resource, uint32_t *ret)
{
	struct recording *r = n->rec;
	struct rec_resource key = *(const struct rec_resource *)intern_key(&r->resources, resource);
	int e = narrow_set(n, key.attributes, n->keep->resource, &key.attributes);

	if (!e)
		e = intern_add(&r->resources, &key, sizeof(key), ret);
	if (e <= 0)
		return e;
	if (array_reach(&r->workloads, *ret, &r->workloads_cap, sizeof(*r->workloads)) < 0)
		return -ENOMEM;
	r->workloads[*ret] = r->workloads[resource];
	return 0;
}

/* A series that several become has the times of all of them. */
static int narrow_times(struct recording *r, uint32_t from, uint32_t to)
{
	const struct rec_times t = r->times[from];

	if (array_reach(&r->times, to, &r->times_cap, sizeof(*r->times)) < 0)
		return -ENOMEM;
	rec_times_add(&r->times[to], t.start_ns, t.end_ns);
	return 0;
}

static int narrow_series(struct narrow *n, uint32_t series, uint32_t *ret)
{
	struct rec_series key = *(const struct rec_series *)intern_key(&n->rec->series, series);
	int e = 0;

	if (!n->series[series]) {
		e = narrow_resource(n, key.resource, &key.resource);
		if (!e)
			e = intern_number(&n->rec->series, &key, sizeof(key), ret);
		if (!e)
			e = narrow_times(n->rec, series, *ret);
		if (!e)
			n->series[series] = *ret + 1;
	}
	*ret = n->series[series] - 1;
	return e;
}

static int narrow_sample_set(struct narrow *n, uint32_t set, uint32_t *ret)
{
	int e = 0;

	if (!n->sets[set]) {
		e = narrow_set(n, set, n->keep->sample, ret);
		if (!e)
			n->sets[set] = *ret + 1;
	}
	*ret = n->sets[set] - 1;
	return e;
}

static int narrow_sample(void *ctx, struct rec_sample *s)
{
	int e = narrow_series(ctx, s->series, &s->series);

	if (!e)
		e = narrow_sample_set(ctx, s->attributes, &s->attributes);
	return e < 0 ? e : 1;
}

int recording_narrow(struct recording *r, const struct recording_keep *keep)
{
	_cleanup_(narrow_done) struct narrow n;
	int e = narrow_init(&n, r, keep);

	return e ? e : recording_rewrite(r, narrow_sample, &n);
}
