// SPDX-License-Identifier: Apache-2.0
/* V8 in a program that tells nothing of it: what is found by its looks, and what is not taken for it. */
#include <check.h>

#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "tests/lib/v8_hidden_world.h"

Suite *runtime_v8_hidden_suite(void);

static struct v8_hidden_file image;
static struct runtime_file file;
static struct runtime_attached attached;
static const struct v8_row *row;

static void setup(void)
{
	memset(world, 0, sizeof(world));
	memset(&attached, 0, sizeof(attached));
	memory_question(&memory);
	for (row = v8_rows; row->major != 15; row++)
		;
	vh_file(&image);
	vh_put_process(&image, row);
	file = (struct runtime_file){.bias = WORLD};
}

static void teardown(void)
{
	file.binary = binary_put(file.binary);
}

static int attach(void)
{
	char why[RUNTIME_WHY_MAX] = "";

	binary_put(file.binary);
	file.binary = vh_open(&image);
	ck_assert_ptr_nonnull(file.binary);
	memory_question(&memory);
	return v8_attach(&file, &memory, &attached, why);
}

static const struct v8 *found(void)
{
	return v8_of(&attached);
}

START_TEST(what_exports_the_interface_for_addons_may_have_v8)
{
	int found;

	file.binary = vh_open(&image);
	found = runtime_of_file(file.binary);
	ck_assert_int_ge(found, 0);
	ck_assert_ptr_eq(runtime_list[found], &runtime_v8);
	binary_put(file.binary);
	image.names[VH_EXPORT] = 'N';
	file.binary = vh_open(&image);
	ck_assert_int_eq(runtime_of_file(file.binary), -ENOENT);
}
END_TEST

START_TEST(v8_is_found_by_what_it_looks_like)
{
	ck_assert_int_eq(attach(), 0);
	ck_assert_str_eq(attached.version, "V8 15.0.245");
	ck_assert_uint_eq(found()->builtins, WORLD + VH_CODE);
	ck_assert_uint_eq(found()->builtins_end, WORLD + VH_CODE + VH_AT(VH_NR));
	ck_assert_uint_eq(found()->layout, WORLD + VH_LAYOUT);
	ck_assert_uint_eq(found()->layout_nr, VH_NR);
	ck_assert_uint_eq(found()->names, WORLD + VH_NAMES);
	ck_assert_uint_eq(found()->trampoline, WORLD + VH_CODE + VH_AT(1));
	ck_assert_uint_eq(found()->handlers, WORLD + VH_CODE + VH_AT(5));
	ck_assert_uint_eq(found()->type_shared, row->constants->type_shared);
}
END_TEST

START_TEST(the_only_isolate_has_the_counters)
{
	ck_assert_int_eq(attach(), 0);
	ck_assert_uint_eq(found()->wasm, WORLD + VH_BSS + 0x88);
	ck_assert_uint_eq(found()->isolate, VH_ISOLATE);
	ck_assert_uint_eq(attached.walk.base, VH_ISOLATE);
	ck_assert_uint_eq(found()->isolate_epoch, row->isolate_heap + row->heap_epoch);
}
END_TEST

START_TEST(other_programs_have_none)
{
	memcpy((uint8_t *)&image + VH_RODATA + 8, VH_VERSION "-other", sizeof(VH_VERSION "-other"));
	ck_assert_int_eq(attach(), -ENOENT);
	memcpy((uint8_t *)&image + VH_RODATA + 8, "words-rusty", sizeof("words-rusty"));
	ck_assert_int_eq(attach(), -ENOENT);
}
END_TEST

START_TEST(a_version_without_a_row_is_said)
{
	char why[RUNTIME_WHY_MAX] = "";

	memcpy((uint8_t *)&image + VH_RODATA + 8, "99.7.1.1-rusty", sizeof("99.7.1.1-rusty"));
	file.binary = vh_open(&image);
	ck_assert_int_eq(v8_attach(&file, &memory, &attached, why), -ENOTSUP);
	ck_assert_str_eq(why, "version 99.7.1 is not known");
}
END_TEST

/* Node's constants are not those of Deno with the same version. */
START_TEST(rows_of_node_are_not_of_such_programs)
{
	memcpy((uint8_t *)&image + VH_RODATA + 8, "13.6.1.1-rusty", sizeof("13.6.1.1-rusty"));
	ck_assert_int_eq(attach(), -ENOTSUP);
}
END_TEST

START_TEST(code_lies_where_nothing_but_int3_is_between)
{
	((uint8_t *)&image)[VH_CODE + VH_AT(VH_NR) - 1] = 0x90;
	ck_assert_int_eq(attach(), -ENOTSUP);
}
END_TEST

START_TEST(without_a_layout_nothing_is_found)
{
	memset((uint8_t *)&image + VH_LAYOUT, 0xff, 12);
	ck_assert_int_eq(attach(), -ENOTSUP);
}
END_TEST

START_TEST(names_of_another_table_are_refused)
{
	put64(WORLD + VH_NAMES + 24 * (VH_NR - 1), VH_TEXTS + 8 * 4096);
	ck_assert_int_eq(attach(), -ENOTSUP);
}
END_TEST

START_TEST(before_there_is_an_isolate_it_is_asked_again)
{
	put64(VH_MANAGER + row->wasm.isolates, 0);
	ck_assert_int_eq(attach(), -EAGAIN);
	put64(VH_MANAGER + row->wasm.isolates, VH_NODE);
	put64(VH_ISOLATE + row->isolate_heap + row->heap_isolate, VH_NODE);
	ck_assert_int_eq(attach(), -EAGAIN);
	put64(VH_ISOLATE + row->isolate_heap + row->heap_isolate, VH_ISOLATE);
	ck_assert_int_eq(attach(), 0);
}
END_TEST

/* Lists of libc++ are not those of libstdc++, and lengths are not small integers. */
START_TEST(lengths_of_arrays_are_read_as_the_version_has_them)
{
	int32_t length;

	ck_assert_int_eq(attach(), 0);
	put32(VH_NODE + 8, 77);
	ck_assert_int_eq(v8_length(found(), &memory, VH_NODE + 1, 8, &length), 0);
	ck_assert_int_eq(length, 77);
	put32(VH_NODE + 8, UINT32_MAX);
	ck_assert_int_eq(v8_length(found(), &memory, VH_NODE + 1, 8, &length), -EBADMSG);
}
END_TEST

Suite *runtime_v8_hidden_suite(void)
{
	Suite *s = suite_create("runtime_v8_hidden");
	TCase *t = tcase_create("hidden");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, what_exports_the_interface_for_addons_may_have_v8);
	tcase_add_test(t, v8_is_found_by_what_it_looks_like);
	tcase_add_test(t, the_only_isolate_has_the_counters);
	tcase_add_test(t, other_programs_have_none);
	tcase_add_test(t, a_version_without_a_row_is_said);
	tcase_add_test(t, rows_of_node_are_not_of_such_programs);
	tcase_add_test(t, code_lies_where_nothing_but_int3_is_between);
	tcase_add_test(t, without_a_layout_nothing_is_found);
	tcase_add_test(t, names_of_another_table_are_refused);
	tcase_add_test(t, before_there_is_an_isolate_it_is_asked_again);
	tcase_add_test(t, lengths_of_arrays_are_read_as_the_version_has_them);
	suite_add_tcase(s, t);
	return s;
}
