// SPDX-License-Identifier: Apache-2.0
/* Workloads and their slots: how they are opened, closed and counted. store_take.c fills them. */
#include "hub/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "hub/store_internal.h"

const struct hub_limits hub_limits_default = {
#define X(NAME, field, key, value, min, max) .field = (value),
	HUB_LIMITS(X)
#undef X
};

const char *gone_reason_text(enum gone_reason reason)
{
	static const char *const texts[] = {
		[GONE_EXPIRED] = "expired", [GONE_EVICTED] = "evicted", [GONE_CLOSED] = "closed"};

	return texts[reason];
}

int store_new(const struct hub_limits *limits, struct store **ret)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->limits = *limits;
	*ret = s;
	return 0;
}

static void workload_free(struct workload *w)
{
	slot_free(w->slot);
	free(w->namespace);
	free(w->host);
	free(w->service);
	free(w->executable);
	free(w);
}

struct store *store_free(struct store *s)
{
	if (!s)
		return NULL;
	for (uint32_t i = 0; i < s->count; i++)
		workload_free(s->list[i]);
	free(s->list);
	map_done(&s->by_id);
	free(s);
	return NULL;
}

struct workload *store_find(const struct store *s, uint64_t id)
{
	return map_find_ptr(&s->by_id, id);
}

void store_changed(struct store *s, struct workload *w, enum store_change change)
{
	s->seq++;
	if (s->changed)
		s->changed(s->ctx, w, change);
}

/* --- workloads --- */

static bool workload_set_texts(struct workload *w, const struct workload_identity *from)
{
	w->namespace = strndup(from->namespace, STORE_TEXT);
	w->host = strndup(from->host, STORE_TEXT);
	w->service = strndup(from->service, STORE_TEXT);
	w->executable = strndup(from->executable, STORE_TEXT);
	if (!w->namespace || !w->host || !w->service || !w->executable)
		return false;
	utf8_clean_str(w->namespace);
	utf8_clean_str(w->host);
	utf8_clean_str(w->service);
	utf8_clean_str(w->executable);
	return true;
}

static struct workload *workload_new(const struct workload_identity *from, uint64_t now_ns)
{
	struct workload *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->id = from->id;
	w->kind = from->kind;
	memcpy(w->name, from->name, sizeof(w->name));
	w->first_ns = w->last_ns = now_ns;
	if (workload_set_texts(w, from))
		return w;
	workload_free(w);
	return NULL;
}

struct workload *store_find_or_add(struct store *s, const struct workload_identity *from, uint64_t now_ns)
{
	struct workload *w = store_find(s, from->id);

	if (w || s->count >= STORE_WORKLOADS || array_reserve(&s->list, s->count, &s->cap, sizeof(*s->list)) < 0)
		return w;
	w = workload_new(from, now_ns);
	if (!w)
		return NULL;
	if (map_put_ptr(&s->by_id, w->id, w) < 0) {
		workload_free(w);
		return NULL;
	}
	w->index = s->count;
	s->list[s->count++] = w;
	return w;
}

/* --- slots --- */

static void store_add_counts(struct slot_counts *to, const struct slot_counts *c)
{
	to->taken += c->taken;
	to->kept += c->kept;
	to->folded += c->folded;
	to->evicted += c->evicted;
	to->refused += c->refused;
}

/* What a slot took and does not hold any more. */
static void store_keep_counts(struct store *s, const struct slot *slot)
{
	struct slot_counts c = slot->counts;

	c.evicted += c.kept + c.folded;
	c.kept = c.folded = 0;
	store_add_counts(&s->past.slots, &c);
}

void store_close(struct store *s, struct workload *w, enum gone_reason reason, uint64_t now_ns)
{
	if (!w->slot)
		return;
	w->gone = (struct gone){.workload = w->id, .at_ns = now_ns, .reason = reason};
	memcpy(w->gone.name, w->name, sizeof(w->gone.name));
	w->was_gone = true;
	s->gone[s->nr_gone++ % STORE_GONE] = w->gone;
	store_keep_counts(s, w->slot);
	w->slot = slot_free(w->slot);
	s->nr_slots--;
	store_changed(s, w, STORE_CLOSED);
}

static bool store_asked_before(const struct workload *a, const struct workload *b)
{
	if (!a->streams != !b->streams)
		return !a->streams;
	return a->requested_boot_ns < b->requested_boot_ns;
}

static struct workload *store_least_recent(const struct store *s)
{
	struct workload *least = NULL;

	for (uint32_t i = 0; i < s->count; i++)
		if (s->list[i]->slot && (!least || store_asked_before(s->list[i], least)))
			least = s->list[i];
	return least;
}

