// SPDX-License-Identifier: Apache-2.0
/*
 * Reads one OTLP request into a recording. Only what samples refer to is
 * taken over; each entry of the request's dictionary is translated once and
 * remembered by its index.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "otlp/decode.h"
#include "otlp/messages.h"
#include "otlp/value.h"
#include "recording/recording.h"

#define ARENA_MAX    (1ULL << 30)
#define ARENA_FACTOR 64

/* Translations so far by index: number + 1, 0: not yet. */
struct memo {
	uint32_t *numbers;
	size_t n;
};

struct pending {
	struct rec_sample sample;
	uint64_t count;
};

struct reader {
	struct recording *rec;
	const OtlpDictionary *dict;
	struct memo strings, attributes, functions, mappings, locations, links, stacks;
	struct buf pending; /* struct pending[] */
};

typedef int translate_fn(struct reader *r, size_t index, uint32_t *ret);

static int lookup(struct reader *r, struct memo *m, int64_t index, translate_fn *translate, uint32_t *ret)
{
	int e;

	/* An empty table has its zero value all the same. */
	if (index == 0 && !m->n) {
		*ret = 0;
		return 0;
	}
	if (index < 0 || (uint64_t)index >= m->n)
		return -EBADMSG;
	if (!m->numbers[index]) {
		e = translate(r, (size_t)index, ret);
		if (e < 0)
			return e;
		m->numbers[index] = *ret + 1;
	}
	*ret = m->numbers[index] - 1;
	return 0;
}

static int translate_string(struct reader *r, size_t i, uint32_t *ret)
{
	const char *s = r->dict->string_table[i];

	return recording_string(r->rec, s, strlen(s), ret);
}

static int read_string(struct reader *r, int32_t index, uint32_t *ret)
{
	return lookup(r, &r->strings, index, translate_string, ret);
}

static int text_of(struct reader *r, const char *s, uint32_t *ret)
{
	return recording_string(r->rec, s ? s : "", s ? strlen(s) : 0, ret);
}

/* otlp_value_resolve's way to the string table. */
static const char *resolve_string(void *ctx, int32_t index)
{
	struct reader *r = ctx;
	uint32_t n;

	return read_string(r, index, &n) < 0 ? NULL : recording_str(r->rec, n);
}

static int add_attribute(struct reader *r, uint32_t key, uint32_t unit, OtlpAnyValue *value, uint32_t *ret)
{
	struct rec_attribute a = {.key = key, .unit = unit};
	_cleanup_(buf_done) struct buf packed = {0}, text = {0};
	int e = 0;

	if (value) {
		e = otlp_value_resolve(value, resolve_string, r);
		if (e < 0)
			return e;
		otlp_value_pack(value, &packed);
		a.type = otlp_value_text(value, &text, &a.number);
	}
	if (packed.failed || text.failed)
		return -ENOMEM;
	e = intern_number(&r->rec->values, packed.data, packed.len, &a.packed);
	if (!e)
		e = recording_string(r->rec, (const char *)text.data, text.len, &a.text);
	return e < 0 ? e : intern_number(&r->rec->attributes, &a, sizeof(a), ret);
}

static int translate_attribute(struct reader *r, size_t i, uint32_t *ret)
{
	const OtlpKeyValueAndUnit *kv = r->dict->attribute_table[i];
	uint32_t key, unit;
	int e = read_string(r, kv->key_strindex, &key);

	if (!e)
		e = read_string(r, kv->unit_strindex, &unit);
	return e < 0 ? e : add_attribute(r, key, unit, kv->value, ret);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Makes the set of these numbers; they get sorted in place. */
static int add_set(struct reader *r, uint32_t *numbers, size_t n, uint32_t *ret)
{
	size_t i, kept = 0;

	if (n > 1)
		qsort(numbers, n, sizeof(*numbers), by_number);
	for (i = 0; i < n; i++)
		if (!kept || numbers[kept - 1] != numbers[i])
			numbers[kept++] = numbers[i];
	return intern_number(&r->rec->sets, numbers ? (void *)numbers : "", kept * sizeof(*numbers), ret);
}

static int read_set(struct reader *r, const int32_t *indices, size_t n, uint32_t *ret)
{
	_cleanup_(freep) uint32_t *numbers = NULL;
	size_t i;
	int e;

	*ret = 0;
	if (!n)
		return 0;
	numbers = calloc(n, sizeof(*numbers));
	if (!numbers)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		e = lookup(r, &r->attributes, indices[i], translate_attribute, &numbers[i]);
		if (e < 0)
			return e;
	}
	return add_set(r, numbers, n, ret);
}

