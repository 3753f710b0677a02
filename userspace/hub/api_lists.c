// SPDX-License-Identifier: Apache-2.0
/* Workloads, slots and limits. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "hub/api_internal.h"
#include "hub/tree_json.h"

#define QUERY_CHARACTERS 256 /* as documented */

/* --- status --- */

static void api_slot_counts_json(struct jsonw *j, const struct slot_counts *c)
{
	jsonw_number(j, "taken", c->taken);
	jsonw_number(j, "kept", c->kept);
	jsonw_number(j, "folded", c->folded);
	jsonw_number(j, "evicted", c->evicted);
	jsonw_number(j, "refused", c->refused);
}

static void api_counts_json(struct jsonw *j, const char *name, const struct slot_counts *c)
{
	jsonw_open(j, name);
	api_slot_counts_json(j, c);
	jsonw_close(j);
}

static void api_store_counts_json(struct jsonw *j, const char *name, const struct store_counts *c)
{
	jsonw_open(j, name);
	jsonw_number(j, "requests", c->requests);
	jsonw_number(j, "rejected", c->rejected);
	jsonw_number(j, "unwatched", c->unwatched);
	api_slot_counts_json(j, &c->slots);
	jsonw_close(j);
}

void api_get_status(struct api_work *w)
{
	struct jsonw j = api_begin(w, 200);
	struct store_counts counts;

	store_counts(w->api->store, &counts);
	jsonw_open(&j, NULL);
	jsonw_text(&j, "version", w->api->version);
	jsonw_number(&j, "now_ms", w->call->now_ns / MS);
	jsonw_number(&j, "seq", w->api->store->seq);
	jsonw_number(&j, "started_ms", w->api->started_ns / MS);
	jsonw_bool(&j, "token", w->api->token);
	jsonw_number(&j, "interval_ms", w->api->interval_ns / MS);
	jsonw_number(&j, "window_ms", STORE_WINDOW_NS / MS);
	jsonw_bool(&j, "sampler", w->api->sampler);
	jsonw_bool(&j, "receiver", w->api->receiver);
	api_store_counts_json(&j, "counts", &counts);
	jsonw_close(&j);
	api_end(w);
}

/* --- slots --- */

static void api_slot_times_json(struct jsonw *j, const struct slot *s)
{
	uint64_t oldest = UINT64_MAX, newest = slot_newest_ns(s);

	for (uint32_t i = 0; i < s->nr_buckets; i++)
		oldest = MIN(oldest, s->buckets[i].start_ns);
	if (!s->nr_buckets) {
		jsonw_null(j, "oldest_ms");
		jsonw_null(j, "newest_ms");
		return;
	}
	jsonw_number(j, "oldest_ms", oldest / MS);
	jsonw_number(j, "newest_ms", newest / MS);
}

static void api_slot_json(struct jsonw *j, const char *name, const struct api_work *w, const struct workload *of)
{
	const struct slot *s = of->slot;

	jsonw_open(j, name);
	api_id_json(j, "workload", of->id);
	jsonw_text(j, "name", of->name);
	jsonw_text(j, "state", s->nr_buckets ? "live" : "waiting");
	jsonw_number(j, "generation", s->generation);
	jsonw_number(j, "seq", s->seq);
	jsonw_number(j, "opened_ms", of->opened_ns / MS);
	jsonw_number(j, "requested_ms", of->requested_ns / MS);
	jsonw_number(j, "expires_ms", of->requested_ns / MS + w->api->store->limits.slot_ttl_seconds * 1000);
	jsonw_number(j, "bytes", slot_memory(s));
	jsonw_number(j, "max_bytes", s->max_bytes);
	jsonw_number(j, "nodes", s->tree->count);
	jsonw_number(j, "functions", s->tree->functions.count);
	api_slot_times_json(j, s);
	jsonw_number(j, "intervals", s->nr_buckets);
	jsonw_number(j, "streams", of->streams);
	api_counts_json(j, "counts", &s->counts);
	jsonw_close(j);
}

