// SPDX-License-Identifier: Apache-2.0
/* What instructions do to where BEAM's interpreter has its place and its stack pointer. */
#include <check.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam_flow.h"

Suite *beam_flow_suite(void);

enum { RBX = FLOW_REGISTER + 3, R13 = FLOW_REGISTER + 13, STOP = 0x58 };

static const struct {
	const char *text;
	uint8_t code[16];
	uint32_t len, place, stack; /* both behind it */
} cases[] = {
	{"nop", {0x90}, 1, RBX, R13},
	{"add $24,%rbx", {0x48, 0x83, 0xc3, 24}, 4, RBX, R13},
	{"sub $-24,%rbx", {0x48, 0x83, 0xeb, 0xe8}, 4, RBX, R13},
	{"add $-24,%rbx", {0x48, 0x83, 0xc3, 0xe8}, 4, FLOW_NOWHERE, R13},
	{"add $4096,%rbx", {0x48, 0x81, 0xc3, 0, 0x10}, 7, FLOW_NOWHERE, R13},
	{"mov %rbx,%rax; xor %ebx,%ebx; xchg %rax,%rdx", {0x48, 0x89, 0xd8, 0x31, 0xdb, 0x48, 0x92}, 7, FLOW_NOWHERE, R13},
	{"mov %rbx,%r8; xor %ebx,%ebx; xchg %rax,%r8", {0x49, 0x89, 0xd8, 0x31, 0xdb, 0x49, 0x90}, 7, FLOW_NOWHERE, R13},
	{"or $1,%bh", {0x80, 0xcf, 1}, 3, FLOW_NOWHERE, R13},
	{"or $1,%dil", {0x40, 0x80, 0xcf, 1}, 4, RBX, R13},
	{"mov $1,%bh", {0xb7, 1}, 2, FLOW_NOWHERE, R13},
	{"crc32 %rax,%rbx", {0xf2, 0x48, 0x0f, 0x38, 0xf1, 0xd8}, 6, FLOW_NOWHERE, FLOW_NOWHERE},
	{"mov 0x58(%rsp),%r13", {0x4c, 0x8b, 0x6c, 0x24, STOP}, 5, RBX, FLOW_NOWHERE},
	{"mov 0x58(%rbp),%r13", {0x4c, 0x8b, 0x6d, STOP}, 4, RBX, R13},
	{"add $16,%r13", {0x49, 0x83, 0xc5, 16}, 4, RBX, R13},
	{"mov %r13,%rax; add $16,%r13; mov %rax,%r13", {0x4c, 0x89, 0xe8, 0x49, 0x83, 0xc5, 16, 0x49, 0x89, 0xc5}, 10, RBX,
	 FLOW_NOWHERE},
	{"mov %r13,%rax; add $8,%rax; mov %rax,%r13", {0x4c, 0x89, 0xe8, 0x48, 0x83, 0xc0, 8, 0x49, 0x89, 0xc5}, 10, RBX,
	 FLOW_NOWHERE},
	{"mov %rbx,16(%rsp); xor %ebx,%ebx", {0x48, 0x89, 0x5c, 0x24, 16, 0x31, 0xdb}, 7, FLOW_SLOT + 2, R13},
	{"mov %rbx,16(%rsp); xor %ebx,%ebx; sub $32,%rsp",
	 {0x48, 0x89, 0x5c, 0x24, 16, 0x31, 0xdb, 0x48, 0x83, 0xec, 32}, 11, FLOW_NOWHERE, R13},
	{"mov %rbx,16(%rsp); xor %ebx,%ebx; and $-16,%rsp",
	 {0x48, 0x89, 0x5c, 0x24, 16, 0x31, 0xdb, 0x48, 0x83, 0xe4, 0xf0}, 11, FLOW_NOWHERE, R13},
};

/* Behind the jump to the next instruction of BEAM, which begins here. */
START_TEST(an_instruction_keeps_or_loses_what_it_writes)
{
	uint8_t code[32] = {0xff, 0x23}, entry[4] = {1 << 2};
	const uint32_t len = 2 + cases[_i].len + 1;
	struct flow_run runs[16];
	int n;

	memcpy(code + 2, cases[_i].code, cases[_i].len);
	code[len - 1] = 0x90;
	n = beam_flow_read(&(struct flow_code){.code = code, .len = len, .entry = entry, .stop = STOP}, runs, ARRAY_SIZE(runs));
	ck_assert_int_gt(n, 0);
	ck_assert_uint_eq(runs[n - 1].end, len);
	ck_assert_msg(runs[n - 1].place == cases[_i].place && runs[n - 1].stack == cases[_i].stack, "%s: %u, %u", cases[_i].text,
		      runs[n - 1].place, runs[n - 1].stack);
}
END_TEST

Suite *beam_flow_suite(void)
{
	Suite *s = suite_create("beam_flow");
	TCase *t = tcase_create("beam_flow");

	tcase_add_loop_test(t, an_instruction_keeps_or_loses_what_it_writes, 0, ARRAY_SIZE(cases));
	suite_add_tcase(s, t);
	return s;
}
