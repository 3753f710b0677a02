// SPDX-License-Identifier: Apache-2.0
/* The table of Go's linker: read in each format, lied to, and the unwind rows made of it. */
#include <check.h>
#include <elf.h>
#include <errno.h>

#include "base/cleanup.h"
#include "tests/lib/go_file.h"
#include "unwind/go.h"

Suite *go_table_suite(void);

enum { RBP = 6, RSP = 7, RIP = 16 };

static struct go_file file;
static struct binary *binary;
static const struct go_table *table;

static void setup(void)
{
	binary = NULL;
}

static void teardown(void)
{
	binary_put(binary);
}

static void reopen(void)
{
	binary_put(binary);
	binary = tiny_open(&file.tiny);
	table = go_table_get(binary);
}

static void open_as(int format)
{
	go_file_init(&file, (enum go_format)format);
	reopen();
	ck_assert_ptr_nonnull(table);
	ck_assert_int_eq(table->format, format);
}

static struct go_function function_at(uint64_t vaddr)
{
	struct go_function f;

	ck_assert_int_eq(go_function_find(table, vaddr, &f), 0);
	return f;
}

static void expect_name(uint32_t name, const char *want)
{
	char have[GO_NAME_MAX];

	ck_assert_int_eq(go_name(table, name, have), 0);
	ck_assert_str_eq(have, want);
}

static int64_t value(const struct go_function *f, uint32_t values, uint64_t vaddr)
{
	int64_t v = -100;

	ck_assert_int_eq(go_value(table, f, values, vaddr, &v), 0);
	return v;
}

START_TEST(functions_are_found_by_address)
{
	struct go_function f;

	open_as(_i);
	expect_name(function_at(TINY_CODE).name, "main.leaf");
	expect_name(function_at(TINY_CODE + 0x3f).name, "main.leaf");
	f = function_at(TINY_CODE + 0x40);
	expect_name(f.name, "main.caller");
	ck_assert_uint_eq(f.start, TINY_CODE + 0x40);
	ck_assert_uint_eq(f.end, TINY_CODE + 0x80);
	ck_assert_uint_eq(f.start_line, _i == GO_1_20 ? 9 : 0);
	ck_assert_int_eq(go_function_find(table, TINY_CODE - 1, &f), -ENOENT);
	ck_assert_int_eq(go_function_find(table, TINY_CODE + 0x80, &f), -ENOENT);
}
END_TEST

START_TEST(each_address_has_its_depth_file_and_line)
{
	static const int depth[][2] = {{0, 0}, {1, 8}, {7, 8}, {8, 24}, {0x37, 24}, {0x38, 0}, {0x3f, 0}};
	char path[GO_NAME_MAX];
	struct go_function f;

	open_as(_i);
	f = function_at(TINY_CODE + 0x40);
	for (size_t i = 0; i < ARRAY_SIZE(depth); i++)
		ck_assert_int_eq(value(&f, f.sp, f.start + (uint64_t)depth[i][0]), depth[i][1]);
	ck_assert_int_eq(value(&f, f.line, f.start + 0xf), 10);
	ck_assert_int_eq(value(&f, f.line, f.start + 0x10), 20);
	ck_assert_int_eq(go_file(table, &f, value(&f, f.file, f.start), path), 0);
	ck_assert_str_eq(path, "/src/main.go");
}
END_TEST

START_TEST(an_inlined_call_has_its_name_and_place)
{
	struct go_inlined call;
	struct go_function f;

	open_as(_i);
	ck_assert_int_eq(go_table_find_trees(binary), 0);
	f = function_at(TINY_CODE + 0x50);
	ck_assert_int_eq(value(&f, f.inlined, f.start + 0xf), -1);
	ck_assert_int_eq(value(&f, f.inlined, f.start + 0x10), 0);
	ck_assert_int_eq(go_inlined_at(table, &f, 0, &call), 0);
	expect_name(call.name, "main.inlined");
	ck_assert_uint_eq(call.call, f.start + 4);
	ck_assert_uint_eq(call.start_line, _i == GO_1_20 ? 5 : 0);
}
END_TEST

