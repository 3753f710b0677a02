// SPDX-License-Identifier: Apache-2.0
/* V8 in a file without symbols: where builtins lie and what they are called, by functions that the file exports. */
#include <check.h>

#include "tests/lib/world.h"

#include "base/cleanup.h"
#include "tests/lib/symbols_elf.h"
#include "tests/lib/v8_world.h"
#include "tests/lib/v8_wasm_world.h"

Suite *runtime_v8_unnamed_suite(void);

static struct runtime_attached attached;
static struct runtime_code_made made;
static struct symbols_elf elf;
static struct runtime_file file;
static struct v8 *v;

#define VW_STATISTICS (WORLD + 0x7f000)

static void setup(void)
{
	memset(world, 0, sizeof(world));
	memory_question(&memory);
	v8_world_make(&attached, VW_ROW);
	v8_put_names();
	v8_put_exports();
	v = (struct v8 *)attached.param;
	symbols_elf_init(&elf, EM_X86_64);
	elf.segment.p_memsz = WORLD_BYTES;
	for (uint32_t i = 0; i < ARRAY_SIZE(v8_export_symbols); i++)
		symbols_elf_add(&elf, v8_export_symbols[i], VW_EXPORT(i) - WORLD);
	file = (struct runtime_file){.binary = symbols_elf_open(&elf), .bias = WORLD};
	memset(&made, 0, sizeof(made));
}

static void teardown(void)
{
	file.binary = binary_put(file.binary);
}

static int blob(void)
{
	uint64_t data = 0;
	int err;

	v->builtins = v->builtins_end = 0;
	err = v8_unnamed_blob(&file, &memory, v, &data);
	if (!err) {
		ck_assert_uint_eq(v->builtins, VW_BUILTINS);
		ck_assert_uint_eq(v->builtins_end, VW_BUILTINS + 0x1000);
		ck_assert_uint_eq(data, VW_LAYOUT - 24);
	}
	return err;
}

static int find(void)
{
	int err;

	v->names = 0;
	memory_question(&memory);
	err = v8_unnamed_find(&file, &memory, v);
	if (!err)
		ck_assert_uint_eq(v->names, VW_NAMES);
	return err;
}

START_TEST(functions_of_a_library_return_where_builtins_lie)
{
	ck_assert_int_eq(blob(), 0);
}
END_TEST

/* V8 10 has a pointer to the code; other compilers load the size at once, and keep frame pointers. */
START_TEST(compilers_make_them_of_several_instructions)
{
	v8_put_export(VW_BLOB_CODE, "\x48\x8d\x05", 3, VW_NAMES - 16, "\x48\x8b\x00\xc3", 4);
	put64(VW_NAMES - 16, VW_BUILTINS);
	ck_assert_int_eq(blob(), 0);
	v8_put_export(VW_BLOB_CODE, "\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x48\x8b\x05", 11, VW_NAMES - 16, "\x5d\xc3", 2);
	ck_assert_int_eq(blob(), 0);
	v8_put_export(VW_BLOB_SIZE, "\x8b\x05", 2, VW_NAMES - 8, "\xc3", 1);
	ck_assert_int_eq(blob(), 0);
	put(VW_EXPORT(VW_BLOB_SIZE), "\xb8\0\x10\0\0\xc3", 6);
	ck_assert_int_eq(blob(), 0);
}
END_TEST

START_TEST(a_function_that_does_more_tells_nothing)
{
	put(VW_EXPORT(VW_BLOB_DATA) + 7, "\x90", 1);
	ck_assert_int_eq(blob(), -ENOTSUP);
	put(VW_EXPORT(VW_BLOB_DATA), "\xc3", 1); /* returns what it was given */
	ck_assert_int_eq(blob(), -ENOTSUP);
	put(VW_EXPORT(VW_BLOB_DATA), "\x48\x8b\x00\xc3", 4);
	ck_assert_int_eq(blob(), -ENOTSUP);
	v8_put_export(VW_BLOB_DATA, "\x48\x8b\x05", 3, WORLD + WORLD_BYTES, "\xc3", 1);
	ck_assert_int_eq(blob(), -EFAULT);
}
END_TEST

