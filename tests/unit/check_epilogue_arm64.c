// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/lib/tiny_elf.h"
#include "unwind/arm64_insn.h"
#include "unwind/epilogue.h"

Suite *epilogue_arm64_suite(void);

enum { X17 = 17, X19 = 19, X20, X21, X29 = 29, X30, SP, NONE = INSN_NO_REG };

/* --- instructions, as GNU as encodes them --- */

static const struct {
	const char *text;
	uint32_t word;
	uint8_t kind, reg, pair, base;
	int64_t n, before, after;
} insns[] = {
	{"stp x29,x30,[sp,#-48]!", 0xa9bd7bfd, INSN_STORE, X29, X30, SP, 0, -48, 0},
	{"stp x19,x20,[sp,#16]", 0xa90153f3, INSN_STORE, X19, X20, SP, 16, 0, 0},
	{"ldp x19,x20,[sp,#16]", 0xa94153f3, INSN_LOAD, X19, X20, SP, 16, 0, 0},
	{"ldp x29,x30,[sp],#48", 0xa8c37bfd, INSN_LOAD, X29, X30, SP, 0, 0, 48},
	{"ldr x30,[sp],#16", 0xf84107fe, INSN_LOAD, X30, NONE, SP, 0, 0, 16},
	{"str x30,[sp,#-16]!", 0xf81f0ffe, INSN_STORE, X30, NONE, SP, 0, -16, 0},
	{"ldr x19,[sp,#24]", 0xf9400ff3, INSN_LOAD, X19, NONE, SP, 24, 0, 0},
	{"ldur x19,[sp,#-8]", 0xf85f83f3, INSN_LOAD, X19, NONE, SP, -8, 0, 0},
	{"ldp xzr,x20,[sp,#-512]", 0xa96053ff, INSN_LOAD, NONE, X20, SP, -512, 0, 0},
	{"ldr x0,[x1,#8]", 0xf9400420, INSN_LOAD, 0, NONE, 1, 8, 0, 0},
	{"ldp x21,x22,[x29,#-16]", 0xa97f5bb5, INSN_LOAD, X21, 22, X29, -16, 0, 0},
	{"ldp w19,w20,[sp,#8]", 0x294153f3, INSN_OTHER, NONE, NONE, NONE, 0, 0, 0},
	{"ldp w19,w20,[sp],#8", 0x28c153f3, INSN_SP_ADD, SP, NONE, NONE, 8, 0, 0},
	{"ldpsw x19,x20,[sp],#8", 0x68c153f3, INSN_SP_ADD, SP, NONE, NONE, 8, 0, 0},
	{"stp d8,d9,[sp,#-64]!", 0x6dbc27e8, INSN_SP_ADD, SP, NONE, NONE, -64, 0, 0},
	{"ldp q8,q9,[sp],#64", 0xacc227e8, INSN_SP_ADD, SP, NONE, NONE, 64, 0, 0},
	{"ldr d8,[sp],#16", 0xfc4107e8, INSN_SP_ADD, SP, NONE, NONE, 16, 0, 0},
	{"ldr w0,[sp,#4]", 0xb94007e0, INSN_OTHER, NONE, NONE, NONE, 0, 0, 0},
	{"ldrsw x0,[sp,#8]", 0xb9800be0, INSN_OTHER, NONE, NONE, NONE, 0, 0, 0},
	{"prfm pldl1keep,[sp,#8]", 0xf98007e0, INSN_OTHER, NONE, NONE, NONE, 0, 0, 0},
	{"add sp,sp,#0x40", 0x910103ff, INSN_SP_ADD, SP, NONE, NONE, 0x40, 0, 0},
	{"add sp,sp,#2,lsl #12", 0x91400bff, INSN_SP_ADD, SP, NONE, NONE, 0x2000, 0, 0},
	{"sub sp,sp,#0xff0", 0xd13fc3ff, INSN_SP_ADD, SP, NONE, NONE, -0xff0, 0, 0},
	{"sub sp,x29,#16", 0xd10043bf, INSN_SP_SET, X29, NONE, NONE, -16, 0, 0},
	{"mov sp,x29", 0x910003bf, INSN_SP_SET, X29, NONE, NONE, 0, 0, 0},
	{"mov x29,sp", 0x910003fd, INSN_SP_COPY, X29, NONE, NONE, 0, 0, 0},
	{"add x29,sp,#0x20", 0x910083fd, INSN_SP_COPY, X29, NONE, NONE, 0x20, 0, 0},
	{"cmn x1,#4", 0xb100103f, INSN_OTHER, NONE, NONE, NONE, 0, 0, 0},
	{"cmp sp,#4", 0xf10013ff, INSN_OTHER, NONE, NONE, NONE, 0, 0, 0},
	{"tst x9,#0xff", 0xf2401d3f, INSN_OTHER, NONE, NONE, NONE, 0, 0, 0},
	{"and sp,x9,#~15", 0x927ced3f, INSN_SP_LOST, SP, NONE, NONE, 0, 0, 0},
	{"sub sp,sp,x9", 0xcb2963ff, INSN_SP_LOST, SP, NONE, NONE, 0, 0, 0},
	{"ret", 0xd65f03c0, INSN_RET, X30, NONE, NONE, 0, 0, 0},
	{"ret x17", 0xd65f0220, INSN_RET, X17, NONE, NONE, 0, 0, 0},
	{"retaa", 0xd65f0bff, INSN_RET, X30, NONE, NONE, 0, 0, 0},
	{"retab", 0xd65f0fff, INSN_RET, X30, NONE, NONE, 0, 0, 0},
	{"br x16", 0xd61f0200, INSN_END, NONE, NONE, NONE, INSN_BY_REGISTER, 0, 0},
	{"braa x16,x17", 0xd71f0a11, INSN_END, NONE, NONE, NONE, INSN_BY_REGISTER, 0, 0},
	{"eret", 0xd69f03e0, INSN_END, NONE, NONE, NONE, 0, 0, 0},
	{"blr x3", 0xd63f0060, INSN_CALL, NONE, NONE, NONE, 0, 0, 0},
	{"blraaz x3", 0xd63f087f, INSN_CALL, NONE, NONE, NONE, 0, 0, 0},
	{"bl +0x100", 0x94000040, INSN_CALL, NONE, NONE, NONE, 0xfc, 0, 0},
	{"b -0x20", 0x17fffff8, INSN_JUMP, NONE, NONE, NONE, -0x24, 0, 0},
	{"b.ne +0x10", 0x54000081, INSN_BRANCH, NONE, NONE, NONE, 0xc, 0, 0},
	{"cbz x0,+8", 0xb4000040, INSN_BRANCH, NONE, NONE, NONE, 4, 0, 0},
	{"cbnz w3,-8", 0x35ffffc3, INSN_BRANCH, NONE, NONE, NONE, -12, 0, 0},
	{"tbz x0,#63,+0x14", 0xb6f800a0, INSN_BRANCH, NONE, NONE, NONE, 0x10, 0, 0},
	{"brk #1", 0xd4200020, INSN_END, NONE, NONE, NONE, 0, 0, 0},
	{"udf #0", 0, INSN_END, NONE, NONE, NONE, 0, 0, 0},
	{"hlt #0", 0xd4400000, INSN_END, NONE, NONE, NONE, 0, 0, 0},
	{"svc #0", 0xd4000001, INSN_OTHER, NONE, NONE, NONE, 0, 0, 0},
	{"paciasp", 0xd503233f, INSN_OTHER, NONE, NONE, NONE, 0, 0, 0},
	{"autiasp", 0xd50323bf, INSN_OTHER, NONE, NONE, NONE, 0, 0, 0},
};