static int read_key_value(struct reader *r, const OtlpKeyValue *kv, uint32_t *ret)
{
	uint32_t key;
	int e = kv->key_strindex ? read_string(r, kv->key_strindex, &key) : text_of(r, kv->key, &key);

	return e < 0 ? e : add_attribute(r, key, 0, kv->value, ret);
}

static int read_key_values(struct reader *r, OtlpKeyValue *const *kvs, size_t n, uint32_t *ret)
{
	_cleanup_(freep) uint32_t *numbers = NULL;
	size_t i;
	int e;

	*ret = 0;
	if (!n)
		return 0;
	numbers = calloc(n, sizeof(*numbers));
	if (!numbers)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		e = read_key_value(r, kvs[i], &numbers[i]);
		if (e < 0)
			return e;
	}
	return add_set(r, numbers, n, ret);
}

static int translate_function(struct reader *r, size_t i, uint32_t *ret)
{
	const OtlpFunction *f = r->dict->function_table[i];
	struct rec_function key = {.start_line = f->start_line};
	int e = read_string(r, f->name_strindex, &key.name);

	if (!e)
		e = read_string(r, f->system_name_strindex, &key.system_name);
	if (!e)
		e = read_string(r, f->filename_strindex, &key.file);
	return e < 0 ? e : intern_number(&r->rec->functions, &key, sizeof(key), ret);
}

static int translate_mapping(struct reader *r, size_t i, uint32_t *ret)
{
	const OtlpMapping *m = r->dict->mapping_table[i];
	struct rec_mapping key = {.start = m->memory_start, .limit = m->memory_limit, .offset = m->file_offset};
	int e = read_string(r, m->filename_strindex, &key.file);

	if (!e)
		e = read_set(r, m->attribute_indices, m->n_attribute_indices, &key.attributes);
	return e < 0 ? e : intern_number(&r->rec->mappings, &key, sizeof(key), ret);
}

static int read_lines(struct reader *r, const OtlpLocation *l, struct rec_line *lines)
{
	size_t i;
	int e;

	for (i = 0; i < l->n_lines; i++) {
		lines[i] = (struct rec_line){.line = l->lines[i]->line, .column = l->lines[i]->column};
		e = lookup(r, &r->functions, l->lines[i]->function_index, translate_function, &lines[i].function);
		if (e < 0)
			return e;
	}
	return 0;
}

static int translate_location(struct reader *r, size_t i, uint32_t *ret)
{
	const OtlpLocation *l = r->dict->location_table[i];
	_cleanup_(freep) struct rec_location *key = NULL;
	size_t len = sizeof(*key) + l->n_lines * sizeof(struct rec_line);
	int e;

	if (l->n_lines > RECORDING_DEPTH_MAX)
		return -E2BIG;
	key = calloc(1, len);
	if (!key)
		return -ENOMEM;
	key->address = l->address;
	e = lookup(r, &r->mappings, l->mapping_index, translate_mapping, &key->mapping);
	if (!e)
		e = read_set(r, l->attribute_indices, l->n_attribute_indices, &key->attributes);
	if (!e)
		e = read_lines(r, l, key->lines);
	return e < 0 ? e : intern_number(&r->rec->locations, key, len, ret);
}