/* As Go 1.26 writes it, and as linkers do that leave it to the loader. */
START_TEST(code_is_found_though_the_head_does_not_name_it)
{
	struct go_function f;

	open_as(GO_1_20);
	ck_assert_uint_eq(table->text, TINY_CODE);
	ck_assert_uint_eq(table->module, GO_FILE_MODULE);
	go_file_put(&file, GO_FILE_MODULE, 0, 8);
	reopen();
	ck_assert_ptr_null(table);
	go_file_put(&file, TINY_EH + 24, TINY_CODE, 8);
	reopen();
	ck_assert_ptr_nonnull(table);
	/* The trees are nowhere: functions are still there, without them. */
	ck_assert_int_eq(go_table_find_trees(binary), -ENOENT);
	f = function_at(TINY_CODE + 0x50);
	ck_assert_uint_eq(f.tree, 0);
}
END_TEST

START_TEST(a_tree_that_is_none_is_not_used)
{
	open_as(GO_1_20);
	go_file_put(&file, GO_FILE_TREE + 4, 23, 4); /* in the middle of a name */
	reopen();
	ck_assert_int_eq(go_table_find_trees(binary), -ENOENT);
	go_file_put(&file, GO_FILE_TREE + 4, 22, 4);
	go_file_put(&file, GO_FILE_TREE + 8, 0x40, 4); /* a call behind the function */
	reopen();
	ck_assert_int_eq(go_table_find_trees(binary), -ENOENT);
}
END_TEST

START_TEST(a_broken_head_is_no_table)
{
	static const struct {
		uint32_t at, value;
	} lies[] = {{TINY_EH + 4, 0x04010000}, {TINY_EH + 4, 0x08040000}, {TINY_EH + 8, 0}, {TINY_EH + 12, 1},
		    {TINY_EH + 32, 0xffffff}, {TINY_EH + 40, 1},	  {TINY_EH + 64, 0}, {TINY_EH + GO_FILE_FUNCTIONS + 8, 0}};

	open_as(GO_1_20);
	go_file_put(&file, lies[_i].at, lies[_i].value, 4);
	reopen();
	ck_assert_ptr_null(table);
}
END_TEST

START_TEST(broken_values_end)
{
	struct go_function f;
	int64_t v;

	open_as(GO_1_20);
	/* No distance at all: it would go on for ever. */
	file.tiny.image[TINY_EH + GO_FILE_VALUES + GO_FILE_SP + 1] = 0;
	reopen();
	f = function_at(TINY_CODE + 0x40);
	ck_assert_int_eq(go_value(table, &f, f.sp, f.start, &v), -EBADMSG);
	/* A number that does not end. */
	memset(file.tiny.image + TINY_EH + GO_FILE_VALUES + GO_FILE_SP, 0xff, 16);
	reopen();
	ck_assert_int_eq(go_value(table, &f, f.sp, f.start, &v), -EBADMSG);
	/* Values beyond the file. */
	ck_assert_int_eq(go_value(table, &f, 0xfffffff, f.start, &v), -EBADMSG);
}
END_TEST

/* --- rows --- */

static struct row row_at(uint64_t vaddr)
{
	struct row row;

	ck_assert_int_eq(go_row(&arch_x86_64, binary, vaddr, &row), 0);
	ck_assert_int_eq(row.cfa_kind, CFA_REG);
	ck_assert_int_eq(row.cfa_reg, RSP);
	return row;
}

START_TEST(rows_are_exact_in_leaves_prologues_and_bodies)
{
	static const struct {
		uint64_t at;
		int64_t cfa;
		bool saved;
	} want[] = {{0, 8, false}, {0x3f, 8, false}, {0x40, 8, false}, {0x41, 16, true}, {0x48, 32, true}, {0x78, 8, false}};

	open_as(_i);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct row row = row_at(TINY_CODE + want[i].at);

		ck_assert_int_eq(row.cfa_n, want[i].cfa);
		ck_assert_int_eq(row.reg[RIP].kind, RULE_OFFSET);
		ck_assert_int_eq(row.reg[RIP].n, -8);
		ck_assert_int_eq(row.reg[RBP].kind, want[i].saved ? RULE_OFFSET : RULE_UNSPECIFIED);
		ck_assert_int_eq(row.reg[RBP].n, want[i].saved ? -16 : 0);
	}
}
END_TEST

