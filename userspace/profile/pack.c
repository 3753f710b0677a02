// SPDX-License-Identifier: Apache-2.0
/*
 * Encoding entry by entry: the encoding of a message is the concatenation of
 * its fields, so each entry is packed as a part of its parent with that one
 * entry, from the stack, into the parent's buffer. A whole tree of message
 * objects would take ten times the request's size.
 *
 * Attributes of resources and values of the attribute table are inline, never
 * references into the string table: common receivers do not resolve those.
 */
#include "otlp/wire.h"
#include "profile/pack.h"

#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"
#include "profile/clean.h"

#define PROFILES(name)        Opentelemetry__Proto__Profiles__V1development__##name
#define COMMON(name)          Opentelemetry__Proto__Common__V1__##name
#define RESOURCE(name)        Opentelemetry__Proto__Resource__V1__##name
#define PROFILES_INIT(NAME)   OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__##NAME##__INIT
#define COMMON_INIT(NAME)     OPENTELEMETRY__PROTO__COMMON__V1__##NAME##__INIT
#define RESOURCE_INIT(NAME)   OPENTELEMETRY__PROTO__RESOURCE__V1__##NAME##__INIT
#define ANY_VALUE_CASE(NAME)  OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##NAME

/* Fields whose content this file assembles, not the library. */
#define REQUEST_RESOURCE_PROFILES 1
#define REQUEST_DICTIONARY        2
#define RESOURCE_SCOPE_PROFILES   2
#define SCOPE_PROFILES            2

#define SCOPE_NAME "otprof"

static void pack_append(struct buf *out, const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *to = buf_reserve(out, len);

	if (to)
		buf_commit(out, protobuf_c_message_pack(m, to));
}

/* The field of that number, with inner, a complete message, as its content. */
static void pack_append_block(struct buf *out, uint32_t number, const struct buf *inner)
{
	wire_append_block(out, number, inner->data, inner->len);
	out->failed |= inner->failed;
}

static void pack_strings(struct buf *out, const struct dictionary *d)
{
	for (uint32_t i = 0; i < d->strings.count; i++) {
		PROFILES(ProfilesDictionary) part = PROFILES_INIT(PROFILES_DICTIONARY);
		char *s = dictionary_str(d, i)->s;

		part.n_string_table = 1;
		part.string_table = &s;
		pack_append(out, &part.base);
	}
}

static void pack_mappings(struct buf *out, const struct dictionary *d)
{
	for (uint32_t i = 0; i < d->mappings.count; i++) {
		const struct dict_mapping *e = intern_key(&d->mappings, i);
		PROFILES(ProfilesDictionary) part = PROFILES_INIT(PROFILES_DICTIONARY);
		PROFILES(Mapping) m = PROFILES_INIT(MAPPING), *p = &m;
		int32_t attributes[ARRAY_SIZE(e->attributes)];

		m.memory_start = e->start;
		m.memory_limit = e->limit;
		m.file_offset = e->offset;
		m.filename_strindex = (int32_t)e->filename;
		m.attribute_indices = attributes;
		for (size_t k = 0; k < ARRAY_SIZE(e->attributes); k++)
			if (e->attributes[k])
				attributes[m.n_attribute_indices++] = (int32_t)e->attributes[k];
		part.n_mapping_table = 1;
		part.mapping_table = &p;
		pack_append(out, &part.base);
	}
}

static void pack_location(struct buf *out, const struct dict_location *e, size_t nr_lines)
{
	PROFILES(ProfilesDictionary) part = PROFILES_INIT(PROFILES_DICTIONARY);
	PROFILES(Location) l = PROFILES_INIT(LOCATION), *p = &l;
	PROFILES(Line) lines[SYMBOL_LINES_MAX], *line_list[SYMBOL_LINES_MAX];
	int32_t attribute = (int32_t)e->attribute;

	for (size_t i = 0; i < nr_lines; i++) {
		lines[i] = (PROFILES(Line))PROFILES_INIT(LINE);
		lines[i].function_index = (int32_t)e->lines[i].function;
		lines[i].line = e->lines[i].line;
		lines[i].column = e->lines[i].column;
		line_list[i] = &lines[i];
	}
	l.mapping_index = (int32_t)e->mapping;
	l.address = e->address;
	l.n_lines = nr_lines;
	l.lines = line_list;
	l.n_attribute_indices = attribute != 0;
	l.attribute_indices = &attribute;
	part.n_location_table = 1;
	part.location_table = &p;
	pack_append(out, &part.base);
}

static void pack_locations(struct buf *out, const struct dictionary *d)
{
	for (uint32_t i = 0; i < d->locations.count; i++) {
		const struct dict_location *e = intern_key(&d->locations, i);

		pack_location(out, e, (intern_len(&d->locations, i) - sizeof(*e)) / sizeof(e->lines[0]));
	}
}

