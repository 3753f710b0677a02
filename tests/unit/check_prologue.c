// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/lib/tiny_elf.h"
#include "unwind/prologue.h"

Suite *prologue_suite(void);

enum { DWARF_BP = 6, DWARF_SP = 7, DWARF_BX = 3, DWARF_PC = 16, ENTRY = 0x100 };

static struct row row;

/* The code begins at ENTRY, which is aligned, behind traps. */
static int find(const uint8_t *code, size_t len, size_t at, bool called)
{
	static struct tiny tiny;
	struct binary *b;
	int err;

	tiny_init(&tiny, EM_X86_64, 0);
	memset(tiny.image + TINY_CODE, 0xcc, TINY_SIZE - TINY_CODE);
	memcpy(tiny.image + TINY_CODE + ENTRY, code, len);
	b = tiny_open(&tiny);
	err = prologue_find(&epilogue_x86_64, b, TINY_CODE + ENTRY + at, called, &row);
	binary_put(b);
	return err;
}

/* push %rbx; sub $0x10,%rsp; call; jmp to the call */
static const uint8_t endless[] = {0x53, 0x48, 0x83, 0xec, 0x10, 0xe8, 0, 1, 0, 0, 0xeb, 0xf9};

START_TEST(loop_without_an_end_is_left_by_what_was_made_before_it)
{
	ck_assert_int_eq(find(endless, sizeof(endless), 10, true), 0);
	ck_assert_int_eq(row.cfa_kind, CFA_REG);
	ck_assert_uint_eq(row.cfa_reg, DWARF_SP);
	ck_assert_int_eq(row.cfa_n, 0x20);
	ck_assert_uint_eq(row.ra, DWARF_PC);
	ck_assert_int_eq(row.reg[DWARF_PC].n, -8);
	ck_assert_int_eq(row.reg[DWARF_BX].kind, RULE_OFFSET);
	ck_assert_int_eq(row.reg[DWARF_BX].n, -16);
	ck_assert_int_eq(row.reg[DWARF_BP].kind, RULE_UNSPECIFIED);
	ck_assert(row.flags & ROW_GUESS);
}
END_TEST

START_TEST(within_the_prologue_only_what_was_done_counts)
{
	ck_assert_int_eq(find(endless, sizeof(endless), 0, false), 0);
	ck_assert_int_eq(row.cfa_n, 8);
	ck_assert_int_eq(row.reg[DWARF_BX].kind, RULE_UNSPECIFIED);
	ck_assert_int_eq(find(endless, sizeof(endless), 1, false), 0);
	ck_assert_int_eq(row.cfa_n, 16);
}
END_TEST

/* It was not saved by the function's first instructions. */
START_TEST(register_that_was_written_is_not_the_callers)
{
	/* endbr64; test %rdi,%rdi; je, away; push %rbp; mov %rdi,%rbp; call; jmp to the call */
	static const uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x85, 0xff, 0x74, 20, 0x55, 0x48, 0x89, 0xfd,
				       0xe8, 0, 1, 0, 0, 0xeb, 0xf9};

	ck_assert_int_eq(find(code, sizeof(code), 18, true), 0);
	ck_assert_int_eq(row.cfa_n, 16);
	ck_assert_int_eq(row.reg[DWARF_BP].kind, RULE_UNDEFINED);
	ck_assert_int_eq(row.reg[DWARF_BX].kind, RULE_UNSPECIFIED);
	ck_assert_int_eq(find(code, sizeof(code), 10, false), 0);
	ck_assert_int_eq(row.reg[DWARF_BP].kind, RULE_UNSPECIFIED);
}
END_TEST

START_TEST(register_that_was_taken_back_is_the_callers)
{
	/* push %rbx; mov %rdi,%rbx; pop %rbx; jmp to itself */
	static const uint8_t code[] = {0x53, 0x48, 0x89, 0xfb, 0x5b, 0xeb, 0xfe};

	ck_assert_int_eq(find(code, sizeof(code), 4, false), 0);
	ck_assert_int_eq(row.reg[DWARF_BX].kind, RULE_OFFSET);
	ck_assert_int_eq(find(code, sizeof(code), 5, false), 0);
	ck_assert_int_eq(row.reg[DWARF_BX].kind, RULE_UNSPECIFIED);
}
END_TEST

START_TEST(branch_leads_to_what_comes_before_a_throw)
{
	/* sub $0x18,%rsp; jne +5; add $0x18,%rsp; ret; call; int3 */
	static const uint8_t code[] = {0x48, 0x83, 0xec, 0x18, 0x75, 5, 0x48, 0x83, 0xc4, 0x18, 0xc3, 0xe8, 0, 1, 0, 0, 0xcc};

	ck_assert_int_eq(find(code, sizeof(code), 16, true), 0);
	ck_assert_int_eq(row.cfa_n, 0x20);
}
END_TEST

START_TEST(stack_pointer_that_was_tested_in_another_register_is_followed)
{
	/* lea -0x18(%rsp),%rbx; cmp 8(%r15),%rbx; jbe; mov %rbx,%rsp; jmp to itself */
	static const uint8_t code[] = {0x48, 0x8d, 0x5c, 0x24, 0xe8, 0x49, 0x3b, 0x5f, 8, 0x76, 20,
				       0x48, 0x8b, 0xe3, 0xeb, 0xfe};

	ck_assert_int_eq(find(code, sizeof(code), 14, false), 0);
	ck_assert_int_eq(row.cfa_n, 0x20);
}
END_TEST

