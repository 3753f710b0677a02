// SPDX-License-Identifier: Apache-2.0
/* What instructions do to where BEAM's interpreter has its place and its stack pointer. */
#include <check.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/beam_flow.h"

Suite *beam_flow_suite(void);

enum { RBX = BEAM_FLOW_REGISTER + 3, R13 = BEAM_FLOW_REGISTER + 13, STOP = 0x58 };

static const struct {
	const char *text;
	uint8_t code[16];
	uint32_t len, place, stack; /* both behind it */
} cases[] = {
	{"nop", {0x90}, 1, RBX, R13},
	{"add $24,%rbx", {0x48, 0x83, 0xc3, 24}, 4, RBX, R13},
	{"sub $-24,%rbx", {0x48, 0x83, 0xeb, 0xe8}, 4, RBX, R13},
	{"add $-24,%rbx", {0x48, 0x83, 0xc3, 0xe8}, 4, BEAM_FLOW_NOWHERE, R13},
	{"add $4096,%rbx", {0x48, 0x81, 0xc3, 0, 0x10}, 7, BEAM_FLOW_NOWHERE, R13},
	{"mov %rbx,%rax; xor %ebx,%ebx; xchg %rax,%rdx",
	 {0x48, 0x89, 0xd8, 0x31, 0xdb, 0x48, 0x92}, 7, BEAM_FLOW_NOWHERE, R13},
	{"mov %rbx,%r8; xor %ebx,%ebx; xchg %rax,%r8",
	 {0x49, 0x89, 0xd8, 0x31, 0xdb, 0x49, 0x90}, 7, BEAM_FLOW_NOWHERE, R13},
	{"or $1,%bh", {0x80, 0xcf, 1}, 3, BEAM_FLOW_NOWHERE, R13},
	{"or $1,%dil", {0x40, 0x80, 0xcf, 1}, 4, RBX, R13},
	{"mov $1,%bh", {0xb7, 1}, 2, BEAM_FLOW_NOWHERE, R13},
	{"crc32 %rax,%rbx", {0xf2, 0x48, 0x0f, 0x38, 0xf1, 0xd8}, 6, BEAM_FLOW_NOWHERE, BEAM_FLOW_NOWHERE},
	{"mov 0x58(%rsp),%r13", {0x4c, 0x8b, 0x6c, 0x24, STOP}, 5, RBX, BEAM_FLOW_NOWHERE},
	{"mov 0x58(%rbp),%r13", {0x4c, 0x8b, 0x6d, STOP}, 4, RBX, R13},
	{"mov %fs:0x58(%rbp),%r13", {0x64, 0x4c, 0x8b, 0x6d, STOP}, 5, RBX, BEAM_FLOW_NOWHERE},
	{"leave with the place in rbp", {0x48, 0x89, 0xdd, 0x31, 0xdb, 0xc9}, 6, BEAM_FLOW_NOWHERE, R13},
	{"add $16,%r13", {0x49, 0x83, 0xc5, 16}, 4, RBX, R13},
	{"mov %r13,%rax; add $16,%r13; mov %rax,%r13", {0x4c, 0x89, 0xe8, 0x49, 0x83, 0xc5, 16, 0x49, 0x89, 0xc5}, 10, RBX,
	 BEAM_FLOW_NOWHERE},
	{"mov %r13,%rax; add $8,%rax; mov %rax,%r13", {0x4c, 0x89, 0xe8, 0x48, 0x83, 0xc0, 8, 0x49, 0x89, 0xc5}, 10, RBX,
	 BEAM_FLOW_NOWHERE},
	{"mov %rbx,16(%rsp); xor %ebx,%ebx", {0x48, 0x89, 0x5c, 0x24, 16, 0x31, 0xdb}, 7, BEAM_FLOW_SLOT + 2, R13},
	{"mov %rbx,16(%rsp); xor %ebx,%ebx; sub $32,%rsp",
	 {0x48, 0x89, 0x5c, 0x24, 16, 0x31, 0xdb, 0x48, 0x83, 0xec, 32}, 11, BEAM_FLOW_NOWHERE, R13},
	{"mov %rbx,16(%rsp); xor %ebx,%ebx; and $-16,%rsp",
	 {0x48, 0x89, 0x5c, 0x24, 16, 0x31, 0xdb, 0x48, 0x83, 0xe4, 0xf0}, 11, BEAM_FLOW_NOWHERE, R13},
};

