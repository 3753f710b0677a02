// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "otlp/decode.h"
#include "otlp_fixture.h"

Suite *recording_suite(void);

#define VALUE(name) OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##name

START_TEST(recording_adds_up_samples)
{
	struct recording *r = fixture_recording();

	ck_assert_uint_eq(r->total, 10);
	ck_assert_uint_eq(r->samples.count, 4);
	ck_assert_uint_eq(r->requests, 1);
	ck_assert_str_eq(recording_service(r, 0), "app");
	recording_free(r);
}
END_TEST

START_TEST(same_request_again_adds_up_without_new_entries)
{
	struct recording *r = fixture_recording();
	uint32_t samples = r->samples.count, strings = r->strings.count, locations = r->locations.count;

	ck_assert_int_eq(fixture_read(NULL, r), 0);
	ck_assert_uint_eq(r->total, 20);
	ck_assert_uint_eq(r->requests, 2);
	ck_assert_uint_eq(r->samples.count, samples);
	ck_assert_uint_eq(r->strings.count, strings);
	ck_assert_uint_eq(r->locations.count, locations);
	recording_free(r);
}
END_TEST

static void bad_stack(struct fixture *f) { f->samples[3].stack_index = 5; }
static void negative_stack(struct fixture *f) { f->samples[3].stack_index = -1; }
static void bad_link(struct fixture *f) { f->samples[3].link_index = 1; }
static void bad_sample_attribute(struct fixture *f) { f->sample_attribute = 5; }
static void bad_location(struct fixture *f)
{
	static int32_t indices[] = {6};

	f->stacks[1].location_indices = indices;
	f->stacks[1].n_location_indices = 1;
}
static void bad_mapping(struct fixture *f) { f->locations[1].mapping_index = 3; }
static void bad_function(struct fixture *f) { f->lines[1][0].function_index = 6; }
static void bad_name(struct fixture *f) { f->functions[1].name_strindex = 21; }
static void bad_file(struct fixture *f) { f->mappings[1].filename_strindex = -7; }
static void bad_key(struct fixture *f) { f->attributes[3].key_strindex = 1000; }
static void bad_type(struct fixture *f) { f->sample_type.type_strindex = 21; }
static void no_dictionary(struct fixture *f) { f->request.dictionary = NULL; }
static void negative_value(struct fixture *f) { f->values[2] = -1; }
static void bad_end(struct fixture *f) { f->profile.duration_nano = UINT64_MAX; }
static void short_trace(struct fixture *f)
{
	static uint8_t three[3] = {1, 2, 3};

	f->link.trace_id = (ProtobufCBinaryData){.data = three, .len = 3};
}
static void bad_reference(struct fixture *f)
{
	f->resource_values[0].value_case = VALUE(STRING_VALUE_STRINDEX);
	f->resource_values[0].string_value_strindex = 99;
}

static void (*const breaches[])(struct fixture *f) = {
	bad_stack, negative_stack, bad_link, bad_sample_attribute, bad_location, bad_mapping, bad_function, bad_name,
	bad_file,  bad_key,        bad_type, no_dictionary,        negative_value, bad_end,   short_trace, bad_reference,
};

/* What a refused request might have changed: counts of all tables, sums and times. */
struct state {
	uint32_t tables[RECORDING_TABLES];
	uint64_t sums[4], total, frames, requests;
	struct rec_times times;
};

static struct state state_of(struct recording *r)
{
	struct state s = {.total = r->total, .frames = r->frames, .requests = r->requests, .times = r->times[0]};
	struct intern *tables[RECORDING_TABLES];

	recording_tables(r, tables);
	for (size_t i = 0; i < RECORDING_TABLES; i++)
		s.tables[i] = tables[i]->count;
	ck_assert_uint_eq(r->samples.count, 4);
	memcpy(s.sums, r->sums, sizeof(s.sums));
	return s;
}

START_TEST(breach_is_refused_and_leaves_the_recording_as_it_was)
{
	struct recording *r = fixture_recording();
	struct state before = state_of(r), after;

	ck_assert_int_eq(fixture_read(breaches[_i], r), -EBADMSG);
	after = state_of(r);
	ck_assert_mem_eq(&before, &after, sizeof(before));
	ck_assert_int_eq(fixture_read(NULL, r), 0);
	ck_assert_uint_eq(r->total, 20);
	recording_free(r);
}
END_TEST

