// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/lib/tiny_elf.h"
#include "unwind/cfi.h"

Suite *cfi_suite(void);

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
/* def_cfa rsp 8; offset rip at cfa-8 */
#define X86_START BYTES(0x0c, 7, 8, 0x90, 1)

static struct tiny tiny;

static void x86(unsigned flags)
{
	tiny_init(&tiny, EM_X86_64, flags);
	tiny_cie(&tiny, "zR", -8, 16, X86_START);
}

static int row_at(uint64_t vaddr, struct row *ret)
{
	struct binary *b = tiny_open(&tiny);
	int err;

	ck_assert_ptr_nonnull(b);
	err = cfi_row(b, OTP_REGS_X86_64, vaddr, ret);
	binary_put(b);
	return err;
}

static void three_functions(unsigned flags)
{
	x86(flags);
	tiny_fde(&tiny, 0x2000, 0x40, BYTES(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6));
	tiny_fde(&tiny, 0x2040, 0x40, BYTES(0x44, 0x0e, 32));
	tiny_fde(&tiny, 0x2100, 0x40, BYTES(0x44, 0x0e, 48));
}

START_TEST(row_changes_at_the_exact_address)
{
	struct row r;

	three_functions(0);
	ck_assert_int_eq(row_at(0x2000, &r), 0);
	ck_assert_int_eq(r.cfa_reg, 7);
	ck_assert_int_eq(r.cfa_n, 8);
	ck_assert_int_eq(r.reg[6].kind, RULE_UNSPECIFIED);
	ck_assert_int_eq(row_at(0x2001, &r), 0);
	ck_assert_int_eq(r.cfa_n, 16);
	ck_assert_int_eq(r.reg[6].kind, RULE_OFFSET);
	ck_assert_int_eq(r.reg[6].n, -16);
	ck_assert_int_eq(r.reg[16].n, -8);
	ck_assert_int_eq(row_at(0x2004, &r), 0);
	ck_assert_int_eq(r.cfa_reg, 6);
	ck_assert_int_eq(r.cfa_n, 16);
}
END_TEST

START_TEST(address_between_functions_has_no_row)
{
	struct row r;

	three_functions(0);
	ck_assert_int_eq(row_at(0x1fff, &r), -ENOENT);
	ck_assert_int_eq(row_at(0x2080, &r), -ENOENT);
	ck_assert_int_eq(row_at(0x20ff, &r), -ENOENT);
	ck_assert_int_eq(row_at(0x2140, &r), -ENOENT);
	ck_assert_int_eq(row_at(0x2104, &r), 0);
	ck_assert_int_eq(r.cfa_n, 48);
}
END_TEST

START_TEST(section_without_header_is_indexed)
{
	struct row r;

	three_functions(TINY_NO_HDR);
	ck_assert_int_eq(row_at(0x2050, &r), 0);
	ck_assert_int_eq(r.cfa_n, 32);
	ck_assert_int_eq(row_at(0x2080, &r), -ENOENT);
}
END_TEST

START_TEST(header_alone_suffices)
{
	struct row r;

	three_functions(TINY_NO_SECTIONS);
	ck_assert_int_eq(row_at(0x2104, &r), 0);
	ck_assert_int_eq(r.cfa_n, 48);
}
END_TEST

/* Pairs are (start, entry) from TINY_HDR + 12 on. */
START_TEST(lying_table_is_not_believed)
{
	uint32_t second;
	struct row r;

	three_functions(0);
	memcpy(&second, tiny.image + TINY_HDR + 12 + 8 + 4, 4);
	memcpy(tiny.image + TINY_HDR + 12 + 4, &second, 4); /* the first start names the second entry */
	ck_assert_int_eq(row_at(0x2001, &r), 0);
	ck_assert_int_eq(r.cfa_n, 16);
}
END_TEST

