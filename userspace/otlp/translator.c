// SPDX-License-Identifier: Apache-2.0
#include "otlp/translator.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

/* The sink's number for an entry; valid if space is the current resource's + 1, for a string if it is not 0. */
struct memo_entry {
	uint32_t number, space;
};

/* Of an attribute: not checked yet, names no kind, or names the kind value - KIND_FIRST. */
enum { KIND_UNKNOWN, KIND_NONE, KIND_FIRST };

typedef int translate_fn(struct translator *t, size_t index, uint32_t *ret);

static int memo_init(struct memo *m, size_t n)
{
	m->entries = calloc(n, sizeof(*m->entries));
	m->n = n;
	return m->entries ? 0 : -ENOMEM;
}

static int translator_lookup(struct translator *t, struct memo *m, int64_t index, translate_fn *translate, uint32_t *ret)
{
	struct memo_entry *e;
	int r;

	if (index < 0 || (uint64_t)index >= m->n)
		return -EBADMSG;
	e = &m->entries[index];
	if (e->space != t->space + 1) {
		r = translate(t, (size_t)index, &e->number);
		if (r < 0)
			return r;
		e->space = t->space + 1;
	}
	*ret = e->number;
	return 0;
}

int translator_text(struct translator *t, int32_t index, struct sink_text *ret)
{
	struct memo_entry *e;
	int r = 0;

	if (index < 0 || (size_t)index >= t->strings.n)
		return -EBADMSG;
	e = &t->strings.entries[index];
	*ret = (struct sink_text){.s = t->from->string_table[index]};
	if (t->sink->string && !e->space) {
		r = t->sink->string(t->ctx, ret->s, &e->number);
		e->space = r < 0 ? 0 : 1;
	}
	ret->number = e->number;
	return r;
}

int translator_inline(struct translator *t, char *s, struct sink_text *ret)
{
	*ret = (struct sink_text){.s = s ? s : ""};
	if (s)
		utf8_clean_str(s);
	return t->sink->string ? t->sink->string(t->ctx, ret->s, &ret->number) : 0;
}

static const char *translator_resolve(void *translator, int32_t index)
{
	struct translator *t = translator;

	return index >= 0 && (size_t)index < t->strings.n ? t->from->string_table[index] : NULL;
}

int translator_value(struct translator *t, OtlpAnyValue *v)
{
	return v ? otlp_value_resolve(v, translator_resolve, t) : 0;
}

static int translate_attribute(struct translator *t, size_t i, uint32_t *ret)
{
	OtlpKeyValueAndUnit *from = t->from->attribute_table[i];
	struct sink_attribute a = {.value = from->value};
	int r = translator_text(t, from->key_strindex, &a.key);

	if (!r)
		r = translator_text(t, from->unit_strindex, &a.unit);
	if (!r)
		r = translator_value(t, from->value);
	return r < 0 ? r : t->sink->attribute(t->ctx, &a, ret);
}

/* Room for n objects that hold until the next call for the same scratch. */
static void *scratch_get(struct buf *b, size_t n, size_t size)
{
	buf_reset(b);
	return buf_reserve(b, MAX(n, (size_t)1) * size);
}

/* The set of one attribute, which most locations have. */
static int translate_single(struct translator *t, size_t i, uint32_t *ret)
{
	uint32_t number;
	int r = translator_lookup(t, &t->attributes, (int64_t)i, translate_attribute, &number);

	return r < 0 ? r : t->sink->set(t->ctx, &number, 1, ret);
}

static int translate_set(struct translator *t, const int32_t *indices, size_t n, uint32_t *ret)
{
	uint32_t *numbers = scratch_get(&t->set, n, sizeof(*numbers));
	size_t i;
	int r = numbers ? 0 : -ENOMEM;

	for (i = 0; !r && i < n; i++)
		r = translator_lookup(t, &t->attributes, indices[i], translate_attribute, &numbers[i]);
	return r < 0 ? r : t->sink->set(t->ctx, numbers, n, ret);
}

static int translator_check_set(const struct translator *t, const int32_t *indices, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (indices[i] < 0 || (size_t)indices[i] >= t->attributes.n)
			return -EBADMSG;
	return 0;
}

int translator_set(struct translator *t, const int32_t *indices, size_t n, uint32_t *ret)
{
	*ret = 0;
	if (!n)
		return 0;
	if (!t->sink->set)
		return translator_check_set(t, indices, n);
	if (n == 1)
		return translator_lookup(t, &t->singles, indices[0], translate_single, ret);
	return translate_set(t, indices, n, ret);
}