/* More of everything than the first request had, and wider in time; the last stack does not exist. */
static void late_breach(struct fixture *f)
{
	f->strings[5] = (char *)"other_main";
	f->resource_values[1].string_value = (char *)"other box";
	f->profile.time_unix_nano = FX_START - 1;
	f->values[0] = 1000;
	f->samples[3].stack_index = 5;
}

static void wider_times(struct fixture *f)
{
	f->profile.time_unix_nano = FX_START - 1;
	f->samples[3].stack_index = 5;
}

START_TEST(late_breach_leaves_neither_entries_nor_times)
{
	struct recording *r = fixture_recording();
	struct state before = state_of(r), after;

	ck_assert_int_eq(fixture_read(late_breach, r), -EBADMSG);
	ck_assert_int_eq(fixture_read(wider_times, r), -EBADMSG);
	after = state_of(r);
	ck_assert_mem_eq(&before, &after, sizeof(before));
	recording_free(r);
}
END_TEST

START_TEST(bounds_are_the_creators)
{
	struct recording_limits limits[5] = {fixture_limits, fixture_limits, fixture_limits, fixture_limits, fixture_limits};
	struct recording *r = NULL;
	size_t i;

	limits[0].total = 9;
	limits[1].frames = 3 + 1 + 2 + 1 + 2 + 1 + 2;
	limits[2].entries = 20;
	limits[3].bytes = 200;
	limits[4].request.depth = 2;
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		ck_assert_int_eq(recording_new(&limits[i], &r), 0);
		ck_assert_int_eq(fixture_read(NULL, r), i == 2 || i == 3 ? -ENOSPC : -E2BIG);
		ck_assert_uint_eq(r->total, 0);
		ck_assert_uint_eq(r->samples.count, 0);
		recording_free(r);
	}
	limits[0].total = 10;
	limits[0].frames = 3 + 1 + 2 + 1 + 2 + 1 + 2 + 1;
	ck_assert_int_eq(recording_new(&limits[0], &r), 0);
	ck_assert_int_eq(fixture_read(NULL, r), 0);
	recording_free(r);
}
END_TEST

static void timestamps_only(struct fixture *f)
{
	static uint64_t times[7];

	f->samples[0].n_values = 0;
	f->samples[0].n_timestamps_unix_nano = 7;
	f->samples[0].timestamps_unix_nano = times;
}

START_TEST(sample_with_moments_only_counts_each_once)
{
	struct recording *r = NULL;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(timestamps_only, r), 0);
	ck_assert_uint_eq(r->total, 7 + 5 + 1 + 1);
	recording_free(r);
}
END_TEST

static void huge_values(struct fixture *f)
{
	f->values[0] = INT64_MAX;
}

START_TEST(sum_that_is_not_exact_is_refused)
{
	struct recording *r = NULL;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(huge_values, r), -E2BIG);
	recording_free(r);
}
END_TEST

static void references(struct fixture *f)
{
	f->resource_attributes[0].key = NULL;
	f->resource_attributes[0].key_strindex = 14; /* process.pid */
	f->resource_values[0].value_case = VALUE(STRING_VALUE_STRINDEX);
	f->resource_values[0].string_value_strindex = 6; /* work */
}

static uint32_t resource_attributes(const struct recording *r, uint32_t series)
{
	const struct rec_series *s = intern_key(&r->series, series);

	return ((const struct rec_resource *)intern_key(&r->resources, s->resource))->attributes;
}

START_TEST(references_in_resources_are_resolved)
{
	const struct rec_attribute *found;
	struct recording *r = NULL;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(references, r), 0);
	found = recording_find(r, resource_attributes(r, 0), "process.pid");
	ck_assert_ptr_nonnull(found);
	ck_assert_str_eq(recording_str(r, found->text), "work");
	ck_assert_str_eq(recording_service(r, 0), "unknown service");
	recording_free(r);
}
END_TEST

static void no_resource(struct fixture *f)
{
	f->resource_profiles.resource = NULL;
}

static void no_resource_and_a_breach(struct fixture *f)
{
	no_resource(f);
	bad_stack(f);
}

static void other_service(struct fixture *f)
{
	f->resource_values[0].string_value = (char *)"other";
}

static void other_service_and_a_breach(struct fixture *f)
{
	f->resource_values[0].string_value = (char *)"refused";
	bad_stack(f);
}

