// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <string.h>

#include "otlp/read.h"
#include "otlp_fixture.h"

Suite *otlp_read_suite(void);

enum { SPACES = 2 };

/* A sink that stores nothing: it counts calls, numbers entries as they arrive, and fails at will. */
struct probe {
	int fail_at; /* the call that fails; 0: none */
	int calls, strings, attributes, sets, functions, locations, stacks, samples;
	uint64_t added, staged;
	int skip_resource, skip_scope, skip_profile;
	uint32_t resources, same_space; /* same_space: all resources are of space 0 */
	enum frame_kind kinds[8];
	char names[8][64];
};

static int probe_call(struct probe *p, int *count, uint32_t *ret)
{
	if (++p->calls == p->fail_at)
		return -ENOSPC;
	if (ret)
		*ret = (uint32_t)++*count;
	return 0;
}

static int probe_string(void *ctx, const char *s, uint32_t *ret)
{
	struct probe *p = ctx;

	return probe_call(p, &p->strings, ret);
}

static int probe_resource(void *ctx, const struct sink_resource *r, uint32_t *ret_space)
{
	struct probe *p = ctx;
	int e = probe_call(p, NULL, NULL);

	*ret_space = p->same_space ? 0 : p->resources % SPACES;
	p->resources++;
	return e < 0 ? e : p->skip_resource == (int)p->resources ? OTLP_SKIP : 0;
}

static int probe_scope(void *ctx, const struct sink_scope *s)
{
	struct probe *p = ctx;
	int e = probe_call(p, NULL, NULL);

	return e < 0 ? e : p->skip_scope ? OTLP_SKIP : 0;
}

static int probe_profile(void *ctx, const struct sink_profile *profile)
{
	struct probe *p = ctx;
	int e = probe_call(p, NULL, NULL);

	ck_assert_str_eq(profile->type.s, "samples");
	ck_assert_str_eq(profile->period_unit.s, "nanoseconds");
	return e < 0 ? e : p->skip_profile ? OTLP_SKIP : 0;
}

static int probe_attribute(void *ctx, const struct sink_attribute *a, uint32_t *ret)
{
	struct probe *p = ctx;

	return probe_call(p, &p->attributes, ret);
}

static int probe_set(void *ctx, uint32_t *attributes, size_t n, uint32_t *ret)
{
	struct probe *p = ctx;

	ck_assert_uint_gt(n, 0);
	return probe_call(p, &p->sets, ret);
}

static int probe_link(void *ctx, const struct sink_link *l, uint32_t *ret)
{
	*ret = 0;
	return probe_call(ctx, NULL, NULL);
}

static int probe_mapping(void *ctx, const struct sink_mapping *m, uint32_t *ret)
{
	*ret = 0;
	return probe_call(ctx, NULL, NULL);
}

static int probe_function(void *ctx, const struct sink_function *f, uint32_t *ret)
{
	struct probe *p = ctx;

	if (p->functions < 7)
		snprintf(p->names[p->functions + 1], sizeof(p->names[0]), "%s", f->name.s);
	return probe_call(p, &p->functions, ret);
}

static int probe_location(void *ctx, const struct sink_location *l, uint32_t *ret)
{
	struct probe *p = ctx;

	if (p->locations < 7)
		p->kinds[p->locations + 1] = l->kind;
	return probe_call(p, &p->locations, ret);
}

static int probe_stack(void *ctx, const uint32_t *locations, size_t n, uint32_t *ret)
{
	struct probe *p = ctx;

	return probe_call(p, &p->stacks, ret);
}

static int probe_sample(void *ctx, const struct sink_sample *s, uint32_t *ret)
{
	struct probe *p = ctx;

	ck_assert_uint_gt(s->stack, 0);
	p->staged += s->value;
	return probe_call(p, &p->samples, ret);
}

static void probe_add(void *ctx, uint32_t sample, uint64_t value)
{
	struct probe *p = ctx;

	ck_assert_uint_gt(sample, 0);
	p->added += value;
}

static const struct otlp_sink probe_sink = {
	.resource = probe_resource, .scope = probe_scope, .profile = probe_profile, .string = probe_string,
	.attribute = probe_attribute, .set = probe_set, .link = probe_link, .mapping = probe_mapping,
	.function = probe_function, .location = probe_location, .stack = probe_stack, .sample = probe_sample,
	.add = probe_add,
};