/* sub $n,%rsp; mov %rbp,n-8(%rsp), until Go 1.20: between the two it is not saved yet. */
START_TEST(frame_pointer_counts_from_the_store_on)
{
	static const uint8_t code[] = {0x48, 0x89, 0x6c, 0x24, 8};

	open_as(GO_1_18);
	memcpy(file.tiny.image + TINY_CODE + 0x41, code, sizeof(code));
	reopen();
	ck_assert_int_eq(row_at(TINY_CODE + 0x41).reg[RBP].kind, RULE_UNSPECIFIED);
	ck_assert_int_eq(row_at(TINY_CODE + 0x46).reg[RBP].kind, RULE_OFFSET);
	/* Assembly that saves none. */
	memset(file.tiny.image + TINY_CODE + 0x40, 0x90, 8);
	reopen();
	ck_assert_int_eq(row_at(TINY_CODE + 0x48).reg[RBP].kind, RULE_UNSPECIFIED);
}
END_TEST

static void set_flags(uint8_t id, uint8_t flags)
{
	file.tiny.image[file.function[1] + 40] = id;
	file.tiny.image[file.function[1] + 41] = flags;
	reopen();
}

/* The second one, over the names behind its own. */
static void rename_function(const char *name)
{
	memcpy(file.tiny.image + TINY_EH + GO_FILE_NAMES + 10, name, strlen(name) + 1);
	reopen();
}

START_TEST(top_frames_have_no_caller)
{
	open_as(GO_1_20);
	set_flags(9, GO_TOP_FRAME);
	ck_assert_int_eq(row_at(TINY_CODE + 0x48).reg[RIP].kind, RULE_UNDEFINED);
	/* The signal handler: it has interrupted something. */
	set_flags(0, GO_TOP_FRAME);
	ck_assert_int_eq(row_at(TINY_CODE + 0x48).reg[RIP].kind, RULE_OFFSET);
}
END_TEST

/* A fault, and a goroutine that is to be preempted: where it goes on is no return address. */
START_TEST(what_a_signal_has_called_was_not_called_from_its_caller)
{
	open_as(GO_1_20);
	set_flags(15, 0);
	ck_assert_int_eq(row_at(TINY_CODE + 0x48).flags, 0);
	rename_function("runtime.sigpanic");
	ck_assert_int_eq(row_at(TINY_CODE + 0x48).flags, ROW_INJECTED);
	ck_assert_int_eq(row_at(TINY_CODE + 0x48).reg[RIP].n, -8);
	rename_function("runtime.asyncPreempt.abi0");
	ck_assert_int_eq(row_at(TINY_CODE + 0x48).flags, ROW_INJECTED);
}
END_TEST

START_TEST(what_leaves_its_stack_says_so_where_it_calls)
{
	open_as(GO_1_20);
	memcpy(file.tiny.image + TINY_CODE + 0x50, (const uint8_t[]){0xe8, 1, 2, 3, 4}, 5);
	set_flags(20, GO_WRITES_SP);
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).flags, ROW_SWITCHED);
	ck_assert_int_eq(row_at(TINY_CODE + 0x48).flags, ROW_GUESS);
	/* These never return to it, but what they called may still work for it. */
	rename_function("runtime.mcall");
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).reg[RIP].kind, RULE_UNDEFINED);
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).flags, ROW_PROVES);
	rename_function("runtime.morestack");
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).reg[RIP].kind, RULE_UNDEFINED);
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).flags, ROW_PROVES_BELOW);
}
END_TEST

