// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/report/json.h"

Suite *json_suite(void);

static struct buf text;

static void setup(void)
{
	buf_init(&text, 0);
}

static void teardown(void)
{
	json_set_alloc_funcs(malloc, free);
	buf_done(&text);
}

static void write_all_kinds(void)
{
	struct json j = {.to = &text};

	json_open(&j, NULL);
	json_number(&j, "z", 1);
	json_text(&j, "a", "b\"c");
	json_open_list(&j, "list");
	json_number(&j, NULL, 7);
	json_open(&j, NULL);
	json_bool(&j, "yes", true);
	json_bool(&j, "no", false);
	json_close(&j);
	json_close_list(&j);
	json_open(&j, "empty");
	json_close(&j);
	json_text_max(&j, "cut", "abcdef", 3);
	json_close(&j);
}

#define ALL_KINDS "{\"z\":1,\"a\":\"b\\\"c\",\"list\":[7,{\"yes\":true,\"no\":false}],\"empty\":{},\"cut\":\"abc\"}"

START_TEST(members_keep_their_order)
{
	write_all_kinds();
	ck_assert(!text.failed);
	ck_assert_str_eq(buf_cstr(&text), ALL_KINDS);
}
END_TEST

START_TEST(text_is_cleaned_and_written_as_ascii)
{
	struct json j = {.to = &text};

	json_open(&j, NULL);
	json_text(&j, "valid", "\xc3\xa4");
	json_text(&j, "broken", "a\xc3\n");
	json_number(&j, "key\xff", 1);
	json_close(&j);
	ck_assert_str_eq(buf_cstr(&text), "{\"valid\":\"\\u00E4\",\"broken\":\"a??\",\"key?\":1}");
}
END_TEST

START_TEST(largest_number_is_what_json_holds)
{
	struct json j = {.to = &text};

	json_open(&j, NULL);
	json_number(&j, "most", INT64_MAX);
	json_number(&j, "more", UINT64_MAX);
	json_close(&j);
	ck_assert_str_eq(buf_cstr(&text), "{\"most\":9223372036854775807,\"more\":9223372036854775807}");
}
END_TEST

START_TEST(text_of_another_is_a_member_as_it_is)
{
	struct json j = {.to = &text};

	json_open(&j, NULL);
	json_number(&j, "own", 1);
	json_close_with(&j, "other", "{\"x\":[]}", 8);
	ck_assert_str_eq(buf_cstr(&text), "{\"own\":1,\"other\":{\"x\":[]}}");
}
END_TEST

/* Behind what the buffer holds already. */
START_TEST(text_that_does_not_fit_is_left_out_whole)
{
	for (size_t max = 4; max < 4 + sizeof(ALL_KINDS) - 1; max++) {
		buf_init(&text, max);
		buf_add_str(&text, "head");
		write_all_kinds();
		ck_assert(text.failed);
		ck_assert_uint_eq(text.len, 4);
		buf_done(&text);
	}
	buf_init(&text, 4 + sizeof(ALL_KINDS) - 1);
	buf_add_str(&text, "head");
	write_all_kinds();
	ck_assert(!text.failed);
}
END_TEST

START_TEST(member_that_does_not_fit_leaves_nothing)
{
	struct json j = {.to = &text};

	buf_init(&text, 20);
	json_open(&j, NULL);
	json_number(&j, "own", 1);
	json_close_with(&j, "other", "[1,2,3,4,5]", 11);
	ck_assert(text.failed);
	ck_assert_uint_eq(text.len, 0);
}
END_TEST

START_TEST(too_deep_is_a_failure)
{
	struct json j = {.to = &text};

	for (int i = 0; i < JSON_DEPTH + 2; i++)
		json_open(&j, i ? "in" : NULL);
	json_number(&j, "n", 1);
	for (int i = 0; i < JSON_DEPTH + 2; i++)
		json_close(&j);
	ck_assert(text.failed);
	ck_assert_uint_eq(text.len, 0);
}
END_TEST

static int allocations_left;

static void *allocate(size_t size)
{
	return allocations_left-- > 0 ? malloc(size) : NULL;
}

START_TEST(without_memory_there_is_a_failure_and_no_part)
{
	int failed = 0;

	json_set_alloc_funcs(allocate, free);
	for (int n = 0; n < 1000; n++) {
		allocations_left = n;
		buf_reset(&text);
		write_all_kinds();
		if (!text.failed)
			break;
		ck_assert_uint_eq(text.len, 0);
		failed++;
	}
	ck_assert_int_gt(failed, 10);
	ck_assert_str_eq(buf_cstr(&text), ALL_KINDS);
}
END_TEST

Suite *json_suite(void)
{
	Suite *s = suite_create("json");
	TCase *t = tcase_create("json");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, members_keep_their_order);
	tcase_add_test(t, text_is_cleaned_and_written_as_ascii);
	tcase_add_test(t, largest_number_is_what_json_holds);
	tcase_add_test(t, text_of_another_is_a_member_as_it_is);
	tcase_add_test(t, text_that_does_not_fit_is_left_out_whole);
	tcase_add_test(t, member_that_does_not_fit_leaves_nothing);
	tcase_add_test(t, too_deep_is_a_failure);
	tcase_add_test(t, without_memory_there_is_a_failure_and_no_part);
	suite_add_tcase(s, t);
	return s;
}
