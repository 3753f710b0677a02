// SPDX-License-Identifier: Apache-2.0
/* What slots hold: trees of a range, comparisons, timelines, snapshots. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "hub/answer.h"
#include "hub/api_internal.h"
#include "hub/snapshot.h"
#include "hub/tree_json.h"

#define STEPS_DEFAULT 300
#define STEPS_MAX     2000

/* --- what a request asks for --- */

/* A type that its slot has not seen yet, but the workload: there are no samples of it. */
#define TYPE_ABSENT SLOT_TYPES

static bool api_workload_type(const struct store *s, const struct workload *of, const char *name, struct hub_type *ret)
{
	for (uint32_t i = 0; i < s->nr_types; i++) {
		if (!(of->types >> i & 1) || (*name ? strcmp(s->types[i].name, name) != 0 : i != of->spark.type))
			continue;
		*ret = s->types[i];
		return true;
	}
	return false;
}

static bool api_type(struct api_work *w, const struct workload *of, struct slot_range *range, struct hub_type *ret)
{
	const char *name = api_param(w->call, "type");

	name = name ? name : "";
	if (slot_type(of->slot, name, &range->type) == 0) {
		*ret = of->slot->types[range->type];
		return true;
	}
	range->type = TYPE_ABSENT;
	if (api_workload_type(w->api->store, of, name, ret))
		return true;
	api_fail(w->reply, 404, "unknown_type", "type", "the workload has no samples of type \"%.48s\"", name);
	return false;
}

/* Unix ms, or 0 or less before the newest end. */
static uint64_t api_time(const struct slot *s, int64_t ms)
{
	uint64_t newest = slot_newest_ns(s), back = (uint64_t)-ms * MS;

	if (ms > 0)
		return (uint64_t)ms * MS;
	return newest > back ? newest - back : 0;
}

static bool api_times(struct api_work *w, const struct slot *s, const char *from_name, const char *to_name,
		      struct slot_range *range)
{
	int64_t from = 0, to = 0;
	bool has_from, has_to;

	if (!api_signed_param(w, from_name, &from, &has_from) || !api_signed_param(w, to_name, &to, &has_to))
		return false;
	range->from_ns = has_from ? api_time(s, from) : 0;
	range->to_ns = has_to ? api_time(s, to) : UINT64_MAX;
	if (range->from_ns <= range->to_ns)
		return true;
	api_fail(w->reply, 422, "bad_value", from_name, "%s is later than %s", from_name, to_name);
	return false;
}

static bool api_after(struct api_work *w, const struct slot *s, struct slot_range *range)
{
	uint64_t generation = UINT64_MAX;

	if (!api_number_param(w, "after", 0, INT64_MAX, &range->after) ||
	    !api_number_param(w, "generation", 0, UINT32_MAX, &generation))
		return false;
	if (!api_param(w->call, "after"))
		return true;
	if (generation == UINT64_MAX) {
		api_fail(w->reply, 422, "bad_value", "generation", "after needs the generation that it is of");
		return false;
	}
	if (generation != s->generation) {
		api_fail(w->reply, 410, "generation", "generation", "ids are now those of generation %u",
			 s->generation);
		return false;
	}
	return true;
}

static bool api_filter_param(struct api_work *w, struct filter *f, const char *name, const char *value)
{
	static const struct {
		const char *name;
		int (*add)(struct filter *f, const char *value, char ret_why[FILTER_WHY]);
	} params[] = {{"focus", filter_focus}, {"ignore", filter_ignore}, {"hide", filter_hide}};
	char why[FILTER_WHY];

	for (size_t i = 0; i < ARRAY_SIZE(params); i++) {
		if (strcmp(name, params[i].name) != 0 || params[i].add(f, value, why) == 0)
			continue;
		api_fail(w->reply, 422, "bad_value", params[i].name, "%s", why);
		return false;
	}
	return true;
}

static bool api_filter(struct api_work *w, struct filter *f)
{
	for (uint32_t i = 0; i < w->call->nr_params; i++)
		if (!api_filter_param(w, f, w->call->params[i].name, w->call->params[i].value))
			return false;
	return true;
}

/* --- trees --- */

