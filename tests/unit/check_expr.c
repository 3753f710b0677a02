// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "unwind/expr.h"

Suite *expr_suite(void);

static int load(void *ctx, uint64_t addr, uint64_t *ret)
{
	if (addr != 0x1000)
		return -EFAULT;
	*ret = 0x1122334455667788;
	return 0;
}

static int eval(const uint8_t *code, size_t len, const uint64_t *cfa, uint64_t *ret)
{
	uint64_t reg[17] = {[6] = 0x2000, [7] = 0x0ff8, [16] = 0x40100c};
	struct expr_env env = {.valid = 1 << 6 | 1 << 7 | 1 << 16, .reg = reg, .nr_regs = 17, .load = load};

	return expr_eval(code, len, &env, cfa, ret);
}

#define EVAL(ret, ...) eval((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), NULL, ret)
#define GIVES(value, ...)                                        \
	do {                                                     \
		uint64_t _v = 0;                                 \
		ck_assert_int_eq(EVAL(&_v, __VA_ARGS__), 0);     \
		ck_assert_uint_eq(_v, (uint64_t)(value));        \
	} while (0)
#define FAILS(error, ...)                                        \
	do {                                                     \
		uint64_t _v = 99;                                \
		ck_assert_int_eq(EVAL(&_v, __VA_ARGS__), error); \
		ck_assert_uint_eq(_v, 99);                       \
	} while (0)

START_TEST(constants_keep_their_sign)
{
	GIVES(255, 0x08, 0xff);
	GIVES(-1, 0x09, 0xff);
	GIVES(-2, 0x0b, 0xfe, 0xff);
	GIVES(0xfffffffe, 0x0c, 0xfe, 0xff, 0xff, 0xff);
	GIVES(-128, 0x11, 0x80, 0x7f);
	GIVES(624485, 0x10, 0xe5, 0x8e, 0x26);
	GIVES(31, 0x4f);
}
END_TEST

START_TEST(arithmetic_is_signed_where_dwarf_says)
{
	GIVES(-3, 0x11, 0x7a, 0x32, 0x1b);       /* -6 / 2 */
	GIVES(1, 0x11, 0x7f, 0x31, 0x2d);        /* -1 < 1 */
	GIVES(-1, 0x11, 0x7f, 0x35, 0x26);       /* -1 shra 5 */
	GIVES(0, 0x31, 0x08, 64, 0x24);          /* shift out */
	GIVES(5, 0x35, 0x30, 0x20, 0x1a);        /* 5 and not 0 */
	GIVES(7, 0x11, 0x79, 0x19);              /* abs -7 */
}
END_TEST

START_TEST(stack_operations_move_the_right_values)
{
	GIVES(1, 0x31, 0x32, 0x16);                         /* swap */
	GIVES(2, 0x31, 0x32, 0x33, 0x17);                   /* rot brings the second up */
	GIVES(1, 0x31, 0x32, 0x33, 0x15, 2);                /* pick */
	GIVES(1, 0x31, 0x32, 0x14);                         /* over */
	GIVES(1, 0x31, 0x32, 0x13);                         /* drop */
}
END_TEST

START_TEST(linkage_table_cfa_depends_on_place_in_entry)
{
	GIVES(0x0ff8 + 16, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
	GIVES(0x0ff8 + 8, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3d, 0x2a, 0x33, 0x24, 0x22);
}
END_TEST

START_TEST(memory_is_read_whole_or_in_part)
{
	GIVES(0x1122334455667788, 0x77, 8, 0x06);
	GIVES(0x88, 0x77, 8, 0x94, 1);
	GIVES(0x7788, 0x77, 8, 0x94, 2);
	FAILS(-EFAULT, 0x31, 0x06);
	FAILS(-EBADMSG, 0x77, 8, 0x94, 9);
}
END_TEST

START_TEST(unknown_register_is_told_apart)
{
	FAILS(-ENODATA, 0x70, 0);
	FAILS(-ENODATA, 0x92, 40, 0);
}
END_TEST

START_TEST(broken_expressions_fail)
{
	FAILS(-EBADMSG, 0x22);                         /* nothing to add */
	FAILS(-EBADMSG, 0x31, 0x30, 0x1b);             /* division by zero */
	FAILS(-EBADMSG, 0x31, 0x30, 0x1d);
	FAILS(-EBADMSG, 0x0e, 1, 2);                   /* cut */
	FAILS(-EBADMSG, 0x50);                         /* a location, no value */
	FAILS(-EBADMSG, 0x31, 0x15, 3);                /* pick too deep */
	FAILS(-EBADMSG, 0x96);                         /* leaves nothing */
	FAILS(-EBADMSG, 0x2f, 0x40, 0);                /* jumps out */
	FAILS(-EBADMSG, 0x10, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1);
	FAILS(-EBADMSG, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b); /* quotient that does not fit */
}
END_TEST

START_TEST(endless_loop_ends)
{
	FAILS(-EBADMSG, 0x2f, 0xfd, 0xff);
}
END_TEST

START_TEST(full_stack_fails)
{
	FAILS(-EBADMSG, 0x31, 0x2f, 0xfc, 0xff);
}
END_TEST

START_TEST(branch_is_taken_only_on_nonzero)
{
	GIVES(2, 0x31, 0x30, 0x28, 1, 0, 0x32);
	GIVES(1, 0x31, 0x31, 0x28, 1, 0, 0x32);
}
END_TEST

START_TEST(register_rules_start_with_the_cfa)
{
	static const uint8_t code[] = {0x23, 0x10};
	uint64_t cfa = 0x500, v;

	ck_assert_int_eq(eval(code, sizeof(code), &cfa, &v), 0);
	ck_assert_uint_eq(v, 0x510);
}
END_TEST

Suite *expr_suite(void)
{
	Suite *s = suite_create("expr");
	TCase *t = tcase_create("expr");

	tcase_add_test(t, constants_keep_their_sign);
	tcase_add_test(t, arithmetic_is_signed_where_dwarf_says);
	tcase_add_test(t, stack_operations_move_the_right_values);
	tcase_add_test(t, linkage_table_cfa_depends_on_place_in_entry);
	tcase_add_test(t, memory_is_read_whole_or_in_part);
	tcase_add_test(t, unknown_register_is_told_apart);
	tcase_add_test(t, broken_expressions_fail);
	tcase_add_test(t, endless_loop_ends);
	tcase_add_test(t, full_stack_fails);
	tcase_add_test(t, branch_is_taken_only_on_nonzero);
	tcase_add_test(t, register_rules_start_with_the_cfa);
	suite_add_tcase(s, t);
	return s;
}
