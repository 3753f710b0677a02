// SPDX-License-Identifier: Apache-2.0
#include "hub/tree_otlp.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "otlp/messages.h"

#define P(NAME) OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__##NAME##__INIT
#define C(NAME) OPENTELEMETRY__PROTO__COMMON__V1__##NAME##__INIT

#define FRAME_TYPE "profile.frame.type"

/* Tables whose places are numbers of the tree: function n is location n, string n the tree's string n. */
struct tree_packer {
	const struct snapshot *snapshot;
	const struct tree *tree;
	const uint64_t *self;
	struct arena arena;
	bool failed;
	OtlpDictionary dictionary;
	uint32_t strings;  /* of the tree; those of the request follow */
	int32_t kinds[KIND_NR]; /* index of the attribute that states it, 0: none */
	uint32_t *mappings; /* by string of the tree: index of the mapping of that file, 0: none */
};

#define make(p, n, size) arena_make(&(p)->arena, &(p)->failed, (n), (size))
#define MAKE(p, type, ...) ARENA_MAKE(&(p)->arena, &(p)->failed, type, __VA_ARGS__)
#define ROOM_STRINGS (KIND_NR + 8) /* that are not of the tree */

/* Texts of the request itself: few, each added once. */
static int32_t tree_packer_text(struct tree_packer *p, const char *s)
{
	OtlpDictionary *d = &p->dictionary;

	for (size_t i = p->strings; i < d->n_string_table; i++)
		if (strcmp(d->string_table[i], s) == 0)
			return (int32_t)i;
	d->string_table[d->n_string_table] = (char *)(uintptr_t)s;
	return (int32_t)d->n_string_table++;
}

static OtlpAnyValue *tree_packer_value(struct tree_packer *p, const char *s)
{
	OtlpAnyValue *v = MAKE(p, OtlpAnyValue, C(ANY_VALUE));

	if (v) {
		v->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
		v->string_value = (char *)(uintptr_t)s;
	}
	return v;
}

static void tree_packer_strings(struct tree_packer *p)
{
	OtlpDictionary *d = &p->dictionary;

	p->strings = p->tree->strings.count;
	d->string_table = make(p, p->strings + ROOM_STRINGS, sizeof(*d->string_table));
	if (p->failed)
		return;
	for (uint32_t i = 0; i < p->strings; i++)
		d->string_table[i] = (char *)(uintptr_t)tree_string(p->tree, i);
	d->n_string_table = p->strings;
}

static OtlpKeyValueAndUnit *tree_packer_add_attribute(struct tree_packer *p)
{
	OtlpKeyValueAndUnit *a = MAKE(p, OtlpKeyValueAndUnit, P(KEY_VALUE_AND_UNIT));

	p->dictionary.attribute_table[p->dictionary.n_attribute_table++] = a;
	return a;
}

/* Index 0 is no attribute; a kind without a type has none. */
static void tree_packer_attributes(struct tree_packer *p)
{
	OtlpDictionary *d = &p->dictionary;

	d->attribute_table = make(p, KIND_NR + 1, sizeof(*d->attribute_table));
	if (!p->failed)
		tree_packer_add_attribute(p);
	for (int i = 0; !p->failed && i < KIND_NR; i++) {
		OtlpKeyValueAndUnit *a;

		if (!frame_kind_type(i))
			continue;
		p->kinds[i] = (int32_t)d->n_attribute_table;
		a = tree_packer_add_attribute(p);
		if (!a)
			return;
		a->key_strindex = tree_packer_text(p, FRAME_TYPE);
		a->value = tree_packer_value(p, frame_kind_type(i));
	}
}

static void tree_packer_mappings(struct tree_packer *p)
{
	OtlpDictionary *d = &p->dictionary;
	uint32_t functions = p->tree->functions.count;

	p->mappings = make(p, p->strings, sizeof(*p->mappings));
	d->mapping_table = make(p, functions + 1, sizeof(*d->mapping_table));
	for (uint32_t i = 0; !p->failed && i < functions; i++) {
		uint32_t module = tree_function(p->tree, i)->module;

		if (i && (!module || p->mappings[module]))
			continue;
		d->mapping_table[d->n_mapping_table] = MAKE(p, OtlpMapping, P(MAPPING));
		if (p->failed)
			return;
		p->mappings[module] = module ? (uint32_t)d->n_mapping_table : 0;
		d->mapping_table[d->n_mapping_table++]->filename_strindex = (int32_t)module;
	}
}

