// SPDX-License-Identifier: Apache-2.0
/* Which labels of a program become attributes: a bounded number of values of each key. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strpool.h"
#include "daemon/engine/labels.h"

Suite *labels_suite(void);

static struct labels labels;
static struct runtime_context context;
static uint64_t left;

static void setup(void)
{
	labels = (struct labels){0};
	context = (struct runtime_context){0};
	left = 0;
}

static void teardown(void)
{
	labels_done(&labels);
}

static void label(const char *key, const char *value)
{
	struct runtime_label *l = &context.label[context.nr_labels++];

	snprintf(l->key, sizeof(l->key), "%s", key);
	snprintf(l->value, sizeof(l->value), "%s", value);
}

static void expect(const char *text, size_t len)
{
	struct str *s = labels_take(&labels, &context, &left);

	ck_assert_ptr_nonnull(s);
	ck_assert_uint_eq(s->len, len);
	ck_assert_mem_eq(s->s, text, len);
	str_put(s);
}

START_TEST(labels_are_in_the_order_of_keys)
{
	static const char text[] = "a\0one\0b\0two\0c\0";

	label("b", "two");
	label("c", "");
	label("a", "one");
	expect(text, sizeof(text));
	ck_assert_uint_eq(left, 0);
}
END_TEST

START_TEST(a_key_is_there_once)
{
	static const char text[] = "a\0one";

	label("a", "one");
	label("a", "one");
	expect(text, sizeof(text));
}
END_TEST

START_TEST(without_labels_there_is_no_text)
{
	context.labels_left = 3;
	ck_assert_ptr_null(labels_take(&labels, &context, &left));
	ck_assert_uint_eq(left, 3);
}
END_TEST

START_TEST(unclean_keys_are_left_out_and_values_cleaned)
{
	static const char text[] = "a\0x?y";

	label("a", "x\xffy");
	label("b\n", "z");
	expect(text, sizeof(text));
	ck_assert_uint_eq(left, 1);
}
END_TEST

START_TEST(a_key_with_ever_new_values_is_given_up)
{
	static const char text[] = "few\0x";
	char value[16];

	for (int i = 0; i < 3 * LABEL_VALUES; i++) {
		struct str *s;

		context.nr_labels = 0;
		label("few", "x");
		snprintf(value, sizeof(value), "%d", i);
		label("many", value);
		s = labels_take(&labels, &context, &left);
		ck_assert_uint_eq(s->len, i < LABEL_VALUES ? sizeof(text) + 5 + strlen(value) + 1 : sizeof(text));
		str_put(s);
	}
	ck_assert_uint_eq(left, 2 * LABEL_VALUES);
	/* Also with a value that it had before. */
	context.nr_labels = 0;
	label("few", "x");
	label("many", "0");
	expect(text, sizeof(text));
}
END_TEST

START_TEST(there_may_be_more_names_than_values)
{
	char value[16];

	for (int i = 0; i < LABEL_NAMES + 2; i++) {
		struct str *s;

		context.nr_labels = 0;
		snprintf(value, sizeof(value), "name%d", i);
		label("name", value);
		context.label[0].is_name = true;
		s = labels_take(&labels, &context, &left);
		ck_assert_int_eq(s != NULL, i < LABEL_NAMES);
		str_put(s);
	}
	ck_assert_uint_eq(left, 2);
}
END_TEST

START_TEST(keys_are_bounded)
{
	for (int i = 0; i < LABEL_KEYS + 4; i++) {
		char key[16];

		context.nr_labels = 0;
		snprintf(key, sizeof(key), "key%d", i);
		label(key, "x");
		str_put(labels_take(&labels, &context, &left));
	}
	ck_assert_uint_eq(left, 4);
}
END_TEST

Suite *labels_suite(void)
{
	Suite *s = suite_create("labels");
	TCase *t = tcase_create("labels");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, labels_are_in_the_order_of_keys);
	tcase_add_test(t, a_key_is_there_once);
	tcase_add_test(t, without_labels_there_is_no_text);
	tcase_add_test(t, unclean_keys_are_left_out_and_values_cleaned);
	tcase_add_test(t, a_key_with_ever_new_values_is_given_up);
	tcase_add_test(t, there_may_be_more_names_than_values);
	tcase_add_test(t, keys_are_bounded);
	suite_add_tcase(s, t);
	return s;
}