START_TEST(a_size_without_sense_is_refused)
{
	put32(VW_NAMES - 8, 0);
	ck_assert_int_eq(blob(), -ENOTSUP);
	put32(VW_NAMES - 8, 0x80000000);
	ck_assert_int_eq(blob(), -ENOTSUP);
}
END_TEST

/* Code that lies elsewhere is not the file's: its regions would have no names there. */
START_TEST(code_outside_of_the_file_is_refused)
{
	v8_put_export(VW_BLOB_CODE, "\x48\x8d\x05", 3, WORLD + WORLD_BYTES - 0x800, "\xc3", 1);
	ck_assert_int_eq(blob(), -ENOTSUP);
	v8_put_export(VW_BLOB_CODE, "\x48\x8d\x05", 3, WORLD - 0x1000, "\xc3", 1);
	ck_assert_int_eq(blob(), -ENOTSUP);
}
END_TEST

static void hide(uint32_t symbol)
{
	teardown();
	elf.symbol[symbol].st_shndx = SHN_UNDEF;
	file.binary = symbols_elf_open(&elf);
}

START_TEST(a_file_that_does_not_export_them_is_not_known)
{
	for (uint32_t i = 0; i < VW_NAME_OF; i++) {
		hide(i);
		ck_assert_int_eq(blob(), -ENOTSUP);
		elf.symbol[i].st_shndx = 1;
	}
	hide(VW_NAME_OF);
	ck_assert_int_eq(blob(), 0);
	ck_assert_int_eq(find(), -ENOTSUP);
}
END_TEST

/* V8 13 */
static void only_interface(void)
{
	v8_put_range();
	symbols_elf_add(&elf, "_ZN2v87Isolate20GetEmbeddedCodeRangeEPPKvPm", VW_RANGE - WORLD);
	for (uint32_t i = 0; i <= VW_NAME_OF; i++)
		hide(i);
}

START_TEST(a_function_of_the_interface_calls_those_that_tell)
{
	only_interface();
	ck_assert_int_eq(blob(), 0);
	put(VW_CURRENT(1), "\x90", 1);
	ck_assert_int_eq(blob(), -ENOTSUP);
}
END_TEST

START_TEST(before_v8_begins_there_is_no_code)
{
	only_interface();
	put64(VW_VALUES, 0);
	ck_assert_int_eq(blob(), -EAGAIN);
}
END_TEST

START_TEST(calls_of_other_functions_tell_nothing)
{
	only_interface();
	put(VW_RANGE + 9, "\x90", 1); /* three */
	ck_assert_int_eq(blob(), -ENOTSUP);
	v8_put_range();
	put32(VW_RANGE + 10, 0x1000);
	ck_assert_int_eq(blob(), -ENOTSUP);
}
END_TEST

/* The table is in .data, behind other pointers to constants. */
static void put_sections(uint64_t data, uint64_t len)
{
	symbols_elf_section(&elf, 5, ".rodata", SHT_NOBITS, VW_NAME(0) - WORLD, 0x200, 0);
	symbols_elf_section(&elf, 6, ".data", SHT_NOBITS, data - WORLD, len, 0);
	elf.head.e_shnum = 7;
	hide(VW_NAME_OF);
}

START_TEST(names_are_sought_where_no_function_tells)
{
	put_sections(VW_NAMES - 0x200, 0x400);
	put64(VW_NAMES - 24, VW_NAME(3));
	put64(VW_NAMES - 48, VW_NAME(1));
	v8_put_name(0, "DeoptimizationEntry_Eager");
	v8_put_name(1, "InterpreterEntryTrampoline");
	ck_assert_int_eq(find(), 0);
	ck_assert_uint_eq(v->trampoline, VW_BUILTINS + 0x100);
}
END_TEST

