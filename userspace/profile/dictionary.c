// SPDX-License-Identifier: Apache-2.0
#include "profile/dictionary.h"

#include <string.h>

#include "base/cleanup.h"
#include "profile/wire_size.h"

#define FRAME_TYPE_KEY "profile.frame.type"
#define GNU_KEY        "process.executable.build_id.gnu"
#define HTLHASH_KEY    "process.executable.build_id.htlhash"

static int dictionary_add(struct dictionary *d, struct intern *table, const void *entry, size_t len, size_t wire_len,
			  uint32_t *ret)
{
	int r = intern_add(table, entry, len, ret);

	if (r > 0)
		d->bytes += size_block(wire_len);
	return MIN(r, 0);
}

int dictionary_string(struct dictionary *d, struct str *s, uint32_t *ret)
{
	if (!s) {
		*ret = 0;
		return 0;
	}
	return dictionary_add(d, &d->strings, &s, sizeof(s), s->len, ret);
}

struct str *dictionary_keep(struct dictionary *d, const char *text)
{
	struct str *s;

	for (uint32_t i = 0; i < d->nr_keep; i++)
		if (strcmp(d->keep[i]->s, text) == 0)
			return d->keep[i];
	s = d->nr_keep < ARRAY_SIZE(d->keep) ? str_get_c(text) : NULL;
	if (s)
		d->keep[d->nr_keep++] = s;
	return s;
}

int dictionary_text(struct dictionary *d, const char *text, uint32_t *ret)
{
	struct str *s = dictionary_keep(d, text);

	return s ? dictionary_string(d, s, ret) : -ENOMEM;
}

static size_t attribute_wire_len(const struct dict_attribute *a)
{
	/* Member of a oneof: a zero is written too. */
	if (a->type == DICT_INT)
		return 1 + size_varint(a->value);
	return size_block(((struct str *)(uintptr_t)a->value)->len);
}

static int dictionary_add_attribute(struct dictionary *d, const struct dict_attribute *a, uint32_t *ret)
{
	return dictionary_add(d, &d->attributes, a, sizeof(*a), size_number(a->key) + size_block(attribute_wire_len(a)), ret);
}

int dictionary_attribute(struct dictionary *d, const char *key, enum dict_value type, uint64_t value, uint32_t *ret)
{
	struct dict_attribute a = {.type = type, .value = value};
	int r = dictionary_text(d, key, &a.key);

	return r < 0 ? r : dictionary_add_attribute(d, &a, ret);
}

int dictionary_label(struct dictionary *d, struct str *key, struct str *value, uint32_t *ret)
{
	struct dict_attribute a = {.type = DICT_STRING, .value = (uint64_t)(uintptr_t)value};
	int r = dictionary_string(d, key, &a.key);

	return r < 0 ? r : dictionary_add_attribute(d, &a, ret);
}

static int dictionary_optional_attribute(struct dictionary *d, const char *key, struct str *value, uint32_t *ret)
{
	if (!value) {
		*ret = 0;
		return 0;
	}
	return dictionary_attribute(d, key, DICT_STRING, (uint64_t)(uintptr_t)value, ret);
}

static int dictionary_add_mapping(struct dictionary *d, const struct named_mapping *m, uint32_t *ret)
{
	struct dict_mapping e = {.start = m->start, .limit = m->limit, .offset = m->offset};
	size_t attributes, len;
	int r;

	r = dictionary_string(d, m->filename, &e.filename);
	if (r == 0)
		r = dictionary_optional_attribute(d, GNU_KEY, m->gnu, &e.attributes[0]);
	if (r == 0)
		r = dictionary_optional_attribute(d, HTLHASH_KEY, m->htlhash, &e.attributes[1]);
	if (r < 0)
		return r;
	attributes = (e.attributes[0] ? size_varint(e.attributes[0]) : 0) +
		     (e.attributes[1] ? size_varint(e.attributes[1]) : 0);
	len = size_number(e.start) + size_number(e.limit) + size_number(e.offset) + size_number(e.filename) +
	      (attributes ? size_block(attributes) : 0);
	return dictionary_add(d, &d->mappings, &e, sizeof(e), len, ret);
}

static int dictionary_add_function(struct dictionary *d, const struct named_line *l, uint32_t *ret)
{
	struct dict_function e = {.start_line = l->start_line};
	int r;

	r = dictionary_string(d, l->name, &e.name);
	if (r == 0)
		r = dictionary_string(d, l->file, &e.file);
	if (r < 0)
		return r;
	return dictionary_add(d, &d->functions, &e, sizeof(e),
			      size_number(e.name) + size_number(e.file) + size_number(e.start_line), ret);
}

static int dictionary_add_lines(struct dictionary *d, const struct named_location *l, struct dict_location *e,
				size_t *wire_len)
{
	for (uint32_t i = 0; i < l->count; i++) {
		const struct named_line *line = &d->names->lines[l->first + i];
		int r = dictionary_add_function(d, line, &e->lines[i].function);

		if (r < 0)
			return r;
		e->lines[i].line = line->line;
		e->lines[i].column = line->column;
		*wire_len += size_block(size_number(e->lines[i].function) + size_number(line->line) +
					size_number(line->column));
	}
	return 0;
}

static int dictionary_mapping(struct dictionary *d, uint32_t mapping, uint32_t *ret)
{
	uint32_t *known = &d->of_mapping[mapping];
	int r = 0;

	if (!*known)
		r = dictionary_add_mapping(d, &d->names->mappings[mapping], known);
	*ret = *known;
	return r;
}

