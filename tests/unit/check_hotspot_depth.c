// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>
#include <string.h>

#include "runtime/hotspot.h"

Suite *hotspot_depth_suite(void);

#define AT 0x7f0000001000u

static uint8_t code[8192];

static int code_read(struct memory *m, uint64_t addr, void *to, size_t len)
{
	if (addr < AT || addr - AT > sizeof(code) || len > sizeof(code) - (addr - AT))
		return -EFAULT;
	memcpy(to, code + (addr - AT), len);
	return 0;
}

static struct memory memory = {.read = code_read};
static struct runtime_code region;

static void follow(const void *bytes, size_t len)
{
	memset(&region, 0, sizeof(region));
	memset(code, 0, sizeof(code));
	memcpy(code, bytes, len);
	region.start = AT;
	region.end = AT + len;
	memory_question(&memory);
	hotspot_depth_read(&memory, &region);
}

/* depth and saved at an offset; a depth of 0: not known, of 1: by the frame pointer. */
static void expect(uint64_t at, uint32_t depth, uint32_t saved)
{
	struct hotspot_depth d = {0};
	int err = hotspot_depth_at(&region, AT + at, &d);

	ck_assert_int_eq(err, depth ? 0 : -ENOENT);
	if (depth == 1)
		ck_assert(d.by_fp);
	else if (depth)
		ck_assert_uint_eq(d.depth, depth);
	if (depth > 1)
		ck_assert(!d.by_fp);
	if (depth)
		ck_assert_uint_eq(d.saved, saved);
}

START_TEST(what_is_pushed_is_counted_on_both_ways_out)
{
	/* push rdi; push rsi; test; jne +3; pop rsi; pop rdi; ret; pop rsi; pop rdi; ret */
	follow("\x57\x56\x48\x85\xf6\x75\x03\x5e\x5f\xc3\x5e\x5f\xc3", 13);
	expect(0, 8, 0);
	expect(1, 16, 0);
	expect(2, 24, 0);
	expect(7, 24, 0);
	expect(8, 16, 0);
	expect(9, 8, 0);
	expect(10, 24, 0);
	expect(11, 16, 0);
	expect(12, 8, 0);
	expect(13, 0, 0);
}
END_TEST

START_TEST(a_frame_that_is_made_and_left_keeps_the_callers_frame_pointer)
{
	/* push rbp; mov rbp, rsp; push rax; sub rsp, 16; leave; ret */
	follow("\x55\x48\x8b\xec\x50\x48\x83\xec\x10\xc9\xc3", 11);
	expect(0, 8, 0);
	expect(1, 16, 16);
	expect(4, 16, 16);
	expect(5, 24, 16);
	expect(9, 40, 16);
	expect(10, 8, 0);
}
END_TEST

START_TEST(an_aligned_stack_is_left_by_the_frame_pointer)
{
	/* push rbp; mov rbp, rsp; and rsp, -32; push rax; mov rsp, rbp; pop rbp; ret */
	follow("\x55\x48\x89\xe5\x48\x83\xe4\xe0\x50\x48\x89\xec\x5d\xc3", 14);
	expect(4, 16, 16);
	expect(8, 1, 16);
	expect(9, 1, 16);
	expect(12, 16, 16);
	expect(13, 8, 0);
}
END_TEST

START_TEST(of_an_aligned_stack_nothing_is_known_once_the_frame_pointer_is_gone)
{
	/* push rbp; mov rbp, rsp; and rsp, -32; pop rbp; nop */
	follow("\x55\x48\x89\xe5\x48\x83\xe4\xe0\x5d\x90", 10);
	expect(8, 1, 16);
	expect(9, 0, 0);
	/* the same, mov rbp, rax; nop */
	follow("\x55\x48\x89\xe5\x48\x83\xe4\xe0\x48\x89\xc5\x90", 12);
	expect(11, 0, 0);
}
END_TEST

/* By the frame pointer that lies so far above the stack pointer. */
static void expect_kept(uint64_t at, uint32_t kept)
{
	struct hotspot_depth d = {0};

	ck_assert_int_eq(hotspot_depth_at(&region, AT + at, &d), 0);
	ck_assert(d.by_kept && !d.by_fp);
	ck_assert_uint_eq(d.saved, kept);
}

