// SPDX-License-Identifier: Apache-2.0
/*
 * Writes a recording as one OTLP request, with one dictionary: each entry once,
 * and only entries that a sample leads to.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "otlp/decode.h"
#include "otlp/messages.h"
#include "render/render.h"

/* A table of the request: the entries picked from the recording's, in the order of their first use. */
struct picked {
	uint32_t *index; /* by number in the recording: index + 1, 0: not picked */
	uint32_t *order; /* by index: the number */
	size_t n;
};

struct writer {
	const struct recording *rec;
	struct arena arena;
	bool failed; /* without memory: checked once at the end */
	uint8_t id[16]; /* of the last profile */
	struct picked strings, attributes, functions, mappings, locations, links, stacks;
};

#define make(w, n, size)     arena_make(&(w)->arena, &(w)->failed, (n), (size))
#define MAKE(w, type, ...)   ARENA_MAKE(&(w)->arena, &(w)->failed, type, __VA_ARGS__)

static int32_t otlp_pick(struct picked *p, uint32_t number)
{
	if (!p->index[number]) {
		p->order[p->n++] = number;
		p->index[number] = (uint32_t)p->n;
	}
	return (int32_t)(p->index[number] - 1);
}

/* Number 0, the zero value, is index 0 of every table. */
static void otlp_picked_init(struct writer *w, struct picked *p, uint32_t count)
{
	p->index = make(w, count, sizeof(*p->index));
	p->order = make(w, count, sizeof(*p->order));
	if (!w->failed)
		otlp_pick(p, 0);
}

static int32_t *otlp_pick_set(struct writer *w, uint32_t set, size_t *ret_n)
{
	size_t n, i;
	const uint32_t *numbers = recording_set(w->rec, set, &n);
	int32_t *to = make(w, n, sizeof(*to));

	for (i = 0; to && i < n; i++)
		to[i] = otlp_pick(&w->attributes, numbers[i]);
	*ret_n = to ? n : 0;
	return to;
}

static OtlpAnyValue *otlp_value_of(struct writer *w, const struct rec_attribute *a)
{
	const void *packed = intern_key(&w->rec->values, a->packed);
	size_t len = intern_len(&w->rec->values, a->packed);
	ProtobufCMessage *m;

	if (otlp_decode(&opentelemetry__proto__common__v1__any_value__descriptor, packed, len, &w->arena, &m) < 0) {
		w->failed = true;
		return NULL;
	}
	return (OtlpAnyValue *)m;
}

static OtlpKeyValue **otlp_key_values(struct writer *w, uint32_t set, size_t *ret_n)
{
	size_t n, i;
	const uint32_t *numbers = recording_set(w->rec, set, &n);
	OtlpKeyValue **to = make(w, n, sizeof(*to));

	for (i = 0; to && i < n && !w->failed; i++) {
		const struct rec_attribute *a = intern_key(&w->rec->attributes, numbers[i]);

		to[i] = MAKE(w, OtlpKeyValue, OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE__INIT);
		if (!to[i])
			break;
		to[i]->key = (char *)recording_str(w->rec, a->key);
		to[i]->value = otlp_value_of(w, a);
	}
	*ret_n = w->failed ? 0 : n;
	return to;
}

static OtlpValueType *otlp_value_type(struct writer *w, uint32_t type, uint32_t unit)
{
	OtlpValueType *t;

	if (!type && !unit)
		return NULL;
	t = MAKE(w, OtlpValueType, OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__VALUE_TYPE__INIT);
	if (!t)
		return NULL;
	t->type_strindex = otlp_pick(&w->strings, type);
	t->unit_strindex = otlp_pick(&w->strings, unit);
	return t;
}

static OtlpSample *otlp_sample_new(struct writer *w, const struct rec_sample *from, uint64_t count)
{
	OtlpSample *s = MAKE(w, OtlpSample, OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__SAMPLE__INIT);

	if (!s)
		return NULL;
	s->stack_index = otlp_pick(&w->stacks, from->stack);
	s->attribute_indices = otlp_pick_set(w, from->attributes, &s->n_attribute_indices);
	s->link_index = otlp_pick(&w->links, from->link);
	s->values = make(w, 1, sizeof(*s->values));
	if (!s->values)
		return NULL;
	s->values[s->n_values++] = (int64_t)count;
	return s;
}

/* A merged profile is a new one, so it gets a new id: random for the request, numbered within it. */
static ProtobufCBinaryData otlp_new_id(struct writer *w)
{
	uint8_t *id = make(w, 1, sizeof(w->id));

	if (!id)
		return (ProtobufCBinaryData){0};
	for (size_t i = sizeof(w->id); i-- > sizeof(w->id) - 4 && !++w->id[i];)
		;
	memcpy(id, w->id, sizeof(w->id));
	return (ProtobufCBinaryData){.data = id, .len = sizeof(w->id)};
}

