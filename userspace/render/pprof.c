// SPDX-License-Identifier: Apache-2.0
/*
 * pprof's profile.proto, compressed by gzip. Each type of sample is a column
 * of values; CPU samples have two: the count, and nanoseconds. A sample is zero
 * in the columns of other types. Attributes become labels.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "otlp/value.h"
#include "pprof/profile.pb-c.h"
#include "render/render.h"

typedef Pprof__Profile Profile;
typedef Pprof__Sample Sample;
typedef Pprof__Label Label;
typedef Pprof__Mapping Mapping;
typedef Pprof__Location Location;
typedef Pprof__Line Line;
typedef Pprof__Function Function;
typedef Pprof__ValueType ValueType;

struct writer {
	const struct recording *rec;
	struct rec_views views;
	uint32_t *columns; /* by view: its first */
	uint32_t nr_columns;
	bool failed; /* without memory: checked once at the end */
	struct arena arena;
	struct intern strings;
	Profile profile;
	int64_t *of_string; /* by number in the recording: its number here, 0: none yet */
	/* By number in the recording: the message made of it, NULL: none yet. */
	Mapping **mappings;
	Location **locations;
	Function **functions;
};

#define make(w, n, size)     arena_make(&(w)->arena, &(w)->failed, (n), (size))
#define MAKE(w, type, ...)   ARENA_MAKE(&(w)->arena, &(w)->failed, type, __VA_ARGS__)

static int64_t pprof_add_string(struct writer *w, const char *s)
{
	uint32_t n = 0;

	if (intern_number(&w->strings, s, strlen(s) + 1, &n) < 0)
		w->failed = true;
	return n;
}

/* Each string is hashed once, however many entries, samples and labels refer to it. */
static int64_t pprof_string_of(struct writer *w, uint32_t number)
{
	int64_t *known = &w->of_string[number];

	if (!*known)
		*known = pprof_add_string(w, recording_str(w->rec, number));
	return *known;
}

static uint64_t pprof_add_function(struct writer *w, uint32_t number)
{
	const struct rec_function *f = intern_key(&w->rec->functions, number);
	Function *to = w->functions[number];

	if (to)
		return to->id;
	to = MAKE(w, Function, PPROF__FUNCTION__INIT);
	if (!to)
		return 0;
	to->id = ++w->profile.n_function;
	to->name = pprof_string_of(w, f->name);
	to->system_name = pprof_string_of(w, f->system_name ? f->system_name : f->name);
	to->filename = pprof_string_of(w, f->file);
	to->start_line = f->start_line;
	w->functions[number] = to;
	return to->id;
}

/*
 * All names were resolved where the samples were taken. With these flags, pprof
 * does not look them up in files of the machine that it runs on.
 */
static uint64_t pprof_add_mapping(struct writer *w, uint32_t number)
{
	const struct rec_mapping *m = intern_key(&w->rec->mappings, number);
	const struct rec_attribute *id;
	Mapping *to = w->mappings[number];

	if (!number || to)
		return to ? to->id : 0;
	to = MAKE(w, Mapping, PPROF__MAPPING__INIT);
	if (!to)
		return 0;
	to->id = ++w->profile.n_mapping;
	to->memory_start = m->start;
	to->memory_limit = m->limit;
	to->file_offset = m->offset;
	to->filename = pprof_string_of(w, m->file);
	id = recording_find(w->rec, m->attributes, "process.executable.build_id.gnu");
	to->build_id = id ? pprof_string_of(w, id->text) : 0;
	to->has_functions = to->has_filenames = to->has_line_numbers = to->has_inline_frames = true;
	w->mappings[number] = to;
	return to->id;
}

static void pprof_add_lines(struct writer *w, const struct rec_location *l, size_t n, Location *to)
{
	size_t i;

	to->line = make(w, n, sizeof(*to->line));
	for (i = 0; to->line && i < n; i++) {
		Line *line = MAKE(w, Line, PPROF__LINE__INIT);

		if (!line)
			return;
		line->function_id = pprof_add_function(w, l->lines[i].function);
		line->line = l->lines[i].line;
		line->column = l->lines[i].column;
		to->line[to->n_line++] = line;
	}
}

static uint64_t pprof_add_location(struct writer *w, uint32_t number)
{
	const struct rec_location *l = intern_key(&w->rec->locations, number);
	Location *to = w->locations[number];

	if (to)
		return to->id;
	to = MAKE(w, Location, PPROF__LOCATION__INIT);
	if (!to)
		return 0;
	to->id = ++w->profile.n_location;
	to->mapping_id = pprof_add_mapping(w, l->mapping);
	to->address = l->address;
	pprof_add_lines(w, l, recording_lines(w->rec, number), to);
	w->locations[number] = to;
	return to->id;
}

static Label *pprof_add_label(struct writer *w, Sample *s, int64_t key)
{
	Label *l = MAKE(w, Label, PPROF__LABEL__INIT);

	if (!l)
		return NULL;
	l->key = key;
	s->label[s->n_label++] = l;
	return l;
}