/* Also where a refused request had a resource of that number. */
START_TEST(each_resource_has_the_service_and_host_of_its_attributes)
{
	struct recording *r = NULL;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(no_resource_and_a_breach, r), -EBADMSG);
	ck_assert_int_eq(fixture_read(no_resource, r), 0);
	ck_assert_int_eq(fixture_read(NULL, r), 0);
	ck_assert_int_eq(fixture_read(other_service_and_a_breach, r), -EBADMSG);
	ck_assert_int_eq(fixture_read(other_service, r), 0);
	ck_assert_uint_eq(r->series.count, 3);
	ck_assert_str_eq(recording_service(r, 0), "unknown service");
	ck_assert_uint_eq(recording_workload(r, 0)->host, RECORDING_NO_STRING);
	ck_assert_str_eq(recording_service(r, 1), "app");
	ck_assert_str_eq(recording_str(r, recording_workload(r, 1)->host), "box");
	ck_assert_str_eq(recording_service(r, 2), "other");
	recording_free(r);
}
END_TEST

static void bad_text(struct fixture *f)
{
	f->strings[6] = (char *)"a\xff\x01z";
	f->resource_values[0].string_value = (char *)"\xc0\xafq";
}

START_TEST(text_that_is_no_utf8_is_made_so)
{
	struct recording *r = NULL;
	uint32_t n;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(bad_text, r), 0);
	ck_assert_str_eq(recording_service(r, 0), "??q");
	n = r->strings.count;
	ck_assert_int_eq(intern_number(&r->strings, "a??z", 5, &n), 0);
	ck_assert_uint_lt(n, r->strings.count - 1);
	recording_free(r);
}
END_TEST

/* AnyValue in ArrayValue in AnyValue ...: each level is a tag and a length. */
static void nest(struct buf *b, unsigned int levels)
{
	_cleanup_(buf_done) struct buf next = {0};
	size_t len;

	while (levels--) {
		uint8_t tag = levels % 2 ? 0x2a : 0x0a;

		buf_reset(&next);
		buf_add(&next, &tag, 1);
		for (len = b->len; len >= 0x80; len >>= 7)
			buf_add(&next, &(uint8_t){(uint8_t)(len | 0x80)}, 1);
		buf_add(&next, &(uint8_t){(uint8_t)len}, 1);
		buf_add(&next, b->data, b->len);
		buf_reset(b);
		buf_add(b, next.data, next.len);
	}
}

START_TEST(nesting_without_end_is_refused)
{
	struct arena a = {.max = 1u << 20};
	struct buf b = {0};
	ProtobufCMessage *m;

	buf_add_str(&b, "");
	nest(&b, 20);
	ck_assert_int_eq(otlp_decode(&opentelemetry__proto__common__v1__array_value__descriptor, b.data, b.len, &a, &m), 0);
	nest(&b, 2000);
	ck_assert_int_eq(otlp_decode(&opentelemetry__proto__common__v1__array_value__descriptor, b.data, b.len, &a, &m),
			 -EBADMSG);
	arena_done(&a);
	buf_done(&b);
}
END_TEST

START_TEST(decoding_stops_at_its_memory_bound)
{
	struct arena a = {.max = 4096};
	struct buf b = {0};
	ProtobufCMessage *m;
	int i;

	for (i = 0; i < 10000; i++)
		buf_add(&b, "\x0a\x00", 2); /* an empty AnyValue */
	ck_assert_int_eq(otlp_decode(&opentelemetry__proto__common__v1__array_value__descriptor, b.data, b.len, &a, &m),
			 -E2BIG);
	ck_assert_uint_le(a.used, a.max + 16);
	arena_done(&a);
	buf_done(&b);
}
END_TEST

START_TEST(request_cut_anywhere_is_survived)
{
	struct buf b = {0};
	size_t len;

	fixture_encode(NULL, &b);
	for (len = 0; len < b.len; len++) {
		struct recording *r = NULL;
		int e;

		ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
		e = recording_read(r, b.data, len);
		ck_assert(e == 0 || e == -EBADMSG);
		ck_assert_uint_le(r->total, 10);
		recording_free(r);
	}
	buf_done(&b);
}
END_TEST

START_TEST(request_over_the_limit_is_not_looked_at)
{
	struct recording *r = NULL;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(recording_read(r, NULL, fixture_limits.request.request_bytes + 1), -E2BIG);
	recording_free(r);
}
END_TEST