static void api_range_json(struct jsonw *j, const struct slot_sum *sum)
{
	jsonw_number(j, "from_ms", sum->start_ns / MS);
	jsonw_number(j, "to_ms", sum->end_ns / MS);
}

static void api_tree_head(struct jsonw *j, const struct workload *of, const struct hub_type *type, uint32_t generation,
			  const struct slot_sum *sum)
{
	api_id_json(j, "workload", of->id);
	hub_type_json(j, "type", type);
	jsonw_number(j, "generation", generation);
	jsonw_number(j, "seq", of->slot->seq);
	api_range_json(j, sum);
}

/* A filter drops values: the sum is that of what is left. */
static void api_value_json(struct jsonw *j, const struct values *v, const struct slot_sum *sum)
{
	jsonw_number(j, "value", v->total[0]);
	jsonw_number(j, "folded", MIN(sum->folded, v->total[0]));
}

/* The slot's own tree: its ids are those of the generation. */
static int api_slot_tree(struct jsonw *j, const struct workload *of, const struct hub_type *type,
			 const struct slot_range *range)
{
	const struct slot *s = of->slot;
	_cleanup_(values_done) struct values v = {0};
	struct slot_sum sum;
	int r = slot_values(s, range, &v, &sum);

	if (!r)
		r = values_sum(&v, s->tree);
	if (r < 0)
		return r;
	jsonw_open(j, NULL);
	api_tree_head(j, of, type, s->generation, &sum);
	api_value_json(j, &v, &sum);
	r = tree_json(j, &(struct tree_view){
				 .tree = s->tree, .now = &v, .places = s->places, .nr_places = s->places_cap});
	jsonw_close(j);
	return r;
}

static int api_answer_tree(struct jsonw *j, const struct answer *a)
{
	const struct graph *g = a->graph;

	api_value_json(j, &g->now, &a->now);
	return tree_json(j, &(struct tree_view){
				    .tree = g->tree, .now = &g->now, .base = g->compared ? &g->before : NULL,
				    .places = a->places, .nr_places = a->places_cap});
}

static int api_filtered_tree(struct jsonw *j, const struct workload *of, const struct hub_type *type,
			     const struct slot_range *range, const struct filter *f)
{
	_cleanup_(answer_done) struct answer a = {0};
	int r = answer_add(&a, of->slot, range, false);

	if (!r)
		r = answer_finish(&a, f);
	if (r < 0)
		return r;
	jsonw_open(j, NULL);
	api_tree_head(j, of, type, 0, &a.now);
	r = api_answer_tree(j, &a);
	jsonw_close(j);
	return r;
}

int api_increment(const struct workload *w, const char *type, uint64_t after, struct buf *out)
{
	struct slot_range range = {.to_ns = UINT64_MAX, .after = after};
	struct jsonw j = {.to = out};
	int r = slot_type(w->slot, type, &range.type);

	return r < 0 ? r : api_slot_tree(&j, w, &w->slot->types[range.type], &range);
}

/* Of the parameters too: each address has tags of its own, but a range from the end moves. */
static void api_set_etag(struct api_work *w, const struct slot *s)
{
	snprintf(w->reply->etag, sizeof(w->reply->etag), "\"%x-%" PRIx64 "\"", s->generation, s->seq);
}

static bool api_is_unchanged(const struct api_work *w)
{
	const char *tags = w->call->if_none_match;

	return tags && strstr(tags, w->reply->etag);
}

static void api_tree_reply(struct api_work *w, const struct slot_range *range, const struct hub_type *type)
{
	_cleanup_(filter_done) struct filter f = {0};
	struct jsonw j;
	int r;

	if (!api_filter(w, &f))
		return;
	api_set_etag(w, w->workload->slot);
	if (api_is_unchanged(w)) {
		w->reply->status = 304;
		return;
	}
	j = api_begin(w, 200);
	r = filter_is_empty(&f) ? api_slot_tree(&j, w->workload, type, range) :
				  api_filtered_tree(&j, w->workload, type, range, &f);
	if (r < 0)
		api_fail_errno(w, r);
	else
		api_end(w);
}