START_TEST(instruction_has_its_meaning)
{
	struct insn i;

	arm64_decode(insns[_i].word, &i);
	ck_assert_uint_eq(i.len, 4);
	ck_assert_msg(i.kind == insns[_i].kind, "%s: kind %u", insns[_i].text, i.kind);
	ck_assert_msg(i.reg == insns[_i].reg && i.pair == insns[_i].pair && i.base == insns[_i].base,
		      "%s: registers %u, %u, base %u", insns[_i].text, i.reg, i.pair, i.base);
	ck_assert_msg(i.n == insns[_i].n && i.before == insns[_i].before && i.after == insns[_i].after,
		      "%s: %lld before %lld after %lld", insns[_i].text, (long long)i.n, (long long)i.before,
		      (long long)i.after);
}
END_TEST

/* --- the way to the return --- */

static struct row row;

enum {
	NOP = 0xd503201f, RET = 0xd65f03c0, RETAA = 0xd65f0bff, CALL = 0x94000040, BRK = 0xd4200020,
	PUSH_RECORD = 0xa9be7bfd, /* stp x29,x30,[sp,#-32]! */
	POP_RECORD = 0xa8c27bfd,  /* ldp x29,x30,[sp],#32 */
	MOV_FP_SP = 0x910003fd, MOV_SP_FP = 0x910003bf,
	STORE_PAIR = 0xa90153f3, /* stp x19,x20,[sp,#16] */
	LOAD_PAIR = 0xa94153f3,
	AUTIASP = 0xd50323bf, PACIASP = 0xd503233f,
};

