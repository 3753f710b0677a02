// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <string.h>

#include "graph_fixture.h"
#include "otlp/decode.h"

Suite *render_otlp_suite(void);

static OtlpRequest *unpack(struct recording *r, struct buf *b, struct arena *a)
{
	ProtobufCMessage *m = NULL;

	a->max = 1u << 24;
	ck_assert_int_eq(render_otlp(r, FX_WRITER_BYTES, b), 0);
	ck_assert_int_eq(otlp_decode(&OTLP_REQUEST_DESCRIPTOR, b->data, b->len, a, &m), 0);
	return (OtlpRequest *)m;
}

static void another_resource(struct fixture *f)
{
	f->resource_values[0].string_value = (char *)"other";
	f->values[0] = 30;
}

static struct recording *two_services(void)
{
	struct recording *r = fixture_recording();

	ck_assert_int_eq(fixture_read(another_resource, r), 0);
	ck_assert_int_eq(fixture_read(NULL, r), 0);
	return r;
}

START_TEST(what_is_written_reads_as_the_same)
{
	struct recording *r = two_services(), *again = NULL;
	struct buf b = {0}, first = {0}, second = {0};

	ck_assert_int_eq(render_otlp(r, FX_WRITER_BYTES, &b), 0);
	ck_assert_int_eq(recording_new(&fixture_limits, &again), 0);
	ck_assert_int_eq(recording_read(again, b.data, b.len), 0);
	ck_assert_uint_eq(again->total, 57);
	ck_assert_int_eq(fixture_draw(render_collapsed, r, (struct picture){0}, NULL, &first), 0);
	ck_assert_int_eq(fixture_draw(render_collapsed, again, (struct picture){0}, NULL, &second), 0);
	ck_assert_str_eq(buf_cstr(&first), buf_cstr(&second));
	buf_done(&b);
	buf_done(&first);
	buf_done(&second);
	recording_free(r);
	recording_free(again);
}
END_TEST

START_TEST(several_requests_become_one_with_one_dictionary)
{
	struct recording *r = two_services();
	struct arena a = {0};
	struct buf b = {0};
	OtlpRequest *q = unpack(r, &b, &a);
	const OtlpProfile *p;

	ck_assert_uint_eq(q->n_resource_profiles, 2);
	ck_assert_uint_eq(q->resource_profiles[0]->n_scope_profiles, 1);
	ck_assert_uint_eq(q->resource_profiles[0]->scope_profiles[0]->n_profiles, 1);
	ck_assert_str_eq(q->resource_profiles[0]->scope_profiles[0]->scope->name, "otprof");
	p = q->resource_profiles[0]->scope_profiles[0]->profiles[0];
	ck_assert_uint_eq(p->n_samples, 4);
	/* By their outermost frames. */
	ck_assert_int_eq(p->samples[0]->values[0], 10);
	ck_assert_int_eq(p->samples[0]->values[0] + p->samples[1]->values[0] + p->samples[2]->values[0] + p->samples[3]->values[0],
			 20);
	ck_assert_uint_eq(p->time_unix_nano, FX_START);
	ck_assert_uint_eq(p->duration_nano, 5000000000ULL);
	ck_assert_int_eq(p->period, FX_PERIOD);
	ck_assert_uint_eq(p->profile_id.len, 16);
	ck_assert_mem_ne(p->profile_id.data, q->resource_profiles[1]->scope_profiles[0]->profiles[0]->profile_id.data, 16);
	ck_assert_str_eq(q->dictionary->string_table[p->sample_type->type_strindex], "samples");
	ck_assert_str_eq(q->dictionary->string_table[p->period_type->unit_strindex], "nanoseconds");
	arena_done(&a);
	buf_done(&b);
	recording_free(r);
}
END_TEST

START_TEST(index_zero_of_every_table_is_its_zero_value)
{
	struct recording *r = fixture_recording();
	struct arena a = {0};
	struct buf b = {0};
	const OtlpDictionary *d = unpack(r, &b, &a)->dictionary;

	ck_assert_str_eq(d->string_table[0], "");
	ck_assert_int_eq(d->attribute_table[0]->key_strindex, 0);
	ck_assert_ptr_null(d->attribute_table[0]->value);
	ck_assert_int_eq(d->function_table[0]->name_strindex, 0);
	ck_assert_uint_eq(d->mapping_table[0]->memory_limit, 0);
	ck_assert_uint_eq(d->location_table[0]->n_lines, 0);
	ck_assert_uint_eq(d->link_table[0]->trace_id.len, 16);
	ck_assert_uint_eq(d->stack_table[0]->n_location_indices, 0);
	arena_done(&a);
	buf_done(&b);
	recording_free(r);
}
END_TEST

START_TEST(strings_are_there_once_and_only_when_used)
{
	struct recording *r = fixture_recording();
	struct arena a = {0};
	struct buf b = {0};
	const OtlpDictionary *d;
	uint32_t unused;
	size_t i, k;

	ck_assert_int_eq(intern_number(&r->strings, "nobody refers to this", 22, &unused), 0);
	d = unpack(r, &b, &a)->dictionary;
	for (i = 0; i < d->n_string_table; i++) {
		ck_assert_str_ne(d->string_table[i], "nobody refers to this");
		for (k = i + 1; k < d->n_string_table; k++)
			ck_assert_str_ne(d->string_table[i], d->string_table[k]);
	}
	ck_assert_uint_eq(d->n_location_table, 6);
	ck_assert_uint_eq(d->n_function_table, 6);
	ck_assert_uint_eq(d->n_attribute_table, 5);
	arena_done(&a);
	buf_done(&b);
	recording_free(r);
}
END_TEST

START_TEST(nothing_recorded_is_a_valid_request)
{
	struct recording *r = NULL;
	struct arena a = {0};
	struct buf b = {0};
	OtlpRequest *q;

	ck_assert_int_eq(recording_new(&fixture_limits, &r), 0);
	q = unpack(r, &b, &a);
	ck_assert_uint_eq(q->n_resource_profiles, 0);
	ck_assert_uint_eq(q->dictionary->n_string_table, 1);
	arena_done(&a);
	buf_done(&b);
	recording_free(r);
}
END_TEST

START_TEST(format_follows_the_name)
{
	ck_assert_ptr_eq(render_format_of("a/b.svg")->graph, render_svg);
	ck_assert_ptr_eq(render_format_of("x.pb.gz")->recording, render_pprof);
	ck_assert_ptr_eq(render_format_of("x.y.collapsed")->graph, render_collapsed);
	ck_assert_ptr_eq(render_format_of("x.otlp")->recording, render_otlp);
	ck_assert_ptr_null(render_format_of("x.gz"));
	ck_assert_ptr_null(render_format_of(".svg"));
	ck_assert_ptr_null(render_format_of("dir/.svg"));
	ck_assert_ptr_null(render_format_of(""));
}
END_TEST

Suite *render_otlp_suite(void)
{
	Suite *s = suite_create("render_otlp");
	TCase *t = tcase_create("render");

	tcase_add_test(t, what_is_written_reads_as_the_same);
	tcase_add_test(t, several_requests_become_one_with_one_dictionary);
	tcase_add_test(t, index_zero_of_every_table_is_its_zero_value);
	tcase_add_test(t, strings_are_there_once_and_only_when_used);
	tcase_add_test(t, nothing_recorded_is_a_valid_request);
	tcase_add_test(t, format_follows_the_name);
	suite_add_tcase(s, t);
	return s;
}
