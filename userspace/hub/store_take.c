// SPDX-License-Identifier: Apache-2.0
/* One request into the store: its samples are counted for their workloads, and added to slots that are open. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "hub/store_internal.h"

#define TAKE_ENTRIES (1u << 20)
#define TAKE_BYTES   (256u << 20)
#define TAKE_TOTAL   ((1ULL << 53) - 1) /* what a browser can add up */
#define TAKE_FRAMES  (1ULL << 28)

/* A sample and whose it is, in an order in which those of one workload stand together. */
struct owned_sample {
	uint32_t workload; /* index in the store's list */
	uint32_t sample;
};

struct taker {
	struct store *store;
	struct recording *rec;	/* owned */
	struct rec_views views; /* owned */
	uint32_t *types;	/* owned, by view: type of the store, STORE_TYPES: none */
	uint32_t *resources;	/* owned, by resource: index of the workload + 1; 0: not known yet */
	uint32_t *stack_kinds;	/* owned, by stack: a bit for each kind of its frames; 0: not known yet */
	struct owned_sample *samples; /* owned */
	uint32_t *numbers;	      /* owned: scratch of one workload */
	uint32_t count;
	uint64_t now_ns;
};

enum { RESOURCE_UNKNOWN, RESOURCE_BY_SAMPLE = UINT32_MAX, WORKLOAD_NONE = UINT32_MAX };

/* --- which workload --- */

static uint32_t taker_index(struct taker *t, const struct workload_identity *id)
{
	struct workload *w = store_find_or_add(t->store, id, t->now_ns);

	if (!w)
		return WORKLOAD_NONE;
	return w->index;
}

static uint32_t taker_workload(struct taker *t, const struct rec_sample *s)
{
	const struct rec_series *series = intern_key(&t->rec->series, s->series);
	uint32_t *known = &t->resources[series->resource], index;
	struct workload_identity id;

	if (*known && *known != RESOURCE_BY_SAMPLE)
		return *known - 1;
	identify(t->rec, series->resource, *known ? s->attributes : 0, &id);
	if (!*known && !identify_by_resource(&id)) {
		*known = RESOURCE_BY_SAMPLE;
		identify(t->rec, series->resource, s->attributes, &id);
	}
	index = taker_index(t, &id);
	if (*known != RESOURCE_BY_SAMPLE && index != WORKLOAD_NONE)
		*known = index + 1;
	return index;
}