START_TEST(unsorted_table_is_not_believed)
{
	uint64_t first, last;
	struct row r;

	three_functions(0);
	memcpy(&first, tiny.image + TINY_HDR + 12, 8);
	memcpy(&last, tiny.image + TINY_HDR + 12 + 16, 8);
	memcpy(tiny.image + TINY_HDR + 12, &last, 8);
	memcpy(tiny.image + TINY_HDR + 12 + 16, &first, 8);
	ck_assert_int_eq(row_at(0x2050, &r), 0);
	ck_assert_int_eq(r.cfa_n, 32);
}
END_TEST

START_TEST(table_longer_than_its_segment_is_not_believed)
{
	struct row r;

	three_functions(0);
	memset(tiny.image + TINY_HDR + 8, 0xff, 4);
	ck_assert_int_eq(row_at(0x2050, &r), 0);
	ck_assert_int_eq(r.cfa_n, 32);
}
END_TEST

START_TEST(remembered_state_comes_back)
{
	struct row r;

	x86(0);
	/* push rbp; ...; remember; pop; (ret) restore */
	tiny_fde(&tiny, 0x2000, 0x40, BYTES(0x41, 0x0e, 16, 0x86, 2, 0x42, 0x0a, 0xc6, 0x0e, 8, 0x41, 0x0b));
	ck_assert_int_eq(row_at(0x2003, &r), 0);
	ck_assert_int_eq(r.cfa_n, 8);
	ck_assert_int_eq(r.reg[6].kind, RULE_UNSPECIFIED);
	ck_assert_int_eq(row_at(0x2004, &r), 0);
	ck_assert_int_eq(r.cfa_n, 16);
	ck_assert_int_eq(r.reg[6].kind, RULE_OFFSET);
}
END_TEST

START_TEST(expressions_are_named_by_their_place)
{
	struct row r;

	x86(0);
	tiny_fde(&tiny, 0x2000, 0x40,
		 BYTES(0x0f, 3, 0x76, 0x78, 0x06, 0x10, 3, 2, 0x76, 0x70, 0x16, 12, 2, 0x76, 0, 0x2e, 0x10));
	ck_assert_int_eq(row_at(0x2000, &r), 0);
	ck_assert_int_eq(r.cfa_kind, CFA_EXPR);
	ck_assert_int_eq(r.cfa_len, 3);
	ck_assert_int_eq(tiny.image[r.cfa_n], 0x76);
	ck_assert_int_eq(r.reg[3].kind, RULE_EXPR);
	ck_assert_int_eq(r.reg[3].len, 2);
	ck_assert_int_eq(tiny.image[r.reg[3].n + 1], 0x70);
	ck_assert_int_eq(r.reg[12].kind, RULE_VAL_EXPR);
}
END_TEST

START_TEST(every_register_rule_is_read)
{
	struct row r;

	x86(0);
	tiny_fde(&tiny, 0x2000, 0x40,
		 BYTES(0x05, 3, 3, 0x07, 16, 0x08, 12, 0x09, 13, 1, 0x11, 14, 0x7e, 0x14, 15, 2, 0x2f, 6, 4, 0x12, 7, 0x7c,
		       0x13, 0x7b));
	ck_assert_int_eq(row_at(0x2000, &r), 0);
	ck_assert_int_eq(r.reg[3].n, -24);
	ck_assert_int_eq(r.reg[16].kind, RULE_UNDEFINED);
	ck_assert_int_eq(r.reg[12].kind, RULE_SAME);
	ck_assert_int_eq(r.reg[13].kind, RULE_REGISTER);
	ck_assert_int_eq(r.reg[13].n, 1);
	ck_assert_int_eq(r.reg[14].n, 16);
	ck_assert_int_eq(r.reg[15].kind, RULE_VAL_OFFSET);
	ck_assert_int_eq(r.reg[15].n, -16);
	ck_assert_int_eq(r.reg[6].n, 32);
	ck_assert_int_eq(r.cfa_n, 40);
}
END_TEST

START_TEST(signal_frames_say_so)
{
	struct row r;

	tiny_init(&tiny, EM_X86_64, 0);
	tiny_cie(&tiny, "zRS", -8, 16, X86_START);
	tiny_fde(&tiny, 0x2000, 0x40, BYTES(0));
	ck_assert_int_eq(row_at(0x2000, &r), 0);
	ck_assert(r.flags & ROW_SIGNAL);
}
END_TEST