static const struct gone *store_evict(struct store *s, uint32_t max, uint64_t now_ns)
{
	const struct gone *last = NULL;
	struct workload *w;

	while (s->nr_slots > max && (w = store_least_recent(s))) {
		store_close(s, w, GONE_EVICTED, now_ns);
		last = &w->gone;
	}
	return last;
}

void store_touch(struct workload *w, uint64_t now_ns)
{
	w->requested_ns = now_ns;
	w->requested_boot_ns = clock_now_ns();
}

int store_open(struct store *s, struct workload *w, uint64_t now_ns, const struct gone **ret_evicted)
{
	struct slot *slot;

	*ret_evicted = NULL;
	store_touch(w, now_ns);
	if (w->slot)
		return 0;
	if (slot_new(s->limits.slot_max_bytes, ++s->generations, &slot) < 0)
		return -ENOMEM;
	*ret_evicted = store_evict(s, (uint32_t)s->limits.max_slots - 1, now_ns);
	w->slot = slot;
	w->opened_ns = now_ns;
	s->nr_slots++;
	store_changed(s, w, STORE_OPENED);
	return 1;
}

void store_clear(struct store *s, struct workload *w)
{
	slot_clear(w->slot);
	store_changed(s, w, STORE_CLEARED);
}

static void store_forget(struct store *s, uint32_t i)
{
	map_remove(&s->by_id, s->list[i]->id);
	workload_free(s->list[i]);
	/* The loop comes from the end: the last one was looked at. */
	if (i == --s->count)
		return;
	s->list[i] = s->list[s->count];
	s->list[i]->index = i;
}

void store_sweep(struct store *s, uint64_t now_ns)
{
	uint64_t boot = clock_now_ns(), ttl = s->limits.slot_ttl_seconds * NSEC_PER_SEC;

	for (uint32_t i = s->count; i-- > 0;) {
		struct workload *w = s->list[i];

		if (w->slot && !w->streams && boot - w->requested_boot_ns > ttl)
			store_close(s, w, GONE_EXPIRED, now_ns);
		if (!w->slot && !w->streams && now_ns > w->last_ns && now_ns - w->last_ns > STORE_WINDOW_NS)
			store_forget(s, i);
	}
}

void store_set_limits(struct store *s, const struct hub_limits *l, uint64_t now_ns)
{
	bool resize = l->slot_max_bytes != s->limits.slot_max_bytes;

	s->limits = *l;
	store_evict(s, (uint32_t)l->max_slots, now_ns);
	for (uint32_t i = 0; resize && i < s->count; i++) {
		struct workload *w = s->list[i];
		uint32_t generation = w->slot ? w->slot->generation : 0;

		if (!w->slot)
			continue;
		if (slot_resize(w->slot, l->slot_max_bytes) < 0)
			store_close(s, w, GONE_EVICTED, now_ns);
		else if (w->slot->generation != generation)
			store_changed(s, w, STORE_PRUNED);
	}
}

/* --- figures --- */

void store_counts(const struct store *s, struct store_counts *ret)
{
	*ret = s->past;
	for (uint32_t i = 0; i < s->count; i++)
		if (s->list[i]->slot)
			store_add_counts(&ret->slots, &s->list[i]->slot->counts);
}

size_t store_slot_bytes(const struct store *s)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < s->count; i++)
		if (s->list[i]->slot)
			bytes += slot_memory(s->list[i]->slot);
	return bytes;
}

static uint64_t spark_value(const struct spark *s, uint64_t step)
{
	return step <= s->step && s->step - step < SPARK_STEPS ? s->values[step % SPARK_STEPS] : 0;
}

void workload_spark(const struct workload *w, uint64_t now_ns, uint64_t ret[SPARK_STEPS])
{
	uint64_t first = now_ns / SPARK_STEP_NS - SPARK_STEPS;

	for (uint32_t i = 0; i < SPARK_STEPS; i++)
		ret[i] = spark_value(&w->spark, first + i);
}

#define RATE_STEPS 12

/* Without the newest steps, of which samples are still on their way. */
void workload_rate(const struct store *s, const struct workload *w, uint64_t now_ns, double *ret_rate,
		   double *ret_cpus)
{
	const struct hub_type *t = &s->types[w->spark.type];
	uint64_t last = MIN(now_ns / SPARK_STEP_NS, w->spark.step + RATE_STEPS), sum = 0;
	uint64_t first = MAX(w->first_ns / SPARK_STEP_NS, last > RATE_STEPS ? last - RATE_STEPS : 0);
	double seconds;

	for (uint64_t i = first; i <= last; i++)
		sum += spark_value(&w->spark, i);
	seconds = (double)(last - first + 1) * (double)SPARK_STEP_NS / NSEC_PER_SEC;
	*ret_rate = (double)sum / seconds;
	*ret_cpus = t->cpu && w->types ? *ret_rate * (double)t->period / NSEC_PER_SEC : -1;
}