START_TEST(only_regular_files_are_read)
{
	char dir[] = "/tmp/otprof-check-XXXXXX", path[64];
	struct recording *r = NULL;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(recording_read_file(r, AT_FDCWD, dir), -EISDIR);
	ck_assert_int_eq(recording_read_file(r, AT_FDCWD, path), -EBADMSG);
	ck_assert_int_eq(recording_read_file(r, AT_FDCWD, "/nonexistent"), -ENOENT);
	unlink(path);
	rmdir(dir);
	recording_free(r);
}
END_TEST

START_TEST(file_over_the_limit_is_refused)
{
	char path[] = "/tmp/otprof-check-XXXXXX";
	int fd = mkstemp(path);
	struct recording_limits limits = fixture_limits;
	struct recording *r = NULL;
	struct buf b = {0};

	fixture_encode(NULL, &b);
	ck_assert_int_eq(write(fd, b.data, b.len), (ssize_t)b.len);
	close(fd);
	for (size_t short_of = 0; short_of < 2; short_of++) {
		limits.request.request_bytes = b.len - short_of;
		ck_assert_int_eq(recording_new(&limits, &r), 0);
		ck_assert_int_eq(recording_read_file(r, AT_FDCWD, path), short_of ? -E2BIG : 0);
		recording_free(r);
	}
	unlink(path);
	buf_done(&b);
}
END_TEST

/* Keeps samples that have the stack's number or less; folds those of the first stack into the second. */
static int rewrite_some(void *ctx, struct rec_sample *s)
{
	const uint32_t *last = ctx;

	if (s->stack > *last)
		return 0;
	if (s->stack == 1)
		s->stack = 2;
	s->attributes = 0;
	return 1;
}

static int rewrite_until_error(void *ctx, struct rec_sample *s)
{
	uint32_t *left = ctx;

	return (*left)-- ? 1 : -ENOSPC;
}

START_TEST(rewrite_drops_changes_and_merges)
{
	struct recording *r = fixture_recording();
	uint32_t last = 3;

	ck_assert_int_eq(recording_rewrite(r, rewrite_some, &last), 0);
	ck_assert_uint_eq(r->total, 3 + 5 + 1);
	ck_assert_uint_eq(r->samples.count, 2);
	ck_assert_uint_eq(r->sums[0], 8);
	ck_assert_uint_eq(r->frames, 2 + 1 + 2 + 1);
	ck_assert_int_eq(fixture_read(NULL, r), 0);
	ck_assert_uint_eq(r->total, 19);
	recording_free(r);
}
END_TEST

START_TEST(failed_rewrite_leaves_the_recording_as_it_was)
{
	struct recording *r = fixture_recording();
	struct state before = state_of(r), after;
	uint32_t left = 2;

	ck_assert_int_eq(recording_rewrite(r, rewrite_until_error, &left), -ENOSPC);
	after = state_of(r);
	ck_assert_mem_eq(&before, &after, sizeof(before));
	recording_free(r);
}
END_TEST

Suite *recording_suite(void)
{
	Suite *s = suite_create("recording");
	TCase *t = tcase_create("read");

	tcase_add_test(t, recording_adds_up_samples);
	tcase_add_test(t, same_request_again_adds_up_without_new_entries);
	tcase_add_loop_test(t, breach_is_refused_and_leaves_the_recording_as_it_was, 0, ARRAY_SIZE(breaches));
	tcase_add_test(t, late_breach_leaves_neither_entries_nor_times);
	tcase_add_test(t, bounds_are_the_creators);
	tcase_add_test(t, sample_with_moments_only_counts_each_once);
	tcase_add_test(t, sum_that_is_not_exact_is_refused);
	tcase_add_test(t, references_in_resources_are_resolved);
	tcase_add_test(t, each_resource_has_the_service_and_host_of_its_attributes);
	tcase_add_test(t, text_that_is_no_utf8_is_made_so);
	tcase_add_test(t, nesting_without_end_is_refused);
	tcase_add_test(t, decoding_stops_at_its_memory_bound);
	tcase_add_test(t, request_cut_anywhere_is_survived);
	tcase_add_test(t, request_over_the_limit_is_not_looked_at);
	tcase_add_test(t, rewrite_drops_changes_and_merges);
	tcase_add_test(t, failed_rewrite_leaves_the_recording_as_it_was);
	tcase_add_test(t, only_regular_files_are_read);
	tcase_add_test(t, file_over_the_limit_is_refused);
	suite_add_tcase(s, t);
	return s;
}