START_TEST(unknown_operation_is_an_error)
{
	struct row r;

	x86(0);
	tiny_fde(&tiny, 0x2000, 0x40, BYTES(0x3f, 1, 1));
	ck_assert_int_eq(row_at(0x2000, &r), -EBADMSG);
}
END_TEST

START_TEST(restore_without_remember_is_an_error)
{
	struct row r;

	x86(0);
	tiny_fde(&tiny, 0x2000, 0x40, BYTES(0x0b));
	ck_assert_int_eq(row_at(0x2000, &r), -EBADMSG);
}
END_TEST

START_TEST(entry_longer_than_its_section_ends_the_section)
{
	struct row r;

	three_functions(TINY_NO_SECTIONS);
	memset(tiny.image + tiny.cie, 0xf0, 4);
	ck_assert_int_eq(row_at(0x2000, &r), -ENOENT);
}
END_TEST

/* As anybody can make it: a section of holes, each word of which is a terminator. */
START_TEST(section_without_an_end_is_given_up)
{
	const struct cfi_section holes = {.start = TINY_SIZE, .end = 1ULL << 40, .by_offset = true};
	int fd = memfd_create("holes", MFD_CLOEXEC);
	struct fde_table x;
	struct binary *b;

	three_functions(0);
	ck_assert_int_eq(pwrite(fd, tiny.image, sizeof(tiny.image), 0), sizeof(tiny.image));
	ck_assert_int_eq(ftruncate(fd, 1LL << 40), 0);
	ck_assert_int_eq(binary_open(fd, "holes", &b), 0);
	ck_assert_int_eq(fde_table_build(b, &holes, &x), 0);
	ck_assert(x.cut);
	ck_assert_uint_eq(x.count, 0);
	fde_table_done(&x);
	binary_put(b);
}
END_TEST

START_TEST(signed_return_address_is_told)
{
	struct binary *b;
	struct row r;

	tiny_init(&tiny, EM_AARCH64, 0);
	tiny_cie(&tiny, "zR", -8, 30, BYTES(0x0c, 31, 0));
	tiny_fde(&tiny, 0x2000, 0x40, BYTES(0x44, 0x2d, 0x44, 0x0e, 16, 0x9d, 2, 0x9e, 1));
	b = tiny_open(&tiny);
	ck_assert_int_eq(cfi_row(b, OTP_REGS_ARM64, 0x2000, &r), 0);
	ck_assert_int_eq(r.flags & ROW_SIGNED_RA, 0);
	ck_assert_int_eq(cfi_row(b, OTP_REGS_ARM64, 0x2008, &r), 0);
	ck_assert_int_eq(r.flags & ROW_SIGNED_RA, ROW_SIGNED_RA);
	ck_assert_int_eq(r.reg[30].n, -8);
	binary_put(b);
}
END_TEST

Suite *cfi_suite(void)
{
	Suite *s = suite_create("cfi");
	TCase *t = tcase_create("cfi");

	tcase_add_test(t, row_changes_at_the_exact_address);
	tcase_add_test(t, address_between_functions_has_no_row);
	tcase_add_test(t, section_without_header_is_indexed);
	tcase_add_test(t, header_alone_suffices);
	tcase_add_test(t, lying_table_is_not_believed);
	tcase_add_test(t, unsorted_table_is_not_believed);
	tcase_add_test(t, table_longer_than_its_segment_is_not_believed);
	tcase_add_test(t, remembered_state_comes_back);
	tcase_add_test(t, expressions_are_named_by_their_place);
	tcase_add_test(t, every_register_rule_is_read);
	tcase_add_test(t, signal_frames_say_so);
	tcase_add_test(t, unknown_operation_is_an_error);
	tcase_add_test(t, restore_without_remember_is_an_error);
	tcase_add_test(t, entry_longer_than_its_section_ends_the_section);
	tcase_add_test(t, section_without_an_end_is_given_up);
	tcase_add_test(t, signed_return_address_is_told);
	suite_add_tcase(s, t);
	return s;
}
