// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/arch.h"

Suite *roots_suite(void);

/* What lies before and behind where a call returns to. */
static const struct {
	const char *text;
	const struct arch *arch;
	uint8_t before[8], after[15];
	bool root;
} places[] = {
	{"musl's clone", &arch_x86_64, {[6] = 0xff, 0xd1}, {0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05}, true},
	{"a call between two nops", &arch_x86_64, {[7] = 0x90}, {0xe8, 1, 2, 3, 4, 0x90}, false},
	{"Boost.Context's first function", &arch_x86_64, {[5] = 0x55, 0xff, 0xe3}, {0x48, 0x31, 0xff, 0xe8, 1, 2, 3, 4, 0xf4}, true},
	{"a jump, and an exit that goes on", &arch_x86_64, {[6] = 0xff, 0xe3}, {0x48, 0x31, 0xff, 0xe8, 1, 2, 3, 4, 0xc3}, false},
	{"exit of main, then padding", &arch_x86_64, {[6] = 0xff, 0xd3},
	 {0x89, 0xc7, 0xe8, 0xff, 0xa2, 0xff, 0xff, 0x66, 0x2e, 0x0f, 0x1f, 0x84}, true},
	{"exit of main, then a push", &arch_x86_64, {[5] = 0x41, 0xff, 0xd4}, {0x89, 0xc7, 0xe8, 1, 0, 0, 0, 0x41, 0x55}, true},
	{"exit of main, then endbr64", &arch_x86_64, {[6] = 0xff, 0xd3},
	 {0x89, 0xc7, 0xe8, 1, 0, 0, 0, 0xf3, 0x0f, 0x1e, 0xfa}, true},
	{"a call that goes on", &arch_x86_64, {[6] = 0xff, 0xd3}, {0x89, 0xc7, 0xe8, 1, 0, 0, 0, 0x48, 0x83, 0xc4, 8}, false},
	{"of a direct call", &arch_x86_64, {[3] = 0xe8, 1, 2, 3, 4}, {0x89, 0xc7, 0xe8, 1, 0, 0, 0, 0x66, 0x90}, false},
	{"of another register", &arch_x86_64, {[6] = 0xff, 0xd3}, {0x89, 0xc6, 0xe8, 1, 0, 0, 0, 0x66, 0x90}, false},
	{"musl's clone on arm64", &arch_arm64, {[4] = 0x20, 0, 0x3f, 0xd6}, {0xa8, 0x0b, 0x80, 0xd2, 1, 0, 0, 0xd4}, true},
	{"exit of main, then nop", &arch_arm64, {[4] = 0xa0, 2, 0x3f, 0xd6}, {1, 0, 0, 0x94, 0x1f, 0x20, 0x03, 0xd5}, true},
	{"exit of main, then stp", &arch_arm64, {[4] = 0xa0, 2, 0x3f, 0xd6}, {1, 0, 0, 0x94, 0xf3, 0x53, 0xbe, 0xa9}, true},
	{"exit of main, then sub", &arch_arm64, {[4] = 0xa0, 2, 0x3f, 0xd6}, {1, 0, 0, 0x94, 0xff, 0x43, 0x00, 0xd1}, true},
	{"a call that goes on, on arm64", &arch_arm64, {[4] = 0xa0, 2, 0x3f, 0xd6}, {1, 0, 0, 0x94, 0xff, 0x43, 0x00, 0x91}, false},
	{"of a direct call on arm64", &arch_arm64, {[4] = 1, 0, 0, 0x94}, {1, 0, 0, 0x94, 0x1f, 0x20, 0x03, 0xd5}, false},
};

START_TEST(nobody_calls_what_hands_its_result_to_exit)
{
	struct code code = {{0}};

	memcpy(code.bytes + CODE_RETURN - 8, places[_i].before, 8);
	memcpy(code.bytes + CODE_RETURN, places[_i].after, 15);
	ck_assert_msg(places[_i].arch->thread_start(&code) == places[_i].root, "%s", places[_i].text);
}
END_TEST

/* The code around such a system call, and how many of its bytes were passed. */
static const struct {
	const char *text;
	const struct arch *arch;
	uint8_t code[16];
	unsigned passed;
	bool clone;
} calls[] = {
	{"glibc's clone", &arch_x86_64, {0xb8, 56, 0, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 0x13}, 7, true},
	{"glibc's clone3, before its second jump", &arch_x86_64,
	 {0xb8, 0xb3, 1, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c, 0x18, 0x74, 1}, 12, true},
	{"the call itself is still to come", &arch_x86_64, {0xb8, 56, 0, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xc0}, 5, false},
	{"glibc's fork", &arch_x86_64, {0xb8, 56, 0, 0, 0, 0x0f, 0x05, 0x48, 0x3d, 0, 0xf0, 0xff, 0xff}, 7, false},
	{"musl's clone", &arch_x86_64, {0x48, 0x89, 0x0e, 0x0f, 0x05, 0x85, 0xc0, 0x75, 0x0f}, 7, true},
	{"glibc's clone on arm64", &arch_arm64, {0x88, 0x1b, 0x80, 0xd2, 1, 0, 0, 0xd4, 0x1f, 0, 0, 0xf1, 0xa0, 0, 0, 0x54}, 8, true},
	{"musl's clone on arm64", &arch_arm64, {0x88, 0x1b, 0x80, 0xd2, 1, 0, 0, 0xd4, 0x40, 0, 0, 0xb4}, 12, true},
	{"another call on arm64", &arch_arm64, {0x08, 0x1b, 0x80, 0xd2, 1, 0, 0, 0xd4, 0x1f, 0, 0, 0xf1}, 8, false},
};

START_TEST(a_new_thread_is_known_by_the_call_that_made_it)
{
	struct code code = {{0}};

	memcpy(code.bytes + CODE_AT - calls[_i].passed, calls[_i].code, 16);
	ck_assert_msg(calls[_i].arch->after_clone(&code) == calls[_i].clone, "%s", calls[_i].text);
}
END_TEST

Suite *roots_suite(void)
{
	Suite *s = suite_create("roots");
	TCase *t = tcase_create("roots");

	tcase_add_loop_test(t, nobody_calls_what_hands_its_result_to_exit, 0, ARRAY_SIZE(places));
	tcase_add_loop_test(t, a_new_thread_is_known_by_the_call_that_made_it, 0, ARRAY_SIZE(calls));
	suite_add_tcase(s, t);
	return s;
}
