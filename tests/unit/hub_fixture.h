/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP requests of any shape for the tests of the hub: a list of stacks of
 * one resource, each a text of function names, outermost first. The encoder is
 * this file's own: a function is a location and has the kind "native".
 */
#ifndef OTP_TESTS_HUB_FIXTURE_H
#define OTP_TESTS_HUB_FIXTURE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/intern.h"
#include "otlp/limits.h"
#include "otlp/messages.h"

#define HF_P(NAME) OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__##NAME##__INIT
#define HF_C(NAME) OPENTELEMETRY__PROTO__COMMON__V1__##NAME##__INIT
#define HF_START   1790000000000000000ULL
#define HF_STEP	   5000000000ULL
#define HF_PERIOD  50000000

static const struct otlp_limits hf_limits = {.request_bytes = 64u << 20, .memory_bytes = 1u << 30, .depth = 8192};

struct hf_stack {
	char path[256]; /* "main;work;leaf" */
	int64_t value;
};

struct hf_request {
	const char *attributes[8][2]; /* of the resource: key and value */
	const char *executable;	      /* of the samples; NULL: none */
	const char *type;	      /* NULL: CPU time */
	const struct hf_stack *stacks;
	size_t n;
	uint64_t start_ns, duration_ns;
};

/* Tables while one request is made. Everything lives until the end of the test's process. */
struct hf_tables {
	struct intern strings, functions, stacks;
};

static inline int32_t hf_string(struct hf_tables *t, const char *s)
{
	uint32_t n;

	ck_assert_int_eq(intern_number(&t->strings, s, strlen(s) + 1, &n), 0);
	return (int32_t)n;
}

/* Locations of a stack, innermost first: function n is location n. */
static inline uint32_t hf_stack_number(struct hf_tables *t, const char *path)
{
	uint32_t locations[128], n = 0, ret;
	char copy[256], *at = copy, *name;

	snprintf(copy, sizeof(copy), "%s", path);
	while ((name = strsep(&at, ";"))) {
		uint32_t string = (uint32_t)hf_string(t, name);

		memmove(locations + 1, locations, n++ * sizeof(*locations));
		ck_assert_int_eq(intern_number(&t->functions, &string, sizeof(string), &locations[0]), 0);
	}
	ck_assert_int_eq(intern_number(&t->stacks, locations, n * sizeof(*locations), &ret), 0);
	return ret;
}

static inline void *hf_new(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);

	ck_assert_ptr_nonnull(p);
	return p;
}

/* An array of pointers to n messages of a type, each with its initial value. */
#define HF_MESSAGES(Type, INIT, n)                                        \
	({                                                                \
		Type **_list = hf_new(n, sizeof(Type *));                 \
		Type *_items = hf_new(n, sizeof(Type));                   \
		_list[0] = _items;                                        \
		for (size_t _i = 0; _i < (size_t)(n); _i++) {             \
			_items[_i] = (Type)INIT;                          \
			_list[_i] = &_items[_i];                          \
		}                                                         \
		_list;                                                    \
	})

static inline void hf_free_messages(void *list)
{
	void **p = list;

	free(p[0]);
	free(p);
}

static inline void hf_add_frames(struct hf_tables *t, OtlpDictionary *d)
{
	size_t n = t->functions.count;

	d->n_function_table = d->n_location_table = n;
	d->function_table = HF_MESSAGES(OtlpFunction, HF_P(FUNCTION), n);
	d->location_table = HF_MESSAGES(OtlpLocation, HF_P(LOCATION), n);
	for (size_t i = 0; i < n; i++) {
		OtlpLocation *l = d->location_table[i];

		d->function_table[i]->name_strindex = (int32_t) * (const uint32_t *)intern_key(&t->functions, (uint32_t)i);
		l->n_lines = 1;
		l->lines = HF_MESSAGES(OtlpLine, HF_P(LINE), 1);
		l->lines[0]->function_index = (int32_t)i;
		l->n_attribute_indices = 1;
		l->attribute_indices = hf_new(1, sizeof(int32_t));
		l->attribute_indices[0] = 1;
	}
}

static inline void hf_add_stacks(struct hf_tables *t, OtlpDictionary *d)
{
	d->n_stack_table = t->stacks.count;
	d->stack_table = HF_MESSAGES(OtlpStack, HF_P(STACK), t->stacks.count);
	for (uint32_t i = 0; i < t->stacks.count; i++) {
		d->stack_table[i]->n_location_indices = intern_len(&t->stacks, i) / sizeof(int32_t);
		d->stack_table[i]->location_indices = (int32_t *)(uintptr_t)intern_key(&t->stacks, i);
	}
}

static inline void hf_set_text(OtlpAnyValue *v, const char *text)
{
	v->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
	v->string_value = (char *)(uintptr_t)text;
}

/* 0: none, 1: the kind of every frame, 2: the samples' executable. */
static inline void hf_add_attributes(struct hf_tables *t, const struct hf_request *q, OtlpDictionary *d)
{
	OtlpAnyValue **values = HF_MESSAGES(OtlpAnyValue, HF_C(ANY_VALUE), 3);

	d->n_attribute_table = 3;
	d->attribute_table = HF_MESSAGES(OtlpKeyValueAndUnit, HF_P(KEY_VALUE_AND_UNIT), 3);
	d->attribute_table[1]->key_strindex = hf_string(t, "profile.frame.type");
	hf_set_text(values[1], "native");
	d->attribute_table[1]->value = values[1];
	d->attribute_table[2]->key_strindex = hf_string(t, "process.executable.name");
	hf_set_text(values[2], q->executable ? q->executable : "");
	d->attribute_table[2]->value = values[2];
	free(values);
}

