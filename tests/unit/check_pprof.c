// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <string.h>
#include <zlib.h>

#include "graph_fixture.h"
#include "pprof/profile.pb-c.h"

Suite *pprof_suite(void);

static Pprof__Profile *unpack(struct recording *r)
{
	struct buf b = {0};
	uint8_t raw[65536];
	z_stream z = {.next_out = raw, .avail_out = sizeof(raw)};
	Pprof__Profile *p;

	ck_assert_int_eq(render_pprof(r, FX_WRITER_BYTES, &b), 0);
	ck_assert_uint_gt(b.len, 18);
	ck_assert_mem_eq(b.data, "\x1f\x8b", 2);
	z.next_in = b.data;
	z.avail_in = (uInt)b.len;
	ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
	ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	p = pprof__profile__unpack(NULL, z.total_out, raw);
	inflateEnd(&z);
	buf_done(&b);
	ck_assert_ptr_nonnull(p);
	return p;
}

static const char *text(const Pprof__Profile *p, int64_t index)
{
	ck_assert_int_ge(index, 0);
	ck_assert_int_lt(index, (int64_t)p->n_string_table);
	return p->string_table[index];
}

static const Pprof__Location *location(const Pprof__Profile *p, uint64_t id)
{
	ck_assert_uint_ge(id, 1);
	ck_assert_uint_le(id, p->n_location);
	ck_assert_uint_eq(p->location[id - 1]->id, id);
	return p->location[id - 1];
}

static const char *line_name(const Pprof__Profile *p, const Pprof__Line *l)
{
	ck_assert_uint_ge(l->function_id, 1);
	ck_assert_uint_le(l->function_id, p->n_function);
	ck_assert_uint_eq(p->function[l->function_id - 1]->id, l->function_id);
	return text(p, p->function[l->function_id - 1]->name);
}

static const Pprof__Label *label(const Pprof__Profile *p, const Pprof__Sample *s, const char *key)
{
	size_t i;

	for (i = 0; i < s->n_label; i++)
		if (strcmp(text(p, s->label[i]->key), key) == 0)
			return s->label[i];
	return NULL;
}

START_TEST(values_are_counts_and_nanoseconds)
{
	struct recording *r = fixture_recording();
	Pprof__Profile *p = unpack(r);

	ck_assert_uint_eq(p->n_sample_type, 2);
	ck_assert_str_eq(text(p, p->sample_type[0]->type), "samples");
	ck_assert_str_eq(text(p, p->sample_type[0]->unit), "count");
	ck_assert_str_eq(text(p, p->sample_type[1]->type), "cpu");
	ck_assert_str_eq(text(p, p->sample_type[1]->unit), "nanoseconds");
	ck_assert_str_eq(text(p, p->default_sample_type), "cpu");
	ck_assert_str_eq(text(p, 0), "");
	ck_assert_uint_eq(p->n_sample, 4);
	ck_assert_uint_eq(p->sample[0]->n_value, 2);
	ck_assert_int_eq(p->sample[0]->value[0], 3);
	ck_assert_int_eq(p->sample[0]->value[1], 3LL * FX_PERIOD);
	ck_assert_int_eq(p->period, FX_PERIOD);
	ck_assert_int_eq(p->time_nanos, (int64_t)FX_START);
	ck_assert_int_eq(p->duration_nanos, 5000000000LL);
	pprof__profile__free_unpacked(p, NULL);
	recording_free(r);
}
END_TEST

START_TEST(stacks_have_the_leaf_first_and_inlined_lines)
{
	struct recording *r = fixture_recording();
	Pprof__Profile *p = unpack(r);
	const Pprof__Sample *s = p->sample[0];
	const Pprof__Location *inlined;

	ck_assert_uint_eq(s->n_location_id, 3);
	ck_assert_str_eq(line_name(p, location(p, s->location_id[0])->line[0]), "vfs_read");
	inlined = location(p, s->location_id[1]);
	ck_assert_uint_eq(inlined->n_line, 2);
	ck_assert_str_eq(line_name(p, inlined->line[0]), "inlined_fn");
	ck_assert_str_eq(line_name(p, inlined->line[1]), "work");
	ck_assert_int_eq(inlined->line[1]->line, 11);
	ck_assert_uint_eq(inlined->address, 0x2000);
	ck_assert_str_eq(line_name(p, location(p, s->location_id[2])->line[0]), "main");
	pprof__profile__free_unpacked(p, NULL);
	recording_free(r);
}
END_TEST

