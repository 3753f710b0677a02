// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <string.h>

#include "runtime/memory.h"

Suite *runtime_memory_suite(void);

#define AT  0x10000u
#define LEN 4096u

static struct process {
	struct memory memory; /* first */
	uint8_t byte[LEN];
	size_t len;
	uint32_t reads;
} process;

static int process_read(struct memory *m, uint64_t addr, void *to, size_t len)
{
	struct process *p = (struct process *)m;

	p->reads++;
	if (addr < AT || addr - AT > p->len || len > p->len - (addr - AT))
		return -EFAULT;
	memcpy(to, p->byte + (addr - AT), len);
	return 0;
}

static void setup(void)
{
	memset(&process, 0, sizeof(process));
	process.memory.read = process_read;
	process.len = LEN;
	for (uint32_t i = 0; i < LEN; i++)
		process.byte[i] = (uint8_t)(i / 8);
	memory_question(&process.memory);
}

static uint64_t word(uint64_t at)
{
	uint64_t v = 0;

	ck_assert_int_eq(memory_u64(&process.memory, AT + at, &v), 0);
	return v;
}

START_TEST(gathered_fields_of_one_line_are_one_read)
{
	memory_gather(&process.memory);
	ck_assert_uint_eq(word(8), 0x0101010101010101);
	ck_assert_uint_eq(word(248), 0x1f1f1f1f1f1f1f1f);
	ck_assert_uint_eq(word(0), 0);
	ck_assert_uint_eq(process.reads, 1);
	ck_assert_uint_eq(process.memory.reads, 3);
}
END_TEST

START_TEST(a_field_over_two_lines_is_read_by_itself)
{
	memory_gather(&process.memory);
	ck_assert_uint_eq(word(252), 0x202020201f1f1f1f);
	ck_assert_uint_eq(process.reads, 1);
}
END_TEST

START_TEST(where_a_line_is_not_all_there_its_fields_are)
{
	process.len = 300;
	memory_gather(&process.memory);
	ck_assert_uint_eq(word(256), 0x2020202020202020);
	ck_assert_uint_eq(word(264), 0x2121212121212121);
	process.len = LEN;
	ck_assert_uint_eq(word(256), 0x2020202020202020);
}
END_TEST

START_TEST(lines_that_share_a_place_are_told_apart)
{
	memory_gather(&process.memory);
	process.byte[0] = 7;
	ck_assert_uint_eq(word(0), 7);
	process.len = 0;
	ck_assert_uint_eq(word(0), 7);
	ck_assert_int_eq(memory_u64(&process.memory, AT + MEMORY_LINE * MEMORY_LINES, &(uint64_t){0}), -EFAULT);
	ck_assert_int_eq(memory_u64(&process.memory, AT, &(uint64_t){0}), -EFAULT);
}
END_TEST

START_TEST(what_changes_is_seen_where_nothing_is_gathered)
{
	memory_gather(&process.memory);
	word(0);
	memory_gather_done(&process.memory);
	process.byte[0] = 7;
	ck_assert_uint_eq(word(0), 7);
	memory_gather(&process.memory);
	ck_assert_uint_eq(word(0), 7);
	process.byte[0] = 8;
	memory_gather(&process.memory);
	ck_assert_uint_eq(word(0), 8);
}
END_TEST

START_TEST(the_next_question_gathers_nothing)
{
	memory_gather(&process.memory);
	word(0);
	memory_question(&process.memory);
	process.byte[0] = 7;
	ck_assert_uint_eq(word(0), 7);
}
END_TEST

START_TEST(gathered_reads_count_against_the_budget)
{
	uint64_t v;
	int err = 0;

	memory_gather(&process.memory);
	for (uint32_t i = 0; i <= MEMORY_READS_MAX && !err; i++)
		err = memory_u64(&process.memory, AT, &v);
	ck_assert_int_eq(err, -E2BIG);
}
END_TEST

Suite *runtime_memory_suite(void)
{
	Suite *s = suite_create("runtime_memory");
	TCase *t = tcase_create("gather");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, gathered_fields_of_one_line_are_one_read);
	tcase_add_test(t, a_field_over_two_lines_is_read_by_itself);
	tcase_add_test(t, where_a_line_is_not_all_there_its_fields_are);
	tcase_add_test(t, lines_that_share_a_place_are_told_apart);
	tcase_add_test(t, what_changes_is_seen_where_nothing_is_gathered);
	tcase_add_test(t, the_next_question_gathers_nothing);
	tcase_add_test(t, gathered_reads_count_against_the_budget);
	suite_add_tcase(s, t);
	return s;
}