static void pack_functions(struct buf *out, const struct dictionary *d)
{
	for (uint32_t i = 0; i < d->functions.count; i++) {
		const struct dict_function *e = intern_key(&d->functions, i);
		PROFILES(ProfilesDictionary) part = PROFILES_INIT(PROFILES_DICTIONARY);
		PROFILES(Function) f = PROFILES_INIT(FUNCTION), *p = &f;

		f.name_strindex = (int32_t)e->name;
		f.filename_strindex = (int32_t)e->file;
		f.start_line = e->start_line;
		part.n_function_table = 1;
		part.function_table = &p;
		pack_append(out, &part.base);
	}
}

/* Entry 0 is the only one; strict readers require ids of full length. */
static void pack_links(struct buf *out)
{
	static uint8_t zero[16];
	PROFILES(ProfilesDictionary) part = PROFILES_INIT(PROFILES_DICTIONARY);
	PROFILES(Link) l = PROFILES_INIT(LINK), *p = &l;

	l.trace_id = (ProtobufCBinaryData){.len = 16, .data = zero};
	l.span_id = (ProtobufCBinaryData){.len = 8, .data = zero};
	part.n_link_table = 1;
	part.link_table = &p;
	pack_append(out, &part.base);
}

static void pack_attributes(struct buf *out, const struct dictionary *d)
{
	for (uint32_t i = 0; i < d->attributes.count; i++) {
		const struct dict_attribute *e = intern_key(&d->attributes, i);
		PROFILES(ProfilesDictionary) part = PROFILES_INIT(PROFILES_DICTIONARY);
		PROFILES(KeyValueAndUnit) a = PROFILES_INIT(KEY_VALUE_AND_UNIT), *p = &a;
		COMMON(AnyValue) value = COMMON_INIT(ANY_VALUE);

		if (e->type == DICT_INT) {
			value.value_case = ANY_VALUE_CASE(INT_VALUE);
			value.int_value = (int64_t)e->value;
		} else {
			value.value_case = ANY_VALUE_CASE(STRING_VALUE);
			value.string_value = ((struct str *)(uintptr_t)e->value)->s;
		}
		a.key_strindex = (int32_t)e->key;
		a.value = e->key ? &value : NULL;
		part.n_attribute_table = 1;
		part.attribute_table = &p;
		pack_append(out, &part.base);
	}
}

static void pack_stacks(struct buf *out, const struct dictionary *d)
{
	for (uint32_t i = 0; i < d->stacks.count; i++) {
		PROFILES(ProfilesDictionary) part = PROFILES_INIT(PROFILES_DICTIONARY);
		PROFILES(Stack) s = PROFILES_INIT(STACK), *p = &s;

		s.n_location_indices = intern_len(&d->stacks, i) / sizeof(int32_t);
		s.location_indices = (int32_t *)(uintptr_t)intern_key(&d->stacks, i);
		part.n_stack_table = 1;
		part.stack_table = &p;
		pack_append(out, &part.base);
	}
}

static void pack_dictionary(struct buf *out, const struct dictionary *d)
{
	pack_mappings(out, d);
	pack_locations(out, d);
	pack_functions(out, d);
	pack_links(out);
	pack_strings(out, d);
	pack_attributes(out, d);
	pack_stacks(out, d);
}

static void pack_resource_attribute(struct buf *out, const struct attribute *a)
{
	RESOURCE(Resource) part = RESOURCE_INIT(RESOURCE);
	COMMON(KeyValue) kv = COMMON_INIT(KEY_VALUE), *p = &kv;
	COMMON(AnyValue) value = COMMON_INIT(ANY_VALUE);
	struct str *text = a->value->len ? clean_str(a->value, a->value->len) : str_ref(a->value);

	if (!text) {
		out->failed = true;
		return;
	}
	value.value_case = ANY_VALUE_CASE(STRING_VALUE);
	value.string_value = text->s;
	kv.key = a->key->s;
	kv.value = &value;
	part.n_attributes = 1;
	part.attributes = &p;
	pack_append(out, &part.base);
	str_put(text);
}

static void pack_resource(struct buf *out, const struct workload *w)
{
	_cleanup_(buf_done) struct buf attributes = {0};

	for (uint32_t i = 0; i < w->count; i++)
		/* An unclean key is left out, not cleaned: two keys could become equal. */
		if (w->attributes[i].key->len && utf8_is_clean(w->attributes[i].key->s, w->attributes[i].key->len))
			pack_resource_attribute(&attributes, &w->attributes[i]);
	pack_append_block(out, 1, &attributes);
}