/* nanotime1: whichever stack it is on. */
START_TEST(a_kept_stack_pointer_leads_back_from_another_stack)
{
	static const uint8_t keep[][3] = {{0x49, 0x89, 0xe4}, {0x48, 0x89, 0xe5}, {0x48, 0x89, 0xe3}}, reg[] = {12, 6, 3};
	struct row row;

	open_as(_i == 1 ? GO_1_2 : GO_1_20);
	memcpy(file.tiny.image + TINY_CODE + 0x49, keep[_i], 3);
	memcpy(file.tiny.image + TINY_CODE + 0x50, (const uint8_t[]){0xe8, 1, 2, 3, 4}, 5);
	if (_i == 1)
		rename_function("runtime.nanotime1");
	else
		set_flags(0, GO_WRITES_SP);
	ck_assert_int_eq(row_at(TINY_CODE + 0x48).flags, ROW_GUESS);
	for (uint64_t at = TINY_CODE + 0x4c; at < TINY_CODE + 0x80; at += 8) {
		ck_assert_int_eq(go_row(&arch_x86_64, binary, at, &row), 0);
		ck_assert_int_eq(row.cfa_reg, reg[_i]);
		ck_assert_int_eq(row.cfa_n, 32);
		ck_assert_int_eq(row.flags, ROW_RETURNS);
		ck_assert_int_eq(row.reg[RIP].n, -8);
	}
}
END_TEST

/* Until Go 1.16. */
START_TEST(a_frame_pointer_that_was_restored_keeps_no_stack_pointer)
{
	static const uint8_t ends[] = {0x48, 0x8b, 0x6c, 0x24, 16, 0x48, 0x83, 0xc4, 0x18, 0xc3};
	struct row row;

	open_as(GO_1_2);
	memcpy(file.tiny.image + TINY_CODE + 0x49, (const uint8_t[]){0x48, 0x89, 0xe5}, 3);
	memcpy(file.tiny.image + TINY_CODE + 0x60, ends, sizeof(ends));
	rename_function("runtime.nanotime1");
	ck_assert_int_eq(go_row(&arch_x86_64, binary, TINY_CODE + 0x60, &row), 0);
	ck_assert_int_eq(row.cfa_reg, 6);
	ck_assert_int_eq(row_at(TINY_CODE + 0x65).cfa_reg, 7);
	ck_assert_int_eq(row_at(TINY_CODE + 0x69).cfa_reg, 7);
	ck_assert_int_eq(go_row(&arch_x86_64, binary, TINY_CODE + 0x6a, &row), 0);
	ck_assert_int_eq(row.cfa_reg, 6);
}
END_TEST

START_TEST(a_frame_pointer_is_no_kept_stack_pointer)
{
	open_as(GO_1_2);
	memcpy(file.tiny.image + TINY_CODE + 0x48, (const uint8_t[]){0x55, 0x48, 0x89, 0xe5}, 4);
	memcpy(file.tiny.image + TINY_CODE + 0x50, (const uint8_t[]){0xe8, 1, 2, 3, 4}, 5);
	rename_function("runtime.nanotime1");
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).flags, ROW_SWITCHED);
}
END_TEST

/* asmcgocall on a stack of the thread: it aligns its stack pointer, and saves the one that it came with. */
START_TEST(a_saved_stack_pointer_leads_back_on_the_same_stack)
{
	static const uint8_t saves[] = {0x48, 0x89, 0xe2, 0xe8, 1, 2, 3, 4},
			     loads[][8] = {{0x48, 0x8b, 0x34, 0x24, 0x48, 0x89, 0xf4},
					   {0x48, 0x8b, 0x74, 0x24, 40, 0x48, 0x89, 0xf4}};
	struct row row;

	open_as(GO_1_20);
	memcpy(file.tiny.image + TINY_CODE + 0x4d, saves, sizeof(saves));
	memcpy(file.tiny.image + TINY_CODE + 0x55, loads[_i], sizeof(loads[_i]));
	set_flags(8, GO_WRITES_SP);
	ck_assert_int_eq(go_row(&arch_x86_64, binary, TINY_CODE + 0x54, &row), 0);
	ck_assert_int_eq(row.flags, 0);
	ck_assert_int_eq(row.cfa_kind, CFA_DEREF);
	ck_assert_int_eq(row.cfa_reg, 7);
	ck_assert_int_eq(row.cfa_n, _i ? 40 : 0);
	ck_assert_int_eq(row.cfa_add, 32);
	ck_assert_int_eq(row.reg[RIP].n, -8);
	/* Another register than that which was loaded; nothing was saved. */
	file.tiny.image[TINY_CODE + 0x55 + (_i ? 7 : 6)] = 0xfc;
	reopen();
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).flags, ROW_SWITCHED);
	file.tiny.image[TINY_CODE + 0x55 + (_i ? 7 : 6)] = 0xf4;
	file.tiny.image[TINY_CODE + 0x4d] = 0x4c;
	reopen();
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).flags, ROW_SWITCHED);
}
END_TEST