static inline void hf_fill_resource(const struct hf_request *q, OtlpResource *r)
{
	while (r->n_attributes < ARRAY_SIZE(q->attributes) && q->attributes[r->n_attributes][0])
		r->n_attributes++;
	r->attributes = HF_MESSAGES(OtlpKeyValue, HF_C(KEY_VALUE), r->n_attributes);
	for (size_t i = 0; i < r->n_attributes; i++) {
		OtlpAnyValue **v = HF_MESSAGES(OtlpAnyValue, HF_C(ANY_VALUE), 1);

		hf_set_text(v[0], q->attributes[i][1]);
		r->attributes[i]->key = (char *)(uintptr_t)q->attributes[i][0];
		r->attributes[i]->value = v[0];
		free(v);
	}
}

static inline void hf_fill_profile(struct hf_tables *t, const struct hf_request *q, OtlpProfile *p)
{
	p->sample_type->type_strindex = hf_string(t, q->type ? q->type : "samples");
	p->sample_type->unit_strindex = hf_string(t, "count");
	p->period_type->type_strindex = hf_string(t, q->type ? q->type : "cpu");
	p->period_type->unit_strindex = hf_string(t, q->type ? "count" : "nanoseconds");
	p->period = q->type ? 1 : HF_PERIOD;
	p->time_unix_nano = q->start_ns;
	p->duration_nano = q->duration_ns;
	p->n_samples = q->n;
	p->samples = HF_MESSAGES(OtlpSample, HF_P(SAMPLE), q->n);
	for (size_t i = 0; i < q->n; i++) {
		OtlpSample *s = p->samples[i];

		s->stack_index = (int32_t)hf_stack_number(t, q->stacks[i].path);
		s->n_values = 1;
		s->values = (int64_t *)(uintptr_t)&q->stacks[i].value;
		s->n_attribute_indices = q->executable ? 1 : 0;
		s->attribute_indices = hf_new(1, sizeof(int32_t));
		s->attribute_indices[0] = 2;
	}
}

static inline void hf_begin_tables(struct hf_tables *t)
{
	uint32_t n, zero = 0;

	intern_init(&t->strings, 1u << 24, 1u << 28);
	intern_init(&t->functions, 1u << 24, 1u << 28);
	intern_init(&t->stacks, 1u << 24, 1u << 28);
	hf_string(t, "");
	ck_assert_int_eq(intern_number(&t->functions, &zero, sizeof(zero), &n), 0);
	ck_assert_int_eq(intern_number(&t->stacks, "", 0, &n), 0);
}

static inline void hf_free(struct hf_tables *t, OtlpDictionary *d, OtlpProfile *p, OtlpResource *r)
{
	for (size_t i = 0; i < d->n_location_table; i++) {
		hf_free_messages(d->location_table[i]->lines);
		free(d->location_table[i]->attribute_indices);
	}
	for (size_t i = 0; i < p->n_samples; i++)
		free(p->samples[i]->attribute_indices);
	for (size_t i = 0; i < r->n_attributes; i++)
		free(r->attributes[i]->value);
	free(d->attribute_table[1]->value - 1);
	hf_free_messages(d->attribute_table);
	hf_free_messages(d->function_table);
	hf_free_messages(d->location_table);
	hf_free_messages(d->stack_table);
	hf_free_messages(p->samples);
	hf_free_messages(r->attributes);
	free(d->string_table);
	intern_done(&t->strings);
	intern_done(&t->functions);
	intern_done(&t->stacks);
}

static inline void hf_encode(const struct hf_request *q, struct buf *out)
{
	struct hf_tables t;
	OtlpValueType type = HF_P(VALUE_TYPE), period = HF_P(VALUE_TYPE);
	OtlpProfile profile = HF_P(PROFILE), *profiles = &profile;
	OtlpScopeProfiles scope = HF_P(SCOPE_PROFILES), *scopes = &scope;
	OtlpResource resource = OPENTELEMETRY__PROTO__RESOURCE__V1__RESOURCE__INIT;
	OtlpResourceProfiles of_resource = HF_P(RESOURCE_PROFILES), *resources = &of_resource;
	OtlpDictionary dictionary = HF_P(PROFILES_DICTIONARY);
	OtlpMapping mapping = HF_P(MAPPING), *mappings = &mapping;
	OtlpLink link = HF_P(LINK), *links = &link;
	OtlpRequest request =
		OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
	void *to;
	size_t len;

	hf_begin_tables(&t);
	profile.sample_type = &type;
	profile.period_type = &period;
	hf_fill_profile(&t, q, &profile);
	hf_fill_resource(q, &resource);
	hf_add_attributes(&t, q, &dictionary);
	hf_add_frames(&t, &dictionary);
	hf_add_stacks(&t, &dictionary);
	dictionary.n_string_table = t.strings.count;
	dictionary.string_table = hf_new(t.strings.count, sizeof(char *));
	for (uint32_t i = 0; i < t.strings.count; i++)
		dictionary.string_table[i] = (char *)(uintptr_t)intern_key(&t.strings, i);
	dictionary.n_mapping_table = dictionary.n_link_table = 1;
	dictionary.mapping_table = &mappings;
	dictionary.link_table = &links;
	scope.n_profiles = of_resource.n_scope_profiles = request.n_resource_profiles = 1;
	scope.profiles = &profiles;
	of_resource.scope_profiles = &scopes;
	of_resource.resource = &resource;
	request.resource_profiles = &resources;
	request.dictionary = &dictionary;
	len = protobuf_c_message_get_packed_size(&request.base);
	to = buf_reserve(out, len);
	ck_assert_ptr_nonnull(to);
	buf_commit(out, protobuf_c_message_pack(&request.base, to));
	hf_free(&t, &dictionary, &profile, &resource);
}

#endif
