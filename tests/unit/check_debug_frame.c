// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "process/inflate.h"
#include "tests/lib/tiny_elf.h"
#include "unwind/cfi.h"

Suite *debug_frame_suite(void);

enum { ZLIB = 1, ZSTD = 2 }; /* ELFCOMPRESS_* */
#define MIB (1u << 20)

static struct tiny tiny;

struct bytes {
	uint8_t at[0x900];
	size_t len;
};

static void add(struct bytes *b, const void *from, size_t len)
{
	ck_assert_uint_le(b->len + len, sizeof(b->at));
	memcpy(b->at + b->len, from, len);
	b->len += len;
}

static void add_int(struct bytes *b, uint64_t v, unsigned size)
{
	add(b, &v, size);
}

/* A CIE of rsp+8, and a function at 0x2000 that pushes at once; its CFA is an expression from 0x2010 on. */
static struct bytes table_as(const char *letters)
{
	static const uint8_t cie[] = {8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1};
	static const uint8_t insn[] = {0x41, 0x0e, 16, 0x4f, 0x0f, 3, 0x77, 24, 0x06, 0};
	struct bytes b = {.len = 0};

	add_int(&b, 4 + 1 + strlen(letters) + 1 + sizeof(cie), 4);
	add_int(&b, 0xffffffff, 4);
	add_int(&b, 4, 1);
	add(&b, letters, strlen(letters) + 1);
	add(&b, cie, sizeof(cie));
	add_int(&b, 4 + 16 + sizeof(insn), 4);
	add_int(&b, 0, 4);
	add_int(&b, 0x2000, 8);
	add_int(&b, 0x40, 8);
	add(&b, insn, sizeof(insn));
	return b;
}

static struct bytes table(void)
{
	return table_as("");
}

static size_t pack(int type, const void *from, size_t len, uint8_t *to, size_t room)
{
	uLongf n = room;

	if (type == ZSTD)
		return ZSTD_compress(to, room, from, len, 1);
	ck_assert_int_eq(compress(to, &n, from, len), Z_OK);
	return n;
}

static struct bytes packed(int type, const void *from, size_t len, uint64_t claimed)
{
	Elf64_Chdr c = {.ch_type = (uint32_t)type, .ch_size = claimed, .ch_addralign = 1};
	struct bytes b = {.len = 0};

	add(&b, &c, sizeof(c));
	b.len += pack(type, from, len, b.at + b.len, sizeof(b.at) - b.len);
	return b;
}

static struct binary *open_with(const char *name, uint64_t flags, const struct bytes *b)
{
	struct binary *file;

	tiny_init(&tiny, EM_X86_64, TINY_NO_HDR | TINY_NO_SECTIONS);
	tiny_section(&tiny, name, flags, b->at, b->len);
	file = tiny_open(&tiny);
	ck_assert_ptr_nonnull(file);
	return file;
}

static void check_table(struct binary *b)
{
	uint8_t code[3];
	struct row r;

	ck_assert_uint_eq(cfi_has(b), CFI_DEBUG_FRAME);
	ck_assert_int_eq(cfi_row(b, OTP_REGS_X86_64, 0x2001, &r), 0);
	ck_assert_int_eq(r.cfa_n, 16);
	ck_assert_int_eq(cfi_row(b, OTP_REGS_X86_64, 0x2010, &r), 0);
	ck_assert_int_eq(r.cfa_kind, CFA_EXPR);
	ck_assert(r.flags & ROW_BY_OFFSET);
	ck_assert_int_eq(cfi_read(b, true, (uint64_t)r.cfa_n, code, 3), 3);
	ck_assert_mem_eq(code, "\x77\x18\x06", 3);
	ck_assert_int_eq(cfi_row(b, OTP_REGS_X86_64, 0x2040, &r), -ENOENT);
	ck_assert_uint_eq(cfi_has(b), CFI_DEBUG_FRAME | CFI_DEBUG_TABLE_BUILT);
}

START_TEST(plain_section_has_rows)
{
	struct bytes t = table();
	struct binary *b = open_with(".debug_frame", 0, &t);

	check_table(b);
	binary_put(b);
}
END_TEST

/* As the GNU assembler writes S here: without data, and no z in front; B and G have none either. */
static const struct {
	const char *letters;
	int err;
	uint8_t flags;
} letters[] = {{"S", 0, ROW_SIGNAL}, {"B", 0, 0}, {"SB", 0, ROW_SIGNAL}, {"R", -ENOENT, 0}, {"armcc+", -ENOENT, 0}};

START_TEST(letters_without_data_need_no_length)
{
	struct bytes t = table_as(letters[_i].letters);
	struct binary *b = open_with(".debug_frame", 0, &t);
	struct row r;

	ck_assert_int_eq(cfi_row(b, OTP_REGS_X86_64, 0x2001, &r), letters[_i].err);
	if (!letters[_i].err) {
		ck_assert_int_eq(r.cfa_n, 16);
		ck_assert_uint_eq(r.flags & ROW_SIGNAL, letters[_i].flags);
	}
	binary_put(b);
}
END_TEST

START_TEST(compressed_section_has_the_same_rows)
{
	struct bytes t = table(), p = packed(_i, t.at, t.len, t.len);
	struct binary *b = open_with(".debug_frame", SHF_COMPRESSED, &p);

	check_table(b);
	binary_put(b);
}
END_TEST