/* Behind the jump to the next instruction of BEAM, which begins here. */
START_TEST(an_instruction_keeps_or_loses_what_it_writes)
{
	uint8_t code[32] = {0xff, 0x23}, entry[4] = {1 << 2};
	const uint32_t len = 2 + cases[_i].len + 1;
	struct beam_flow_run runs[16];
	int n;

	memcpy(code + 2, cases[_i].code, cases[_i].len);
	code[len - 1] = 0x90;
	n = beam_flow_read(&(struct beam_flow_code){.code = code, .len = len, .entry = entry, .stop = STOP}, runs,
			   ARRAY_SIZE(runs));
	ck_assert_int_gt(n, 0);
	ck_assert_uint_eq(runs[n - 1].end, len);
	ck_assert_msg(runs[n - 1].place == cases[_i].place && runs[n - 1].stack == cases[_i].stack, "%s: %u, %u",
		      cases[_i].text, runs[n - 1].place, runs[n - 1].stack);
}
END_TEST

static const struct {
	const char *text;
	uint8_t code[16];
	uint32_t len;
	bool top_kept; /* behind it */
} stores[] = {
	{"nop", {0x90}, 1, true},
	{"mov %rax,8(%r13)", {0x49, 0x89, 0x45, 8}, 4, true},
	{"mov %rax,(%rcx)", {0x48, 0x89, 0x01}, 3, true},
	{"add $16,%r13", {0x49, 0x83, 0xc5, 16}, 4, true},
	{"mov 8(%r13),%rax", {0x49, 0x8b, 0x45, 8}, 4, true},
	{"mov %rax,0(%r13)", {0x49, 0x89, 0x45, 0}, 4, false},
	{"movq $0xb,0(%r13)", {0x49, 0xc7, 0x45, 0, 0x0b}, 8, false},
	{"movups %xmm0,-8(%r13)", {0x41, 0x0f, 0x11, 0x45, 0xf8}, 5, false},
	{"mov %rax,(%r13,%rcx)", {0x49, 0x89, 0x44, 0x0d, 0}, 5, false},
	{"mov %r13,%rcx; mov %rax,(%rcx)", {0x4c, 0x89, 0xe9, 0x48, 0x89, 0x01}, 6, false},
	{"sub $16,%r13", {0x49, 0x83, 0xed, 16}, 4, false},
	{"lea -16(%r13),%r13", {0x4d, 0x8d, 0x6d, 0xf0}, 4, false},
	{"add %rax,%r13", {0x49, 0x01, 0xc5}, 3, false},
	{"mov 0(%r13),%rbx", {0x49, 0x8b, 0x5d, 0}, 4, false},
	{"mov 0x58(%rbp),%r13", {0x4c, 0x8b, 0x6d, STOP}, 4, false},
	{"je over it; mov %rax,0(%r13)", {0x74, 4, 0x49, 0x89, 0x45, 0}, 6, false},
	{"xor %ebx,%ebx", {0x31, 0xdb}, 2, false},
};

START_TEST(a_word_that_is_put_at_the_stack_pointer_is_noticed)
{
	uint8_t code[32] = {0xff, 0x23}, entry[4] = {1 << 2};
	const uint32_t len = 2 + stores[_i].len + 1;
	struct beam_flow_run runs[16];
	int n;

	memcpy(code + 2, stores[_i].code, stores[_i].len);
	code[len - 1] = 0x90;
	n = beam_flow_read(&(struct beam_flow_code){.code = code, .len = len, .entry = entry, .stop = STOP}, runs,
			   ARRAY_SIZE(runs));
	ck_assert_int_gt(n, 0);
	ck_assert_msg(runs[n - 1].top_kept == stores[_i].top_kept, "%s: %d", stores[_i].text, runs[n - 1].top_kept);
}
END_TEST

#define LEA_RDX	   0x48, 0x8d, 0x14, 0xc3 /* lea (%rbx,%rax,8),%rdx: where it calls */
#define MOV_CODE   0x48, 0x8b, 0x2a	  /* mov (%rdx),%rbp */
#define MOV_OTHER  0x48, 0x8b, 0x29	  /* mov (%rcx),%rbp */
#define MOV_PLACE  0x48, 0x89, 0xd3	  /* mov %rdx,%rbx */
#define LEA_PLACE  0x48, 0x8d, 0x1c, 0xc3 /* lea (%rbx,%rax,8),%rbx */
#define DECREASE   0x49, 0xff, 0xce	  /* dec %r14 */
#define LOAD_OTHER 0x48, 0x8b, 0x31	  /* mov (%rcx),%rsi */
#define JMP_CODE   0xff, 0xe5		  /* jmp *%rbp */

