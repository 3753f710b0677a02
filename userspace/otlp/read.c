// SPDX-License-Identifier: Apache-2.0
#include "otlp/read.h"

#include <errno.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "otlp/decode.h"
#include "otlp/translator.h"

/* A message of two bytes takes a hundred decoded: this bounds the memory of a well-formed request by its length. */
#define READ_FACTOR 64
#define READ_FLOOR  (1u << 20)

/* A sample that the sink prepared. */
struct staged {
	uint64_t value;
	uint32_t number;
};

struct reader {
	struct translator translator;
	const struct otlp_sink *sink; /* borrowed */
	void *ctx;
	struct buf attributes; /* scratch: struct sink_attribute[] of a resource or scope */
	struct buf samples;    /* struct sink_sample[]: of the current profile */
	struct buf staged;     /* struct staged[]: of the request */
};

static int otlp_read_attribute(struct reader *r, OtlpKeyValue *kv, struct sink_attribute *ret)
{
	int e;

	*ret = (struct sink_attribute){.unit.s = "", .value = kv->value};
	e = kv->key_strindex ? translator_text(&r->translator, kv->key_strindex, &ret->key) :
			       translator_inline(&r->translator, kv->key, &ret->key);
	return e < 0 ? e : translator_value(&r->translator, kv->value);
}