START_TEST(section_compressed_as_gnu_tools_did_has_the_same_rows)
{
	struct bytes t = table(), p = {.len = 0};
	struct binary *b;

	add(&p, "ZLIB", 4);
	add_int(&p, __builtin_bswap64(t.len), 8);
	p.len += pack(ZLIB, t.at, t.len, p.at + p.len, sizeof(p.at) - p.len);
	b = open_with(".zdebug_frame", 0, &p);
	check_table(b);
	binary_put(b);
}
END_TEST

static int error_of(const struct bytes *p, size_t max)
{
	struct binary *b = open_with(".debug_frame", SHF_COMPRESSED, p);
	_cleanup_(freep) uint8_t *out = NULL;
	size_t len;
	int r = section_inflate(b, binary_section(b, ".debug_frame"), max, &out, &len);

	ck_assert((r == 0) == (out != NULL));
	binary_put(b);
	return r;
}

/* What cannot be unpacked is as if it were not there, also the second time. */
static void check_refused(const struct bytes *p, int error)
{
	struct binary *b = open_with(".debug_frame", SHF_COMPRESSED, p);
	struct row row;

	ck_assert_int_eq(error_of(p, CFI_UNPACKED_MAX), error);
	ck_assert_int_eq(cfi_row(b, OTP_REGS_X86_64, 0x2001, &row), -ENOENT);
	ck_assert_int_eq(cfi_row(b, OTP_REGS_X86_64, 0x2001, &row), -ENOENT);
	ck_assert_uint_eq(cfi_has(b), 0);
	binary_put(b);
}

START_TEST(section_beyond_the_bound_is_refused)
{
	struct bytes t = table(), p = packed(_i, t.at, t.len, t.len);

	ck_assert_int_eq(error_of(&p, t.len - 1), -EFBIG);
	ck_assert_int_eq(error_of(&p, CFI_UNPACKED_MAX), 0);
	p = packed(_i, t.at, t.len, CFI_UNPACKED_MAX + 1);
	check_refused(&p, -EFBIG);
	p = packed(_i, t.at, t.len, MIB); /* of so few bytes? */
	check_refused(&p, -EFBIG);
}
END_TEST

START_TEST(section_of_another_length_than_it_says_is_refused)
{
	struct bytes t = table(), p = packed(_i, t.at, t.len, t.len - 1);

	check_refused(&p, -EBADMSG);
	p = packed(_i, t.at, t.len, t.len + 1);
	check_refused(&p, -EBADMSG);
}
END_TEST

START_TEST(damaged_section_is_refused)
{
	struct bytes t = table(), p = packed(_i, t.at, t.len, t.len);

	p.at[sizeof(Elf64_Chdr)] ^= 0xff;
	check_refused(&p, -EBADMSG);
	p = packed(_i, t.at, t.len, t.len);
	p.len = sizeof(Elf64_Chdr) + 1;
	check_refused(&p, -EBADMSG);
	p.len = sizeof(Elf64_Chdr);
	check_refused(&p, -EBADMSG);
}
END_TEST

START_TEST(unknown_compression_is_refused)
{
	struct bytes t = table(), p = packed(ZLIB, t.at, t.len, t.len);

	p.at[0] = 3;
	check_refused(&p, -ENOTSUP);
}
END_TEST

/* The table, what is no entry and packs badly, and zeros up to len. */
static struct bytes padded(size_t len)
{
	_cleanup_(freep) uint8_t *whole = calloc(1, len);
	struct bytes t = table();
	uint32_t random = 1;

	ck_assert_ptr_nonnull(whole);
	memcpy(whole, t.at, t.len);
	for (size_t i = t.len; i < t.len + 1200; i++)
		whole[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
	return packed(ZSTD, whole, len, len);
}

START_TEST(unpacked_sections_share_a_budget_and_give_it_back)
{
	struct bytes p = padded(MIB);
	struct binary *b[CFI_BUDGET / MIB + 1];
	struct row r;

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(b); i++) {
			b[i] = open_with(".debug_frame", SHF_COMPRESSED, &p);
			ck_assert_int_eq(cfi_row(b[i], OTP_REGS_X86_64, 0x2001, &r), i < ARRAY_SIZE(b) - 2 ? 0 : -ENOENT);
		}
		for (size_t i = 0; i < ARRAY_SIZE(b); i++)
			binary_put(b[i]);
	}
}
END_TEST

Suite *debug_frame_suite(void)
{
	Suite *s = suite_create("debug_frame");
	TCase *t = tcase_create("debug_frame");

	tcase_add_test(t, plain_section_has_rows);
	tcase_add_loop_test(t, letters_without_data_need_no_length, 0, (int)ARRAY_SIZE(letters));
	tcase_add_loop_test(t, compressed_section_has_the_same_rows, ZLIB, ZSTD + 1);
	tcase_add_test(t, section_compressed_as_gnu_tools_did_has_the_same_rows);
	tcase_add_loop_test(t, section_beyond_the_bound_is_refused, ZLIB, ZSTD + 1);
	tcase_add_loop_test(t, section_of_another_length_than_it_says_is_refused, ZLIB, ZSTD + 1);
	tcase_add_loop_test(t, damaged_section_is_refused, ZLIB, ZSTD + 1);
	tcase_add_test(t, unknown_compression_is_refused);
	tcase_add_test(t, unpacked_sections_share_a_budget_and_give_it_back);
	suite_add_tcase(s, t);
	return s;
}