static void tree_packer_function(struct tree_packer *p, uint32_t i)
{
	const struct answer *a = p->snapshot->answer;
	const struct tree_function *f = tree_function(p->tree, i);
	OtlpFunction *to = MAKE(p, OtlpFunction, P(FUNCTION));

	p->dictionary.function_table[i] = to;
	if (!to || !i)
		return;
	to->name_strindex = (int32_t)f->name;
	if (i < a->places_cap && a->places[i].file) {
		to->filename_strindex = (int32_t)a->places[i].file;
		to->start_line = a->places[i].line;
	}
}

static void tree_packer_location(struct tree_packer *p, uint32_t i)
{
	const struct tree_function *f = tree_function(p->tree, i);
	OtlpLocation *to = MAKE(p, OtlpLocation, P(LOCATION));

	p->dictionary.location_table[i] = to;
	if (!to || !i)
		return;
	to->mapping_index = (int32_t)p->mappings[f->module];
	to->lines = make(p, 1, sizeof(*to->lines));
	to->attribute_indices = make(p, 1, sizeof(*to->attribute_indices));
	if (p->failed || !(to->lines[0] = MAKE(p, OtlpLine, P(LINE))))
		return;
	to->n_lines = 1;
	to->lines[0]->function_index = (int32_t)i;
	to->n_attribute_indices = p->kinds[f->kind] ? 1 : 0;
	to->attribute_indices[0] = p->kinds[f->kind];
}

static void tree_packer_functions(struct tree_packer *p)
{
	OtlpDictionary *d = &p->dictionary;
	uint32_t n = p->tree->functions.count;

	d->function_table = make(p, n, sizeof(*d->function_table));
	d->location_table = make(p, n, sizeof(*d->location_table));
	for (uint32_t i = 0; !p->failed && i < n; i++) {
		tree_packer_function(p, i);
		tree_packer_location(p, i);
	}
	d->n_function_table = d->n_location_table = n;
}

static OtlpStack *tree_packer_stack(struct tree_packer *p, uint32_t node)
{
	OtlpStack *s = MAKE(p, OtlpStack, P(STACK));

	if (!s)
		return NULL;
	s->location_indices = make(p, p->tree->nodes[node].depth + 1u, sizeof(*s->location_indices));
	for (; !p->failed && node; node = p->tree->nodes[node].parent)
		s->location_indices[s->n_location_indices++] = (int32_t)p->tree->nodes[node].function;
	return s;
}

static OtlpSample *tree_packer_sample(struct tree_packer *p, uint32_t node)
{
	OtlpSample *s = MAKE(p, OtlpSample, P(SAMPLE));

	if (!s)
		return NULL;
	s->stack_index = (int32_t)p->dictionary.n_stack_table;
	s->values = make(p, 1, sizeof(*s->values));
	if (!p->failed)
		s->values[s->n_values++] = (int64_t)p->self[node];
	return s;
}

static void tree_packer_samples(struct tree_packer *p, OtlpProfile *to)
{
	OtlpDictionary *d = &p->dictionary;

	to->samples = make(p, p->tree->count, sizeof(*to->samples));
	d->stack_table = make(p, p->tree->count + 1, sizeof(*d->stack_table));
	if (p->failed)
		return;
	d->stack_table[d->n_stack_table++] = MAKE(p, OtlpStack, P(STACK));
	for (uint32_t i = 0; !p->failed && i < p->tree->count; i++) {
		if (!p->self[i])
			continue;
		to->samples[to->n_samples++] = tree_packer_sample(p, i);
		d->stack_table[d->n_stack_table++] = tree_packer_stack(p, i);
	}
}

static OtlpValueType *tree_packer_type(struct tree_packer *p, const char *type, const char *unit)
{
	OtlpValueType *t = MAKE(p, OtlpValueType, P(VALUE_TYPE));

	if (!t)
		return NULL;
	t->type_strindex = tree_packer_text(p, type);
	t->unit_strindex = tree_packer_text(p, unit);
	return t;
}