START_TEST(a_table_that_is_too_short_or_begins_otherwise_is_none)
{
	put_sections(VW_NAMES - 0x200, 0x400);
	ck_assert_int_eq(find(), -ENOTSUP);
	v8_put_name(0, "DeoptimizationEntry_Eager");
	v8_put_name(1, "InterpreterEntryTrampoline");
	v->layout_nr = 6;
	ck_assert_int_eq(find(), -ENOTSUP);
	v->layout_nr = 5;
	put_sections(WORLD + WORLD_BYTES - 0x100, 0x200);
	ck_assert_int_eq(find(), -EFAULT);
}
END_TEST

START_TEST(builtins_are_found_by_their_names)
{
	v->trampoline = v->handlers = 1;
	ck_assert_int_eq(find(), 0);
	ck_assert_uint_eq(v->trampoline, VW_BUILTINS);
	ck_assert_uint_eq(v->prologue, VW_BUILTINS + 0x200);
	ck_assert_uint_eq(v->leave, VW_BUILTINS + 0x300);
	ck_assert_uint_eq(v->handlers, VW_BUILTINS + 0x400);
	ck_assert_uint_eq(v->setup, 0);
	ck_assert_uint_eq(v->resumed[0], 0x100);
	ck_assert_uint_eq(v->resumed[1], 0);
}
END_TEST

START_TEST(names_that_are_not_of_the_layout_are_refused)
{
	v8_put_name(3, "BaselineLeaveFrane");
	ck_assert_int_eq(find(), -ENOTSUP);
	v8_put_name(3, "WideHandler"); /* there are two */
	ck_assert_int_eq(find(), -ENOTSUP);
	v8_put_name(3, "Baseline LeaveFrame");
	ck_assert_int_eq(find(), -ENOTSUP);
	v8_put_name(3, "");
	ck_assert_int_eq(find(), -ENOTSUP);
	v8_put_name(3, "BaselineLeaveFrame");
	put64(VW_NAMES + 24, WORLD + WORLD_BYTES);
	ck_assert_int_eq(find(), -EFAULT);
}
END_TEST

START_TEST(a_region_has_the_name_that_its_symbol_would_be)
{
	ck_assert_int_eq(find(), 0);
	v->resumed[0] = 0;
	ck_assert_int_eq(v8_code(&attached, &memory, VW_BUILTINS + 0x110, &made), 0);
	ck_assert_str_eq(made.code.name, "Builtins_InterpreterEnterAtBytecode");
	ck_assert_uint_eq(made.code.flags, RUNTIME_CODE_LASTS | RUNTIME_CODE_IS_NATIVE);
	ck_assert(runtime_code_sound(&made.code, made.nodes, made.rows));
}
END_TEST

START_TEST(a_region_of_a_file_with_symbols_has_none)
{
	ck_assert_int_eq(v8_code(&attached, &memory, VW_BUILTINS + 0x110, &made), 0);
	ck_assert_str_eq(made.code.name, "");
	ck_assert_uint_eq(made.code.flags, RUNTIME_CODE_LASTS);
}
END_TEST

START_TEST(a_copy_near_compiled_code_has_the_names_too)
{
	v8_wasm_put(&attached, VW_ROW);
	ck_assert_int_eq(find(), 0);
	v8_put_copy(&attached);
	ck_assert_int_eq(v8_code(&attached, &memory, VW_COPY + 0x210, &made), 0);
	ck_assert_uint_eq(made.code.copy_of, VW_BUILTINS + 0x200);
	ck_assert_str_eq(made.code.name, "Builtins_BaselineOutOfLinePrologue");
	ck_assert(made.code.flags & RUNTIME_CODE_IS_NATIVE);
}
END_TEST

