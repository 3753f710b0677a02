// SPDX-License-Identifier: Apache-2.0
/* The recording as a sink of requests: every entry is interned in its tables. */
#include "otlp/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "recording/recording.h"

/* State while one request is added to the recording. */
struct recorder {
	struct recording *rec;
	uint32_t marks[RECORDING_TABLES]; /* entries of the tables before it */
	uint64_t total, frames;           /* the recording's after commit */
	uint32_t resource, scope, series; /* current */
	struct rec_times *times;          /* owned: the recording's after commit */
	uint32_t times_cap;
	struct buf packed, text, location; /* scratch */
};

static int recorder_string(void *ctx, const char *s, uint32_t *ret)
{
	struct recorder *r = ctx;

	return intern_number(&r->rec->strings, s, strlen(s) + 1, ret);
}

static int recorder_value(struct recorder *r, const OtlpAnyValue *v, struct rec_attribute *a)
{
	int e;

	buf_reset(&r->packed);
	buf_reset(&r->text);
	otlp_value_pack(v, &r->packed);
	a->type = otlp_value_text(v, &r->text, &a->number);
	buf_add(&r->text, "", 1);
	if (r->packed.failed || r->text.failed)
		return -ENOMEM;
	e = intern_number(&r->rec->values, r->packed.data, r->packed.len, &a->packed);
	return e < 0 ? e : intern_number(&r->rec->strings, r->text.data, r->text.len, &a->text);
}

static int recorder_attribute(void *ctx, const struct sink_attribute *from, uint32_t *ret)
{
	struct recorder *r = ctx;
	struct rec_attribute a = {.key = from->key.number, .unit = from->unit.number};
	int e = from->value ? recorder_value(r, from->value, &a) : 0;

	return e < 0 ? e : intern_number(&r->rec->attributes, &a, sizeof(a), ret);
}

static int recorder_by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Ascending and without repetition: one set, one key. */
static int recorder_set(void *ctx, uint32_t *numbers, size_t n, uint32_t *ret)
{
	struct recorder *r = ctx;
	size_t i, kept = 0;

	if (n > 1)
		qsort(numbers, n, sizeof(*numbers), recorder_by_number);
	for (i = 0; i < n; i++)
		if (!kept || numbers[kept - 1] != numbers[i])
			numbers[kept++] = numbers[i];
	return intern_number(&r->rec->sets, numbers, kept * sizeof(*numbers), ret);
}

static int recorder_inline_set(struct recorder *r, const struct sink_attribute *a, size_t n, uint32_t *ret)
{
	_cleanup_(freep) uint32_t *numbers = calloc(n + 1, sizeof(*numbers));
	size_t i;
	int e = 0;

	if (!numbers)
		return -ENOMEM;
	for (i = 0; !e && i < n; i++)
		e = recorder_attribute(r, &a[i], &numbers[i]);
	return e < 0 ? e : recorder_set(r, numbers, n, ret);
}

/* The first of these attributes that has a text. */
static uint32_t recorder_service(const struct recording *rec, uint32_t set)
{
	static const char *const keys[] = {"service.name", "process.executable.name", "container.id"};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct rec_attribute *a = recording_find(rec, set, keys[i]);

		if (a && *recording_str(rec, a->text))
			return a->text;
	}
	return RECORDING_UNKNOWN_SERVICE;
}

/* Now, once: a resource may have a million attributes, and a million series or samples that show its service. */
static int recorder_workload(struct recording *rec, uint32_t resource, uint32_t set)
{
	const struct rec_attribute *host = recording_find(rec, set, "host.name");

	if (array_reach(&rec->workloads, resource, &rec->workloads_cap, sizeof(*rec->workloads)) < 0)
		return -ENOMEM;
	rec->workloads[resource] = (struct rec_workload){
		.service = recorder_service(rec, set),
		.host = host ? host->text : RECORDING_NO_STRING,
	};
	return 0;
}

static int recorder_resource(void *ctx, const struct sink_resource *from, uint32_t *ret_space)
{
	struct recorder *r = ctx;
	struct rec_resource key = {.schema_url = from->schema_url.number};
	int e = recorder_inline_set(r, from->attributes, from->n, &key.attributes);

	*ret_space = 0;
	if (!e)
		e = intern_add(&r->rec->resources, &key, sizeof(key), &r->resource);
	return e > 0 ? recorder_workload(r->rec, r->resource, key.attributes) : e;
}

static int recorder_scope(void *ctx, const struct sink_scope *from)
{
	struct recorder *r = ctx;
	struct rec_scope key = {
		.name = from->name.number, .version = from->version.number, .schema_url = from->schema_url.number,
	};
	int e = recorder_inline_set(r, from->attributes, from->n, &key.attributes);

	return e < 0 ? e : intern_number(&r->rec->scopes, &key, sizeof(key), &r->scope);
}

static int recorder_times(struct recorder *r, uint64_t start_ns, uint64_t end_ns)
{
	if (array_reach(&r->times, r->series, &r->times_cap, sizeof(*r->times)) < 0)
		return -ENOMEM;
	rec_times_add(&r->times[r->series], start_ns, end_ns);
	return 0;
}

static int recorder_profile(void *ctx, const struct sink_profile *p)
{
	struct recorder *r = ctx;
	struct rec_series key = {
		.resource = r->resource,
		.scope = r->scope,
		.type = p->type.number,
		.unit = p->unit.number,
		.period_type = p->period_type.number,
		.period_unit = p->period_unit.number,
		.attributes = p->attributes,
		.period = p->period,
	};
	int e = intern_number(&r->rec->series, &key, sizeof(key), &r->series);

	return e < 0 ? e : recorder_times(r, p->start_ns, p->end_ns);
}