static int translate_function(struct translator *t, size_t i, uint32_t *ret)
{
	const OtlpFunction *from = t->from->function_table[i];
	struct sink_function f = {.start_line = from->start_line};
	int r = translator_text(t, from->name_strindex, &f.name);

	if (!r)
		r = translator_text(t, from->system_name_strindex, &f.system_name);
	if (!r)
		r = translator_text(t, from->filename_strindex, &f.file);
	return r < 0 ? r : t->sink->function(t->ctx, &f, ret);
}

static int translate_mapping(struct translator *t, size_t i, uint32_t *ret)
{
	const OtlpMapping *from = t->from->mapping_table[i];
	struct sink_mapping m = {.start = from->memory_start, .limit = from->memory_limit, .offset = from->file_offset};
	int r = translator_text(t, from->filename_strindex, &m.file);

	if (!r)
		r = translator_set(t, from->attribute_indices, from->n_attribute_indices, &m.attributes);
	return r < 0 ? r : t->sink->mapping(t->ctx, &m, ret);
}

/* t->kinds of an attribute: whether it names a kind, and which. */
static int translator_attribute_kind(struct translator *t, size_t i, uint8_t *ret)
{
	OtlpKeyValueAndUnit *from = t->from->attribute_table[i];
	const char *key = translator_resolve(t, from->key_strindex);
	int r = key ? translator_value(t, from->value) : -EBADMSG;

	if (r < 0)
		return r;
	*ret = KIND_NONE;
	if (strcmp(key, "profile.frame.type") == 0)
		*ret = (uint8_t)(KIND_FIRST + frame_kind_of_type(otlp_value_string(from->value)));
	return 0;
}

/*
 * A location without a type and an address whose only name is in brackets is a marker. Code of some kinds has no
 * address either, and may have such a name, but it has a type.
 */
static bool translator_is_marker(const struct translator *t, const OtlpLocation *l)
{
	const OtlpFunction *f;

	if (l->address || l->n_lines != 1)
		return false;
	f = t->from->function_table[l->lines[0]->function_index];
	return t->from->string_table[f->name_strindex][0] == '[';
}

/* l's attributes and lines were translated, so their indices are in range. */
static int translator_location_kind(struct translator *t, const OtlpLocation *l, enum frame_kind *ret)
{
	size_t i;
	int r;

	for (i = 0; i < l->n_attribute_indices; i++) {
		uint8_t *kind = &t->kinds[l->attribute_indices[i]];

		r = *kind ? 0 : translator_attribute_kind(t, (size_t)l->attribute_indices[i], kind);
		if (r < 0)
			return r;
		if (*kind >= KIND_FIRST) {
			*ret = (enum frame_kind)(*kind - KIND_FIRST);
			return 0;
		}
	}
	*ret = translator_is_marker(t, l) ? KIND_MARKER : KIND_OTHER;
	return 0;
}

static int translate_lines(struct translator *t, const OtlpLocation *l, struct sink_line *lines)
{
	size_t i;
	int r = 0;

	for (i = 0; !r && i < l->n_lines; i++) {
		lines[i] = (struct sink_line){.line = l->lines[i]->line, .column = l->lines[i]->column};
		r = translator_lookup(t, &t->functions, l->lines[i]->function_index, translate_function,
				      &lines[i].function);
	}
	return r;
}

