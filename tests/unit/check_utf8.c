// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"

Suite *utf8_suite(void);

static const struct { const char *in, *out; } texts[] = {
	{"plain", "plain"},
	{"", ""},
	{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\xa5"},
	{"a\tb\x7f", "a?b?"},
	{"\xc0\x80", "??"},            /* overlong */
	{"\xe0\x9f\xbf", "???"},       /* overlong */
	{"\xf0\x8f\xbf\xbf", "????"},  /* overlong */
	{"\xed\xa0\x80", "???"},       /* surrogate */
	{"\xf4\x90\x80\x80x", "????x"}, /* past the last */
	{"\xff\x80", "??"},
	{"\xe2\x82", "??"},            /* cut */
	{"\xe2\x82\xc3\xa4", "??\xc3\xa4"},
	{"\xc2\x85\xc2\xa0", "??\xc2\xa0"}, /* C1 control, no-break space */
	{"\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd", "??????\xef\xbf\xbd"}, /* no characters in XML */
};

START_TEST(bytes_of_no_printable_character_become_question_marks)
{
	const char *in = texts[_i].in;
	size_t len = strlen(in);
	struct buf b = {0};
	char copy[32];

	utf8_add_clean(&b, in, len);
	ck_assert_str_eq(buf_cstr(&b), texts[_i].out);
	ck_assert(utf8_is_clean(buf_cstr(&b), len));
	ck_assert_int_eq(utf8_is_clean(in, len), strcmp(in, texts[_i].out) == 0);
	strcpy(copy, in);
	utf8_clean_str(copy);
	ck_assert_str_eq(copy, texts[_i].out);
	buf_done(&b);
}
END_TEST

START_TEST(copies_are_cut_between_characters)
{
	char to[8] = "";

	ck_assert_uint_eq(utf8_clean(to, 4, "ab\xe2\x82\xac" "c", 6), 2);
	ck_assert_uint_eq(utf8_clean(to, 5, "ab\xe2\x82\xac" "c", 6), 5);
	ck_assert_uint_eq(utf8_clean(to, 0, "x", 1), 0);
	ck_assert_uint_eq(utf8_clean(to, 3, "\xe2\x82\xac", 2), 2);
	ck_assert_mem_eq(to, "??", 2);
}
END_TEST

START_TEST(characters_are_counted)
{
	ck_assert_uint_eq(utf8_count("a\xc3\xa4\xf0\x9f\x94\xa5z"), 4);
	ck_assert_uint_eq(utf8_bytes("a\xc3\xa4\xf0\x9f\x94\xa5z", 2), 3);
	ck_assert_uint_eq(utf8_bytes("a\xc3\xa4\xf0\x9f\x94\xa5z", 3), 7);
	ck_assert_uint_eq(utf8_bytes("ab", 9), 2);
}
END_TEST

Suite *utf8_suite(void)
{
	Suite *s = suite_create("utf8");
	TCase *t = tcase_create("utf8");

	tcase_add_loop_test(t, bytes_of_no_printable_character_become_question_marks, 0, ARRAY_SIZE(texts));
	tcase_add_test(t, copies_are_cut_between_characters);
	tcase_add_test(t, characters_are_counted);
	suite_add_tcase(s, t);
	return s;
}