void api_get_slot(struct api_work *w)
{
	struct jsonw j;

	/* Without store_touch: who only looks whether a slot is open does not keep it open. */
	if (!w->workload->slot) {
		api_slot(w, w->workload);
		return;
	}
	j = api_begin(w, 200);
	api_slot_json(&j, NULL, w, w->workload);
	api_end(w);
}

void api_put_slot(struct api_work *w)
{
	const struct gone *evicted;
	int r = store_open(w->api->store, w->workload, w->call->now_ns, &evicted);
	struct jsonw j;

	if (r < 0) {
		api_fail_errno(w, r);
		return;
	}
	j = api_begin(w, r ? 201 : 200);
	jsonw_open(&j, NULL);
	api_slot_json(&j, "slot", w, w->workload);
	if (evicted)
		api_gone_json(&j, "evicted", evicted);
	else
		jsonw_null(&j, "evicted");
	jsonw_close(&j);
	api_end(w);
}

void api_delete_slot(struct api_work *w)
{
	store_close(w->api->store, w->workload, GONE_CLOSED, w->call->now_ns);
	w->reply->status = 204;
}

void api_delete_samples(struct api_work *w)
{
	if (!api_slot(w, w->workload))
		return;
	store_clear(w->api->store, w->workload);
	w->reply->status = 204;
}

/* --- workloads --- */

/* Kinds that tell what a program is written in. */
static bool api_is_language(int kind)
{
	return kind != KIND_ALL && kind != KIND_SERVICE && kind != KIND_MARKER && kind != KIND_OTHER &&
	       kind != KIND_KERNEL;
}

/* The most frequent language that is not listed yet; KIND_ALL: there is none. */
static int api_next_language(const struct workload *of, uint32_t listed)
{
	int most = KIND_ALL;

	for (int k = 0; k < KIND_NR; k++)
		if (api_is_language(k) && !(listed >> k & 1) && of->kinds[k] && of->kinds[k] > of->kinds[most])
			most = k;
	return most;
}

/* No frame of a stack is of KIND_ALL, so its count is 0. */
static void api_languages_json(struct jsonw *j, const struct workload *of)
{
	uint32_t listed = 0;
	int k;

	jsonw_open_list(j, "languages");
	while ((k = api_next_language(of, listed)) != KIND_ALL) {
		listed |= 1u << k;
		jsonw_text(j, NULL, frame_kind_name(k));
	}
	jsonw_close_list(j);
}

/* The one that figures are of first. */
static void api_types_json(struct jsonw *j, const struct store *s, const struct workload *of)
{
	jsonw_open_list(j, "types");
	if (of->types)
		hub_type_json(j, NULL, &s->types[of->spark.type]);
	for (uint32_t i = 0; i < s->nr_types; i++)
		if (of->types >> i & 1 && i != of->spark.type)
			hub_type_json(j, NULL, &s->types[i]);
	jsonw_close_list(j);
}

static void api_figures_json(struct jsonw *j, const struct api_work *w, const struct workload *of)
{
	uint64_t spark[SPARK_STEPS];
	double rate, cpus;

	workload_rate(w->api->store, of, w->call->now_ns, &rate, &cpus);
	workload_spark(of, w->call->now_ns, spark);
	jsonw_real(j, "samples_per_second", rate);
	if (cpus >= 0)
		jsonw_real(j, "cpus", cpus);
	else
		jsonw_null(j, "cpus");
	jsonw_number(j, "spark_step_ms", SPARK_STEP_NS / MS);
	jsonw_open_list(j, "spark");
	for (int i = 0; i < SPARK_STEPS; i++)
		jsonw_number(j, NULL, spark[i]);
	jsonw_close_list(j);
}