static int otlp_read_attributes(struct reader *r, OtlpKeyValue **from, size_t n, const struct sink_attribute **ret)
{
	struct sink_attribute *to;
	size_t i;
	int e = 0;

	buf_reset(&r->attributes);
	to = buf_reserve(&r->attributes, MAX(n, (size_t)1) * sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (i = 0; !e && i < n; i++)
		e = otlp_read_attribute(r, from[i], &to[i]);
	*ret = to;
	return e;
}

/* A sample with timestamps and no values counts one for each timestamp. */
static int otlp_read_value(const OtlpSample *s, uint64_t *ret)
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

static int otlp_read_sample(struct reader *r, const OtlpSample *from)
{
	struct sink_sample s = {0};
	int e = otlp_read_value(from, &s.value);

	if (!e)
		e = translator_stack(&r->translator, from->stack_index, &s.stack);
	if (!e)
		e = translator_set(&r->translator, from->attribute_indices, from->n_attribute_indices, &s.attributes);
	if (!e)
		e = translator_link(&r->translator, from->link_index, &s.link);
	if (e < 0 || !s.value)
		return e;
	buf_add(&r->samples, &s, sizeof(s));
	return r->samples.failed ? -ENOMEM : 0;
}

/* After all stacks of the profile: the sink then uses one table after the other, which suits CPU caches. */
static int otlp_read_stage_samples(struct reader *r)
{
	const struct sink_sample *s = (const struct sink_sample *)r->samples.data;
	size_t n = r->samples.len / sizeof(*s), i;
	struct staged *to = buf_reserve(&r->staged, n * sizeof(*to));
	int e = to ? 0 : -ENOMEM;

	for (i = 0; !e && i < n; i++) {
		to[i].value = s[i].value;
		e = r->sink->sample(r->ctx, &s[i], &to[i].number);
	}
	buf_commit(&r->staged, n * sizeof(*to));
	return e;
}

static int otlp_read_type(struct reader *r, const OtlpValueType *t, struct sink_text *ret_type,
			  struct sink_text *ret_unit)
{
	int e;

	if (!t) {
		e = translator_inline(&r->translator, NULL, ret_type);
		*ret_unit = *ret_type;
		return e;
	}
	e = translator_text(&r->translator, t->type_strindex, ret_type);
	return e < 0 ? e : translator_text(&r->translator, t->unit_strindex, ret_unit);
}

static int otlp_read_profile_head(struct reader *r, const OtlpProfile *from)
{
	struct sink_profile p = {.period = from->period, .start_ns = from->time_unix_nano};
	int e = otlp_read_type(r, from->sample_type, &p.type, &p.unit);

	if (!e)
		e = otlp_read_type(r, from->period_type, &p.period_type, &p.period_unit);
	if (!e)
		e = translator_set(&r->translator, from->attribute_indices, from->n_attribute_indices, &p.attributes);
	if (!e && __builtin_add_overflow(from->time_unix_nano, from->duration_nano, &p.end_ns))
		e = -EBADMSG;
	return e < 0 ? e : r->sink->profile(r->ctx, &p);
}

static int otlp_read_profile(struct reader *r, const OtlpProfile *from)
{
	size_t i;
	int e;

	if (!from->n_samples)
		return 0;
	buf_reset(&r->samples);
	e = otlp_read_profile_head(r, from);
	for (i = 0; !e && i < from->n_samples; i++)
		e = otlp_read_sample(r, from->samples[i]);
	if (!e)
		e = otlp_read_stage_samples(r);
	return e == OTLP_SKIP ? 0 : e;
}

static int otlp_read_scope_head(struct reader *r, const OtlpScopeProfiles *from)
{
	OtlpScope *scope = from->scope;
	struct sink_scope s = {.n = scope ? scope->n_attributes : 0};
	int e;

	if (!r->sink->scope)
		return 0;
	e = translator_inline(&r->translator, from->schema_url, &s.schema_url);
	if (!e)
		e = translator_inline(&r->translator, scope ? scope->name : NULL, &s.name);
	if (!e)
		e = translator_inline(&r->translator, scope ? scope->version : NULL, &s.version);
	if (!e)
		e = otlp_read_attributes(r, scope ? scope->attributes : NULL, s.n, &s.attributes);
	return e < 0 ? e : r->sink->scope(r->ctx, &s);
}

static int otlp_read_scope(struct reader *r, const OtlpScopeProfiles *from)
{
	size_t i;
	int e = otlp_read_scope_head(r, from);

	for (i = 0; !e && i < from->n_profiles; i++)
		e = otlp_read_profile(r, from->profiles[i]);
	return e == OTLP_SKIP ? 0 : e;
}

static int otlp_read_resource_head(struct reader *r, const OtlpResourceProfiles *from)
{
	OtlpResource *resource = from->resource;
	struct sink_resource s = {.n = resource ? resource->n_attributes : 0};
	int e = translator_inline(&r->translator, from->schema_url, &s.schema_url);

	if (!e)
		e = otlp_read_attributes(r, resource ? resource->attributes : NULL, s.n, &s.attributes);
	return e < 0 ? e : r->sink->resource(r->ctx, &s, &r->translator.space);
}

static int otlp_read_resource(struct reader *r, const OtlpResourceProfiles *from)
{
	size_t i;
	int e = otlp_read_resource_head(r, from);

	for (i = 0; !e && i < from->n_scope_profiles; i++)
		e = otlp_read_scope(r, from->scope_profiles[i]);
	return e == OTLP_SKIP ? 0 : e;
}

static int otlp_read_request(struct reader *r, const OtlpRequest *req)
{
	const struct staged *staged;
	size_t i, n;
	int e = 0;

	for (i = 0; !e && i < req->n_resource_profiles; i++)
		e = otlp_read_resource(r, req->resource_profiles[i]);
	if (e < 0)
		return e;
	staged = (const struct staged *)r->staged.data;
	n = r->staged.len / sizeof(*staged);
	for (i = 0; i < n; i++)
		r->sink->add(r->ctx, staged[i].number, staged[i].value);
	return 0;
}

static void reader_done(struct reader *r)
{
	translator_done(&r->translator);
	buf_done(&r->attributes);
	buf_done(&r->samples);
	buf_done(&r->staged);
}

int otlp_read(const void *data, size_t len, const struct otlp_limits *limits, const struct otlp_sink *sink, void *ctx)
{
	_cleanup_(arena_done) struct arena arena = {.max = MIN(len * READ_FACTOR + READ_FLOOR, limits->memory_bytes)};
	_cleanup_(reader_done) struct reader r = {.sink = sink, .ctx = ctx};
	ProtobufCMessage *m;
	int e;

	if (len > limits->request_bytes)
		return -E2BIG;
	e = otlp_decode(&OTLP_REQUEST_DESCRIPTOR, data, len, &arena, &m);
	if (!e)
		e = translator_init(&r.translator, ((OtlpRequest *)m)->dictionary, sink, ctx, limits->depth);
	return e < 0 ? e : otlp_read_request(&r, (OtlpRequest *)m);
}