static int find_at(const uint32_t *code, size_t nr, bool called)
{
	static struct tiny tiny;
	struct binary *b;
	int err;

	tiny_init(&tiny, EM_AARCH64, 0);
	memcpy(tiny.image + TINY_CODE, code, nr * sizeof(*code));
	b = tiny_open(&tiny);
	err = epilogue_find(&epilogue_arm64, b, TINY_CODE, called, &row);
	binary_put(b);
	return err;
}
#define FIND(...) find_at((const uint32_t[]){__VA_ARGS__}, ARRAY_SIZE(((const uint32_t[]){__VA_ARGS__})), false)
#define FIND_CALLER(...) find_at((const uint32_t[]){__VA_ARGS__}, ARRAY_SIZE(((const uint32_t[]){__VA_ARGS__})), true)

static void check_row(int64_t cfa, int ra_kind, int64_t ra)
{
	ck_assert_int_eq(row.cfa_kind, CFA_REG);
	ck_assert_uint_eq(row.cfa_reg, SP);
	ck_assert_int_eq(row.cfa_n, cfa);
	ck_assert_uint_eq(row.ra, X30);
	ck_assert_int_eq(row.reg[X30].kind, ra_kind);
	ck_assert_int_eq(row.reg[X30].n, ra);
	ck_assert(row.flags & ROW_GUESS);
}

START_TEST(leaf_returns_to_its_link_register)
{
	ck_assert_int_eq(FIND(NOP, RET), 0);
	check_row(0, RULE_UNSPECIFIED, 0);
	ck_assert_int_eq(row.reg[X29].kind, RULE_UNSPECIFIED);
}
END_TEST

START_TEST(record_is_where_it_is_popped_from)
{
	ck_assert_int_eq(FIND(CALL, LOAD_PAIR, POP_RECORD, RET), 0);
	check_row(32, RULE_OFFSET, -24);
	ck_assert_int_eq(row.reg[X29].n, -32);
	ck_assert_int_eq(row.reg[X19].n, -16);
	ck_assert_int_eq(row.reg[X20].n, -8);
	ck_assert_int_eq(row.reg[X21].kind, RULE_UNSPECIFIED);
}
END_TEST

START_TEST(signed_return_is_a_return)
{
	ck_assert_int_eq(FIND(POP_RECORD, AUTIASP, RET), 0);
	check_row(32, RULE_OFFSET, -24);
	ck_assert_int_eq(FIND(POP_RECORD, RETAA), 0);
	check_row(32, RULE_OFFSET, -24);
}
END_TEST

START_TEST(call_that_never_comes_back_does_not_lead_into_the_next_function)
{
	ck_assert_int_eq(FIND(CALL, PUSH_RECORD, CALL, POP_RECORD, RET), -ENOENT);
	ck_assert_int_eq(FIND_CALLER(PUSH_RECORD, CALL, POP_RECORD, RET), -ENOENT);
	ck_assert_int_eq(FIND_CALLER(RET), -ENOENT); /* the link register leads back here */
	ck_assert_int_eq(FIND_CALLER(LOAD_PAIR, POP_RECORD, RET), 0);
	check_row(32, RULE_OFFSET, -24);
}
END_TEST