static int translate_stack(struct reader *r, size_t i, uint32_t *ret)
{
	const OtlpStack *s = r->dict->stack_table[i];
	_cleanup_(freep) uint32_t *numbers = NULL;
	size_t k;
	int e;

	if (s->n_location_indices > RECORDING_DEPTH_MAX)
		return -E2BIG;
	numbers = calloc(MAX(s->n_location_indices, (size_t)1), sizeof(*numbers));
	if (!numbers)
		return -ENOMEM;
	for (k = 0; k < s->n_location_indices; k++) {
		e = lookup(r, &r->locations, s->location_indices[k], translate_location, &numbers[k]);
		if (e < 0)
			return e;
	}
	return intern_number(&r->rec->stacks, numbers, s->n_location_indices * sizeof(*numbers), ret);
}

static int translate_link(struct reader *r, size_t i, uint32_t *ret)
{
	const OtlpLink *l = r->dict->link_table[i];
	struct rec_link key = {0};

	if ((l->trace_id.len && l->trace_id.len != sizeof(key.trace_id)) ||
	    (l->span_id.len && l->span_id.len != sizeof(key.span_id)))
		return -EBADMSG;
	if (l->trace_id.len)
		memcpy(key.trace_id, l->trace_id.data, sizeof(key.trace_id));
	if (l->span_id.len)
		memcpy(key.span_id, l->span_id.data, sizeof(key.span_id));
	return intern_number(&r->rec->links, &key, sizeof(key), ret);
}

/* What a sample stands for: the sum of its values, or one each where it has moments only. */
static int sample_count(const OtlpSample *s, uint64_t *ret)
{
	uint64_t sum = s->n_values ? 0 : s->n_timestamps_unix_nano;
	size_t i;

	for (i = 0; i < s->n_values; i++) {
		if (s->values[i] < 0)
			return -EBADMSG;
		if (__builtin_add_overflow(sum, (uint64_t)s->values[i], &sum))
			return -E2BIG;
	}
	*ret = sum;
	return 0;
}

static int read_sample(struct reader *r, uint32_t series, const OtlpSample *s)
{
	struct pending p = {.sample.series = series};
	int e = sample_count(s, &p.count);

	if (!e)
		e = lookup(r, &r->stacks, s->stack_index, translate_stack, &p.sample.stack);
	if (!e)
		e = read_set(r, s->attribute_indices, s->n_attribute_indices, &p.sample.attributes);
	if (!e)
		e = lookup(r, &r->links, s->link_index, translate_link, &p.sample.link);
	if (e < 0 || !p.count)
		return e;
	buf_add(&r->pending, &p, sizeof(p));
	return r->pending.failed ? -ENOMEM : 0;
}

static int read_type(struct reader *r, const OtlpValueType *t, uint32_t *ret_type, uint32_t *ret_unit)
{
	int e;

	if (!t)
		return 0;
	e = read_string(r, t->type_strindex, ret_type);
	return e < 0 ? e : read_string(r, t->unit_strindex, ret_unit);
}

static int add_series(struct reader *r, struct rec_series *key, const OtlpProfile *p, uint32_t *ret)
{
	uint64_t end;
	int e;

	key->period = p->period;
	e = read_type(r, p->sample_type, &key->type, &key->unit);
	if (!e)
		e = read_type(r, p->period_type, &key->period_type, &key->period_unit);
	if (!e)
		e = read_set(r, p->attribute_indices, p->n_attribute_indices, &key->attributes);
	if (!e)
		e = intern_number(&r->rec->series, key, sizeof(*key), ret);
	if (e < 0)
		return e;
	if (__builtin_add_overflow(p->time_unix_nano, p->duration_nano, &end))
		return -EBADMSG;
	return recording_span(r->rec, *ret, p->time_unix_nano, end);
}

static int read_profile(struct reader *r, uint32_t resource, uint32_t scope, const OtlpProfile *p)
{
	struct rec_series key = {.resource = resource, .scope = scope};
	uint32_t series;
	size_t i;
	int e;

	if (!p->n_samples)
		return 0;
	e = add_series(r, &key, p, &series);
	for (i = 0; !e && i < p->n_samples; i++)
		e = read_sample(r, series, p->samples[i]);
	return e;
}

