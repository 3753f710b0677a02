/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small OTLP request for the tests of the command line tool: four stacks,
 * ten samples, one inlined frame, one marker, one frame without a name.
 * change, where given, alters the request before it is encoded.
 */
#ifndef OTP_TESTS_OTLP_FIXTURE_H
#define OTP_TESTS_OTLP_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "otlp/messages.h"
#include "recording/recording.h"

#define FX_P(NAME) OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__##NAME##__INIT
#define FX_C(NAME) OPENTELEMETRY__PROTO__COMMON__V1__##NAME##__INIT
#define FX_START   1790000000000000000ULL
#define FX_PERIOD  10309278
#define FX_DEPTH   8192

static const struct recording_limits fixture_limits = {
	.request = {.request_bytes = 64u << 20, .memory_bytes = 1u << 30, .depth = FX_DEPTH},
	.entries = 1u << 20,
	.bytes = 1u << 30,
	.total = (1ULL << 53) - 1,
	.frames = 1ULL << 28,
};

struct fixture {
	OtlpRequest request;
	OtlpDictionary dictionary;
	OtlpResourceProfiles resource_profiles, *resource_profiles_p;
	OtlpResource resource;
	OtlpKeyValue resource_attributes[2], *resource_attributes_p[2];
	OtlpAnyValue resource_values[2];
	OtlpScopeProfiles scope_profiles, *scope_profiles_p;
	OtlpScope scope;
	OtlpProfile profile, *profile_p;
	OtlpValueType sample_type, period_type;
	OtlpSample samples[4], *samples_p[4];
	int64_t values[4];
	int32_t sample_attribute;
	char *strings[21];
	OtlpAnyValue attribute_values[5];
	OtlpKeyValueAndUnit attributes[5], *attributes_p[5];
	OtlpMapping mappings[3], *mappings_p[3];
	int32_t mapping_attribute;
	OtlpFunction functions[6], *functions_p[6];
	OtlpLine lines[6][2], *lines_p[6][2];
	OtlpLocation locations[6], *locations_p[6];
	int32_t location_attributes[6];
	OtlpLink link, *link_p;
	OtlpStack stacks[5], *stacks_p[5];
};

static inline void fx_strings(struct fixture *f)
{
	static const char *const strings[] = {
		"", "samples", "count", "cpu", "nanoseconds", "main", "work", "vfs_read", "/usr/bin/app", "kernel",
		"native", "profile.frame.type", "inlined_fn", "[cut: stack deeper than its copy]", "process.pid",
		"process.executable.build_id.gnu", "abcd", "[kernel]", "app.c", "_Z4workv", "bytes",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(strings); i++)
		f->strings[i] = (char *)strings[i];
	f->dictionary.n_string_table = ARRAY_SIZE(strings);
	f->dictionary.string_table = f->strings;
}

static inline void fx_attributes(struct fixture *f)
{
	static const struct { int key, text; int64_t number; } from[] = {{0, 0, 0}, {11, 9, 0}, {11, 10, 0}, {14, 0, 42}, {15, 16, 0}};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(from); i++) {
		f->attributes[i] = (OtlpKeyValueAndUnit)FX_P(KEY_VALUE_AND_UNIT);
		f->attribute_values[i] = (OtlpAnyValue)FX_C(ANY_VALUE);
		f->attributes[i].key_strindex = from[i].key;
		if (from[i].text) {
			f->attribute_values[i].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
			f->attribute_values[i].string_value = f->strings[from[i].text];
		} else {
			f->attribute_values[i].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
			f->attribute_values[i].int_value = from[i].number;
		}
		f->attributes[i].value = i ? &f->attribute_values[i] : NULL;
		f->attributes_p[i] = &f->attributes[i];
	}
	f->dictionary.n_attribute_table = ARRAY_SIZE(from);
	f->dictionary.attribute_table = f->attributes_p;
}

static inline void fx_functions(struct fixture *f)
{
	static const int names[] = {0, 5, 6, 7, 12, 13};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		f->functions[i] = (OtlpFunction)FX_P(FUNCTION);
		f->functions[i].name_strindex = names[i];
		f->functions[i].filename_strindex = i == 2 ? 18 : 0;
		f->functions[i].system_name_strindex = i == 2 ? 19 : 0;
		f->functions_p[i] = &f->functions[i];
	}
	f->dictionary.n_function_table = ARRAY_SIZE(names);
	f->dictionary.function_table = f->functions_p;
}

static inline void fx_mappings(struct fixture *f)
{
	static const int files[] = {0, 8, 17};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		f->mappings[i] = (OtlpMapping)FX_P(MAPPING);
		f->mappings[i].filename_strindex = files[i];
		f->mappings_p[i] = &f->mappings[i];
	}
	f->mapping_attribute = 4;
	f->mappings[1].memory_limit = 0x10000;
	f->mappings[1].n_attribute_indices = 1;
	f->mappings[1].attribute_indices = &f->mapping_attribute;
	f->dictionary.n_mapping_table = ARRAY_SIZE(files);
	f->dictionary.mapping_table = f->mappings_p;
}

