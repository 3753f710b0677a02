// SPDX-License-Identifier: Apache-2.0
/*
 * pprof's profile.proto, compressed by gzip. Two values a sample where it is
 * CPU time: the count, and nanoseconds. Attributes become labels.
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
	struct rec_view view;
	bool cpu;
	bool failed; /* without memory: checked once at the end */
	struct arena arena;
	struct intern strings;
	Profile profile;
	/* By number in the recording: what was made of it, NULL: nothing yet. */
	Mapping **mappings;
	Location **locations;
	Function **functions;
};

#define make(w, n, size)     arena_make(&(w)->arena, &(w)->failed, (n), (size))
#define MAKE(w, type, ...)   ARENA_MAKE(&(w)->arena, &(w)->failed, type, __VA_ARGS__)

static int64_t add_string(struct writer *w, const char *s)
{
	uint32_t n = 0;

	if (intern_number(&w->strings, s, strlen(s) + 1, &n) < 0)
		w->failed = true;
	return n;
}

static int64_t string_of(struct writer *w, uint32_t number)
{
	return add_string(w, recording_str(w->rec, number));
}

static uint64_t add_function(struct writer *w, uint32_t number)
{
	const struct rec_function *f = intern_key(&w->rec->functions, number);
	Function *to = w->functions[number];

	if (to)
		return to->id;
	to = MAKE(w, Function, PPROF__FUNCTION__INIT);
	if (!to)
		return 0;
	to->id = ++w->profile.n_function;
	to->name = string_of(w, f->name);
	to->system_name = string_of(w, f->system_name ? f->system_name : f->name);
	to->filename = string_of(w, f->file);
	to->start_line = f->start_line;
	w->functions[number] = to;
	return to->id;
}

/*
 * All names were found where the samples were taken. The flags say so, to
 * keep pprof from looking for them in files of the machine that it runs on.
 */
static uint64_t add_mapping(struct writer *w, uint32_t number)
{
	const struct rec_mapping *m = intern_key(&w->rec->mappings, number);
	const char *id = recording_text(w->rec, m->attributes, "process.executable.build_id.gnu");
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
	to->filename = string_of(w, m->file);
	to->build_id = add_string(w, id ? id : "");
	to->has_functions = to->has_filenames = to->has_line_numbers = to->has_inline_frames = true;
	w->mappings[number] = to;
	return to->id;
}

static void add_lines(struct writer *w, const struct rec_location *l, size_t n, Location *to)
{
	size_t i;

	to->line = make(w, n, sizeof(*to->line));
	for (i = 0; to->line && i < n; i++) {
		Line *line = MAKE(w, Line, PPROF__LINE__INIT);

		if (!line)
			return;
		line->function_id = add_function(w, l->lines[i].function);
		line->line = l->lines[i].line;
		line->column = l->lines[i].column;
		to->line[to->n_line++] = line;
	}
}

static uint64_t add_location(struct writer *w, uint32_t number)
{
	const struct rec_location *l = intern_key(&w->rec->locations, number);
	Location *to = w->locations[number];

	if (to)
		return to->id;
	to = MAKE(w, Location, PPROF__LOCATION__INIT);
	if (!to)
		return 0;
	to->id = ++w->profile.n_location;
	to->mapping_id = add_mapping(w, l->mapping);
	to->address = l->address;
	add_lines(w, l, recording_lines(w->rec, number), to);
	w->locations[number] = to;
	return to->id;
}

static Label *add_label(struct writer *w, Sample *s, const char *key)
{
	Label *l = MAKE(w, Label, PPROF__LABEL__INIT);

	if (!l)
		return NULL;
	l->key = add_string(w, key);
	s->label[s->n_label++] = l;
	return l;
}

static void add_text_label(struct writer *w, Sample *s, const char *key, const char *text)
{
	Label *l = add_label(w, s, key);

	if (l)
		l->str = add_string(w, text);
}