static void pprof_add_text_label(struct writer *w, Sample *s, int64_t key, int64_t text)
{
	Label *l = pprof_add_label(w, s, key);

	if (l)
		l->str = text;
}

static void pprof_add_hex_label(struct writer *w, Sample *s, int64_t key, const uint8_t *bytes, size_t n)
{
	char text[33] = "";
	size_t i;

	for (i = 0; i < n && i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	pprof_add_text_label(w, s, key, pprof_add_string(w, text));
}

static void pprof_add_attribute_label(struct writer *w, Sample *s, const struct rec_attribute *a)
{
	int64_t key = pprof_string_of(w, a->key);
	Label *l;

	if (a->type != OTLP_VALUE_INT) {
		pprof_add_text_label(w, s, key, pprof_string_of(w, a->text));
		return;
	}
	l = pprof_add_label(w, s, key);
	if (!l)
		return;
	l->num = a->number;
	l->num_unit = pprof_string_of(w, a->unit);
}

static void pprof_add_labels(struct writer *w, const struct rec_sample *from, Sample *s)
{
	const struct rec_link *link = intern_key(&w->rec->links, from->link);
	size_t n, i;
	const uint32_t *set = recording_set(w->rec, from->attributes, &n);
	int64_t service = pprof_add_string(w, "service.name");

	s->label = make(w, n + 3, sizeof(*s->label));
	if (!s->label)
		return;
	pprof_add_text_label(w, s, service, pprof_string_of(w, recording_workload(w->rec, from->series)->service));
	for (i = 0; i < n; i++)
		pprof_add_attribute_label(w, s, intern_key(&w->rec->attributes, set[i]));
	if (!from->link)
		return;
	pprof_add_hex_label(w, s, pprof_add_string(w, "trace_id"), link->trace_id, sizeof(link->trace_id));
	pprof_add_hex_label(w, s, pprof_add_string(w, "span_id"), link->span_id, sizeof(link->span_id));
}

/* CPU samples of a known period have a second value: their time. */
static bool pprof_has_time(const struct writer *w, const struct rec_view *v)
{
	return rec_view_is_cpu(w->rec, v) && v->period > 0;
}

static void pprof_add_values(struct writer *w, const struct rec_sample *from, uint64_t value, Sample *s)
{
	const struct rec_series *series = intern_key(&w->rec->series, from->series);
	uint32_t view = w->views.by_series[from->series], column = w->columns[view];

	s->value = make(w, w->nr_columns, sizeof(*s->value));
	if (!s->value)
		return;
	s->n_value = w->nr_columns;
	s->value[column] = (int64_t)value;
	if (!pprof_has_time(w, &w->views.list[view]))
		return;
	if (__builtin_mul_overflow((int64_t)value, series->period, &s->value[column + 1]))
		s->value[column + 1] = INT64_MAX;
}

static void pprof_add_sample(struct writer *w, const struct rec_sample *from, uint64_t value)
{
	Sample *s = MAKE(w, Sample, PPROF__SAMPLE__INIT);
	size_t n, i;
	const uint32_t *stack = recording_stack(w->rec, from->stack, &n);

	if (!s)
		return;
	s->location_id = make(w, n, sizeof(*s->location_id));
	for (i = 0; s->location_id && i < n; i++)
		s->location_id[s->n_location_id++] = pprof_add_location(w, stack[i]);
	pprof_add_values(w, from, value, s);
	pprof_add_labels(w, from, s);
	w->profile.sample[w->profile.n_sample++] = s;
}

static ValueType *pprof_value_type(struct writer *w, const char *type, const char *unit)
{
	ValueType *t = MAKE(w, ValueType, PPROF__VALUE_TYPE__INIT);

	if (!t)
		return NULL;
	t->type = pprof_add_string(w, type);
	t->unit = pprof_add_string(w, unit);
	return t;
}

static void pprof_add_column(struct writer *w, const char *type, const char *unit)
{
	Profile *p = &w->profile;

	p->sample_type[p->n_sample_type++] = pprof_value_type(w, type, unit);
}

/* Two for each view at most. */
static void pprof_add_columns(struct writer *w)
{
	const struct recording *r = w->rec;
	uint32_t i;

	w->columns = make(w, w->views.count, sizeof(*w->columns));
	w->profile.sample_type = make(w, 2 * (size_t)w->views.count, sizeof(*w->profile.sample_type));
	for (i = 0; i < w->views.count && !w->failed; i++) {
		const struct rec_view *v = &w->views.list[i];

		w->columns[i] = (uint32_t)w->profile.n_sample_type;
		pprof_add_column(w, v->type.type ? recording_str(r, v->type.type) : "samples",
			   v->type.unit ? recording_str(r, v->type.unit) : "count");
		if (pprof_has_time(w, v))
			pprof_add_column(w, "cpu", "nanoseconds");
	}
	w->nr_columns = (uint32_t)w->profile.n_sample_type;
}

static void pprof_add_times(struct writer *w)
{
	uint64_t start = 0, end = 0;
	uint32_t i;

	for (i = 0; i < w->views.count; i++) {
		const struct rec_view *v = &w->views.list[i];

		if (v->start_ns && (!start || v->start_ns < start))
			start = v->start_ns;
		end = MAX(end, v->end_ns);
	}
	w->profile.time_nanos = (int64_t)start;
	w->profile.duration_nanos = end > start ? (int64_t)(end - start) : 0;
}

/* Period and default are the first type's: CPU, if it is recorded. */
static void pprof_add_head(struct writer *w)
{
	const struct recording *r = w->rec;
	const struct rec_view *v = &w->views.list[0];
	Profile *p = &w->profile;

	pprof_add_columns(w);
	pprof_add_times(w);
	if (v->type.period_type)
		p->period_type = pprof_value_type(w, recording_str(r, v->type.period_type),
						  recording_str(r, v->type.period_unit));
	p->period = v->period;
	if (pprof_has_time(w, v))
		p->default_sample_type = pprof_add_string(w, "cpu");
}

static void pprof_add_samples(struct writer *w)
{
	uint32_t i;

	w->profile.sample = make(w, w->rec->samples.count + 1, sizeof(*w->profile.sample));
	for (i = 0; i < w->rec->samples.count && !w->failed; i++)
		pprof_add_sample(w, intern_key(&w->rec->samples, i), w->rec->sums[i]);
}

/* The tables in the order of their identifiers. */
static void pprof_add_tables(struct writer *w)
{
	const struct recording *r = w->rec;
	Profile *p = &w->profile;
	uint32_t i;

	p->mapping = make(w, p->n_mapping + 1, sizeof(*p->mapping));
	p->location = make(w, p->n_location + 1, sizeof(*p->location));
	p->function = make(w, p->n_function + 1, sizeof(*p->function));
	p->string_table = make(w, w->strings.count, sizeof(*p->string_table));
	if (w->failed)
		return;
	for (i = 0; i < r->mappings.count; i++)
		if (w->mappings[i])
			p->mapping[w->mappings[i]->id - 1] = w->mappings[i];
	for (i = 0; i < r->locations.count; i++)
		if (w->locations[i])
			p->location[w->locations[i]->id - 1] = w->locations[i];
	for (i = 0; i < r->functions.count; i++)
		if (w->functions[i])
			p->function[w->functions[i]->id - 1] = w->functions[i];
	for (i = 0; i < w->strings.count; i++)
		p->string_table[i] = (char *)intern_key(&w->strings, i);
	p->n_string_table = w->strings.count;
}

static int pprof_gzip(const uint8_t *data, size_t len, struct buf *out)
{
	z_stream z = {.next_in = (Bytef *)data};
	uint8_t chunk[65536];
	int r;

	/* 16 more than the window's 15 bits: with a gzip header (zlib.h, deflateInit2). */
	if (len > UINT32_MAX || deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -E2BIG;
	z.avail_in = (uInt)len;
	do {
		z.next_out = chunk;
		z.avail_out = sizeof(chunk);
		r = deflate(&z, Z_FINISH);
		buf_add(out, chunk, sizeof(chunk) - z.avail_out);
	} while (r == Z_OK);
	deflateEnd(&z);
	return r == Z_STREAM_END && !out->failed ? 0 : -E2BIG;
}

static int pprof_pack(struct writer *w, struct buf *out)
{
	size_t len = protobuf_c_message_get_packed_size(&w->profile.base);
	_cleanup_(freep) uint8_t *raw = malloc(len + 1);

	if (!raw)
		return -ENOMEM;
	protobuf_c_message_pack(&w->profile.base, raw);
	return pprof_gzip(raw, len, out);
}

static void pprof_writer_done(struct writer *w)
{
	arena_done(&w->arena);
	intern_done(&w->strings);
	rec_views_done(&w->views);
}

int render_pprof(const struct recording *r, size_t memory_bytes, struct buf *out)
{
	_cleanup_(pprof_writer_done) struct writer w = {.rec = r, .arena.max = memory_bytes, .profile = PPROF__PROFILE__INIT};

	intern_init(&w.strings, r->limits.entries, r->limits.bytes);
	if (recording_views(r, &w.views) < 0)
		return -ENOMEM;
	w.of_string = make(&w, r->strings.count, sizeof(*w.of_string));
	w.mappings = make(&w, r->mappings.count, sizeof(*w.mappings));
	w.locations = make(&w, r->locations.count, sizeof(*w.locations));
	w.functions = make(&w, r->functions.count, sizeof(*w.functions));
	pprof_add_string(&w, "");
	if (!w.failed)
		pprof_add_head(&w);
	if (!w.failed)
		pprof_add_samples(&w);
	if (!w.failed)
		pprof_add_tables(&w);
	return w.failed ? -ENOMEM : pprof_pack(&w, out);
}