/* Whatever is in place of the name by now. */
START_TEST(what_is_no_name_names_nothing)
{
	char name[2 * RUNTIME_CODE_NAME];

	ck_assert_int_eq(find(), 0);
	v8_put_name(2, "\xff\n");
	ck_assert_int_eq(v8_code(&attached, &memory, VW_BUILTINS + 0x210, &made), 0);
	ck_assert_str_eq(made.code.name, "");
	memset(name, 'x', sizeof(name));
	put(VW_NAME(2), name, sizeof(name));
	memset(&made, 0, sizeof(made));
	ck_assert_int_eq(v8_code(&attached, &memory, VW_BUILTINS + 0x210, &made), 0);
	ck_assert_str_eq(made.code.name, "");
	ck_assert_uint_eq(made.code.flags, RUNTIME_CODE_LASTS);
}
END_TEST

/* A region that lasts would be without one for good. */
START_TEST(a_name_that_cannot_be_read_is_asked_for_again)
{
	ck_assert_int_eq(find(), 0);
	v->names = WORLD + WORLD_BYTES;
	ck_assert_int_eq(v8_code(&attached, &memory, VW_BUILTINS + 0x210, &made), -EFAULT);
}
END_TEST

/* GetHeapStatistics: push %rbp; mov %rsp,%rbp; push %r12; lea n(%rdi),%r12. It differs between releases of a version. */
START_TEST(where_an_isolate_counts_is_told_by_an_export)
{
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x4c, 0x8d, 0xa7, 0x90, 0xde, 0, 0};

	ck_assert_uint_eq(v8_epoch_find(v, &file, &memory), 0);
	symbols_elf_add(&elf, "_ZN2v87Isolate17GetHeapStatisticsEPNS_14HeapStatisticsE", VW_STATISTICS - WORLD);
	binary_put(file.binary);
	file.binary = symbols_elf_open(&elf);
	ck_assert_uint_eq(v8_epoch_find(v, &file, &memory), 0);
	put(VW_STATISTICS, code, sizeof(code));
	ck_assert_uint_eq(v8_epoch_find(v, &file, &memory), 0xde90 + v8_row(v)->heap_epoch);
	put(VW_STATISTICS + 9, "\x91", 1);
	ck_assert_uint_eq(v8_epoch_find(v, &file, &memory), 0);
	put(VW_STATISTICS + 9, "\x90\xde\x10", 3);
	ck_assert_uint_eq(v8_epoch_find(v, &file, &memory), 0);
}
END_TEST

Suite *runtime_v8_unnamed_suite(void)
{
	Suite *s = suite_create("runtime_v8_unnamed");
	TCase *t = tcase_create("unnamed");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, functions_of_a_library_return_where_builtins_lie);
	tcase_add_test(t, compilers_make_them_of_several_instructions);
	tcase_add_test(t, a_function_that_does_more_tells_nothing);
	tcase_add_test(t, a_size_without_sense_is_refused);
	tcase_add_test(t, code_outside_of_the_file_is_refused);
	tcase_add_test(t, a_file_that_does_not_export_them_is_not_known);
	tcase_add_test(t, a_function_of_the_interface_calls_those_that_tell);
	tcase_add_test(t, before_v8_begins_there_is_no_code);
	tcase_add_test(t, calls_of_other_functions_tell_nothing);
	tcase_add_test(t, names_are_sought_where_no_function_tells);
	tcase_add_test(t, a_table_that_is_too_short_or_begins_otherwise_is_none);
	tcase_add_test(t, builtins_are_found_by_their_names);
	tcase_add_test(t, names_that_are_not_of_the_layout_are_refused);
	tcase_add_test(t, a_region_has_the_name_that_its_symbol_would_be);
	tcase_add_test(t, a_region_of_a_file_with_symbols_has_none);
	tcase_add_test(t, a_copy_near_compiled_code_has_the_names_too);
	tcase_add_test(t, what_is_no_name_names_nothing);
	tcase_add_test(t, a_name_that_cannot_be_read_is_asked_for_again);
	tcase_add_test(t, where_an_isolate_counts_is_told_by_an_export);
	suite_add_tcase(s, t);
	return s;
}