static int read_scope(struct reader *r, const OtlpScopeProfiles *s, uint32_t *ret)
{
	struct rec_scope key = {0};
	int e = text_of(r, s->schema_url, &key.schema_url);

	if (!e && s->scope)
		e = text_of(r, s->scope->name, &key.name);
	if (!e && s->scope)
		e = text_of(r, s->scope->version, &key.version);
	if (!e && s->scope)
		e = read_key_values(r, s->scope->attributes, s->scope->n_attributes, &key.attributes);
	return e < 0 ? e : intern_number(&r->rec->scopes, &key, sizeof(key), ret);
}

static int read_resource(struct reader *r, const OtlpResourceProfiles *rp, uint32_t *ret)
{
	struct rec_resource key = {0};
	int e = text_of(r, rp->schema_url, &key.schema_url);

	if (!e && rp->resource)
		e = read_key_values(r, rp->resource->attributes, rp->resource->n_attributes, &key.attributes);
	return e < 0 ? e : intern_number(&r->rec->resources, &key, sizeof(key), ret);
}

static int read_resource_profiles(struct reader *r, const OtlpResourceProfiles *rp)
{
	uint32_t resource, scope;
	size_t i, k;
	int e = read_resource(r, rp, &resource);

	for (i = 0; !e && i < rp->n_scope_profiles; i++) {
		const OtlpScopeProfiles *s = rp->scope_profiles[i];

		e = read_scope(r, s, &scope);
		for (k = 0; !e && k < s->n_profiles; k++)
			e = read_profile(r, resource, scope, s->profiles[k]);
	}
	return e;
}

static int read_request(struct reader *r, const OtlpRequest *req)
{
	const struct pending *p;
	size_t i, n;
	int e = 0;

	for (i = 0; !e && i < req->n_resource_profiles; i++)
		e = read_resource_profiles(r, req->resource_profiles[i]);
	/* All of it is good: only now it counts. */
	p = (const struct pending *)r->pending.data;
	n = r->pending.len / sizeof(*p);
	for (i = 0; !e && i < n; i++)
		e = recording_add(r->rec, &p[i].sample, p[i].count);
	return e;
}

static int memo_new(struct memo *m, size_t n)
{
	m->numbers = n ? calloc(n, sizeof(*m->numbers)) : NULL;
	m->n = n;
	return n && !m->numbers ? -ENOMEM : 0;
}

static int reader_init(struct reader *r, const OtlpDictionary *d)
{
	int e = 0;

	r->dict = d;
	if (!d)
		return 0;
	e |= memo_new(&r->strings, d->n_string_table);
	e |= memo_new(&r->attributes, d->n_attribute_table);
	e |= memo_new(&r->functions, d->n_function_table);
	e |= memo_new(&r->mappings, d->n_mapping_table);
	e |= memo_new(&r->locations, d->n_location_table);
	e |= memo_new(&r->links, d->n_link_table);
	e |= memo_new(&r->stacks, d->n_stack_table);
	return e ? -ENOMEM : 0;
}

static void reader_done(struct reader *r)
{
	free(r->strings.numbers);
	free(r->attributes.numbers);
	free(r->functions.numbers);
	free(r->mappings.numbers);
	free(r->locations.numbers);
	free(r->links.numbers);
	free(r->stacks.numbers);
	buf_done(&r->pending);
}

int recording_read(struct recording *rec, const void *data, size_t len)
{
	_cleanup_(arena_done) struct arena arena = {.max = MIN(len * ARENA_FACTOR + (1u << 20), ARENA_MAX)};
	_cleanup_(reader_done) struct reader r = {.rec = rec};
	ProtobufCMessage *m;
	int e;

	if (len > RECORDING_REQUEST_MAX)
		return -E2BIG;
	e = otlp_decode(&OTLP_REQUEST_DESCRIPTOR, data, len, &arena, &m);
	if (!e)
		e = reader_init(&r, ((OtlpRequest *)m)->dictionary);
	if (!e)
		e = read_request(&r, (OtlpRequest *)m);
	if (!e)
		rec->requests++;
	return e;
}