/* order: the samples of this series, n of them. */
static OtlpProfile *otlp_profile_new_of(struct writer *w, uint32_t series, const uint32_t *order, size_t n)
{
	OtlpProfile *p = MAKE(w, OtlpProfile, OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__PROFILE__INIT);
	const struct rec_series *s = intern_key(&w->rec->series, series);
	const struct rec_times *t = &w->rec->times[series];
	size_t i;

	if (!p)
		return NULL;
	p->sample_type = otlp_value_type(w, s->type, s->unit);
	p->period_type = otlp_value_type(w, s->period_type, s->period_unit);
	p->period = s->period;
	p->profile_id = otlp_new_id(w);
	p->time_unix_nano = t->start_ns;
	p->duration_nano = t->end_ns > t->start_ns ? t->end_ns - t->start_ns : 0;
	p->attribute_indices = otlp_pick_set(w, s->attributes, &p->n_attribute_indices);
	p->samples = make(w, n, sizeof(*p->samples));
	for (i = 0; p->samples && i < n && !w->failed; i++)
		p->samples[p->n_samples++] =
			otlp_sample_new(w, intern_key(&w->rec->samples, order[i]), w->rec->sums[order[i]]);
	return p;
}

static OtlpScopeProfiles *otlp_scope_new(struct writer *w, uint32_t number, size_t room)
{
	OtlpScopeProfiles *sp = MAKE(w, OtlpScopeProfiles, OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__SCOPE_PROFILES__INIT);
	const struct rec_scope *s = intern_key(&w->rec->scopes, number);

	if (!sp)
		return NULL;
	sp->scope = MAKE(w, OtlpScope, OPENTELEMETRY__PROTO__COMMON__V1__INSTRUMENTATION_SCOPE__INIT);
	sp->profiles = make(w, room, sizeof(*sp->profiles));
	if (!sp->scope || !sp->profiles)
		return NULL;
	sp->schema_url = (char *)recording_str(w->rec, s->schema_url);
	sp->scope->name = (char *)recording_str(w->rec, s->name);
	sp->scope->version = (char *)recording_str(w->rec, s->version);
	sp->scope->attributes = otlp_key_values(w, s->attributes, &sp->scope->n_attributes);
	return sp;
}

static OtlpResourceProfiles *otlp_resource_new(struct writer *w, uint32_t number, size_t room)
{
	OtlpResourceProfiles *rp =
		MAKE(w, OtlpResourceProfiles, OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__RESOURCE_PROFILES__INIT);
	const struct rec_resource *r = intern_key(&w->rec->resources, number);

	if (!rp)
		return NULL;
	rp->resource = MAKE(w, OtlpResource, OPENTELEMETRY__PROTO__RESOURCE__V1__RESOURCE__INIT);
	rp->scope_profiles = make(w, room, sizeof(*rp->scope_profiles));
	if (!rp->resource || !rp->scope_profiles)
		return NULL;
	rp->schema_url = (char *)recording_str(w->rec, r->schema_url);
	rp->resource->attributes = otlp_key_values(w, r->attributes, &rp->resource->n_attributes);
	return rp;
}

/* Stacks by their frames, the outermost first: neighbours then end alike, which compresses well. */
static int otlp_compare_stacks(const struct recording *r, uint32_t x, uint32_t y)
{
	size_t n, m;
	const uint32_t *a = recording_stack(r, x, &n), *b = recording_stack(r, y, &m);

	for (size_t i = 1; i <= n && i <= m; i++)
		if (a[n - i] != b[m - i])
			return a[n - i] < b[m - i] ? -1 : 1;
	return n < m ? -1 : n > m;
}

/* Samples by resource, scope, series and stack, then in the order of the recording. */
static int otlp_by_place(const void *a, const void *b, void *recording)
{
	const struct recording *r = recording;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct rec_sample *p = intern_key(&r->samples, x), *q = intern_key(&r->samples, y);
	const struct rec_series *s = intern_key(&r->series, p->series), *t = intern_key(&r->series, q->series);
	int order;

	if (s->resource != t->resource)
		return s->resource < t->resource ? -1 : 1;
	if (s->scope != t->scope)
		return s->scope < t->scope ? -1 : 1;
	if (p->series != q->series)
		return p->series < q->series ? -1 : 1;
	order = otlp_compare_stacks(r, p->stack, q->stack);
	return order ? order : (x > y) - (x < y);
}