static int translate_location(struct translator *t, size_t i, uint32_t *ret)
{
	const OtlpLocation *from = t->from->location_table[i];
	struct sink_location l = {.address = from->address, .n = from->n_lines};
	struct sink_line *lines;
	int r;

	if (from->n_lines > t->depth)
		return -E2BIG;
	lines = scratch_get(&t->lines, from->n_lines, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	l.lines = lines;
	r = translator_lookup(t, &t->mappings, from->mapping_index, translate_mapping, &l.mapping);
	if (!r)
		r = translator_set(t, from->attribute_indices, from->n_attribute_indices, &l.attributes);
	if (!r)
		r = translate_lines(t, from, lines);
	if (!r)
		r = translator_location_kind(t, from, &l.kind);
	return r < 0 ? r : t->sink->location(t->ctx, &l, ret);
}

static int translate_stack(struct translator *t, size_t i, uint32_t *ret)
{
	const OtlpStack *from = t->from->stack_table[i];
	uint32_t *numbers;
	size_t k;
	int r = 0;

	if (from->n_location_indices > t->depth)
		return -E2BIG;
	numbers = scratch_get(&t->stack, from->n_location_indices, sizeof(*numbers));
	if (!numbers)
		return -ENOMEM;
	for (k = 0; !r && k < from->n_location_indices; k++)
		r = translator_lookup(t, &t->locations, from->location_indices[k], translate_location, &numbers[k]);
	return r < 0 ? r : t->sink->stack(t->ctx, numbers, from->n_location_indices, ret);
}

static int translate_link(struct translator *t, size_t i, uint32_t *ret)
{
	const OtlpLink *from = t->from->link_table[i];
	struct sink_link l = {0};

	if ((from->trace_id.len && from->trace_id.len != sizeof(l.trace_id)) ||
	    (from->span_id.len && from->span_id.len != sizeof(l.span_id)))
		return -EBADMSG;
	if (from->trace_id.len)
		memcpy(l.trace_id, from->trace_id.data, sizeof(l.trace_id));
	if (from->span_id.len)
		memcpy(l.span_id, from->span_id.data, sizeof(l.span_id));
	*ret = 0;
	return t->sink->link ? t->sink->link(t->ctx, &l, ret) : 0;
}

int translator_stack(struct translator *t, int32_t index, uint32_t *ret)
{
	return translator_lookup(t, &t->stacks, index, translate_stack, ret);
}

int translator_link(struct translator *t, int32_t index, uint32_t *ret)
{
	return translator_lookup(t, &t->links, index, translate_link, ret);
}

#define ZERO(NAME) OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__##NAME##__INIT

/* A request may leave out a table of which it uses index 0 only. */
#define FILL_EMPTY(t, name, initial)                                     \
	do {                                                             \
		(t)->zero.name = (__typeof__((t)->zero.name))initial;    \
		(t)->zero.name##s = &(t)->zero.name;                     \
		if (!(t)->from->n_##name##_table) {                      \
			(t)->from->n_##name##_table = 1;                 \
			(t)->from->name##_table = &(t)->zero.name##s;    \
		}                                                        \
	} while (0)

static void translator_fill(struct translator *t)
{
	t->zero.strings = t->zero.string;
	if (!t->from->n_string_table) {
		t->from->n_string_table = 1;
		t->from->string_table = &t->zero.strings;
	}
	FILL_EMPTY(t, attribute, ZERO(KEY_VALUE_AND_UNIT));
	FILL_EMPTY(t, function, ZERO(FUNCTION));
	FILL_EMPTY(t, mapping, ZERO(MAPPING));
	FILL_EMPTY(t, location, ZERO(LOCATION));
	FILL_EMPTY(t, link, ZERO(LINK));
	FILL_EMPTY(t, stack, ZERO(STACK));
}

static int translator_alloc(struct translator *t)
{
	const OtlpDictionary *from = t->from;
	int r = 0;

	r |= memo_init(&t->strings, from->n_string_table);
	r |= memo_init(&t->attributes, from->n_attribute_table);
	r |= memo_init(&t->singles, from->n_attribute_table);
	r |= memo_init(&t->functions, from->n_function_table);
	r |= memo_init(&t->mappings, from->n_mapping_table);
	r |= memo_init(&t->locations, from->n_location_table);
	r |= memo_init(&t->links, from->n_link_table);
	r |= memo_init(&t->stacks, from->n_stack_table);
	t->kinds = calloc(from->n_attribute_table, 1);
	return r < 0 || !t->kinds ? -ENOMEM : 0;
}

int translator_init(struct translator *t, OtlpDictionary *from, const struct otlp_sink *sink, void *ctx, uint32_t depth)
{
	size_t i;

	*t = (struct translator){.from = from, .sink = sink, .ctx = ctx, .depth = depth};
	t->zero.dictionary = (OtlpDictionary)ZERO(PROFILES_DICTIONARY);
	if (!from)
		t->from = &t->zero.dictionary;
	translator_fill(t);
	for (i = 0; i < t->from->n_string_table; i++)
		utf8_clean_str(t->from->string_table[i]);
	return translator_alloc(t);
}

void translator_done(struct translator *t)
{
	free(t->strings.entries);
	free(t->attributes.entries);
	free(t->singles.entries);
	free(t->functions.entries);
	free(t->mappings.entries);
	free(t->locations.entries);
	free(t->links.entries);
	free(t->stacks.entries);
	free(t->kinds);
	buf_done(&t->set);
	buf_done(&t->lines);
	buf_done(&t->stack);
}
