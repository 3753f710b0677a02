// SPDX-License-Identifier: Apache-2.0
/* Which file calls which function by its name: two files in memory and their dynamic symbols. */
#include <check.h>

#include "base/cleanup.h"
#include "tests/lib/symbols_elf.h"
#include "unwind/cursor.h"
#include "unwind/imports.h"

Suite *imports_suite(void);

#define WORK 0x810
#define PLENTY 100000

static struct symbols_elf caller_elf, library_elf;
static struct binary *caller, *library;
static struct imports imports;
static uint32_t left;

static void add(struct symbols_elf *e, const char *name, uint64_t value)
{
	symbols_elf_add(e, name, value);
	if (!value)
		e->symbol[e->nr - 1].st_shndx = SHN_UNDEF;
}

static void open_both(void)
{
	symbols_elf_slot(&caller_elf, 0, 0);
	symbols_elf_slot(&library_elf, 0, 0);
	caller = symbols_elf_open(&caller_elf);
	library = symbols_elf_open(&library_elf);
	ck_assert(caller && library);
}

/* A library with work, which has the name rest as well, and no_one; a caller that uses rest, and has a no_one itself. */
static void setup(void)
{
	symbols_elf_init(&caller_elf, EM_X86_64);
	add(&caller_elf, "malloc", 0);
	add(&caller_elf, "rest", 0);
	add(&caller_elf, "no_one", 0x800);
	symbols_elf_init(&library_elf, EM_X86_64);
	add(&library_elf, "malloc", 0);
	add(&library_elf, "work", WORK);
	add(&library_elf, "rest", WORK);
	add(&library_elf, "no_one", 0x820);
	imports = (struct imports){0};
	left = PLENTY;
	open_both();
}

static void teardown(void)
{
	binary_put(caller);
	binary_put(library);
	caller = library = NULL;
}

static bool calls(uint64_t function)
{
	return imports_function(&imports, caller, library, function, &left);
}

START_TEST(a_function_is_called_by_any_of_its_names)
{
	ck_assert(calls(WORK));
	ck_assert(!imports_function(&imports, library, caller, WORK, &left));
}
END_TEST

START_TEST(a_name_that_both_files_define_is_no_call)
{
	ck_assert(!calls(0x820));
}
END_TEST

START_TEST(the_inside_of_a_function_is_not_called)
{
	ck_assert(!calls(WORK + 1));
	ck_assert(!calls(0));
}
END_TEST

START_TEST(a_function_with_a_name_is_exported)
{
	ck_assert(imports_is_exported(&imports, library, WORK, &left));
	ck_assert(imports_is_exported(&imports, library, 0x820, &left));
	ck_assert(!imports_is_exported(&imports, library, WORK + 4, &left));
	ck_assert(!imports_is_exported(&imports, library, 0, &left)); /* what it uses is not its own */
}
END_TEST

START_TEST(an_answer_is_read_once)
{
	uint32_t before;

	ck_assert(calls(WORK));
	ck_assert_uint_lt(left, PLENTY);
	before = left;
	ck_assert(calls(WORK));
	ck_assert_uint_eq(left, before);
}
END_TEST

START_TEST(no_answer_is_kept_that_was_cut_short)
{
	left = 1;
	ck_assert(!calls(WORK));
	ck_assert_uint_eq(left, 0);
	ck_assert(!calls(WORK));
	left = PLENTY;
	ck_assert(calls(WORK));
}
END_TEST

/* The library with as many symbols as that of TensorFlow 2.21; its last two are work and rest. */
#define MANY 446398

static struct binary *open_large(void)
{
	const size_t size = sizeof(library_elf) + MANY * sizeof(Elf64_Sym);
	_cleanup_(freep) struct symbols_elf *e = calloc(1, size);
	struct binary *b = NULL;
	Elf64_Sym *many;

	ck_assert_ptr_nonnull(e);
	memcpy(e, &library_elf, sizeof(*e));
	many = (Elf64_Sym *)(e + 1);
	for (uint32_t i = 0; i < MANY; i++)
		many[i] = (Elf64_Sym){.st_name = e->symbol[3].st_name, .st_shndx = 1, .st_value = 0x100000 + i};
	memcpy(&many[MANY - 2], &e->symbol[1], 2 * sizeof(many[0]));
	e->section[5].sh_offset = sizeof(*e);
	e->section[5].sh_size = MANY * sizeof(many[0]);
	ck_assert_int_eq(binary_open_memory(e, size, "/usr/lib/large", &b), 0);
	return b;
}

START_TEST(two_questions_about_a_large_library_are_answered_in_a_search)
{
	struct binary *large = open_large();

	left = SEARCH_WORK;
	ck_assert(imports_function(&imports, caller, large, WORK, &left));
	ck_assert(!imports_is_exported(&imports, large, WORK + 4, &left));
	ck_assert_uint_gt(left, 0);
	binary_put(large);
}
END_TEST

START_TEST(a_file_without_dynamic_symbols_calls_nothing)
{
	binary_put(caller);
	symbols_elf_init(&caller_elf, EM_X86_64);
	add(&caller_elf, "rest", 0);
	caller = symbols_elf_open(&caller_elf);
	ck_assert(!calls(WORK));
}
END_TEST

Suite *imports_suite(void)
{
	Suite *s = suite_create("imports");
	TCase *t = tcase_create("imports");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_function_is_called_by_any_of_its_names);
	tcase_add_test(t, a_name_that_both_files_define_is_no_call);
	tcase_add_test(t, the_inside_of_a_function_is_not_called);
	tcase_add_test(t, a_function_with_a_name_is_exported);
	tcase_add_test(t, an_answer_is_read_once);
	tcase_add_test(t, no_answer_is_kept_that_was_cut_short);
	tcase_add_test(t, two_questions_about_a_large_library_are_answered_in_a_search);
	tcase_add_test(t, a_file_without_dynamic_symbols_calls_nothing);
	suite_add_tcase(s, t);
	return s;
}