static int otlp_by_address(const void *a, const void *b, void *recording)
{
	const struct recording *r = recording;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct rec_location *p = intern_key(&r->locations, x), *q = intern_key(&r->locations, y);

	if (p->mapping != q->mapping)
		return p->mapping < q->mapping ? -1 : 1;
	if (p->address != q->address)
		return p->address < q->address ? -1 : 1;
	return (x > y) - (x < y);
}

/* Locations by address: neighbours in a file share most of the address, and much of their names. */
static void otlp_pick_locations(struct writer *w)
{
	const struct recording *r = w->rec;
	uint32_t *list = make(w, r->locations.count, sizeof(*list)), n = 0;
	bool *seen = make(w, r->locations.count, sizeof(*seen));

	if (w->failed)
		return;
	for (uint32_t i = 0; i < r->samples.count; i++) {
		const struct rec_sample *s = intern_key(&r->samples, i);
		size_t count;
		const uint32_t *stack = recording_stack(r, s->stack, &count);

		for (size_t k = 0; k < count; k++) {
			if (!seen[stack[k]])
				list[n++] = stack[k];
			seen[stack[k]] = true;
		}
	}
	qsort_r(list, n, sizeof(*list), otlp_by_address, (void *)(uintptr_t)r);
	for (uint32_t i = 0; i < n; i++)
		otlp_pick(&w->locations, list[i]);
}

/*
 * Receivers bound a profile: Pyroscope by 16000 samples and, after its own
 * conversion, which copies into each profile what its samples lead to, by 2 MiB.
 */
#define PROFILE_SAMPLES_MAX 16000
#define PROFILE_BYTES_MAX   ((2u << 20) - (256u << 10))
#define CONVERTED_LOCATION  64
#define CONVERTED_FRAME	    3

/* Samples that become one profile: of one series, in one piece of the order. */
struct run {
	uint32_t series;
	size_t first, n;
};

struct runs {
	struct run *list;
	size_t n;
	uint32_t *seen; /* by location: the number of the last run that leads to it */
	size_t bytes;	/* of the last run, as a receiver counts */
};

static size_t otlp_name_bytes(const struct recording *r, uint32_t location)
{
	const struct rec_location *l = intern_key(&r->locations, location);
	size_t bytes = 0;

	for (size_t i = 0; i < recording_lines(r, location); i++) {
		const struct rec_function *f = intern_key(&r->functions, l->lines[i].function);

		bytes += intern_len(&r->strings, f->name);
	}
	return bytes;
}

/* Bytes that a sample adds to the converted form of run number; take: from now on it leads there. */
static size_t otlp_converted_bytes(const struct recording *r, struct runs *to, uint32_t sample, size_t number,
				   bool take)
{
	const struct rec_sample *s = intern_key(&r->samples, sample);
	size_t n, bytes;
	const uint32_t *stack = recording_stack(r, s->stack, &n);

	bytes = n * CONVERTED_FRAME;
	for (size_t i = 0; i < n; i++) {
		if (to->seen[stack[i]] == number)
			continue;
		if (take)
			to->seen[stack[i]] = (uint32_t)number;
		bytes += CONVERTED_LOCATION + otlp_name_bytes(r, stack[i]);
	}
	return bytes;
}

static void otlp_add_to_run(const struct recording *r, struct runs *to, uint32_t sample, size_t at)
{
	uint32_t series = ((const struct rec_sample *)intern_key(&r->samples, sample))->series;
	struct run *last = to->n ? &to->list[to->n - 1] : NULL;

	if (!last || last->series != series || last->n >= PROFILE_SAMPLES_MAX ||
	    to->bytes + otlp_converted_bytes(r, to, sample, to->n, false) > PROFILE_BYTES_MAX) {
		last = &to->list[to->n++];
		*last = (struct run){.series = series, .first = at};
		to->bytes = 0;
	}
	to->bytes += otlp_converted_bytes(r, to, sample, to->n, true);
	last->n++;
}

static void otlp_find_runs(struct writer *w, const uint32_t *order, size_t n, struct runs *to)
{
	*to = (struct runs){.list = make(w, n, sizeof(*to->list))};
	to->seen = make(w, w->rec->locations.count, sizeof(*to->seen));
	for (size_t i = 0; !w->failed && i < n; i++)
		otlp_add_to_run(w->rec, to, order[i], i);
}