static inline void fx_locations(struct fixture *f)
{
	/* main; inlined_fn in work; vfs_read; the marker; one without a line */
	static const struct { int mapping; uint64_t address; int attribute, n, lines[2]; } from[] = {
		{0, 0, 0, 0, {0, 0}},      {1, 0x1000, 2, 1, {1, 0}}, {1, 0x2000, 2, 2, {4, 2}},
		{2, 0x3000, 1, 1, {3, 0}}, {0, 0, 0, 1, {5, 0}},      {1, 0x3039, 2, 0, {0, 0}},
	};
	size_t i;
	int k;

	for (i = 0; i < ARRAY_SIZE(from); i++) {
		OtlpLocation *l = f->locations_p[i] = &f->locations[i];

		*l = (OtlpLocation)FX_P(LOCATION);
		l->mapping_index = from[i].mapping;
		l->address = from[i].address;
		f->location_attributes[i] = from[i].attribute;
		l->n_attribute_indices = from[i].attribute != 0;
		l->attribute_indices = &f->location_attributes[i];
		for (k = 0; k < from[i].n; k++) {
			f->lines[i][k] = (OtlpLine)FX_P(LINE);
			f->lines[i][k].function_index = from[i].lines[k];
			f->lines[i][k].line = 10 + k;
			f->lines_p[i][k] = &f->lines[i][k];
		}
		l->n_lines = (size_t)from[i].n;
		l->lines = f->lines_p[i];
	}
	f->dictionary.n_location_table = ARRAY_SIZE(from);
	f->dictionary.location_table = f->locations_p;
}

static inline void fx_stacks(struct fixture *f)
{
	static int32_t indices[][3] = {{0}, {3, 2, 1}, {2, 1}, {1, 4}, {5, 1}};
	static const size_t counts[] = {0, 3, 2, 2, 2};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		f->stacks[i] = (OtlpStack)FX_P(STACK);
		f->stacks[i].n_location_indices = counts[i];
		f->stacks[i].location_indices = indices[i];
		f->stacks_p[i] = &f->stacks[i];
	}
	f->dictionary.n_stack_table = ARRAY_SIZE(counts);
	f->dictionary.stack_table = f->stacks_p;
	f->link = (OtlpLink)FX_P(LINK);
	f->link_p = &f->link;
	f->dictionary.n_link_table = 1;
	f->dictionary.link_table = &f->link_p;
}

static inline void fx_samples(struct fixture *f)
{
	static const int64_t values[] = {3, 5, 1, 1};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		f->samples[i] = (OtlpSample)FX_P(SAMPLE);
		f->samples[i].stack_index = (int32_t)i + 1;
		f->values[i] = values[i];
		f->samples[i].n_values = 1;
		f->samples[i].values = &f->values[i];
		f->samples_p[i] = &f->samples[i];
	}
	f->sample_attribute = 3;
	f->samples[1].n_attribute_indices = 1;
	f->samples[1].attribute_indices = &f->sample_attribute;
	f->profile.n_samples = ARRAY_SIZE(values);
	f->profile.samples = f->samples_p;
}

static inline void fx_profile(struct fixture *f)
{
	f->profile = (OtlpProfile)FX_P(PROFILE);
	f->sample_type = (OtlpValueType)FX_P(VALUE_TYPE);
	f->period_type = (OtlpValueType)FX_P(VALUE_TYPE);
	f->sample_type.type_strindex = 1;
	f->sample_type.unit_strindex = 2;
	f->period_type.type_strindex = 3;
	f->period_type.unit_strindex = 4;
	f->profile.sample_type = &f->sample_type;
	f->profile.period_type = &f->period_type;
	f->profile.period = FX_PERIOD;
	f->profile.time_unix_nano = FX_START;
	f->profile.duration_nano = 5000000000ULL;
	fx_samples(f);
}

static inline void fx_resource(struct fixture *f)
{
	static const char *const texts[][2] = {{"service.name", "app"}, {"host.name", "box"}};
	size_t i;

	f->resource = (OtlpResource)OPENTELEMETRY__PROTO__RESOURCE__V1__RESOURCE__INIT;
	for (i = 0; i < 2; i++) {
		f->resource_attributes[i] = (OtlpKeyValue)FX_C(KEY_VALUE);
		f->resource_values[i] = (OtlpAnyValue)FX_C(ANY_VALUE);
		f->resource_values[i].value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
		f->resource_values[i].string_value = (char *)texts[i][1];
		f->resource_attributes[i].key = (char *)texts[i][0];
		f->resource_attributes[i].value = &f->resource_values[i];
		f->resource_attributes_p[i] = &f->resource_attributes[i];
	}
	f->resource.n_attributes = 2;
	f->resource.attributes = f->resource_attributes_p;
}