/* An address within a frame, and room that is given back, are not how a function begins. */
START_TEST(room_is_taken_where_a_function_begins)
{
	/* push %rbx; nops; then, aligned: lea 0x10(%rsp),%rbx, or sub $-0x10,%rsp, or sub $-0x100,%rsp; jmp to itself */
	static const uint8_t within[][7] = {{0x48, 0x8d, 0x5c, 0x24, 0x10, 0xeb, 0xfe},
					    {0x48, 0x83, 0xec, 0xf0, 0x90, 0xeb, 0xfe},
					    {0x48, 0x81, 0xec, 0x00, 0xff, 0xff, 0xff}};
	uint8_t code[25] = {0x53};

	memset(code + 1, 0x90, 15);
	code[23] = 0xeb;
	code[24] = 0xfe;
	for (size_t i = 0; i < ARRAY_SIZE(within); i++) {
		memcpy(code + 16, within[i], sizeof(within[i]));
		ck_assert_int_eq(find(code, sizeof(code), 16, false), 0);
		ck_assert_int_eq(row.cfa_n, 16);
	}
}
END_TEST

START_TEST(address_that_is_not_reached_has_no_row)
{
	/* push %rbx; jmp to itself; nop */
	static const uint8_t code[] = {0x53, 0xeb, 0xfe, 0x90};

	ck_assert_int_eq(find(code, sizeof(code), 3, false), -ENOENT);
	ck_assert_int_eq(find(endless, sizeof(endless), 7, false), -ENOENT); /* within an instruction */
}
END_TEST

/* What a call that never comes back would return to is the next function. */
START_TEST(next_function_is_not_the_caller)
{
	/* sub $8,%rsp; nop, 7 bytes; call; then, aligned: sub $0x28,%rsp; call; jmp to the call */
	static const uint8_t code[] = {0x48, 0x83, 0xec, 8, 0x0f, 0x1f, 0x80, 0, 0, 0, 0, 0xe8, 0, 1, 0, 0,
				       0x48, 0x83, 0xec, 0x28, 0xe8, 0, 1, 0, 0, 0xeb, 0xf9};

	ck_assert_int_eq(find(code, sizeof(code), 16, true), 0);
	ck_assert_int_eq(row.cfa_n, 16); /* of the first one */
	ck_assert_int_eq(find(code, sizeof(code), 16, false), -ENOENT); /* it is not of the first one */
	ck_assert_int_eq(find(code, sizeof(code), 25, true), -ENOENT); /* nothing shows where the second one begins */
}
END_TEST

START_TEST(frame_that_does_not_align_calls_is_none)
{
	/* push %rbx; push %rbp; call; jmp to the call */
	static const uint8_t code[] = {0x53, 0x55, 0xe8, 0, 1, 0, 0, 0xeb, 0xf9};

	ck_assert_int_eq(find(code, sizeof(code), 7, true), -ENOENT);
	ck_assert_int_eq(find(code, sizeof(code), 7, false), 0);
	ck_assert_int_eq(row.cfa_n, 24);
}
END_TEST

START_TEST(realigned_stack_is_not_followed)
{
	/* push %rbp; mov %rsp,%rbp; and $-32,%rsp; jmp to itself */
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0xeb, 0xfe};

	ck_assert_int_eq(find(code, sizeof(code), 8, false), -ENOENT);
}
END_TEST

START_TEST(only_padding_comes_before_a_function)
{
	/* push %rbx; nop, 14 bytes; imm8 of 0; then, aligned: push %rbp; jmp to itself */
	static const uint8_t code[] = {0x53, 0x0f, 0x1f, 0x40, 0, 0x0f, 0x1f, 0x40, 0, 0x0f, 0x1f, 0x40, 0, 0x83, 0xf8, 0,
				       0x55, 0xeb, 0xfe};

	ck_assert_int_eq(find(code, sizeof(code), 17, false), 0);
	ck_assert_int_eq(row.cfa_n, 24);
}
END_TEST

START_TEST(zeros_behind_a_return_are_padding)
{
	/* push %rbx; ret, zeros; then, aligned: push %rbp; jmp to itself */
	uint8_t code[19] = {0x53, 0xc3, [16] = 0x55, 0xeb, 0xfe};

	ck_assert_int_eq(find(code, sizeof(code), 17, false), 0);
	ck_assert_int_eq(row.cfa_n, 16);
	code[1] = 0x05; /* add $0,%eax, and what else there is: not reached */
	ck_assert_int_eq(find(code, 16, 15, false), -ENOENT);
}
END_TEST

Suite *prologue_suite(void)
{
	Suite *s = suite_create("prologue");
	TCase *t = tcase_create("ways in");

	tcase_add_test(t, loop_without_an_end_is_left_by_what_was_made_before_it);
	tcase_add_test(t, within_the_prologue_only_what_was_done_counts);
	tcase_add_test(t, register_that_was_written_is_not_the_callers);
	tcase_add_test(t, register_that_was_taken_back_is_the_callers);
	tcase_add_test(t, branch_leads_to_what_comes_before_a_throw);
	tcase_add_test(t, stack_pointer_that_was_tested_in_another_register_is_followed);
	tcase_add_test(t, room_is_taken_where_a_function_begins);
	tcase_add_test(t, address_that_is_not_reached_has_no_row);
	tcase_add_test(t, next_function_is_not_the_caller);
	tcase_add_test(t, frame_that_does_not_align_calls_is_none);
	tcase_add_test(t, realigned_stack_is_not_followed);
	tcase_add_test(t, only_padding_comes_before_a_function);
	tcase_add_test(t, zeros_behind_a_return_are_padding);
	suite_add_tcase(s, t);
	return s;
}