/* What the prologue will store has not been stored yet. */
START_TEST(before_the_prologue_all_is_in_registers)
{
	ck_assert_int_eq(FIND(PACIASP, PUSH_RECORD, MOV_FP_SP, STORE_PAIR, CALL, LOAD_PAIR, POP_RECORD, RET), 0);
	check_row(0, RULE_UNSPECIFIED, 0);
	ck_assert_int_eq(row.reg[X29].kind, RULE_UNSPECIFIED);
	ck_assert_int_eq(row.reg[X19].kind, RULE_UNSPECIFIED);
}
END_TEST

START_TEST(within_the_prologue_some_is)
{
	ck_assert_int_eq(FIND(MOV_FP_SP, STORE_PAIR, CALL, LOAD_PAIR, POP_RECORD, RET), 0);
	check_row(32, RULE_OFFSET, -24);
	ck_assert_int_eq(row.reg[X29].n, -32);
	ck_assert_int_eq(row.reg[X19].kind, RULE_UNSPECIFIED);
	ck_assert_int_eq(row.reg[X20].kind, RULE_UNSPECIFIED);
}
END_TEST

START_TEST(frame_pointer_leads_out)
{
	/* of a frame of variable size: mov sp,x29; ldp x29,x30,[sp],#32; ret */
	ck_assert_int_eq(FIND(CALL, MOV_SP_FP, POP_RECORD, RET), 0);
	ck_assert_uint_eq(row.cfa_reg, X29);
	ck_assert_int_eq(row.cfa_n, 32);
	ck_assert_int_eq(row.reg[X30].n, -24);
	/* and where it has yet to be made: stp; mov x29,sp; sub sp,sp,x9; mov sp,x29; ldp; ret */
	ck_assert_int_eq(FIND(PUSH_RECORD, MOV_FP_SP, 0xcb2963ff, MOV_SP_FP, POP_RECORD, RET), 0);
	check_row(0, RULE_UNSPECIFIED, 0);
}
END_TEST

START_TEST(branch_is_another_way)
{
	/* cbz x0,+8; brk; ldp ...; ret */
	ck_assert_int_eq(FIND(0xb4000040, BRK, POP_RECORD, RET), 0);
	check_row(32, RULE_OFFSET, -24);
}
END_TEST

START_TEST(another_register_returns)
{
	ck_assert_int_eq(FIND(0xd65f0220), 0); /* ret x17 */
	ck_assert_uint_eq(row.ra, X17);
	ck_assert_int_eq(row.reg[X17].kind, RULE_UNSPECIFIED);
}
END_TEST

START_TEST(code_without_a_sure_return_has_no_row)
{
	ck_assert_int_eq(FIND(BRK), -ENOENT);
	ck_assert_int_eq(FIND(0x14000000), -ENOENT);      /* b . */
	ck_assert_int_eq(FIND(0xd61f0200), -ENOENT);      /* br x16 */
	ck_assert_int_eq(FIND(CALL, RET), -ENOENT);       /* the link register is the callee's */
	ck_assert_int_eq(FIND(0x927ced3f, RET), -ENOENT); /* and sp,x9,#~15 */
	ck_assert_int_eq(FIND(0xf940007e, RET), -ENOENT); /* ldr x30,[x3] */
}
END_TEST

Suite *epilogue_arm64_suite(void)
{
	Suite *s = suite_create("epilogue_arm64");
	TCase *t = tcase_create("instructions");

	tcase_add_loop_test(t, instruction_has_its_meaning, 0, ARRAY_SIZE(insns));
	suite_add_tcase(s, t);
	t = tcase_create("ways out");
	tcase_add_test(t, leaf_returns_to_its_link_register);
	tcase_add_test(t, record_is_where_it_is_popped_from);
	tcase_add_test(t, signed_return_is_a_return);
	tcase_add_test(t, call_that_never_comes_back_does_not_lead_into_the_next_function);
	tcase_add_test(t, before_the_prologue_all_is_in_registers);
	tcase_add_test(t, within_the_prologue_some_is);
	tcase_add_test(t, frame_pointer_leads_out);
	tcase_add_test(t, branch_is_another_way);
	tcase_add_test(t, another_register_returns);
	tcase_add_test(t, code_without_a_sure_return_has_no_row);
	suite_add_tcase(s, t);
	return s;
}