START_TEST(a_frame_pointer_that_was_kept_in_the_frame_leads_on)
{
	/* push rbp; mov rbp, rsp; and rsp, -32; mov [rsp + 0x40], rbp; xor ebp, ebp; push rax; pop rax; mov rbp, [rsp + 0x40];
	 * mov rsp, [rsp + 0x38]; pop rcx; nop */
	follow("\x55\x48\x89\xe5\x48\x83\xe4\xe0\x48\x89\x6c\x24\x40\x31\xed\x50\x58\x48\x8b\x6c\x24\x40"
	       "\x48\x8b\x64\x24\x38\x59\x90", 29);
	expect(8, 1, 16);
	expect(13, 1, 16);
	expect_kept(15, 0x40);
	expect_kept(16, 0x48);
	expect_kept(17, 0x40);
	expect(22, 1, 16);
	expect(27, 1, 16);
	expect(28, 1, 16);
	/* the same up to xor; mov rsp, rax: it lies elsewhere then */
	follow("\x55\x48\x89\xe5\x48\x83\xe4\xe0\x48\x89\x6c\x24\x40\x31\xed\x48\x89\xc4\x90", 19);
	expect_kept(15, 0x40);
	expect(18, 0, 0);
	/* the same; leave, and mov rsp, rbp, go by the register */
	follow("\x55\x48\x89\xe5\x48\x83\xe4\xe0\x48\x89\x6c\x24\x40\x31\xed\xc9\x90", 17);
	expect(16, 0, 0);
	follow("\x55\x48\x89\xe5\x48\x83\xe4\xe0\x48\x89\x6c\x24\x40\x31\xed\x48\x89\xec\x90", 19);
	expect(18, 0, 0);
	/* the same up to mov [rsp + 0x40], rbp; mov [rsp + 0x40], rax; xor ebp, ebp; nop: it is overwritten */
	follow("\x55\x48\x89\xe5\x48\x83\xe4\xe0\x48\x89\x6c\x24\x40\x48\x89\x44\x24\x40\x31\xed\x90", 21);
	expect(18, 1, 16);
	expect(20, 0, 0);
	/* the same, the store behind the xor */
	follow("\x55\x48\x89\xe5\x48\x83\xe4\xe0\x48\x89\x6c\x24\x40\x31\xed\x48\x89\x44\x24\x40\x90", 21);
	expect_kept(15, 0x40);
	expect(20, 0, 0);
	/* what is taken back from elsewhere is none */
	follow("\x55\x48\x89\xe5\x48\x83\xe4\xe0\x48\x89\x6c\x24\x40\x31\xed\x48\x8b\x6c\x24\x48\x90", 21);
	expect_kept(20, 0x40);
}
END_TEST

START_TEST(a_frame_pointer_with_a_value_of_its_own_leads_nowhere)
{
	/* xor ebp, ebp; nop */
	follow("\x31\xed\x90", 3);
	expect(2, 0, 0);
	/* push rbp; mov rbp, rsp; lea rbp, [rax + 8]; nop; leave; ret */
	follow("\x55\x48\x89\xe5\x48\x8d\x68\x08\x90\xc9\xc3", 11);
	expect(8, 16, 16);
	expect(10, 0, 0);
	/* push rbp; mov rbp, rsp; push rbp; push rax; mov rbp, [rsp + 8]; add rsp, 16; pop rbp; ret */
	follow("\x55\x48\x89\xe5\x55\x50\x48\x8b\x6c\x24\x08\x48\x83\xc4\x10\x5d\xc3", 17);
	expect(6, 32, 16);
	expect(11, 32, 16);
	expect(15, 16, 16);
	expect(16, 8, 0);
	/* push rbp; mov rbp, rsp; vpxor ymm0, ymm0, ymm0; leave; ret */
	follow("\x55\x48\x89\xe5\xc5\xfd\xef\xc0\xc9\xc3", 10);
	expect(8, 16, 16);
	expect(9, 8, 0);
}
END_TEST

START_TEST(a_stack_that_is_elsewhere_is_not_known)
{
	/* and rsp, -32; ret */
	follow("\x48\x83\xe4\xe0\xc3", 5);
	expect(0, 8, 0);
	expect(4, 0, 0);
	/* xchg rsp, rax */
	follow("\x48\x87\xe0\xc3", 4);
	expect(3, 0, 0);
}
END_TEST

START_TEST(what_only_a_jump_back_leads_to_has_its_depth)
{
	/* jmp +2; push rax; ret; jmp -4 */
	follow("\xeb\x02\x50\xc3\xeb\xfc", 6);
	expect(0, 8, 0);
	expect(2, 8, 0);
	expect(3, 16, 0);
	expect(4, 8, 0);
	/* A loop that is entered in its middle: push rbp; jmp 5; 3: nop; nop; 5: nop; jne 3; pop rbp; ret */
	follow("\x55\xeb\x02\x90\x90\x90\x75\xfb\x5d\xc3", 10);
	for (uint64_t at = 3; at <= 8; at++)
		expect(at, 16, 16);
	expect(9, 8, 0);
}
END_TEST