static void api_workload_json(struct jsonw *j, const struct api_work *w, const struct workload *of)
{
	jsonw_open(j, NULL);
	api_id_json(j, "id", of->id);
	jsonw_text(j, "kind", workload_kind_text(of->kind));
	jsonw_text(j, "name", of->name);
	jsonw_text_or_null(j, "namespace", of->namespace);
	jsonw_text_or_null(j, "host", of->host);
	jsonw_text(j, "service", of->service);
	jsonw_text_or_null(j, "executable", of->executable);
	api_target_json(j, "target", of);
	api_types_json(j, w->api->store, of);
	api_languages_json(j, of);
	jsonw_number(j, "first_seen_ms", of->first_ns / MS);
	jsonw_number(j, "last_seen_ms", of->last_ns / MS);
	api_figures_json(j, w, of);
	if (of->slot)
		api_slot_json(j, "slot", w, of);
	else
		jsonw_null(j, "slot");
	if (of->was_gone && !of->slot)
		api_gone_json(j, "gone", &of->gone);
	else
		jsonw_null(j, "gone");
	jsonw_close(j);
}

void api_get_workload(struct api_work *w)
{
	struct jsonw j = api_begin(w, 200);

	api_workload_json(&j, w, w->workload);
	api_end(w);
}

struct ranked {
	const struct workload *workload;
	double rate;
};

static int api_by_rate(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->rate != y->rate)
		return x->rate > y->rate ? -1 : 1;
	return strcmp(x->workload->name, y->workload->name);
}

static bool api_matches(const struct workload *of, const char *q)
{
	return !q || strcasestr(of->name, q) || strcasestr(of->service, q) || strcasestr(of->executable, q) ||
	       strcasestr(of->namespace, q) || strcasestr(of->host, q);
}

/* CPU time first; what has none by its samples, after these. */
static uint32_t api_rank(const struct api_work *w, const char *q, struct ranked *ret)
{
	const struct store *s = w->api->store;
	uint32_t n = 0;
	double rate, cpus;

	for (uint32_t i = 0; i < s->count; i++) {
		if (!api_matches(s->list[i], q))
			continue;
		workload_rate(s, s->list[i], w->call->now_ns, &rate, &cpus);
		ret[n++] = (struct ranked){s->list[i], cpus >= 0 ? 1 + cpus : rate / (1 + rate)};
	}
	qsort(ret, n, sizeof(*ret), api_by_rate);
	return n;
}

void api_get_workloads(struct api_work *w)
{
	const char *q = api_param(w->call, "q");
	_cleanup_(freep) struct ranked *list = calloc(w->api->store->count + 1, sizeof(*list));
	struct jsonw j;
	uint32_t n;

	if (q && utf8_count(q) > QUERY_CHARACTERS) {
		api_fail(w->reply, 422, "bad_value", "q", "q has at most %d characters", QUERY_CHARACTERS);
		return;
	}
	if (!list) {
		api_fail_errno(w, -ENOMEM);
		return;
	}
	n = api_rank(w, q, list);
	j = api_begin(w, 200);
	jsonw_open(&j, NULL);
	jsonw_number(&j, "now_ms", w->call->now_ns / MS);
	jsonw_number(&j, "seq", w->api->store->seq);
	jsonw_open_list(&j, "workloads");
	for (uint32_t i = 0; i < n; i++)
		api_workload_json(&j, w, list[i].workload);
	jsonw_close_list(&j);
	jsonw_close(&j);
	api_end(w);
}

/* --- all slots, limits --- */

static void api_limits_json(struct jsonw *j, const char *name, const struct hub_limits *l)
{
	jsonw_open(j, name);
#define X(NAME, field, key, value, min, max) jsonw_number(j, key, l->field);
	HUB_LIMITS(X)
#undef X
	jsonw_close(j);
}

static int api_by_request(const void *a, const void *b)
{
	const struct workload *x = *(const struct workload *const *)a, *y = *(const struct workload *const *)b;

	return x->requested_boot_ns > y->requested_boot_ns ? -1 : x->requested_boot_ns < y->requested_boot_ns;
}

static uint32_t api_list_slots(const struct store *s, const struct workload **ret)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->count; i++)
		if (s->list[i]->slot)
			ret[n++] = s->list[i];
	qsort(ret, n, sizeof(*ret), api_by_request);
	return n;
}