void api_get_tree(struct api_work *w)
{
	struct slot *s = api_slot(w, w->workload);
	struct slot_range range = {0};
	struct hub_type type;

	if (s && api_type(w, w->workload, &range, &type) && api_times(w, s, "from", "to", &range) &&
	    api_after(w, s, &range))
		api_tree_reply(w, &range, &type);
}

/* --- comparison --- */

struct comparison {
	struct workload *now, *base;
	struct slot_range now_range, base_range;
	struct hub_type type;
};

static bool api_comparison(struct api_work *w, struct comparison *c)
{
	const char *now = api_param(w->call, "workload"), *base = api_param(w->call, "base_workload");
	struct hub_type type;

	c->now = api_find(w, "workload", now ? now : "");
	c->base = c->now && base ? api_find(w, "base_workload", base) : c->now;
	return c->now && c->base && api_slot(w, c->now) && api_slot(w, c->base) &&
	       api_type(w, c->base, &c->base_range, &type) && api_type(w, c->now, &c->now_range, &c->type) &&
	       api_times(w, c->now->slot, "from", "to", &c->now_range) &&
	       api_times(w, c->base->slot, "base_from", "base_to", &c->base_range);
}

static int api_compare(const struct comparison *c, const struct filter *f, struct answer *ret)
{
	int r = answer_add(ret, c->now->slot, &c->now_range, false);

	if (!r)
		r = answer_add(ret, c->base->slot, &c->base_range, true);
	return r < 0 ? r : answer_finish(ret, filter_is_empty(f) ? NULL : f);
}

static int api_diff_json(struct jsonw *j, const struct comparison *c, const struct answer *a)
{
	int r;

	jsonw_open(j, NULL);
	api_tree_head(j, c->now, &c->type, 0, &a->now);
	jsonw_open(j, "base");
	api_id_json(j, "workload", c->base->id);
	api_range_json(j, &a->base);
	api_value_json(j, &a->graph->before, &a->base);
	jsonw_close(j);
	r = api_answer_tree(j, a);
	jsonw_close(j);
	return r;
}

void api_get_diff(struct api_work *w)
{
	_cleanup_(filter_done) struct filter f = {0};
	_cleanup_(answer_done) struct answer a = {0};
	struct comparison c = {0};
	struct jsonw j;
	int r;

	if (!api_comparison(w, &c) || !api_filter(w, &f))
		return;
	r = api_compare(&c, &f, &a);
	j = api_begin(w, 200);
	if (!r)
		r = api_diff_json(&j, &c, &a);
	if (r < 0)
		api_fail_errno(w, r);
	else
		api_end(w);
}

/* --- timeline --- */

struct timeline {
	double values[STEPS_MAX];
	bool held[STEPS_MAX];
	uint64_t from_ns, step_ns, steps;
	uint64_t folded;
};

/* Steps of whole intervals: 5 s, or as many of these as the bars need. */
static void timeline_fit(struct timeline *t, const struct slot_sum *sum, uint64_t steps)
{
	uint64_t unit = SPARK_STEP_NS, length;

	t->from_ns = sum->start_ns / unit * unit;
	length = sum->end_ns - t->from_ns;
	t->step_ns = unit;
	while (length / t->step_ns + 1 > steps)
		t->step_ns += unit * MAX(1, t->step_ns / unit / 4);
	t->steps = sum->buckets ? MAX(1, (length + t->step_ns - 1) / t->step_ns) : 0;
}

/* A bucket's value in the bars that it lies in, by time. */
static void timeline_add(struct timeline *t, const struct bucket *b)
{
	uint64_t first = (b->start_ns - t->from_ns) / t->step_ns, length = b->end_ns - b->start_ns;
	uint64_t last = MIN(length ? (b->end_ns - 1 - t->from_ns) / t->step_ns : first, t->steps - 1);

	t->folded += b->folded;
	for (uint64_t i = first; i <= last; i++) {
		uint64_t start = MAX(b->start_ns, t->from_ns + i * t->step_ns);
		uint64_t end = MIN(b->end_ns, t->from_ns + (i + 1) * t->step_ns);

		t->held[i] = true;
		t->values[i] += length ? (double)b->value * (double)(end - start) / (double)length : (double)b->value;
	}
}