/* A marker is no frame: it has no type. */
static int dictionary_frame_type(struct dictionary *d, enum frame_kind kind, uint32_t *ret)
{
	const char *type = frame_kind_type(kind);
	uint32_t *known = &d->of_type[kind];
	struct str *s;
	int r = 0;

	if (type && !*known) {
		s = dictionary_keep(d, type);
		r = s ? dictionary_optional_attribute(d, FRAME_TYPE_KEY, s, known) : -ENOMEM;
	}
	*ret = *known;
	return r;
}

static int dictionary_add_location(struct dictionary *d, const struct named_location *l, uint32_t *ret)
{
	union {
		struct dict_location e;
		uint8_t room[sizeof(struct dict_location) + SYMBOL_LINES_MAX * sizeof(struct dict_line)];
	} u = {.e.address = l->address};
	size_t len = size_number(l->address);
	int r = 0;

	if (l->mapping)
		r = dictionary_mapping(d, l->mapping - 1, &u.e.mapping);
	if (r == 0)
		r = dictionary_frame_type(d, (enum frame_kind)l->kind, &u.e.attribute);
	if (r == 0)
		r = dictionary_add_lines(d, l, &u.e, &len);
	if (r < 0)
		return r;
	len += size_number(u.e.mapping) + (u.e.attribute ? size_block(size_varint(u.e.attribute)) : 0);
	return dictionary_add(d, &d->locations, &u, sizeof(u.e) + l->count * sizeof(u.e.lines[0]), len, ret);
}

int dictionary_location(struct dictionary *d, uint32_t location, uint32_t *ret)
{
	uint32_t *known = &d->of_location[location];
	int r = 0;

	if (!*known)
		r = dictionary_add_location(d, &d->names->locations[location], known);
	*ret = *known;
	return r;
}

int dictionary_stack(struct dictionary *d, const uint32_t *locations, uint32_t count, uint32_t *scratch,
		     uint32_t *ret)
{
	size_t len = 0;

	for (uint32_t i = 0; i < count; i++) {
		int r = dictionary_location(d, locations[i], &scratch[i]);

		if (r < 0)
			return r;
		len += size_varint(scratch[i]);
	}
	return dictionary_add(d, &d->stacks, scratch, count * sizeof(*scratch), size_block(len), ret);
}

/* The only entry of the table of links: strict readers require its ids as 16 and 8 zero bytes. */
#define ZERO_LINK_BYTES (size_block(size_block(16) + size_block(8)))

static int dictionary_add_zeros(struct dictionary *d)
{
	struct dict_mapping mapping = {0};
	struct dict_location location = {0};
	struct dict_function function = {0};
	struct dict_attribute attribute = {.type = DICT_INT};
	uint32_t zero;
	int r = dictionary_text(d, "", &zero);

	if (r == 0)
		r = dictionary_add(d, &d->mappings, &mapping, sizeof(mapping), 0, &zero);
	if (r == 0)
		r = dictionary_add(d, &d->locations, &location, sizeof(location), 0, &zero);
	if (r == 0)
		r = dictionary_add(d, &d->functions, &function, sizeof(function), 0, &zero);
	if (r == 0)
		r = dictionary_add(d, &d->attributes, &attribute, sizeof(attribute), 0, &zero);
	if (r == 0)
		r = dictionary_add(d, &d->stacks, &zero, 0, 0, &zero);
	d->bytes += ZERO_LINK_BYTES;
	return r;
}

int dictionary_init(struct dictionary *d, const struct names *n)
{
	struct intern *tables[] = {&d->strings, &d->mappings, &d->locations,
				   &d->functions, &d->attributes, &d->stacks};

	*d = (struct dictionary){.names = n};
	d->of_location = calloc(MAX(n->nr_locations, 1u), sizeof(*d->of_location));
	d->of_mapping = calloc(MAX(n->nr_mappings, 1u), sizeof(*d->of_mapping));
	if (!d->of_location || !d->of_mapping)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		intern_init(tables[i], INT32_MAX, SIZE_MAX);
	return dictionary_add_zeros(d);
}

void dictionary_done(struct dictionary *d)
{
	intern_done(&d->strings);
	intern_done(&d->mappings);
	intern_done(&d->locations);
	intern_done(&d->functions);
	intern_done(&d->attributes);
	intern_done(&d->stacks);
	for (uint32_t i = 0; i < d->nr_keep; i++)
		str_put(d->keep[i]);
	free(d->of_location);
	free(d->of_mapping);
	*d = (struct dictionary){0};
}

void dictionary_mark(const struct dictionary *d, struct dictionary_mark *ret)
{
	*ret = (struct dictionary_mark){
		.strings = d->strings.count,
		.mappings = d->mappings.count,
		.locations = d->locations.count,
		.functions = d->functions.count,
		.attributes = d->attributes.count,
		.stacks = d->stacks.count,
		.bytes = d->bytes,
	};
}

void dictionary_return(struct dictionary *d, const struct dictionary_mark *to)
{
	intern_truncate(&d->strings, to->strings);
	intern_truncate(&d->mappings, to->mappings);
	intern_truncate(&d->locations, to->locations);
	intern_truncate(&d->functions, to->functions);
	intern_truncate(&d->attributes, to->attributes);
	intern_truncate(&d->stacks, to->stacks);
	d->bytes = to->bytes;
	/* Which of these were removed is unknown; looking them up again costs little. */
	memset(d->of_location, 0, d->names->nr_locations * sizeof(*d->of_location));
	memset(d->of_mapping, 0, d->names->nr_mappings * sizeof(*d->of_mapping));
	memset(d->of_type, 0, sizeof(d->of_type));
}