static int recorder_function(void *ctx, const struct sink_function *f, uint32_t *ret)
{
	struct recorder *r = ctx;
	struct rec_function key = {
		.name = f->name.number,
		.system_name = f->system_name.number,
		.file = f->file.number,
		.start_line = f->start_line,
	};

	return intern_number(&r->rec->functions, &key, sizeof(key), ret);
}

static int recorder_mapping(void *ctx, const struct sink_mapping *m, uint32_t *ret)
{
	struct recorder *r = ctx;
	struct rec_mapping key = {
		.start = m->start,
		.limit = m->limit,
		.offset = m->offset,
		.file = m->file.number,
		.attributes = m->attributes,
	};

	return intern_number(&r->rec->mappings, &key, sizeof(key), ret);
}

static int recorder_location(void *ctx, const struct sink_location *l, uint32_t *ret)
{
	struct recorder *r = ctx;
	size_t len = sizeof(struct rec_location) + l->n * sizeof(struct rec_line), i;
	struct rec_location *key;

	buf_reset(&r->location);
	key = buf_reserve(&r->location, len);
	if (!key)
		return -ENOMEM;
	*key = (struct rec_location){
		.address = l->n && r->rec->drops_addresses ? 0 : l->address,
		.mapping = l->mapping, .attributes = l->attributes, .kind = l->kind,
	};
	for (i = 0; i < l->n; i++)
		key->lines[i] = (struct rec_line){
			.function = l->lines[i].function, .line = l->lines[i].line, .column = l->lines[i].column,
		};
	return intern_number(&r->rec->locations, key, len, ret);
}

static int recorder_stack(void *ctx, const uint32_t *locations, size_t n, uint32_t *ret)
{
	struct recorder *r = ctx;

	return intern_number(&r->rec->stacks, locations, n * sizeof(*locations), ret);
}

static int recorder_link(void *ctx, const struct sink_link *l, uint32_t *ret)
{
	struct recorder *r = ctx;
	struct rec_link key;

	memcpy(key.trace_id, l->trace_id, sizeof(key.trace_id));
	memcpy(key.span_id, l->span_id, sizeof(key.span_id));
	return intern_number(&r->rec->links, &key, sizeof(key), ret);
}

static int recorder_sample(void *ctx, const struct sink_sample *s, uint32_t *ret)
{
	struct recorder *r = ctx;
	const struct recording_limits *limits = &r->rec->limits;
	struct rec_sample key = {.series = r->series, .stack = s->stack, .attributes = s->attributes, .link = s->link};
	size_t depth;
	int e;

	recording_stack(r->rec, s->stack, &depth);
	if (s->value > limits->total - r->total || depth + 1 > limits->frames - r->frames)
		return -E2BIG;
	e = intern_add(&r->rec->samples, &key, sizeof(key), ret);
	if (e < 0)
		return e;
	/* The work of a renderer grows with distinct samples. */
	r->frames += e ? depth + 1 : 0;
	r->total += s->value;
	return array_reach(&r->rec->sums, *ret, &r->rec->sums_cap, sizeof(*r->rec->sums));
}

static void recorder_add(void *ctx, uint32_t sample, uint64_t value)
{
	struct recorder *r = ctx;

	r->rec->sums[sample] += value;
}

static const struct otlp_sink recorder_sink = {
	.resource = recorder_resource,
	.scope = recorder_scope,
	.profile = recorder_profile,
	.string = recorder_string,
	.attribute = recorder_attribute,
	.set = recorder_set,
	.link = recorder_link,
	.mapping = recorder_mapping,
	.function = recorder_function,
	.location = recorder_location,
	.stack = recorder_stack,
	.sample = recorder_sample,
	.add = recorder_add,
};

static int recorder_init(struct recorder *r, struct recording *rec)
{
	struct intern *tables[RECORDING_TABLES];
	size_t i;

	*r = (struct recorder){.rec = rec, .total = rec->total, .frames = rec->frames};
	recording_tables(rec, tables);
	for (i = 0; i < RECORDING_TABLES; i++)
		r->marks[i] = tables[i]->count;
	if (rec->times_cap) {
		r->times = calloc(rec->times_cap, sizeof(*r->times));
		if (!r->times)
			return -ENOMEM;
		memcpy(r->times, rec->times, rec->times_cap * sizeof(*r->times));
		r->times_cap = rec->times_cap;
	}
	return 0;
}

static void recorder_commit(struct recorder *r)
{
	free(r->rec->times);
	r->rec->times = steal_ptr(&r->times);
	r->rec->times_cap = r->times_cap;
	r->rec->total = r->total;
	r->rec->frames = r->frames;
	r->rec->requests++;
}

static void recorder_revert(struct recorder *r)
{
	struct intern *tables[RECORDING_TABLES];
	size_t i;

	recording_tables(r->rec, tables);
	for (i = 0; i < RECORDING_TABLES; i++)
		intern_truncate(tables[i], r->marks[i]);
}

static void recorder_done(struct recorder *r)
{
	free(r->times);
	buf_done(&r->packed);
	buf_done(&r->text);
	buf_done(&r->location);
}

int recording_read(struct recording *rec, const void *data, size_t len)
{
	_cleanup_(recorder_done) struct recorder r;
	int e = recorder_init(&r, rec);

	if (!e)
		e = otlp_read(data, len, &rec->limits.request, &recorder_sink, &r);
	if (e < 0)
		recorder_revert(&r);
	else
		recorder_commit(&r);
	return e;
}