static OtlpProfile *tree_packer_profile(struct tree_packer *p)
{
	const struct hub_type *type = p->snapshot->type;
	const struct slot_sum *sum = &p->snapshot->answer->now;
	const char *unit = strcmp(type->unit, type->name) == 0 ? "count" : type->unit;
	OtlpProfile *to = MAKE(p, OtlpProfile, P(PROFILE));

	if (!to)
		return NULL;
	to->sample_type = tree_packer_type(p, type->cpu ? "samples" : type->name, type->cpu ? "count" : unit);
	to->period_type = tree_packer_type(p, type->name, type->cpu ? "nanoseconds" : unit);
	to->period = type->period;
	to->time_unix_nano = sum->start_ns;
	to->duration_nano = sum->end_ns - sum->start_ns;
	tree_packer_samples(p, to);
	return to;
}

static void tree_packer_attribute(struct tree_packer *p, OtlpResource *r, const char *key, const char *value)
{
	OtlpKeyValue *kv = *value ? MAKE(p, OtlpKeyValue, C(KEY_VALUE)) : NULL;

	if (!kv)
		return;
	kv->key = (char *)(uintptr_t)key;
	kv->value = tree_packer_value(p, value);
	r->attributes[r->n_attributes++] = kv;
}

static OtlpResource *tree_packer_resource(struct tree_packer *p)
{
	const struct workload *w = p->snapshot->workload;
	OtlpResource *r = MAKE(p, OtlpResource, OPENTELEMETRY__PROTO__RESOURCE__V1__RESOURCE__INIT);

	if (!r || !(r->attributes = make(p, 4, sizeof(*r->attributes))))
		return NULL;
	tree_packer_attribute(p, r, "service.name", *w->service ? w->service : w->name);
	tree_packer_attribute(p, r, "host.name", w->host);
	tree_packer_attribute(p, r, "k8s.namespace.name", w->namespace);
	tree_packer_attribute(p, r, "process.executable.name", w->executable);
	return r;
}

static void tree_packer_pack(struct tree_packer *p, struct buf *out)
{
	OtlpLink link = P(LINK), *links = &link;
	OtlpScope scope = C(INSTRUMENTATION_SCOPE);
	OtlpScopeProfiles of_scope = P(SCOPE_PROFILES), *scopes = &of_scope;
	OtlpResourceProfiles of_resource = P(RESOURCE_PROFILES), *resources = &of_resource;
	OtlpRequest request =
		OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
	OtlpProfile *profile = tree_packer_profile(p);
	void *to;

	of_resource.resource = tree_packer_resource(p);
	if (p->failed)
		return;
	scope.name = (char *)(uintptr_t) "otprof";
	scope.version = (char *)(uintptr_t)p->snapshot->version;
	of_scope.scope = &scope;
	of_scope.profiles = &profile;
	of_resource.scope_profiles = &scopes;
	request.resource_profiles = &resources;
	request.dictionary = &p->dictionary;
	of_scope.n_profiles = of_resource.n_scope_profiles = request.n_resource_profiles = 1;
	p->dictionary.link_table = &links;
	p->dictionary.n_link_table = 1;
	to = buf_reserve(out, protobuf_c_message_get_packed_size(&request.base));
	if (to)
		buf_commit(out, protobuf_c_message_pack(&request.base, to));
}

static void tree_packer_done(struct tree_packer *p)
{
	arena_done(&p->arena);
}

int tree_otlp(const struct snapshot *s, struct buf *out)
{
	_cleanup_(tree_packer_done) struct tree_packer p = {
		.snapshot = s, .tree = s->answer->graph->tree, .self = s->answer->graph->now.self,
		.arena = {.max = 1u << 30}, .dictionary = P(PROFILES_DICTIONARY)};

	tree_packer_strings(&p);
	if (!p.failed)
		tree_packer_attributes(&p);
	if (!p.failed)
		tree_packer_mappings(&p);
	if (!p.failed)
		tree_packer_functions(&p);
	if (!p.failed)
		tree_packer_pack(&p, out);
	return p.failed ? -ENOMEM : out->failed ? -E2BIG : 0;
}