/* The request, encoded; the caller ends out. */
static inline void fixture_encode(void (*change)(struct fixture *f), struct buf *out)
{
	struct fixture f = {
		.request = OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_SERVICE_REQUEST__INIT,
		.dictionary = FX_P(PROFILES_DICTIONARY),
		.resource_profiles = FX_P(RESOURCE_PROFILES),
		.scope_profiles = FX_P(SCOPE_PROFILES),
		.scope = FX_C(INSTRUMENTATION_SCOPE),
	};
	size_t len;

	fx_strings(&f);
	fx_attributes(&f);
	fx_functions(&f);
	fx_mappings(&f);
	fx_locations(&f);
	fx_stacks(&f);
	fx_profile(&f);
	fx_resource(&f);
	f.scope.name = (char *)"otprof";
	f.scope_profiles.scope = &f.scope;
	f.profile_p = &f.profile;
	f.scope_profiles.n_profiles = 1;
	f.scope_profiles.profiles = &f.profile_p;
	f.scope_profiles_p = &f.scope_profiles;
	f.resource_profiles.resource = &f.resource;
	f.resource_profiles.n_scope_profiles = 1;
	f.resource_profiles.scope_profiles = &f.scope_profiles_p;
	f.resource_profiles_p = &f.resource_profiles;
	f.request.n_resource_profiles = 1;
	f.request.resource_profiles = &f.resource_profiles_p;
	f.request.dictionary = &f.dictionary;
	if (change)
		change(&f);
	len = protobuf_c_message_get_packed_size(&f.request.base);
	protobuf_c_message_pack(&f.request.base, buf_reserve(out, len));
	buf_commit(out, len);
}

/* A recording of the request; 0 or what the reader said. */
static inline int fixture_read(void (*change)(struct fixture *f), struct recording *r)
{
	_cleanup_(buf_done) struct buf b = {0};

	fixture_encode(change, &b);
	return recording_read(r, b.data, b.len);
}

/*
 * One resource with FX_MANY attributes, its name and host the last of them, and
 * FX_MANY profiles that differ in period: a reader that looks through the
 * attributes for each profile needs 10^10 steps.
 */
#define FX_MANY 100000

static struct {
	OtlpKeyValue attributes[FX_MANY + 2], *attributes_p[FX_MANY + 2];
	char keys[FX_MANY][8];
	OtlpProfile profiles[FX_MANY], *profiles_p[FX_MANY];
} fx_many;

static inline void fixture_many(struct fixture *f)
{
	for (int i = 0; i < FX_MANY; i++) {
		snprintf(fx_many.keys[i], sizeof(fx_many.keys[i]), "%d", i);
		fx_many.attributes[i] = f->resource_attributes[0];
		fx_many.attributes[i].key = fx_many.keys[i];
		fx_many.attributes_p[i] = &fx_many.attributes[i];
		fx_many.profiles[i] = f->profile;
		fx_many.profiles[i].n_samples = 1;
		fx_many.profiles[i].period = i + 1;
		fx_many.profiles_p[i] = &fx_many.profiles[i];
	}
	for (int i = 0; i < 2; i++)
		fx_many.attributes_p[FX_MANY + i] = f->resource_attributes_p[i];
	f->resource.n_attributes = FX_MANY + 2;
	f->resource.attributes = fx_many.attributes_p;
	f->scope_profiles.n_profiles = FX_MANY;
	f->scope_profiles.profiles = fx_many.profiles_p;
}

/* FX_MANY locations, each with a function of its own, and all functions with one name of a megabyte. */
static struct {
	char name[1 << 20];
	OtlpFunction functions[FX_MANY], *functions_p[FX_MANY];
	OtlpLine lines[FX_MANY], *lines_p[FX_MANY];
	OtlpLocation locations[FX_MANY], *locations_p[FX_MANY];
	int32_t indices[FX_MANY];
} fx_long;

static inline void fixture_long(struct fixture *f)
{
	memset(fx_long.name, 'x', sizeof(fx_long.name) - 1);
	f->strings[5] = fx_long.name;
	for (int i = 0; i < FX_MANY; i++) {
		fx_long.functions[i] = (OtlpFunction)FX_P(FUNCTION);
		fx_long.functions[i].name_strindex = i ? 5 : 0;
		fx_long.functions[i].start_line = i;
		fx_long.functions_p[i] = &fx_long.functions[i];
		fx_long.lines[i] = (OtlpLine)FX_P(LINE);
		fx_long.lines[i].function_index = i;
		fx_long.lines_p[i] = &fx_long.lines[i];
		fx_long.locations[i] = (OtlpLocation)FX_P(LOCATION);
		fx_long.locations[i].address = (uint64_t)i;
		fx_long.locations[i].n_lines = i != 0;
		fx_long.locations[i].lines = &fx_long.lines_p[i];
		fx_long.locations_p[i] = &fx_long.locations[i];
		fx_long.indices[i] = i;
	}
	for (int i = 1; i < 5; i++) {
		f->stacks[i].n_location_indices = FX_DEPTH;
		f->stacks[i].location_indices = &fx_long.indices[i * FX_DEPTH];
	}
	f->dictionary.n_function_table = f->dictionary.n_location_table = FX_MANY;
	f->dictionary.function_table = fx_long.functions_p;
	f->dictionary.location_table = fx_long.locations_p;
}

static inline struct recording *fixture_recording(void)
{
	struct recording *r = NULL;

	if (recording_new(&fixture_limits, &r) < 0 || fixture_read(NULL, r) < 0)
		abort();
	return r;
}

#endif