/* As checkcast_arraycopy with barriers of a collector, which saves all registers twice. */
START_TEST(of_many_changes_in_a_frame_with_a_frame_pointer_that_leads_on)
{
	uint8_t many[4 + 2 * 40 + 2] = {0x55, 0x48, 0x89, 0xe5}; /* push rbp; mov rbp, rsp */

	for (size_t i = 4; i < sizeof(many) - 2; i += 2)
		memcpy(many + i, "\x50\x58", 2); /* push rax; pop rax */
	memcpy(many + sizeof(many) - 2, "\xc9\xc3", 2); /* leave; ret */
	follow(many, sizeof(many));
	expect(0, 8, 0);
	expect(1, 16, 16);
	for (uint64_t at = 4; at < sizeof(many) - 1; at++)
		expect(at, 1, 16);
	expect(sizeof(many) - 1, 8, 0);
}
END_TEST

START_TEST(what_nothing_leads_to_is_not_known)
{
	/* jmp +2; push rax; ret; nop */
	follow("\xeb\x02\x50\xc3\x90", 5);
	expect(2, 0, 0);
	expect(4, 8, 0);
}
END_TEST

START_TEST(ways_of_other_depths_that_meet_are_not_known)
{
	/* je +1; push rax; nop; ret */
	follow("\x74\x01\x50\x90\xc3", 5);
	expect(2, 8, 0);
	expect(3, 0, 0);
}
END_TEST

START_TEST(a_frame_pointer_of_anothers_is_not_taken_back)
{
	/* push rax; pop rbp; ret */
	follow("\x50\x5d\xc3", 3);
	expect(1, 16, 0);
	expect(2, 0, 0);
}
END_TEST

START_TEST(behind_as_many_changes_as_there_is_room_for_nothing_is_known)
{
	uint8_t pushes[64];

	memset(pushes, 0x50, sizeof(pushes));
	follow(pushes, sizeof(pushes));
	expect(30, 8 * 31, 0);
	expect(31, 0, 0);
	expect(60, 0, 0);
}
END_TEST

START_TEST(what_is_no_instruction_ends_what_is_known)
{
	follow("\x50\x0f", 2);
	expect(0, 8, 0);
	expect(1, 0, 0);
}
END_TEST

START_TEST(code_that_cannot_be_read_has_no_depth)
{
	memset(&region, 0, sizeof(region));
	region.start = AT + sizeof(code) - 4;
	region.end = region.start + 64;
	hotspot_depth_read(&memory, &region);
	expect(sizeof(code) - 4, 0, 0);
}
END_TEST

START_TEST(of_long_code_only_the_beginning_is_followed)
{
	uint8_t nops[8000];

	memset(nops, 0x90, sizeof(nops));
	follow(nops, sizeof(nops));
	expect(4094, 8, 0);
	expect(4095, 0, 0);
	expect(7000, 0, 0);
}
END_TEST

Suite *hotspot_depth_suite(void)
{
	Suite *s = suite_create("hotspot_depth");
	TCase *t = tcase_create("depth");

	tcase_add_test(t, what_is_pushed_is_counted_on_both_ways_out);
	tcase_add_test(t, a_frame_that_is_made_and_left_keeps_the_callers_frame_pointer);
	tcase_add_test(t, an_aligned_stack_is_left_by_the_frame_pointer);
	tcase_add_test(t, of_an_aligned_stack_nothing_is_known_once_the_frame_pointer_is_gone);
	tcase_add_test(t, a_frame_pointer_that_was_kept_in_the_frame_leads_on);
	tcase_add_test(t, a_frame_pointer_with_a_value_of_its_own_leads_nowhere);
	tcase_add_test(t, a_stack_that_is_elsewhere_is_not_known);
	tcase_add_test(t, what_only_a_jump_back_leads_to_has_its_depth);
	tcase_add_test(t, what_nothing_leads_to_is_not_known);
	tcase_add_test(t, of_many_changes_in_a_frame_with_a_frame_pointer_that_leads_on);
	tcase_add_test(t, ways_of_other_depths_that_meet_are_not_known);
	tcase_add_test(t, a_frame_pointer_of_anothers_is_not_taken_back);
	tcase_add_test(t, behind_as_many_changes_as_there_is_room_for_nothing_is_known);
	tcase_add_test(t, what_is_no_instruction_ends_what_is_known);
	tcase_add_test(t, code_that_cannot_be_read_has_no_depth);
	tcase_add_test(t, of_long_code_only_the_beginning_is_followed);
	suite_add_tcase(s, t);
	return s;
}