static void add_hex_label(struct writer *w, Sample *s, const char *key, const uint8_t *bytes, size_t n)
{
	char text[33] = "";
	size_t i;

	for (i = 0; i < n && i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	add_text_label(w, s, key, text);
}

static void add_attribute_label(struct writer *w, Sample *s, const struct rec_attribute *a)
{
	const char *key = recording_str(w->rec, a->key);
	Label *l;

	if (a->type != OTLP_VALUE_INT) {
		add_text_label(w, s, key, recording_str(w->rec, a->text));
		return;
	}
	l = add_label(w, s, key);
	if (!l)
		return;
	l->num = a->number;
	l->num_unit = string_of(w, a->unit);
}

static void add_labels(struct writer *w, const struct rec_sample *from, Sample *s)
{
	const struct rec_link *link = intern_key(&w->rec->links, from->link);
	size_t n, i;
	const uint32_t *set = recording_set(w->rec, from->attributes, &n);

	s->label = make(w, n + 3, sizeof(*s->label));
	if (!s->label)
		return;
	add_text_label(w, s, "service.name", recording_service(w->rec, from->series));
	for (i = 0; i < n; i++)
		add_attribute_label(w, s, intern_key(&w->rec->attributes, set[i]));
	if (!from->link)
		return;
	add_hex_label(w, s, "trace_id", link->trace_id, sizeof(link->trace_id));
	add_hex_label(w, s, "span_id", link->span_id, sizeof(link->span_id));
}

static void add_values(struct writer *w, const struct rec_sample *from, uint64_t count, Sample *s)
{
	const struct rec_series *series = intern_key(&w->rec->series, from->series);
	int64_t ns;

	s->value = make(w, 2, sizeof(*s->value));
	if (!s->value)
		return;
	s->value[s->n_value++] = (int64_t)count;
	if (!w->cpu)
		return;
	if (__builtin_mul_overflow((int64_t)count, series->period, &ns))
		ns = INT64_MAX;
	s->value[s->n_value++] = ns;
}

static void add_sample(struct writer *w, const struct rec_sample *from, uint64_t count)
{
	Sample *s = MAKE(w, Sample, PPROF__SAMPLE__INIT);
	size_t n, i;
	const uint32_t *stack = recording_stack(w->rec, from->stack, &n);

	if (!s)
		return;
	s->location_id = make(w, n, sizeof(*s->location_id));
	for (i = 0; s->location_id && i < n; i++)
		s->location_id[s->n_location_id++] = add_location(w, stack[i]);
	add_values(w, from, count, s);
	add_labels(w, from, s);
	w->profile.sample[w->profile.n_sample++] = s;
}

static ValueType *value_type(struct writer *w, const char *type, const char *unit)
{
	ValueType *t = MAKE(w, ValueType, PPROF__VALUE_TYPE__INIT);

	if (!t)
		return NULL;
	t->type = add_string(w, type);
	t->unit = add_string(w, unit);
	return t;
}

static void add_head(struct writer *w)
{
	const struct recording *r = w->rec;
	const struct rec_view *v = &w->view;
	Profile *p = &w->profile;

	p->sample_type = make(w, 2, sizeof(*p->sample_type));
	if (!p->sample_type)
		return;
	p->sample_type[p->n_sample_type++] =
		value_type(w, v->type ? recording_str(r, v->type) : "samples", v->unit ? recording_str(r, v->unit) : "count");
	if (w->cpu)
		p->sample_type[p->n_sample_type++] = value_type(w, "cpu", "nanoseconds");
	if (v->period_type)
		p->period_type = value_type(w, recording_str(r, v->period_type), recording_str(r, v->period_unit));
	p->period = v->period;
	p->time_nanos = (int64_t)v->start_ns;
	p->duration_nanos = v->end_ns > v->start_ns ? (int64_t)(v->end_ns - v->start_ns) : 0;
	p->default_sample_type = w->cpu ? add_string(w, "cpu") : 0;
}

static void add_samples(struct writer *w)
{
	uint32_t i;

	w->profile.sample = make(w, w->rec->samples.count + 1, sizeof(*w->profile.sample));
	for (i = 0; i < w->rec->samples.count && !w->failed; i++) {
		const struct rec_sample *s = intern_key(&w->rec->samples, i);

		if (recording_in_view(w->rec, &w->view, s->series))
			add_sample(w, s, w->rec->sums[i]);
	}
}

/* The tables in the order of their identifiers. */
static void add_tables(struct writer *w)
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

static int gzip(const uint8_t *data, size_t len, struct buf *out)
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

static int pack(struct writer *w, struct buf *out)
{
	size_t len = protobuf_c_message_get_packed_size(&w->profile.base);
	_cleanup_(freep) uint8_t *raw = malloc(len + 1);

	if (!raw)
		return -ENOMEM;
	protobuf_c_message_pack(&w->profile.base, raw);
	return gzip(raw, len, out);
}

static void writer_done(struct writer *w)
{
	arena_done(&w->arena);
	intern_done(&w->strings);
}

int render_pprof(const struct recording *r, size_t memory_bytes, struct buf *out)
{
	_cleanup_(writer_done) struct writer w = {.rec = r, .arena.max = memory_bytes, .profile = PPROF__PROFILE__INIT};

	intern_init(&w.strings, r->limits.entries, r->limits.bytes);
	recording_view(r, &w.view);
	w.cpu = strcmp(recording_str(r, w.view.period_type), "cpu") == 0 &&
		strcmp(recording_str(r, w.view.period_unit), "nanoseconds") == 0 && w.view.period > 0;
	w.mappings = make(&w, r->mappings.count, sizeof(*w.mappings));
	w.locations = make(&w, r->locations.count, sizeof(*w.locations));
	w.functions = make(&w, r->functions.count, sizeof(*w.functions));
	add_string(&w, "");
	if (!w.failed)
		add_head(&w);
	if (!w.failed)
		add_samples(&w);
	if (!w.failed)
		add_tables(&w);
	return w.failed ? -ENOMEM : pack(&w, out);
}