static int probe_read(struct probe *p, const struct otlp_sink *sink, void (*change)(struct fixture *f))
{
	_cleanup_(buf_done) struct buf b = {0};

	fixture_encode(change, &b);
	return otlp_read(b.data, b.len, &fixture_limits.request, sink, p);
}

/* The same resource again and again, with one dictionary for all. */
static void three_resources(struct fixture *f)
{
	static OtlpResourceProfiles *resources[3];

	for (size_t i = 0; i < 3; i++)
		resources[i] = &f->resource_profiles;
	f->request.n_resource_profiles = 3;
	f->request.resource_profiles = resources;
}

START_TEST(sink_gets_each_entry_once)
{
	struct probe p = {.same_space = 1};

	ck_assert_int_eq(probe_read(&p, &probe_sink, three_resources), 0);
	ck_assert_uint_eq(p.added, 30);
	ck_assert_uint_eq(p.resources, 3);
	ck_assert_int_eq(p.stacks, 4);
	ck_assert_int_eq(p.locations, 5);
	ck_assert_int_eq(p.functions, 5);
	ck_assert_int_eq(p.samples, 12);
}
END_TEST

START_TEST(another_space_gets_its_own_entries)
{
	struct probe p = {0};

	ck_assert_int_eq(probe_read(&p, &probe_sink, three_resources), 0);
	ck_assert_uint_eq(p.added, 30);
	ck_assert_int_eq(p.stacks, 3 * 4); /* spaces 0, 1, 0 */
	ck_assert_int_eq(p.functions, 3 * 5);
}
END_TEST

START_TEST(failure_of_any_call_adds_nothing)
{
	struct probe all = {0};
	int i;

	ck_assert_int_eq(probe_read(&all, &probe_sink, three_resources), 0);
	ck_assert_int_gt(all.calls, 50);
	for (i = 1; i <= all.calls; i++) {
		struct probe p = {.fail_at = i};

		ck_assert_int_eq(probe_read(&p, &probe_sink, three_resources), -ENOSPC);
		ck_assert_uint_eq(p.added, 0);
		ck_assert_int_eq(p.calls, i);
	}
}
END_TEST

static void bad_last_stack(struct fixture *f)
{
	f->samples[3].stack_index = 5;
}

START_TEST(breach_in_the_last_sample_adds_nothing)
{
	struct probe p = {0};

	ck_assert_int_eq(probe_read(&p, &probe_sink, bad_last_stack), -EBADMSG);
	ck_assert_int_gt(p.stacks, 0);
	ck_assert_uint_eq(p.added, 0);
}
END_TEST

START_TEST(skipped_resource_is_not_translated)
{
	struct probe p = {.skip_resource = 1}, q = {.skip_resource = 2, .same_space = 1};

	ck_assert_int_eq(probe_read(&p, &probe_sink, NULL), 0);
	ck_assert_int_eq(p.stacks + p.functions + p.samples, 0);
	ck_assert_int_eq(probe_read(&q, &probe_sink, three_resources), 0);
	ck_assert_uint_eq(q.added, 20);
}
END_TEST

START_TEST(skipped_scope_and_profile_add_nothing)
{
	struct probe p = {.skip_scope = 1}, q = {.skip_profile = 1};

	ck_assert_int_eq(probe_read(&p, &probe_sink, three_resources), 0);
	ck_assert_int_eq(probe_read(&q, &probe_sink, three_resources), 0);
	ck_assert_int_eq(p.stacks + q.stacks + p.samples + q.samples, 0);
	ck_assert_uint_eq(p.resources, 3);
}
END_TEST

START_TEST(sink_without_attributes_still_gets_kinds)
{
	struct otlp_sink sink = probe_sink;
	struct probe p = {0};

	sink.attribute = NULL;
	sink.set = NULL;
	sink.link = NULL;
	sink.string = NULL;
	sink.scope = NULL;
	ck_assert_int_eq(probe_read(&p, &sink, NULL), 0);
	ck_assert_uint_eq(p.added, 10);
	ck_assert_int_eq(p.attributes + p.sets + p.strings, 0);
	/* vfs_read, inlined_fn in work, main, the marker, the nameless one: as the stacks arrive, innermost first */
	ck_assert_int_eq(p.kinds[1], KIND_KERNEL);
	ck_assert_int_eq(p.kinds[2], KIND_NATIVE);
	ck_assert_int_eq(p.kinds[3], KIND_NATIVE);
	ck_assert_int_eq(p.kinds[4], KIND_MARKER);
	ck_assert_int_eq(p.kinds[5], KIND_NATIVE);
	ck_assert_str_eq(p.names[1], "vfs_read");
}
END_TEST