/* The number of runs from first on in the same scope (or resource) as the first: for allocation. */
static size_t otlp_count_like(const struct recording *r, const struct runs *runs, size_t first, bool scope)
{
	const struct rec_series *s = intern_key(&r->series, runs->list[first].series);
	size_t i = first;

	for (; i < runs->n; i++) {
		const struct rec_series *t = intern_key(&r->series, runs->list[i].series);

		if (s->resource != t->resource || (scope && s->scope != t->scope))
			break;
	}
	return i - first;
}

/* One pass over the runs opens resources, scopes and profiles as they change. */
static void otlp_add_samples(struct writer *w, const uint32_t *order, const struct runs *runs, OtlpRequest *req)
{
	const struct rec_series *last = NULL, *s;
	OtlpResourceProfiles *rp = NULL;
	OtlpScopeProfiles *sp = NULL;

	for (size_t i = 0; i < runs->n && !w->failed; i++, last = s) {
		const struct run *run = &runs->list[i];

		s = intern_key(&w->rec->series, run->series);
		if (!last || s->resource != last->resource) {
			rp = otlp_resource_new(w, s->resource, otlp_count_like(w->rec, runs, i, false));
			if (!rp)
				return;
			req->resource_profiles[req->n_resource_profiles++] = rp;
			last = NULL;
		}
		if (!last || s->scope != last->scope) {
			sp = otlp_scope_new(w, s->scope, otlp_count_like(w->rec, runs, i, true));
			if (!sp)
				return;
			rp->scope_profiles[rp->n_scope_profiles++] = sp;
		}
		sp->profiles[sp->n_profiles++] = otlp_profile_new_of(w, run->series, order + run->first, run->n);
	}
}

static OtlpStack *otlp_stack_new(struct writer *w, uint32_t number)
{
	OtlpStack *s = MAKE(w, OtlpStack, OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__STACK__INIT);
	size_t n, i;
	const uint32_t *locations = recording_stack(w->rec, number, &n);

	if (!s)
		return NULL;
	s->location_indices = make(w, n, sizeof(*s->location_indices));
	for (i = 0; s->location_indices && i < n; i++)
		s->location_indices[s->n_location_indices++] = otlp_pick(&w->locations, locations[i]);
	return s;
}

static OtlpLine *otlp_line_new(struct writer *w, const struct rec_line *from)
{
	OtlpLine *l = MAKE(w, OtlpLine, OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__LINE__INIT);

	if (!l)
		return NULL;
	l->function_index = otlp_pick(&w->functions, from->function);
	l->line = from->line;
	l->column = from->column;
	return l;
}

static OtlpLocation *otlp_location_new(struct writer *w, uint32_t number)
{
	OtlpLocation *l = MAKE(w, OtlpLocation, OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__LOCATION__INIT);
	const struct rec_location *from = intern_key(&w->rec->locations, number);
	size_t n = recording_lines(w->rec, number), i;

	if (!l)
		return NULL;
	l->mapping_index = otlp_pick(&w->mappings, from->mapping);
	l->address = from->address;
	l->attribute_indices = otlp_pick_set(w, from->attributes, &l->n_attribute_indices);
	l->lines = make(w, n, sizeof(*l->lines));
	for (i = 0; l->lines && i < n && !w->failed; i++)
		l->lines[l->n_lines++] = otlp_line_new(w, &from->lines[i]);
	return l;
}

static OtlpMapping *otlp_mapping_new(struct writer *w, uint32_t number)
{
	OtlpMapping *m = MAKE(w, OtlpMapping, OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__MAPPING__INIT);
	const struct rec_mapping *from = intern_key(&w->rec->mappings, number);

	if (!m)
		return NULL;
	m->memory_start = from->start;
	m->memory_limit = from->limit;
	m->file_offset = from->offset;
	m->filename_strindex = otlp_pick(&w->strings, from->file);
	m->attribute_indices = otlp_pick_set(w, from->attributes, &m->n_attribute_indices);
	return m;
}

static OtlpFunction *otlp_function_new(struct writer *w, uint32_t number)
{
	OtlpFunction *f = MAKE(w, OtlpFunction, OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__FUNCTION__INIT);
	const struct rec_function *from = intern_key(&w->rec->functions, number);

	if (!f)
		return NULL;
	f->name_strindex = otlp_pick(&w->strings, from->name);
	f->system_name_strindex = otlp_pick(&w->strings, from->system_name);
	f->filename_strindex = otlp_pick(&w->strings, from->file);
	f->start_line = from->start_line;
	return f;
}