/* Rounded so that the bars add up to the whole. */
static void timeline_values_json(struct jsonw *j, const struct timeline *t)
{
	double sum = 0;
	uint64_t told = 0;

	jsonw_open_list(j, "values");
	for (uint64_t i = 0; i < t->steps; i++) {
		uint64_t so_far;

		sum += t->values[i];
		so_far = (uint64_t)(sum + 0.5);
		if (t->held[i])
			jsonw_number(j, NULL, so_far - told);
		else
			jsonw_null(j, NULL);
		told = t->held[i] ? so_far : told;
	}
	jsonw_close_list(j);
}

static void timeline_json(struct api_work *w, const struct timeline *t, const struct hub_type *type)
{
	struct jsonw j = api_begin(w, 200);

	jsonw_open(&j, NULL);
	api_id_json(&j, "workload", w->workload->id);
	hub_type_json(&j, "type", type);
	jsonw_number(&j, "seq", w->workload->slot->seq);
	jsonw_number(&j, "from_ms", t->from_ns / MS);
	jsonw_number(&j, "step_ms", t->step_ns / MS);
	timeline_values_json(&j, t);
	jsonw_number(&j, "folded", t->folded);
	jsonw_close(&j);
	api_end(w);
}

void api_get_timeline(struct api_work *w)
{
	struct slot *s = api_slot(w, w->workload);
	struct slot_range range = {0};
	struct timeline t = {0};
	uint64_t steps = STEPS_DEFAULT;
	struct hub_type type;
	struct slot_sum sum;

	if (!s || !api_type(w, w->workload, &range, &type) || !api_times(w, s, "from", "to", &range) ||
	    !api_number_param(w, "steps", 1, STEPS_MAX, &steps))
		return;
	slot_sum(s, &range, &sum);
	timeline_fit(&t, &sum, steps);
	for (uint32_t i = 0; i < s->nr_buckets; i++)
		if (slot_range_has(&range, &s->buckets[i]))
			timeline_add(&t, &s->buckets[i]);
	timeline_json(w, &t, &type);
}

/* --- snapshot --- */

/* Of letters, digits, and what no shell and no file system minds. */
static void api_file_name(const struct workload *of, const struct hub_type *type, const struct snapshot_format *format,
			  char *to, size_t size)
{
	int n = snprintf(to, size, "%.64s-%.32s", of->name, type->name);

	for (int i = 0; i < n && to[i]; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", to[i]))
			to[i] = '_';
	if (to[0] == '.')
		to[0] = '_';
	snprintf(to + strlen(to), size - strlen(to), "%s", format->suffix);
}

static void api_write_snapshot(struct api_work *w, const struct slot_range *range, const struct hub_type *type,
			       const struct snapshot_format *format)
{
	_cleanup_(filter_done) struct filter f = {0};
	_cleanup_(answer_done) struct answer a = {0};
	struct snapshot s = {.answer = &a, .workload = w->workload, .type = type, .version = w->api->version};
	int r;

	if (!api_filter(w, &f))
		return;
	r = answer_add(&a, w->workload->slot, range, false);
	if (!r)
		r = answer_finish(&a, filter_is_empty(&f) ? NULL : &f);
	if (!r)
		r = format->write(&s, &w->reply->body);
	if (r < 0) {
		api_fail_errno(w, r);
		return;
	}
	w->reply->status = 200;
	w->reply->type = format->type;
	api_file_name(w->workload, type, format, w->reply->file, sizeof(w->reply->file));
}

void api_get_snapshot(struct api_work *w)
{
	const char *name = api_param(w->call, "format");
	const struct snapshot_format *format = name ? snapshot_format_find(name) : NULL;
	struct slot *s = api_slot(w, w->workload);
	struct slot_range range = {0};
	struct hub_type type;

	if (!s)
		return;
	if (!format) {
		api_fail(w->reply, 422, "bad_value", "format", "format is pprof, speedscope, collapsed, otlp or svg");
		return;
	}
	if (api_type(w, w->workload, &range, &type) && api_times(w, s, "from", "to", &range))
		api_write_snapshot(w, &range, &type, format);
}