/* The marker's location gets a type: a function may be named as markers are. */
static void typed_brackets(struct fixture *f)
{
	f->locations[4].n_attribute_indices = 1;
	f->location_attributes[4] = 1;
}

START_TEST(location_with_a_type_is_code_whatever_its_name)
{
	struct probe p = {0};

	ck_assert_int_eq(probe_read(&p, &probe_sink, typed_brackets), 0);
	ck_assert_int_eq(p.kinds[4], KIND_KERNEL);
}
END_TEST

static void bad_location_attribute(struct fixture *f) { f->location_attributes[3] = 5; }
static void bad_sample_attribute(struct fixture *f) { f->sample_attribute = -1; }

START_TEST(indices_are_checked_for_a_sink_without_attributes_too)
{
	struct otlp_sink sink = probe_sink;
	struct probe p = {0};

	sink.attribute = NULL;
	sink.set = NULL;
	ck_assert_int_eq(probe_read(&p, &sink, bad_location_attribute), -EBADMSG);
	ck_assert_int_eq(probe_read(&p, &sink, bad_sample_attribute), -EBADMSG);
	ck_assert_uint_eq(p.added, 0);
}
END_TEST

static void empty_tables(struct fixture *f)
{
	f->request.dictionary = NULL;
	f->profile.sample_type = NULL;
	f->profile.period_type = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(f->samples); i++) {
		f->samples[i].stack_index = 0;
		f->samples[i].n_attribute_indices = 0;
	}
}

static int probe_any_profile(void *ctx, const struct sink_profile *p)
{
	ck_assert_str_eq(p->type.s, "");
	return 0;
}

START_TEST(index_zero_of_a_table_left_out_is_its_zero_value)
{
	struct otlp_sink sink = probe_sink;
	struct probe p = {0};

	sink.profile = probe_any_profile;
	ck_assert_int_eq(probe_read(&p, &sink, empty_tables), 0);
	ck_assert_int_eq(p.stacks, 1);
	ck_assert_int_eq(p.locations, 0);
	ck_assert_uint_eq(p.added, 10);
}
END_TEST

START_TEST(request_over_its_bounds_is_refused)
{
	struct otlp_limits l = fixture_limits.request;
	_cleanup_(buf_done) struct buf b = {0};
	struct probe p = {0};

	fixture_encode(NULL, &b);
	l.request_bytes = b.len - 1;
	ck_assert_int_eq(otlp_read(b.data, b.len, &l, &probe_sink, &p), -E2BIG);
	l.request_bytes = b.len;
	ck_assert_int_eq(otlp_read(b.data, b.len, &l, &probe_sink, &p), 0);
	l.memory_bytes = 2000;
	ck_assert_int_eq(otlp_read(b.data, b.len, &l, &probe_sink, &p), -E2BIG);
	ck_assert_uint_eq(p.added, 10);
}
END_TEST

Suite *otlp_read_suite(void)
{
	Suite *s = suite_create("otlp_read");
	TCase *t = tcase_create("read");

	tcase_add_test(t, sink_gets_each_entry_once);
	tcase_add_test(t, another_space_gets_its_own_entries);
	tcase_add_test(t, failure_of_any_call_adds_nothing);
	tcase_add_test(t, breach_in_the_last_sample_adds_nothing);
	tcase_add_test(t, skipped_resource_is_not_translated);
	tcase_add_test(t, skipped_scope_and_profile_add_nothing);
	tcase_add_test(t, sink_without_attributes_still_gets_kinds);
	tcase_add_test(t, location_with_a_type_is_code_whatever_its_name);
	tcase_add_test(t, indices_are_checked_for_a_sink_without_attributes_too);
	tcase_add_test(t, index_zero_of_a_table_left_out_is_its_zero_value);
	tcase_add_test(t, request_over_its_bounds_is_refused);
	suite_add_tcase(s, t);
	return s;
}