static int taker_by_workload(const void *a, const void *b)
{
	const struct owned_sample *x = a, *y = b;

	if (x->workload != y->workload)
		return x->workload < y->workload ? -1 : 1;
	return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static void taker_assign(struct taker *t)
{
	for (uint32_t i = 0; i < t->rec->samples.count; i++) {
		uint32_t w = taker_workload(t, intern_key(&t->rec->samples, i));

		if (w == WORKLOAD_NONE)
			t->store->past.unwatched += t->rec->sums[i];
		else
			t->samples[t->count++] = (struct owned_sample){w, i};
	}
	qsort(t->samples, t->count, sizeof(*t->samples), taker_by_workload);
}

/* --- figures of a workload --- */

static uint32_t taker_type(struct taker *t, uint32_t view)
{
	struct store *s = t->store;
	struct hub_type type;
	uint32_t i;

	if (t->types[view])
		return t->types[view] - 1;
	hub_type_of(t->rec, &t->views.list[view], &type);
	for (i = 0; i < s->nr_types; i++)
		if (strcmp(s->types[i].name, type.name) == 0)
			break;
	if (i == s->nr_types && i < STORE_TYPES)
		s->nr_types++;
	if (i < STORE_TYPES)
		s->types[i] = type;
	t->types[view] = i + 1;
	return i;
}

static uint32_t taker_kinds(struct taker *t, uint32_t stack)
{
	uint32_t *kinds = &t->stack_kinds[stack];
	size_t n;
	const uint32_t *locations = recording_stack(t->rec, stack, &n);

	for (size_t i = *kinds ? n : 0; i < n; i++)
		*kinds |= 1u << ((const struct rec_location *)intern_key(&t->rec->locations, locations[i]))->kind;
	return *kinds;
}

static void spark_reach(struct spark *s, uint64_t step)
{
	if (step > s->step + SPARK_STEPS)
		s->step = step - SPARK_STEPS;
	while (s->step < step)
		s->values[++s->step % SPARK_STEPS] = 0;
}

static void spark_add(struct spark *s, uint64_t step, uint64_t value)
{
	spark_reach(s, step);
	if (s->step - step < SPARK_STEPS)
		s->values[step % SPARK_STEPS] += value;
}

/* An interval lies in two steps or more: each has its part. */
static void spark_spread(struct spark *s, uint64_t start_ns, uint64_t end_ns, uint64_t value)
{
	uint64_t first = start_ns / SPARK_STEP_NS, given = 0;
	uint64_t last = end_ns > start_ns ? (end_ns - 1) / SPARK_STEP_NS : first;

	if (last - first >= SPARK_STEPS)
		first = last;
	for (uint64_t step = first; step < last; step++) {
		uint64_t until = (step + 1) * SPARK_STEP_NS - start_ns;
		uint64_t due = (uint64_t)((double)value * (double)until / (double)(end_ns - start_ns));

		spark_add(s, step, due > given ? due - given : 0);
		given = MAX(given, due);
	}
	spark_add(s, last, value - MIN(given, value));
}

/* CPU time is what the list shows, where there is any. */
static bool workload_sparks(const struct store *s, struct workload *w, uint32_t type)
{
	if (!w->types || (s->types[type].cpu && !s->types[w->spark.type].cpu))
		w->spark = (struct spark){.type = type};
	w->types |= 1u << type;
	return w->spark.type == type;
}

static void taker_count(struct taker *t, struct workload *w, uint32_t sample)
{
	const struct rec_sample *s = intern_key(&t->rec->samples, sample);
	struct rec_times times = s->series < t->rec->times_cap ? t->rec->times[s->series] : (struct rec_times){0};
	uint32_t type = taker_type(t, t->views.by_series[s->series]), kinds = taker_kinds(t, s->stack);
	uint64_t value = t->rec->sums[sample];

	if (times.end_ns > t->now_ns || times.start_ns + STORE_PAST_NS < t->now_ns || times.start_ns > times.end_ns)
		times.start_ns = times.end_ns = t->now_ns;
	if (type < STORE_TYPES && workload_sparks(t->store, w, type))
		spark_spread(&w->spark, times.start_ns, times.end_ns, value);
	for (; kinds; kinds &= kinds - 1)
		w->kinds[__builtin_ctz(kinds)] += value;
	if (!w->slot)
		t->store->past.unwatched += value;
}

/* --- slots --- */

static void taker_fill_slot(struct taker *t, struct workload *w, uint32_t n)
{
	uint32_t generation = w->slot->generation;
	struct slot_input in = {
		.rec = t->rec,
		.views = &t->views,
		.samples = t->numbers,
		.count = n,
		.seq = t->store->seq + 1,
		.now_ns = t->now_ns,
		.max_past_ns = STORE_PAST_NS,
	};

	slot_add(w->slot, &in);
	store_changed(t->store, w, w->slot->generation == generation ? STORE_GREW : STORE_PRUNED);
}

/* The samples from i on that belong to one workload; returns where those of the next begin. */
static uint32_t taker_serve(struct taker *t, uint32_t i)
{
	uint32_t index = t->samples[i].workload, n = 0;
	struct workload *w = t->store->list[index];

	w->last_ns = t->now_ns;
	w->near |= t->store->near;
	for (; i < t->count && t->samples[i].workload == index; i++) {
		taker_count(t, w, t->samples[i].sample);
		t->numbers[n++] = t->samples[i].sample;
	}
	if (w->slot)
		taker_fill_slot(t, w, n);
	return i;
}

static void taker_done(struct taker *t)
{
	recording_free(t->rec);
	rec_views_done(&t->views);
	free(t->types);
	free(t->resources);
	free(t->stack_kinds);
	free(t->samples);
	free(t->numbers);
}

static int taker_alloc(struct taker *t)
{
	int r = recording_views(t->rec, &t->views);

	if (r < 0)
		return r;
	t->types = calloc(t->views.count + 1, sizeof(*t->types));
	t->resources = calloc(t->rec->resources.count, sizeof(*t->resources));
	t->stack_kinds = calloc(t->rec->stacks.count, sizeof(*t->stack_kinds));
	t->samples = calloc(t->rec->samples.count + 1, sizeof(*t->samples));
	t->numbers = calloc(t->rec->samples.count + 1, sizeof(*t->numbers));
	return t->types && t->resources && t->stack_kinds && t->samples && t->numbers ? 0 : -ENOMEM;
}

static int taker_read(struct taker *t, const void *data, size_t len, const struct otlp_limits *limits)
{
	const struct recording_limits rec_limits = {
		.request = *limits,
		.entries = TAKE_ENTRIES,
		.bytes = TAKE_BYTES,
		.total = TAKE_TOTAL,
		.frames = TAKE_FRAMES,
	};
	int r = recording_new(&rec_limits, &t->rec);

	if (!r)
		r = recording_read(t->rec, data, len);
	return r < 0 ? r : taker_alloc(t);
}

int store_take(struct store *s, const void *data, size_t len, const struct otlp_limits *limits, uint64_t now_ns)
{
	_cleanup_(taker_done) struct taker t = {.store = s, .now_ns = now_ns};
	int r = taker_read(&t, data, len, limits);

	if (r < 0) {
		s->past.rejected++;
		return r;
	}
	s->past.requests++;
	s->seq++;
	taker_assign(&t);
	for (uint32_t i = 0; i < t.count;)
		i = taker_serve(&t, i);
	return 0;
}

int store_take_near(struct store *s, const void *data, size_t len, const struct otlp_limits *limits, uint64_t now_ns)
{
	int r;

	s->near = true;
	r = store_take(s, data, len, limits, now_ns);
	s->near = false;
	return r;
}