static void pack_samples(struct buf *out, const struct out_request *q, const struct out_profile *p)
{
	for (uint32_t i = p->first; i < p->first + p->count; i++) {
		const struct out_sample *e = &q->samples[i];
		PROFILES(Profile) part = PROFILES_INIT(PROFILE);
		PROFILES(Sample) s = PROFILES_INIT(SAMPLE), *list = &s;
		int64_t value = (int64_t)e->value;

		s.stack_index = (int32_t)e->stack;
		s.n_attribute_indices = e->attributes.count;
		s.attribute_indices = (int32_t *)(uintptr_t)e->attributes.of;
		s.n_values = 1;
		s.values = &value;
		part.n_samples = 1;
		part.samples = &list;
		pack_append(out, &part.base);
	}
}

#define ID_BYTES  16
#define ID_RANDOM 12

/* Random per request, numbered within it: as unique as random ids, and better to compress. */
struct profile_id {
	uint8_t bytes[ID_BYTES];
	uint32_t count;
};

static void pack_begin_ids(struct profile_id *id)
{
	uint64_t word[2];

	*id = (struct profile_id){0};
	if (getrandom(id->bytes, ID_RANDOM, GRND_NONBLOCK) == ID_RANDOM)
		return;
	/* The kernel's random pool is not ready early after boot: unique, if not random. */
	word[0] = hash_u64(clock_now_ns() ^ hash_seed);
	word[1] = hash_u64(word[0] + 1);
	memcpy(id->bytes, word, ID_RANDOM);
}

static void pack_next_id(struct profile_id *id)
{
	id->count++;
	for (unsigned i = 0; i < ID_BYTES - ID_RANDOM; i++)
		id->bytes[ID_RANDOM + i] = (uint8_t)(id->count >> 8 * (ID_BYTES - ID_RANDOM - 1 - i));
}

static void pack_profile(struct buf *out, const struct out_request *q, const struct out_profile *p,
			 const struct pack_times *t, struct profile_id *id)
{
	PROFILES(ValueType) counted = PROFILES_INIT(VALUE_TYPE), period = PROFILES_INIT(VALUE_TYPE);
	PROFILES(Profile) head = PROFILES_INIT(PROFILE);
	const struct out_types *types = &q->types[p->slot];

	pack_next_id(id);
	counted.type_strindex = (int32_t)types->type;
	counted.unit_strindex = (int32_t)types->unit;
	period.type_strindex = (int32_t)types->period_type;
	period.unit_strindex = (int32_t)types->period_unit;
	head.sample_type = &counted;
	head.period_type = &period;
	head.period = (int64_t)t->origins->slot[p->slot].period;
	head.time_unix_nano = t->start_unix_ns;
	head.duration_nano = t->duration_ns;
	head.profile_id = (ProtobufCBinaryData){.len = sizeof(id->bytes), .data = id->bytes};
	pack_append(out, &head.base);
	pack_samples(out, q, p);
}

static void pack_scope(struct buf *out, const struct pack_times *t)
{
	PROFILES(ScopeProfiles) head = PROFILES_INIT(SCOPE_PROFILES);
	COMMON(InstrumentationScope) scope = COMMON_INIT(INSTRUMENTATION_SCOPE);
	char name[] = SCOPE_NAME;

	scope.name = name;
	scope.version = (char *)(uintptr_t)(t->scope_version ? t->scope_version : "");
	head.scope = &scope;
	pack_append(out, &head.base);
}

static void pack_resource_profiles(struct buf *out, const struct out_request *q, const struct out_resource *r,
				   const struct pack_times *t, struct profile_id *id)
{
	_cleanup_(buf_done) struct buf resource = {0}, scope = {0}, profile = {0};

	pack_scope(&scope, t);
	for (uint32_t i = r->first; i < r->first + r->count; i++) {
		buf_reset(&profile);
		pack_profile(&profile, q, &q->profiles[i], t, id);
		pack_append_block(&scope, SCOPE_PROFILES, &profile);
	}
	pack_resource(&resource, r->workload);
	pack_append_block(&resource, RESOURCE_SCOPE_PROFILES, &scope);
	pack_append_block(out, REQUEST_RESOURCE_PROFILES, &resource);
}

int pack_request(const struct out_request *q, const struct pack_times *t, struct buf *out)
{
	_cleanup_(buf_done) struct buf dictionary = {0};
	struct profile_id id;

	buf_reset(out);
	pack_begin_ids(&id);
	/* Growing step by step would copy the content several times. */
	buf_reserve(out, q->bytes + q->dict.bytes);
	buf_reserve(&dictionary, q->dict.bytes);
	for (uint32_t i = 0; i < q->nr_resources; i++)
		pack_resource_profiles(out, q, &q->resources[i], t, &id);
	pack_dictionary(&dictionary, &q->dict);
	pack_append_block(out, REQUEST_DICTIONARY, &dictionary);
	return out->failed ? -ENOMEM : 0;
}