static OtlpLink *otlp_link_new(struct writer *w, uint32_t number)
{
	OtlpLink *l = MAKE(w, OtlpLink, OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__LINK__INIT);
	const struct rec_link *from = intern_key(&w->rec->links, number);

	if (!l)
		return NULL;
	l->trace_id = (ProtobufCBinaryData){.data = (uint8_t *)from->trace_id, .len = sizeof(from->trace_id)};
	l->span_id = (ProtobufCBinaryData){.data = (uint8_t *)from->span_id, .len = sizeof(from->span_id)};
	return l;
}

static OtlpKeyValueAndUnit *otlp_attribute_new(struct writer *w, uint32_t number)
{
	OtlpKeyValueAndUnit *kv =
		MAKE(w, OtlpKeyValueAndUnit, OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__KEY_VALUE_AND_UNIT__INIT);
	const struct rec_attribute *from = intern_key(&w->rec->attributes, number);

	if (!kv)
		return NULL;
	kv->key_strindex = otlp_pick(&w->strings, from->key);
	kv->unit_strindex = otlp_pick(&w->strings, from->unit);
	kv->value = number ? otlp_value_of(w, from) : NULL;
	return kv;
}

/* Making an entry picks the entries it refers to: so tables are made in the order of reference, strings last. */
#define ADD_TABLE(w, d, table, picks, new)                                            \
	do {                                                                          \
		(d)->table = make((w), (picks)->n, sizeof(*(d)->table));              \
		while ((d)->table && (d)->n_##table < (picks)->n && !(w)->failed) {   \
			(d)->table[(d)->n_##table] =                                  \
				new ((w), (picks)->order[(d)->n_##table]);            \
			(d)->n_##table++;                                             \
		}                                                                     \
	} while (0)

static char *otlp_string_new(struct writer *w, uint32_t number)
{
	return (char *)recording_str(w->rec, number);
}

static void otlp_add_dictionary(struct writer *w, OtlpDictionary *d)
{
	ADD_TABLE(w, d, stack_table, &w->stacks, otlp_stack_new);
	ADD_TABLE(w, d, location_table, &w->locations, otlp_location_new);
	ADD_TABLE(w, d, mapping_table, &w->mappings, otlp_mapping_new);
	ADD_TABLE(w, d, function_table, &w->functions, otlp_function_new);
	ADD_TABLE(w, d, link_table, &w->links, otlp_link_new);
	ADD_TABLE(w, d, attribute_table, &w->attributes, otlp_attribute_new);
	ADD_TABLE(w, d, string_table, &w->strings, otlp_string_new);
}

static void otlp_writer_init(struct writer *w)
{
	const struct recording *r = w->rec;

	otlp_picked_init(w, &w->strings, r->strings.count);
	otlp_picked_init(w, &w->attributes, r->attributes.count);
	otlp_picked_init(w, &w->functions, r->functions.count);
	otlp_picked_init(w, &w->mappings, r->mappings.count);
	otlp_picked_init(w, &w->locations, r->locations.count);
	otlp_picked_init(w, &w->links, r->links.count);
	otlp_picked_init(w, &w->stacks, r->stacks.count);
}

static void otlp_add_all(struct writer *w, OtlpRequest *req)
{
	size_t n = w->rec->samples.count, i;
	uint32_t *order = make(w, n, sizeof(*order));
	struct runs runs;

	req->dictionary = MAKE(w, OtlpDictionary, OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__PROFILES_DICTIONARY__INIT);
	req->resource_profiles = make(w, MIN(n, (size_t)w->rec->resources.count), sizeof(*req->resource_profiles));
	if (w->failed)
		return;
	for (i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	if (n)
		qsort_r(order, n, sizeof(*order), otlp_by_place, (void *)w->rec);
	otlp_pick_locations(w);
	otlp_find_runs(w, order, n, &runs);
	if (!w->failed)
		otlp_add_samples(w, order, &runs, req);
	if (!w->failed)
		otlp_add_dictionary(w, req->dictionary);
}

static void otlp_writer_done(struct writer *w)
{
	arena_done(&w->arena);
}

int render_otlp(const struct recording *r, size_t memory_bytes, struct buf *out)
{
	_cleanup_(otlp_writer_done) struct writer w = {.rec = r, .arena.max = memory_bytes};
	OtlpRequest req = OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
	uint8_t *to;
	size_t len;

	if (getrandom(w.id, sizeof(w.id), 0) != sizeof(w.id))
		return -EIO;
	otlp_writer_init(&w);
	if (!w.failed)
		otlp_add_all(&w, &req);
	if (w.failed)
		return -ENOMEM;
	len = protobuf_c_message_get_packed_size(&req.base);
	to = buf_reserve(out, len);
	if (!to)
		return -E2BIG;
	protobuf_c_message_pack(&req.base, to);
	buf_commit(out, len);
	return 0;
}