START_TEST(mappings_say_that_names_are_known)
{
	struct recording *r = fixture_recording();
	Pprof__Profile *p = unpack(r);
	size_t i;

	ck_assert_uint_eq(p->n_mapping, 2);
	for (i = 0; i < p->n_mapping; i++) {
		ck_assert_uint_eq(p->mapping[i]->id, i + 1);
		ck_assert(p->mapping[i]->has_functions && p->mapping[i]->has_line_numbers);
		ck_assert(p->mapping[i]->has_filenames && p->mapping[i]->has_inline_frames);
	}
	ck_assert_str_eq(text(p, p->mapping[1]->filename), "/usr/bin/app");
	ck_assert_str_eq(text(p, p->mapping[1]->build_id), "abcd");
	pprof__profile__free_unpacked(p, NULL);
	recording_free(r);
}
END_TEST

START_TEST(attributes_are_labels)
{
	struct recording *r = fixture_recording();
	Pprof__Profile *p = unpack(r);

	ck_assert_str_eq(text(p, label(p, p->sample[0], "service.name")->str), "app");
	ck_assert_ptr_null(label(p, p->sample[0], "process.pid"));
	ck_assert_int_eq(label(p, p->sample[1], "process.pid")->num, 42);
	ck_assert_int_eq(label(p, p->sample[1], "process.pid")->str, 0);
	pprof__profile__free_unpacked(p, NULL);
	recording_free(r);
}
END_TEST

START_TEST(attributes_of_a_resource_are_not_searched_for_each_profile)
{
	struct recording *r = NULL;
	struct rec_views views;
	struct graph *g;
	struct buf b = {0};

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(fixture_many, r), 0);
	ck_assert_uint_eq(r->series.count, FX_MANY);
	views = fixture_views(r);
	ck_assert_uint_eq(views.list[0].services, 1);
	ck_assert_str_eq(views.list[0].host, "box");
	rec_views_done(&views);
	g = fixture_graph(r);
	ck_assert_uint_eq(g->now.total[0], 3 * FX_MANY);
	graph_free(g);
	ck_assert_int_eq(render_pprof(r, FX_WRITER_BYTES, &b), 0);
	buf_done(&b);
	recording_free(r);
}
END_TEST

/* Each stack has as many locations as a stack may have: they are 32 GB of names. */
START_TEST(name_that_many_locations_share_is_read_once)
{
	struct recording *r = NULL;
	struct graph *g;
	struct buf b = {0};

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(fixture_long, r), 0);
	g = fixture_graph(r);
	ck_assert_uint_eq(g->now.total[0], 10);
	graph_free(g);
	ck_assert_int_eq(render_pprof(r, FX_WRITER_BYTES, &b), 0);
	buf_done(&b);
	recording_free(r);
}
END_TEST

static void off_cpu(struct fixture *f)
{
	f->sample_type.type_strindex = 20;
	f->sample_type.unit_strindex = 4;
	f->profile.period_type = NULL;
	f->profile.period = 0;
}

START_TEST(other_types_have_one_value)
{
	struct recording *r = NULL;
	Pprof__Profile *p;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(off_cpu, r), 0);
	p = unpack(r);
	ck_assert_uint_eq(p->n_sample_type, 1);
	ck_assert_str_eq(text(p, p->sample_type[0]->type), "bytes");
	ck_assert_uint_eq(p->sample[0]->n_value, 1);
	pprof__profile__free_unpacked(p, NULL);
	recording_free(r);
}
END_TEST