/* By which code of the other calling convention calls it. */
START_TEST(a_wrapper_of_what_leaves_its_stack_does_not)
{
	open_as(GO_1_20);
	memcpy(file.tiny.image + TINY_CODE + 0x50, (const uint8_t[]){0xe8, 1, 2, 3, 4}, 5);
	rename_function("runtime.asmcgocall");
	set_flags(22, 0);
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).flags, 0);
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).cfa_n, 32);
	set_flags(8, GO_WRITES_SP);
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).flags, ROW_SWITCHED);
}
END_TEST

/* Go 1.16 has no flags, Go 1.17 has both. */
START_TEST(a_wrapper_is_known_by_its_number_where_flags_may_lack)
{
	open_as(GO_1_16);
	memcpy(file.tiny.image + TINY_CODE + 0x50, (const uint8_t[]){0xe8, 1, 2, 3, 4}, 5);
	rename_function("runtime.asmcgocall");
	file.tiny.image[file.function[1] + 40] = 2;
	reopen();
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).flags, ROW_SWITCHED);
	file.tiny.image[file.function[1] + 40] = 22;
	reopen();
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).flags, 0);
}
END_TEST

/* systemstack calls what saves its goroutine's registers before it leaves. */
START_TEST(what_is_called_before_a_stack_is_left_returns_to_it)
{
	static const uint8_t leaves[] = {0xe8, 1, 2, 3, 4, 0x48, 0x8b, 0x62, 0x38, 0xff, 0xd7, 0x48, 0x8b, 0x60, 0x38};

	open_as(GO_1_20);
	memcpy(file.tiny.image + TINY_CODE + 0x50, leaves, sizeof(leaves));
	set_flags(20, GO_WRITES_SP);
	ck_assert_int_eq(row_at(TINY_CODE + 0x54).flags, 0);
	ck_assert_int_eq(row_at(TINY_CODE + 0x55).flags, 0);
	/* Between the two, wherever it is. */
	ck_assert_int_eq(row_at(TINY_CODE + 0x59).flags, ROW_SWITCHED);
	ck_assert_int_eq(row_at(TINY_CODE + 0x5a).flags, ROW_SWITCHED);
	ck_assert_int_eq(row_at(TINY_CODE + 0x5b).flags, ROW_SWITCHED);
	ck_assert_int_eq(row_at(TINY_CODE + 0x5f).flags, ROW_GUESS);
	/* Until Go 1.20 the stack that it goes to is made first. */
	memcpy(file.tiny.image + TINY_CODE + 0x55, (const uint8_t[]){0x90, 0x48, 0x89, 0xdc}, 4);
	reopen();
	ck_assert_int_eq(row_at(TINY_CODE + 0x56).flags, 0);
	ck_assert_int_eq(row_at(TINY_CODE + 0x59).flags, ROW_SWITCHED);
	ck_assert_int_eq(row_at(TINY_CODE + 0x5b).flags, ROW_SWITCHED);
	/* asmcgocall goes back to where it was by a register. */
	memcpy(file.tiny.image + TINY_CODE + 0x5b, (const uint8_t[]){0x48, 0x89, 0xf4, 0x90}, 4);
	reopen();
	ck_assert_int_eq(row_at(TINY_CODE + 0x5b).flags, ROW_SWITCHED);
	ck_assert_int_eq(row_at(TINY_CODE + 0x5e).flags, ROW_GUESS);
}
END_TEST

