// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <string.h>

#include "process/beside.h"

Suite *beside_suite(void);

START_TEST(one_part_of_a_path_that_ends_in_pdb_is_a_name)
{
	ck_assert(beside_name_is_sound("App.pdb", 7));
	ck_assert(beside_name_is_sound("a.b.c\\d.pdb", 11));
	ck_assert(beside_name_is_sound("..pdb", 5));
}
END_TEST

START_TEST(all_else_is_none)
{
	ck_assert(!beside_name_is_sound("", 0));
	ck_assert(!beside_name_is_sound(".pdb", 4));
	ck_assert(!beside_name_is_sound("..", 2));
	ck_assert(!beside_name_is_sound("App.dll", 7));
	ck_assert(!beside_name_is_sound("App.pdb ", 8));
	ck_assert(!beside_name_is_sound("a/b.pdb", 7));
	ck_assert(!beside_name_is_sound("/b.pdb", 6));
	ck_assert(!beside_name_is_sound("../b.pdb", 8));
	ck_assert(!beside_name_is_sound("a\0b.pdb", 7));
	ck_assert(!beside_name_is_sound("App.pdb", 6));
	ck_assert(!beside_name_is_sound("App.pdb", 8)); /* its NUL is no part of it */
}
END_TEST

START_TEST(a_name_is_no_longer_than_a_file_can_have)
{
	char name[BESIDE_NAME_MAX];

	memset(name, 'a', sizeof(name));
	memcpy(name + BESIDE_NAME_MAX - 5, ".pdb", 4);
	ck_assert(beside_name_is_sound(name, BESIDE_NAME_MAX - 1));
	memcpy(name + BESIDE_NAME_MAX - 4, ".pdb", 4);
	ck_assert(!beside_name_is_sound(name, BESIDE_NAME_MAX));
}
END_TEST

Suite *beside_suite(void)
{
	Suite *s = suite_create("beside");
	TCase *t = tcase_create("names");

	tcase_add_test(t, one_part_of_a_path_that_ends_in_pdb_is_a_name);
	tcase_add_test(t, all_else_is_none);
	tcase_add_test(t, a_name_is_no_longer_than_a_file_can_have);
	suite_add_tcase(s, t);
	return s;
}