/* The place of another instruction of BEAM is in rbx before its code runs. */
static const struct {
	const char *text;
	uint8_t code[24];
	uint32_t len, at, place; /* at: where it is asked for */
} calls[] = {
	{"loaded, then copied", {LEA_RDX, MOV_CODE, MOV_PLACE, DECREASE, JMP_CODE}, 15, 10, RBX},
	{"at the jump itself", {LEA_RDX, MOV_CODE, MOV_PLACE, DECREASE, JMP_CODE}, 15, 13, RBX},
	{"copied, then loaded", {LEA_RDX, MOV_PLACE, MOV_CODE, DECREASE, JMP_CODE}, 15, 7, RBX},
	{"and something else was loaded", {LEA_RDX, MOV_PLACE, MOV_CODE, LOAD_OTHER, JMP_CODE}, 15, 10, RBX},
	{"by rbx", {LEA_PLACE, 0x48, 0x8b, 0x2b, DECREASE, JMP_CODE}, 12, 7, RBX},
	{"what is loaded has a copy", {LEA_PLACE, 0x48, 0x8b, 0x0b, 0x48, 0x89, 0xcd, DECREASE, JMP_CODE}, 15, 10, RBX},
	{"loaded by another register", {LEA_RDX, MOV_OTHER, MOV_PLACE, DECREASE, JMP_CODE}, 15, 10, BEAM_FLOW_NOWHERE},
	{"the code was changed", {LEA_RDX, MOV_CODE, MOV_PLACE, 0x48, 0x01, 0xd5, JMP_CODE}, 15, 10, BEAM_FLOW_NOWHERE},
	{"the place was changed", {LEA_RDX, MOV_CODE, MOV_PLACE, LEA_PLACE, JMP_CODE}, 16, 14, BEAM_FLOW_NOWHERE},
	{"from behind it", {LEA_RDX, 0x48, 0x8b, 0x6a, 8, MOV_PLACE, DECREASE, JMP_CODE}, 16, 11, BEAM_FLOW_NOWHERE},
	{"a jump of a switch", {LEA_PLACE, 0x48, 0x63, 0x2c, 0x82, 0x48, 0x01, 0xd5, JMP_CODE}, 13, 4, BEAM_FLOW_NOWHERE},
	/* je over the load */
	{"on one of two ways", {LEA_RDX, 0x74, 3, MOV_CODE, MOV_PLACE, DECREASE, JMP_CODE}, 17, 12, BEAM_FLOW_NOWHERE},
};

START_TEST(the_jump_to_code_that_was_loaded_before_tells_its_place)
{
	uint8_t code[32] = {0xff, 0x23}, entry[4] = {1 << 2};
	struct beam_flow_run runs[16];
	int n, i = 0;

	memcpy(code + 2, calls[_i].code, calls[_i].len);
	n = beam_flow_read(&(struct beam_flow_code){.code = code, .len = 2 + calls[_i].len, .entry = entry, .stop = STOP}, runs,
			   ARRAY_SIZE(runs));
	ck_assert_int_gt(n, 0);
	while (i < n - 1 && runs[i].end <= 2 + calls[_i].at)
		i++;
	ck_assert_msg(runs[i].place == calls[_i].place, "%s: %u", calls[_i].text, runs[i].place);
}
END_TEST

Suite *beam_flow_suite(void)
{
	Suite *s = suite_create("beam_flow");
	TCase *t = tcase_create("beam_flow");

	tcase_add_loop_test(t, an_instruction_keeps_or_loses_what_it_writes, 0, ARRAY_SIZE(cases));
	tcase_add_loop_test(t, a_word_that_is_put_at_the_stack_pointer_is_noticed, 0, ARRAY_SIZE(stores));
	tcase_add_loop_test(t, the_jump_to_code_that_was_loaded_before_tells_its_place, 0, ARRAY_SIZE(calls));
	suite_add_tcase(s, t);
	return s;
}