/* Its frame is a copy, on a stack that was left: until Go 1.17 at the first instruction of systemstack_switch. */
START_TEST(what_calls_back_returns_to_where_its_stack_was_left)
{
	open_as(_i ? GO_1_2 : GO_1_20);
	if (!_i)
		set_flags(15, 0);
	rename_function(_i ? "runtime.cgocallback_gofunc" : "runtime.cgocallback.abi0");
	ck_assert_int_eq(row_at(TINY_CODE + 0x48).flags, ROW_INJECTED);
	ck_assert_int_eq(row_at(TINY_CODE + 0x48).reg[RIP].n, -8);
}
END_TEST

START_TEST(what_stands_for_a_function_that_left_is_another_or_itself)
{
	open_as(GO_1_2);
	ck_assert(!go_stands_in(binary, TINY_CODE, TINY_CODE + 0x48));
	rename_function("runtime.systemstack_switch");
	ck_assert(go_stands_in(binary, TINY_CODE, TINY_CODE + 0x48));
	rename_function("runtime.asmcgocall");
	ck_assert(!go_stands_in(binary, TINY_CODE, TINY_CODE + 0x48));
	ck_assert(go_stands_in(binary, TINY_CODE + 0x54, TINY_CODE + 0x48));
}
END_TEST

START_TEST(code_without_depths_is_left_to_other_tables)
{
	struct row row;

	open_as(GO_1_20);
	go_file_put(&file, file.function[0] + 16, 0, 4);
	reopen();
	ck_assert_int_eq(go_row(&arch_x86_64, binary, TINY_CODE, &row), -ENOENT);
	ck_assert_int_eq(go_row(&arch_x86_64, binary, TINY_CODE + 0x100, &row), -ENOENT);
}
END_TEST

Suite *go_table_suite(void)
{
	Suite *s = suite_create("go_table");
	TCase *t = tcase_create("go_table");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, functions_are_found_by_address, 0, GO_FORMAT_NR);
	tcase_add_loop_test(t, each_address_has_its_depth_file_and_line, 0, GO_FORMAT_NR);
	tcase_add_loop_test(t, an_inlined_call_has_its_name_and_place, 0, GO_FORMAT_NR);
	tcase_add_test(t, code_is_found_though_the_head_does_not_name_it);
	tcase_add_test(t, a_tree_that_is_none_is_not_used);
	tcase_add_loop_test(t, a_broken_head_is_no_table, 0, 8);
	tcase_add_test(t, broken_values_end);
	tcase_add_loop_test(t, rows_are_exact_in_leaves_prologues_and_bodies, 0, GO_FORMAT_NR);
	tcase_add_test(t, frame_pointer_counts_from_the_store_on);
	tcase_add_test(t, top_frames_have_no_caller);
	tcase_add_test(t, what_a_signal_has_called_was_not_called_from_its_caller);
	tcase_add_test(t, what_leaves_its_stack_says_so_where_it_calls);
	tcase_add_loop_test(t, a_kept_stack_pointer_leads_back_from_another_stack, 0, 3);
	tcase_add_test(t, a_frame_pointer_that_was_restored_keeps_no_stack_pointer);
	tcase_add_test(t, a_frame_pointer_is_no_kept_stack_pointer);
	tcase_add_loop_test(t, a_saved_stack_pointer_leads_back_on_the_same_stack, 0, 2);
	tcase_add_test(t, a_wrapper_of_what_leaves_its_stack_does_not);
	tcase_add_test(t, a_wrapper_is_known_by_its_number_where_flags_may_lack);
	tcase_add_test(t, what_is_called_before_a_stack_is_left_returns_to_it);
	tcase_add_loop_test(t, what_calls_back_returns_to_where_its_stack_was_left, 0, 2);
	tcase_add_test(t, what_stands_for_a_function_that_left_is_another_or_itself);
	tcase_add_test(t, code_without_depths_is_left_to_other_tables);
	suite_add_tcase(s, t);
	return s;
}