static void api_gone_list_json(struct jsonw *j, const struct store *s)
{
	jsonw_open_list(j, "gone");
	for (uint64_t i = 0; i < MIN(s->nr_gone, (uint64_t)STORE_GONE); i++)
		api_gone_json(j, NULL, &s->gone[(s->nr_gone - 1 - i) % STORE_GONE]);
	jsonw_close_list(j);
}

void api_get_slots(struct api_work *w)
{
	const struct store *s = w->api->store;
	_cleanup_(freep) const struct workload **list = calloc(s->count + 1, sizeof(*list));
	struct jsonw j;
	uint32_t n;

	if (!list) {
		api_fail_errno(w, -ENOMEM);
		return;
	}
	n = api_list_slots(s, list);
	j = api_begin(w, 200);
	jsonw_open(&j, NULL);
	jsonw_number(&j, "now_ms", w->call->now_ns / MS);
	api_limits_json(&j, "limits", &s->limits);
	jsonw_number(&j, "bytes", store_slot_bytes(s));
	jsonw_number(&j, "max_bytes", s->limits.max_slots * s->limits.slot_max_bytes);
	jsonw_open_list(&j, "slots");
	for (uint32_t i = 0; i < n; i++)
		api_slot_json(&j, NULL, w, list[i]);
	jsonw_close_list(&j);
	api_gone_list_json(&j, s);
	jsonw_close(&j);
	api_end(w);
}

void api_get_limits(struct api_work *w)
{
	struct jsonw j = api_begin(w, 200);

	api_limits_json(&j, NULL, &w->api->store->limits);
	api_end(w);
}

static uint64_t *api_limit(struct hub_limits *l, const char *key, uint64_t *ret_min, uint64_t *ret_max)
{
#define X(NAME, field, text, value, min, max)    \
	if (strcmp(key, text) == 0) {            \
		*ret_min = (min);                \
		*ret_max = (max);                \
		return &l->field;                \
	}
	HUB_LIMITS(X)
#undef X
	return NULL;
}

static bool api_take_limit(struct api_work *w, struct hub_limits *l, const char *key, const json_t *value)
{
	uint64_t min, max, *to = api_limit(l, key, &min, &max);

	if (!to) {
		api_fail(w->reply, 422, "bad_value", NULL, "there is no limit \"%.64s\"", key);
		return false;
	}
	if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) < min ||
	    (uint64_t)json_integer_value(value) > max) {
		/* The key as the table has it: that of the request is gone after this call. */
#define X(NAME, field, text, initial, least, most) key = to == &l->field ? text : key;
		HUB_LIMITS(X)
#undef X
		api_fail(w->reply, 422, "bad_value", key, API_RANGE, key, min, max);
		return false;
	}
	*to = (uint64_t)json_integer_value(value);
	return true;
}

static bool api_take_limits(struct api_work *w, struct hub_limits *l, json_t *from)
{
	const char *key;
	json_t *value;

	json_object_foreach(from, key, value)
		if (!api_take_limit(w, l, key, value))
			return false;
	return true;
}

struct json_t *api_json_body(struct api_work *w)
{
	json_t *from;

	if (!api_type_is(w->call->content_type, "application/json")) {
		api_fail(w->reply, 415, "media_type", NULL, "the body is application/json");
		return NULL;
	}
	from = json_loadb(w->call->body, w->call->body_len, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(from))
		return from;
	json_decref(from);
	api_fail(w->reply, 400, "bad_request", NULL, "the body is not a JSON object");
	return NULL;
}

void api_patch_limits(struct api_work *w)
{
	struct hub_limits l = w->api->store->limits;
	json_t *from = api_json_body(w);

	if (!from)
		return;
	if (api_take_limits(w, &l, from)) {
		store_set_limits(w->api->store, &l, w->call->now_ns);
		api_get_limits(w);
	}
	json_decref(from);
}
