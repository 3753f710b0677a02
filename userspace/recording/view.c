// SPDX-License-Identifier: Apache-2.0
#include "recording/view.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

static const struct rec_series *view_series(const struct recording *r, uint32_t n)
{
	return intern_key(&r->series, n);
}

static bool view_text_is(const struct recording *r, uint32_t string, const char *text)
{
	return strcmp(recording_str(r, string), text) == 0;
}

bool rec_view_counts_samples(const struct recording *r, const struct rec_view *v)
{
	return !v->type.type || view_text_is(r, v->type.type, "samples");
}

static bool view_type_is_cpu(const struct recording *r, const struct rec_type *t)
{
	return view_text_is(r, t->type, "samples") && view_text_is(r, t->unit, "count") &&
	       view_text_is(r, t->period_type, "cpu") && view_text_is(r, t->period_unit, "nanoseconds");
}

bool rec_view_is_cpu(const struct recording *r, const struct rec_view *v)
{
	return view_type_is_cpu(r, &v->type);
}

const char *rec_view_unit(const struct recording *r, const struct rec_view *v)
{
	const char *unit = recording_str(r, v->type.unit), *type = recording_str(r, v->type.type);

	if (*unit && strcmp(unit, "count") != 0)
		return unit;
	return *type ? type : "samples";
}

bool rec_view_has(const struct rec_view *v, const struct recording *r, uint32_t series)
{
	const struct rec_series *s = view_series(r, series);

	return s->type == v->type.type && s->unit == v->type.unit && s->period_type == v->type.period_type &&
	       s->period_unit == v->type.period_unit;
}

struct keep {
	const struct rec_view *view;
	const struct recording *rec;
};

static int view_keep_sample(void *ctx, struct rec_sample *s)
{
	const struct keep *k = ctx;

	return rec_view_has(k->view, k->rec, s->series);
}

int rec_view_keep(const struct rec_view *v, struct recording *r)
{
	struct keep k = {v, r};

	return recording_rewrite(r, view_keep_sample, &k);
}

/* Counts distinct strings of a list: a list is what one figure of one view counts. */
static void view_count_string(struct map *seen, uint32_t list, uint32_t string, uint32_t *count)
{
	uint64_t key = (uint64_t)list << 32 | string;

	if (!map_find(seen, key) && map_put(seen, key, 1) == 0)
		++*count;
}

static void view_add_series(const struct recording *r, struct rec_views *views, uint32_t n, struct map *seen)
{
	uint32_t index = views->by_series[n];
	struct rec_view *v = &views->list[index];
	const struct rec_workload *w = recording_workload(r, n);
	struct rec_times t = n < r->times_cap ? r->times[n] : (struct rec_times){0};

	v->period_mixed |= view_series(r, n)->period != v->period;
	if (t.start_ns && (!v->start_ns || t.start_ns < v->start_ns))
		v->start_ns = t.start_ns;
	v->end_ns = MAX(v->end_ns, t.end_ns);
	view_count_string(seen, 2 * index, w->service, &v->services);
	if (!w->host)
		return;
	view_count_string(seen, 2 * index + 1, w->host, &v->hosts);
	v->host = v->hosts == 1 ? recording_str(r, w->host) : NULL;
}

static void view_add_values(const struct recording *r, struct rec_views *views)
{
	uint32_t i;

	for (i = 0; i < r->samples.count; i++) {
		const struct rec_sample *s = intern_key(&r->samples, i);

		views->list[views->by_series[s->series]].value += r->sums[i];
	}
}

/* The type; if it is "samples", the period's type, such as "cpu". */
static void view_make_name(const struct recording *r, struct rec_view *v)
{
	const char *text = recording_str(r, rec_view_counts_samples(r, v) ? v->type.period_type : v->type.type);
	size_t i;

	snprintf(v->name, sizeof(v->name), "%s", *text ? text : "samples");
	for (i = 0; v->name[i]; i++)
		if (!isalnum((unsigned char)v->name[i]))
			v->name[i] = '_';
}

/*
 * Adds the name; one that is taken gets a number. A type may also be called
 * what a number makes of another's name, so numbers are tried until one fits.
 * None is tried twice (*next), so all views together take few tries.
 */
static int view_add_name(struct intern *names, struct rec_view *v, uint32_t *next)
{
	size_t end = MIN(strlen(v->name), sizeof(v->name) - 13);
	uint32_t known;
	int e = intern_add(names, v->name, strlen(v->name), &known);

	while (!e) {
		snprintf(v->name + end, sizeof(v->name) - end, "_%u", (*next)++);
		e = intern_add(names, v->name, strlen(v->name), &known);
	}
	return e;
}