static void page_faults(struct fixture *f)
{
	f->strings[20] = (char *)"page_faults";
	f->sample_type.type_strindex = 20;
	f->period_type.type_strindex = 20;
	f->period_type.unit_strindex = 2;
	f->profile.period = 1;
	f->profile.time_unix_nano = FX_START - 1000000000ULL;
	f->values[0] = 312;
}

START_TEST(each_type_is_a_column_with_zeros_in_the_others)
{
	static const char *const types[][2] = {{"samples", "count"}, {"cpu", "nanoseconds"}, {"page_faults", "count"}};
	struct recording *r = NULL;
	int64_t sums[3] = {0};
	Pprof__Profile *p;
	size_t i, k;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(page_faults, r), 0);
	ck_assert_int_eq(fixture_read(NULL, r), 0);
	p = unpack(r);
	ck_assert_uint_eq(p->n_sample_type, 3);
	for (i = 0; i < 3; i++) {
		ck_assert_str_eq(text(p, p->sample_type[i]->type), types[i][0]);
		ck_assert_str_eq(text(p, p->sample_type[i]->unit), types[i][1]);
	}
	ck_assert_str_eq(text(p, p->default_sample_type), "cpu");
	ck_assert_str_eq(text(p, p->period_type->type), "cpu");
	ck_assert_int_eq(p->period, FX_PERIOD);
	ck_assert_uint_eq(p->n_sample, 8);
	for (i = 0; i < p->n_sample; i++) {
		const int64_t *v = p->sample[i]->value;

		ck_assert_uint_eq(p->sample[i]->n_value, 3);
		ck_assert((v[0] > 0 && v[1] == v[0] * FX_PERIOD && v[2] == 0) || (v[0] == 0 && v[1] == 0 && v[2] > 0));
		for (k = 0; k < 3; k++)
			sums[k] += v[k];
	}
	ck_assert_int_eq(sums[0], 10);
	ck_assert_int_eq(sums[2], 312 + 5 + 1 + 1);
	/* All of the time that any type covers. */
	ck_assert_int_eq(p->time_nanos, (int64_t)FX_START - 1000000000LL);
	ck_assert_int_eq(p->duration_nanos, 6000000000LL);
	pprof__profile__free_unpacked(p, NULL);
	recording_free(r);
}
END_TEST

static void long_period(struct fixture *f)
{
	f->profile.period = INT64_MAX;
}

START_TEST(nanoseconds_that_overflow_stop_at_the_most)
{
	struct recording *r = NULL;
	Pprof__Profile *p;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	ck_assert_int_eq(fixture_read(long_period, r), 0);
	p = unpack(r);
	ck_assert_int_eq(p->sample[0]->value[1], INT64_MAX);
	pprof__profile__free_unpacked(p, NULL);
	recording_free(r);
}
END_TEST

START_TEST(nothing_recorded_is_a_valid_profile)
{
	struct recording *r = NULL;
	Pprof__Profile *p;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	p = unpack(r);
	ck_assert_uint_eq(p->n_sample, 0);
	ck_assert_uint_eq(p->n_sample_type, 1);
	pprof__profile__free_unpacked(p, NULL);
	recording_free(r);
}
END_TEST

Suite *pprof_suite(void)
{
	Suite *s = suite_create("pprof");
	TCase *t = tcase_create("pprof");

	tcase_add_test(t, values_are_counts_and_nanoseconds);
	tcase_add_test(t, stacks_have_the_leaf_first_and_inlined_lines);
	tcase_add_test(t, mappings_say_that_names_are_known);
	tcase_add_test(t, attributes_are_labels);
	tcase_add_test(t, attributes_of_a_resource_are_not_searched_for_each_profile);
	tcase_add_test(t, name_that_many_locations_share_is_read_once);
	tcase_add_test(t, other_types_have_one_value);
	tcase_add_test(t, each_type_is_a_column_with_zeros_in_the_others);
	tcase_add_test(t, nanoseconds_that_overflow_stop_at_the_most);
	tcase_add_test(t, nothing_recorded_is_a_valid_profile);
	suite_add_tcase(s, t);
	return s;
}