/* Types whose names would be equal (they differ in units, or in characters not used in names) are numbered. */
static int view_make_names(const struct recording *r, struct rec_views *views)
{
	_cleanup_(intern_done) struct intern names;
	uint32_t i, next = 0;
	int e = 0;

	intern_init(&names, UINT32_MAX, SIZE_MAX);
	for (i = 0; i < views->count && e >= 0; i++) {
		next = MAX(next, i + 1);
		view_make_name(r, &views->list[i]);
		e = view_add_name(&names, &views->list[i], &next);
	}
	return e < 0 ? -ENOMEM : 0;
}

/* One view for each type, the one with CPU samples first. */
static int view_make_list(const struct recording *r, const struct intern *types, struct rec_views *views)
{
	uint32_t cpu = 0, i, count = MAX(types->count, 1u);

	views->list = calloc(count, sizeof(*views->list));
	if (!views->list)
		return -ENOMEM;
	views->count = count;
	while (cpu < types->count && !view_type_is_cpu(r, intern_key(types, cpu)))
		cpu++;
	cpu = cpu < types->count ? cpu : 0;
	for (i = 0; i < types->count; i++)
		views->list[i == cpu ? 0 : i < cpu ? i + 1 : i].type = *(const struct rec_type *)intern_key(types, i);
	for (i = 0; i < r->series.count; i++) {
		uint32_t n = views->by_series[i];

		views->by_series[i] = n == cpu ? 0 : n < cpu ? n + 1 : n;
	}
	for (i = r->series.count; i-- > 0;)
		if (views->by_series[i] != VIEW_NONE && view_series(r, i)->period > 0)
			views->list[views->by_series[i]].period = view_series(r, i)->period;
	return 0;
}

/* The types of the series that have samples. */
static int view_find_types(const struct recording *r, struct intern *types, uint32_t *by_series)
{
	uint32_t i;
	int e = 0;

	for (i = 0; i < r->series.count; i++)
		by_series[i] = VIEW_NONE;
	for (i = 0; !e && i < r->samples.count; i++) {
		uint32_t n = ((const struct rec_sample *)intern_key(&r->samples, i))->series;
		const struct rec_series *s = view_series(r, n);
		struct rec_type key = {s->type, s->unit, s->period_type, s->period_unit};

		if (by_series[n] == VIEW_NONE)
			e = intern_number(types, &key, sizeof(key), &by_series[n]);
	}
	return e;
}

int recording_views(const struct recording *r, struct rec_views *ret)
{
	_cleanup_(rec_views_done) struct rec_views views = {0};
	_cleanup_(intern_done) struct intern types;
	_cleanup_(map_done) struct map seen = {0};
	uint32_t i;
	int e;

	intern_init(&types, UINT32_MAX, SIZE_MAX);
	views.by_series = calloc(r->series.count + 1, sizeof(*views.by_series));
	if (!views.by_series)
		return -ENOMEM;
	e = view_find_types(r, &types, views.by_series);
	if (!e)
		e = view_make_list(r, &types, &views);
	if (!e)
		e = view_make_names(r, &views);
	if (e < 0)
		return e;
	for (i = 0; i < r->series.count; i++)
		if (views.by_series[i] != VIEW_NONE)
			view_add_series(r, &views, i, &seen);
	view_add_values(r, &views);
	*ret = views;
	views = (struct rec_views){0};
	return 0;
}

void rec_views_done(struct rec_views *v)
{
	free(v->list);
	free(v->by_series);
	*v = (struct rec_views){0};
}

const struct rec_view *rec_views_find(const struct rec_views *v, const struct recording *r, const char *name)
{
	uint32_t i;

	for (i = 0; i < v->count; i++)
		if (strcmp(v->list[i].name, name) == 0)
			return &v->list[i];
	for (i = 0; i < v->count; i++)
		if (view_text_is(r, v->list[i].type.type, name))
			return &v->list[i];
	return NULL;
}

const struct rec_view *rec_views_same(const struct rec_views *v, const struct recording *r, const struct rec_view *other,
				      const struct recording *others)
{
	const struct rec_type *o = &other->type;
	uint32_t i;

	for (i = 0; i < v->count; i++) {
		const struct rec_type *t = &v->list[i].type;

		if (view_text_is(r, t->type, recording_str(others, o->type)) &&
		    view_text_is(r, t->unit, recording_str(others, o->unit)) &&
		    view_text_is(r, t->period_type, recording_str(others, o->period_type)) &&
		    view_text_is(r, t->period_unit, recording_str(others, o->period_unit)))
			return &v->list[i];
	}
	return NULL;
}
