// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/lib/tiny_elf.h"
#include "unwind/epilogue.h"
#include "unwind/x86_insn.h"

Suite *epilogue_suite(void);

enum { DWARF_BX = 3, DWARF_BP = 6, DWARF_SP = 7, DWARF_R12 = 12, DWARF_R15 = 15, DWARF_PC = 16 };

/* --- instructions --- */

static const struct {
	const char *text;
	uint8_t code[X86_INSN_MAX];
	uint8_t len, kind, reg, base;
	int64_t n;
} insns[] = {
	{"push %rbx", {0x53}, 1, INSN_PUSH, X86_BX, X86_NONE, 8},
	{"push %r15", {0x41, 0x57}, 2, INSN_PUSH, X86_R15, X86_NONE, 8},
	{"pop %rbp", {0x5d}, 1, INSN_POP, X86_BP, X86_NONE, 8},
	{"push $1", {0x6a, 1}, 2, INSN_PUSH, X86_NONE, X86_NONE, 8},
	{"push 8(%rax)", {0xff, 0x70, 8}, 3, INSN_PUSH, X86_NONE, X86_NONE, 8},
	{"add $0x38,%rsp", {0x48, 0x83, 0xc4, 0x38}, 4, INSN_SP_ADD, X86_SP, X86_NONE, 0x38},
	{"sub $0x98,%rsp", {0x48, 0x81, 0xec, 0x98, 0, 0, 0}, 7, INSN_SP_ADD, X86_SP, X86_NONE, -0x98},
	{"and $-32,%rsp", {0x48, 0x83, 0xe4, 0xe0}, 4, INSN_SP_LOST, X86_SP, X86_NONE, -32},
	{"cmp $8,%rsp", {0x48, 0x83, 0xfc, 8}, 4, INSN_OTHER, X86_NONE, X86_NONE, 0},
	{"lea -0x28(%rbp),%rsp", {0x48, 0x8d, 0x65, 0xd8}, 4, INSN_SP_SET, X86_BP, X86_NONE, -0x28},
	{"lea 8(%rsp),%rsp", {0x48, 0x8d, 0x64, 0x24, 8}, 5, INSN_SP_ADD, X86_SP, X86_NONE, 8},
	{"mov %rbp,%rsp", {0x48, 0x89, 0xec}, 3, INSN_SP_SET, X86_BP, X86_NONE, 0},
	{"mov 0x40(%rsp),%rbp", {0x48, 0x8b, 0x6c, 0x24, 0x40}, 5, INSN_LOAD, X86_BP, X86_SP, 0x40},
	{"mov 0x110(%rsp),%rsp", {0x48, 0x8b, 0xa4, 0x24, 0x10, 1, 0, 0}, 8, INSN_SP_LOAD, X86_SP, X86_SP, 0x110},
	{"mov %rax,%rsp in 32 bits", {0xbc, 1, 0, 0, 0}, 5, INSN_SP_LOST, X86_SP, X86_NONE, 0},
	{"mov %rsp,%rbp", {0x48, 0x89, 0xe5}, 3, INSN_SP_COPY, X86_BP, X86_NONE, 0},
	{"lea 0x40(%rsp),%rbp", {0x48, 0x8d, 0x6c, 0x24, 0x40}, 5, INSN_SP_COPY, X86_BP, X86_NONE, 0x40},
	{"mov %rbx,0x10(%rsp)", {0x48, 0x89, 0x5c, 0x24, 0x10}, 5, INSN_STORE, X86_BX, X86_SP, 0x10},
	{"leave", {0xc9}, 1, INSN_LEAVE, X86_BP, X86_NONE, 0},
	{"call", {0xe8, 0xfe, 0xff, 0xff, 0xff}, 5, INSN_CALL, X86_NONE, X86_NONE, -2},
	{"call *%rax", {0xff, 0xd0}, 2, INSN_CALL, X86_NONE, X86_NONE, 0},
	{"jmp", {0xeb, 0x10}, 2, INSN_JUMP, X86_NONE, X86_NONE, 0x10},
	{"jmp *%rax", {0xff, 0xe0}, 2, INSN_END, X86_AX, X86_NONE, INSN_BY_REGISTER},
	{"jmp *0x10(%rip)", {0xff, 0x25, 0x10}, 6, INSN_END, X86_NONE, X86_NONE, INSN_BY_VARIABLE},
	{"jne", {0x0f, 0x85, 0, 1, 0, 0}, 6, INSN_BRANCH, X86_NONE, X86_NONE, 0x100},
	{"ret $16", {0xc2, 16, 0}, 3, INSN_RET, X86_NONE, X86_NONE, 16},
	{"repz ret", {0xf3, 0xc3}, 2, INSN_RET, X86_NONE, X86_NONE, 0},
	{"ud2", {0x0f, 0x0b}, 2, INSN_END, X86_NONE, X86_NONE, 0},
	{"mov %rbx,%r8", {0x49, 0x89, 0xd8}, 3, INSN_COPY, X86_R8, X86_BX, 0},
	{"mov %ebx,%eax", {0x89, 0xd8}, 2, INSN_OTHER, X86_NONE, X86_NONE, 0},
	{"lea 8(%rax),%rdx", {0x48, 0x8d, 0x50, 8}, 4, INSN_COPY, X86_DX, X86_AX, 8},
	{"lea 8(%rax,%rcx),%rdx", {0x48, 0x8d, 0x54, 0x08, 8}, 5, INSN_OTHER, X86_NONE, X86_NONE, 0},
	{"lea 8(%rax,%rcx),%rax", {0x48, 0x8d, 0x44, 0x08, 8}, 5, INSN_ADD, X86_AX, X86_NONE, 0},
	{"add $24,%rbx", {0x48, 0x83, 0xc3, 24}, 4, INSN_ADD, X86_BX, X86_NONE, 24},
	{"sub $24,%rbx", {0x48, 0x83, 0xeb, 24}, 4, INSN_ADD, X86_BX, X86_NONE, -24},
	{"add %rcx,%rbx", {0x48, 0x01, 0xcb}, 3, INSN_ADD, X86_BX, X86_NONE, 0},
	{"sub (%rcx),%rbx", {0x48, 0x2b, 0x19}, 3, INSN_ADD, X86_BX, X86_NONE, 0},
	{"add %rcx,(%rbx)", {0x48, 0x01, 0x0b}, 3, INSN_OTHER, X86_NONE, X86_NONE, 0},
	{"vzeroupper", {0xc5, 0xf8, 0x77}, 3, INSN_OTHER, X86_NONE, X86_NONE, 0},
	{"vpalignr $4", {0xc4, 0xe3, 0x71, 0x0f, 0xc2, 4}, 6, INSN_OTHER, X86_NONE, X86_NONE, 0},
	{"vpternlogd $0xff", {0x62, 0xf3, 0x7d, 0x48, 0x25, 0xc0, 0xff}, 7, INSN_OTHER, X86_NONE, X86_NONE, 0},
	{"movabs", {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}, 10, INSN_OTHER, X86_NONE, X86_NONE, 0},
	{"nopw", {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, 10, INSN_OTHER, X86_NONE, X86_NONE, 0},
	{"test $1,%al-like group 3", {0xf7, 0xc0, 1, 0, 0, 0}, 6, INSN_OTHER, X86_NONE, X86_NONE, 0},
	{"neg %eax", {0xf7, 0xd8}, 2, INSN_OTHER, X86_NONE, X86_NONE, 0},
	{"enter", {0xc8, 0x10, 0, 0}, 4, INSN_SP_LOST, X86_SP, X86_NONE, 0},
};

START_TEST(instruction_has_its_length_and_meaning)
{
	struct x86_insn i;

	ck_assert_int_eq(x86_decode(insns[_i].code, X86_INSN_MAX, &i), 0);
	ck_assert_msg(i.len == insns[_i].len && i.kind == insns[_i].kind, "%s: length %u kind %u", insns[_i].text, i.len,
		      i.kind);
	ck_assert_uint_eq(i.reg, insns[_i].reg);
	ck_assert_uint_eq(i.base, insns[_i].base);
	ck_assert_int_eq(i.n, insns[_i].n);
}
END_TEST

#define R(reg) (1 << X86_##reg)
enum { EXACT = 1, WRITTEN = 2, NOP = 4 };

static const struct {
	const char *text;
	uint8_t code[X86_INSN_MAX];
	uint16_t writes;
	uint8_t flags, base;
	int32_t disp;
} operands[] = {
	{"mov %rbx,%rax", {0x48, 0x89, 0xd8}, R(AX), 0, X86_NONE, 0},
	{"mov (%rax,%rcx),%ebx", {0x8b, 0x1c, 0x08}, R(BX), 0, X86_AX, 0},
	{"mov 8(%rip),%rbx", {0x48, 0x8b, 0x1d, 8}, R(BX), 0, X86_NONE, 8},
	{"mov %fs:0x10,%rax", {0x64, 0x48, 0x8b, 0x04, 0x25, 0x10}, R(AX), 0, X86_NONE, 0x10},
	{"mov %fs:0x10(%rbp),%rax", {0x64, 0x48, 0x8b, 0x45, 0x10}, R(AX), 0, X86_BP, 0x10},
	{"mov 0x10(%ebp),%rax", {0x67, 0x48, 0x8b, 0x45, 0x10}, R(AX), 0, X86_BP, 0x10},
	{"mov %rbx,-8(%rsp)", {0x48, 0x89, 0x5c, 0x24, 0xf8}, 0, EXACT | WRITTEN, X86_SP, -8},
	{"movb $1,(%rsp,%rcx)", {0xc6, 0x04, 0x0c, 1}, 0, WRITTEN, X86_SP, 0},
	{"movaps %xmm0,0x20(%rsp)", {0x0f, 0x29, 0x44, 0x24, 0x20}, 0, EXACT | WRITTEN, X86_SP, 0x20},
	{"addsd %xmm5,%xmm0", {0xf2, 0x0f, 0x58, 0xc5}, 0, 0, X86_NONE, 0},
	{"movaps %xmm5,%xmm0", {0x0f, 0x28, 0xc5}, 0, 0, X86_NONE, 0},
	{"pxor %xmm5,%xmm5", {0x66, 0x0f, 0xef, 0xed}, 0, 0, X86_NONE, 0},
	{"movd %xmm0,%ebp", {0x66, 0x0f, 0x7e, 0xc5}, R(BP), 0, X86_NONE, 0},
	{"movmskpd %xmm0,%ebp", {0x66, 0x0f, 0x50, 0xe8}, R(BP), 0, X86_NONE, 0},
	{"cvttsd2si %xmm0,%ebp", {0xf2, 0x0f, 0x2c, 0xe8}, R(BP), 0, X86_NONE, 0},
	{"pmovmskb %xmm0,%ebp", {0x66, 0x0f, 0xd7, 0xe8}, R(BP), 0, X86_NONE, 0},
	{"pextrw $1,%xmm0,%ebp", {0x66, 0x0f, 0xc5, 0xe8, 1}, R(BP), 0, X86_NONE, 0},
	{"vmread %rax,%rbp", {0x0f, 0x78, 0xc5}, R(BP), 0, X86_NONE, 0},
	{"fxsave (%rsp)", {0x0f, 0xae, 0x04, 0x24}, X86_WRITES_ALL, EXACT, X86_SP, 0},
	{"fnsave (%rsp)", {0xdd, 0x34, 0x24}, X86_WRITES_ALL, EXACT, X86_SP, 0},
	{"cmp %rbx,8(%rsp)", {0x48, 0x39, 0x5c, 0x24, 8}, 0, EXACT, X86_SP, 8},
	{"test %al,%al", {0x84, 0xc0}, 0, 0, X86_NONE, 0},
	{"cmp $1,%eax", {0x3d, 1}, 0, 0, X86_NONE, 0},
	{"add $1,%eax", {0x05, 1}, R(AX), 0, X86_NONE, 0},
	{"or $1,%bh", {0x80, 0xcf, 1}, R(BX), 0, X86_NONE, 0},
	{"or $1,%dil", {0x40, 0x80, 0xcf, 1}, R(DI), 0, X86_NONE, 0},
	{"mov $1,%bh", {0xb7, 1}, R(BX), 0, X86_NONE, 0},
	{"mov $1,%r15b", {0x41, 0xb7, 1}, R(R15), 0, X86_NONE, 0},
	{"sete %bh", {0x0f, 0x94, 0xc7}, R(BX), 0, X86_NONE, 0},
	{"xchg %rax,%rdx", {0x48, 0x92}, R(AX) | R(DX), 0, X86_NONE, 0},
	{"xchg %rax,%r8", {0x49, 0x90}, R(AX) | R(R8), 0, X86_NONE, 0},
	{"xchg %rbx,(%rcx)", {0x48, 0x87, 0x19}, R(BX), EXACT | WRITTEN, X86_CX, 0},
	{"nop", {0x90}, 0, NOP, X86_NONE, 0},
	{"nopl 8(%rax)", {0x0f, 0x1f, 0x40, 8}, 0, EXACT | NOP, X86_AX, 8},
	{"pop %rbx", {0x5b}, R(BX), 0, X86_NONE, 0},
	{"leave", {0xc9}, R(BP), 0, X86_NONE, 0},
	{"mul %rcx", {0x48, 0xf7, 0xe1}, R(AX) | R(DX), 0, X86_NONE, 0},
	{"not %rcx", {0x48, 0xf7, 0xd1}, R(CX), 0, X86_NONE, 0},
	{"imul %rcx,%rbx", {0x48, 0x0f, 0xaf, 0xd9}, R(BX), 0, X86_NONE, 0},
	{"cqto", {0x48, 0x99}, R(DX), 0, X86_NONE, 0},
	{"rep stos", {0xf3, 0x48, 0xab}, R(AX) | R(CX) | R(SI) | R(DI), 0, X86_NONE, 0},
	{"cpuid", {0x0f, 0xa2}, R(AX) | R(BX) | R(CX) | R(DX), 0, X86_NONE, 0},
	{"lock cmpxchg %rcx,(%rdi)", {0xf0, 0x48, 0x0f, 0xb1, 0x0f}, R(AX), EXACT | WRITTEN, X86_DI, 0},
	{"lock xadd %rcx,(%rdi)", {0xf0, 0x48, 0x0f, 0xc1, 0x0f}, R(CX), EXACT | WRITTEN, X86_DI, 0},
	{"bswap %rbx", {0x48, 0x0f, 0xcb}, R(BX), 0, X86_NONE, 0},
	{"crc32 %rax,%rbx", {0xf2, 0x48, 0x0f, 0x38, 0xf1, 0xd8}, X86_WRITES_ALL, 0, X86_NONE, 0},
	{"vmovq %xmm0,%rbx", {0xc4, 0xe1, 0xf9, 0x7e, 0xc3}, X86_WRITES_ALL, 0, X86_NONE, 0},
	{"vmovd %ebx,%xmm1", {0xc5, 0xf9, 0x6e, 0xcb}, 0, 0, X86_NONE, 0},
	{"vmovdqu (%rsi),%xmm0", {0xc5, 0xfa, 0x6f, 0x06}, 0, EXACT, X86_SI, 0},
	{"vmovq (%rsi),%xmm2", {0xc5, 0xfa, 0x7e, 0x16}, 0, EXACT, X86_SI, 0},
	{"vmovq (%rsi),%xmm2", {0xc4, 0xe1, 0x7a, 0x7e, 0x16}, 0, EXACT, X86_SI, 0},
	{"vmovd %xmm0,%edi", {0xc5, 0xf9, 0x7e, 0xc7}, X86_WRITES_ALL, 0, X86_NONE, 0},
	{"vmovdqu64 (%rsi),%zmm0", {0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x06}, 0, EXACT, X86_SI, 0},
	{"vmovdqu %xmm0,(%rsi)", {0xc5, 0xfa, 0x7f, 0x06}, X86_WRITES_ALL, EXACT, X86_SI, 0},
	{"vpsrldq $8,%xmm0,%xmm1", {0xc5, 0xf1, 0x73, 0xd8, 8}, 0, 0, X86_NONE, 0},
	{"vpmovmskb %xmm0,%ebp", {0xc5, 0xf9, 0xd7, 0xe8}, X86_WRITES_ALL, 0, X86_NONE, 0},
	{"vcvttss2usi %xmm0,%ebp", {0x62, 0xf1, 0x7e, 0x08, 0x78, 0xe8}, X86_WRITES_ALL, 0, X86_NONE, 0},
	{"vmovmskps %xmm0,%ebp", {0xc5, 0xf8, 0x50, 0xe8}, X86_WRITES_ALL, 0, X86_NONE, 0},
	{"syscall", {0x0f, 0x05}, X86_WRITES_ALL, 0, X86_NONE, 0},
	{"jmp *8(%rbx)", {0xff, 0x63, 8}, 0, EXACT, X86_BX, 8},
};

START_TEST(instruction_writes_what_it_names_and_implies)
{
	struct x86_insn i;
	uint8_t flags;

	ck_assert_int_eq(x86_decode(operands[_i].code, X86_INSN_MAX, &i), 0);
	flags = (uint8_t)(i.memory.exact * EXACT + i.memory.written * WRITTEN + i.nop * NOP);
	ck_assert_msg(i.writes == operands[_i].writes && flags == operands[_i].flags, "%s: writes %#x, flags %u", operands[_i].text,
		      i.writes, flags);
	ck_assert_uint_eq(i.memory.base, operands[_i].base);
	ck_assert_int_eq(i.memory.disp, operands[_i].disp);
}
END_TEST

START_TEST(cut_instruction_is_none)
{
	struct x86_insn i;

	for (size_t len = 0; len < insns[_i].len; len++)
		ck_assert_int_eq(x86_decode(insns[_i].code, len, &i), -EBADMSG);
}
END_TEST

START_TEST(endless_prefixes_are_no_instruction)
{
	uint8_t code[64];
	struct x86_insn i;

	memset(code, 0x66, sizeof(code));
	ck_assert_int_eq(x86_decode(code, sizeof(code), &i), -EBADMSG);
}
END_TEST

/* --- the way to the return --- */

static struct row row;

static uint32_t decoded; /* instructions */

static int counting_decode(const uint8_t *code, size_t len, struct insn *ret)
{
	decoded++;
	return epilogue_x86_64.decode(code, len, ret);
}

static int find_at(const void *code, size_t len, size_t at, bool called)
{
	struct epilogue_arch counting = epilogue_x86_64;
	static struct tiny tiny;
	struct binary *b;
	int err;

	tiny_init(&tiny, EM_X86_64, 0);
	memset(tiny.image + TINY_CODE, 0xcc, TINY_SIZE - TINY_CODE);
	memcpy(tiny.image + TINY_CODE, code, len);
	b = tiny_open(&tiny);
	counting.decode = counting_decode;
	err = epilogue_find(&counting, b, TINY_CODE + at, called, &row);
	binary_put(b);
	return err;
}

static int find(const void *code, size_t len)
{
	return find_at(code, len, 0, false);
}
#define FIND(...) find((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
#define FIND_CALLER(...) find_at((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), 0, true)

START_TEST(leaf_returns_to_the_top_of_the_stack)
{
	ck_assert_int_eq(FIND(0x90, 0xc3), 0);
	ck_assert_int_eq(row.cfa_kind, CFA_REG);
	ck_assert_uint_eq(row.cfa_reg, DWARF_SP);
	ck_assert_int_eq(row.cfa_n, 8);
	ck_assert_int_eq(row.reg[DWARF_PC].n, -8);
	ck_assert_int_eq(row.reg[DWARF_BP].kind, RULE_UNSPECIFIED);
	ck_assert(row.flags & ROW_GUESS);
}
END_TEST

START_TEST(saved_registers_are_where_they_are_popped_from)
{
	/* add $0x38,%rsp; pop %r15; pop %rbp; pop %rbx; ret */
	ck_assert_int_eq(FIND(0x48, 0x83, 0xc4, 0x38, 0x41, 0x5f, 0x5d, 0x5b, 0xc3), 0);
	ck_assert_int_eq(row.cfa_n, 0x38 + 3 * 8 + 8);
	ck_assert_int_eq(row.reg[DWARF_R15].n, -32);
	ck_assert_int_eq(row.reg[DWARF_BP].n, -24);
	ck_assert_int_eq(row.reg[DWARF_BX].n, -16);
	ck_assert_int_eq(row.reg[DWARF_R12].kind, RULE_UNSPECIFIED);
}
END_TEST

START_TEST(realigned_stack_is_found_where_it_was_saved)
{
	/* mov 0x110(%rsp),%rsp; pop %rbx; ret */
	ck_assert_int_eq(FIND(0x48, 0x8b, 0xa4, 0x24, 0x10, 1, 0, 0, 0x5b, 0xc3), 0);
	ck_assert_int_eq(row.cfa_kind, CFA_DEREF);
	ck_assert_uint_eq(row.cfa_reg, DWARF_SP);
	ck_assert_int_eq(row.cfa_n, 0x110);
	ck_assert_int_eq(row.cfa_add, 16);
	ck_assert_int_eq(row.reg[DWARF_BX].n, -16);
}
END_TEST

START_TEST(frame_pointer_leads_out_by_leave)
{
	ck_assert_int_eq(FIND(0xc9, 0xc3), 0);
	ck_assert_uint_eq(row.cfa_reg, DWARF_BP);
	ck_assert_int_eq(row.cfa_n, 16);
	ck_assert_int_eq(row.reg[DWARF_BP].n, -16);
}
END_TEST

/* What the prologue will push has not been pushed yet. */
START_TEST(before_the_prologue_registers_are_the_callers)
{
	/* push %rbp; mov %rsp,%rbp; push %rbx; nop; pop %rbx; leave; ret */
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x53, 0x90, 0x5b, 0xc9, 0xc3};

	ck_assert_int_eq(find(code, sizeof(code)), 0);
	ck_assert_uint_eq(row.cfa_reg, DWARF_SP);
	ck_assert_int_eq(row.cfa_n, 8);
	ck_assert_int_eq(row.reg[DWARF_BP].kind, RULE_UNSPECIFIED);
	ck_assert_int_eq(row.reg[DWARF_BX].kind, RULE_UNSPECIFIED);
	ck_assert_int_eq(find(code + 1, sizeof(code) - 1), 0); /* push %rbp is done */
	ck_assert_uint_eq(row.cfa_reg, DWARF_SP);
	ck_assert_int_eq(row.cfa_n, 16);
	ck_assert_int_eq(row.reg[DWARF_BP].n, -16);
	ck_assert_int_eq(row.reg[DWARF_BX].kind, RULE_UNSPECIFIED);
}
END_TEST

START_TEST(spilled_value_is_not_what_was_saved)
{
	/* mov %rbx,(%rsp); mov (%rsp),%rbx; add $8,%rsp; pop %rbx; ret */
	ck_assert_int_eq(FIND(0x48, 0x89, 0x1c, 0x24, 0x48, 0x8b, 0x1c, 0x24, 0x48, 0x83, 0xc4, 8, 0x5b, 0xc3), 0);
	ck_assert_int_eq(row.cfa_n, 24);
	ck_assert_int_eq(row.reg[DWARF_BX].kind, RULE_OFFSET);
	ck_assert_int_eq(row.reg[DWARF_BX].n, -16);
}
END_TEST

/* What is jumped to for the rest has a frame of its own, where it keeps what was taken back before. */
START_TEST(what_a_tail_call_saves_is_not_what_was_saved)
{
	/* add $0x38,%rsp; pop %rbx; pop %rbp; jmp: push %r12; push %rbx; sub, add $0x18,%rsp; pop %rbx; pop %r12; ret */
	ck_assert_int_eq(FIND(0x48, 0x83, 0xc4, 0x38, 0x5b, 0x5d, 0xeb, 0, 0x41, 0x54, 0x53, 0x48, 0x83, 0xec, 0x18,
			      0x48, 0x83, 0xc4, 0x18, 0x5b, 0x41, 0x5c, 0xc3), 0);
	ck_assert_int_eq(row.cfa_n, 0x38 + 3 * 8);
	ck_assert_int_eq(row.reg[DWARF_BX].kind, RULE_OFFSET);
	ck_assert_int_eq(row.reg[DWARF_BX].n, -24);
	ck_assert_int_eq(row.reg[DWARF_BP].n, -16);
	ck_assert_int_eq(row.reg[DWARF_R12].kind, RULE_UNSPECIFIED);
}
END_TEST

/* A frame that is left by its frame pointer, whatever lies on its stack: an argument. */
START_TEST(what_a_tail_call_saves_behind_a_frame_pointer_is_not_what_was_saved)
{
	/* push %rbx; lea -8(%rbp),%rsp; pop %rbx; pop %rbp; jmp: push %rbx; pop %rbx; ret */
	ck_assert_int_eq(FIND(0x53, 0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xeb, 0, 0x53, 0x5b, 0xc3), 0);
	ck_assert_uint_eq(row.cfa_reg, DWARF_BP);
	ck_assert_int_eq(row.cfa_n, 16);
	ck_assert_int_eq(row.reg[DWARF_BX].kind, RULE_OFFSET);
	ck_assert_int_eq(row.reg[DWARF_BX].n, -24);
}
END_TEST

/* From the entry: what the function saves is its caller's still, as is what that which is jumped to saves. */
START_TEST(before_the_prologue_a_tail_call_tells_nothing_either)
{
	/* push %rbx; sub, add $16,%rsp; pop %rbx; jmp: push %r12; push %rbx; pop %rbx; pop %r12; ret */
	ck_assert_int_eq(FIND(0x53, 0x48, 0x83, 0xec, 16, 0x48, 0x83, 0xc4, 16, 0x5b, 0xeb, 0, 0x41, 0x54, 0x53, 0x5b,
			      0x41, 0x5c, 0xc3), 0);
	ck_assert_int_eq(row.cfa_n, 8);
	ck_assert_int_eq(row.reg[DWARF_BX].kind, RULE_UNSPECIFIED);
	ck_assert_int_eq(row.reg[DWARF_R12].kind, RULE_UNSPECIFIED);
}
END_TEST

START_TEST(realigned_stack_comes_back_by_the_frame_pointer)
{
	/* push %rbp; mov %rsp,%rbp; and $-32,%rsp; push %rbx; pop %rbx; leave; ret */
	ck_assert_int_eq(FIND(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0x53, 0x5b, 0xc9, 0xc3), 0);
	ck_assert_uint_eq(row.cfa_reg, DWARF_SP);
	ck_assert_int_eq(row.cfa_n, 8);
	ck_assert_int_eq(row.reg[DWARF_BP].kind, RULE_UNSPECIFIED);
	ck_assert_int_eq(row.reg[DWARF_BX].kind, RULE_UNSPECIFIED);
}
END_TEST

START_TEST(loop_is_left_by_its_branch)
{
	/* je +3; nop; jmp -5; pop %rbx; ret */
	ck_assert_int_eq(FIND(0x74, 3, 0x90, 0xeb, 0xfb, 0x5b, 0xc3), 0);
	ck_assert_int_eq(row.cfa_n, 16);
}
END_TEST

START_TEST(tail_call_is_followed)
{
	/* pop %rbx; jmp +1; int3; ret */
	ck_assert_int_eq(FIND(0x5b, 0xeb, 1, 0xcc, 0xc3), 0);
	ck_assert_int_eq(row.cfa_n, 16);
}
END_TEST

START_TEST(new_stack_pointer_is_tested_in_another_register_first)
{
	/* lea -0x28(%rsp),%rbx; cmp 8(%r15),%rbx; jbe +1; ...; mov %rbx,%rsp; add $0x28,%rsp; ret */
	uint8_t code[] = {0x48, 0x8d, 0x5c, 0x24, 0xd8, 0x49, 0x3b, 0x5f, 8, 0x76, 14, 0x90, 0x90, 0x90,
			  0x48, 0x8b, 0xe3, 0x48, 0x83, 0xc4, 0x28, 0xc3};

	ck_assert_int_eq(find(code, sizeof(code)), 0);
	ck_assert_uint_eq(row.cfa_reg, DWARF_SP);
	ck_assert_int_eq(row.cfa_n, 8);
	ck_assert_int_eq(find(code + 5, sizeof(code) - 5), 0); /* the register has it already */
	ck_assert_uint_eq(row.cfa_reg, DWARF_BX);
	ck_assert_int_eq(row.cfa_n, 0x30);
	memcpy(code + 11, "\x89\xcb", 2); /* mov %ecx,%ebx */
	ck_assert_int_eq(find(code, sizeof(code)), -ENOENT);
}
END_TEST

/* More branches than a bounded stack of them would keep: the one that leads out may be any. */
START_TEST(each_of_many_branches_is_followed)
{
	enum { BRANCHES = 100, LEADS_OUT = 70, AT = 6 * BRANCHES + 2 };
	uint8_t code[AT + BRANCHES];

	for (int32_t i = 0; i < BRANCHES; i++) {
		const int32_t n = AT + i - 6 * (i + 1); /* to a byte each */

		memcpy(code + 6 * i, "\x0f\x84", 2);
		memcpy(code + 6 * i + 2, &n, sizeof(n));
	}
	memcpy(code + AT - 2, "\xeb\xfe", 2); /* jmp to itself */
	memset(code + AT, 0xcc, BRANCHES);
	code[AT + LEADS_OUT] = 0xc3;
	ck_assert_int_eq(find(code, sizeof(code)), 0);
	ck_assert_int_eq(row.cfa_n, 8);
}
END_TEST

START_TEST(code_behind_a_jump_through_a_table_is_of_the_same_function)
{
	/* jmp *%rsi; add $0x18,%rsp; ret */
	ck_assert_int_eq(FIND(0xff, 0xe6, 0x48, 0x83, 0xc4, 0x18, 0xc3), 0);
	ck_assert_int_eq(row.cfa_n, 0x20);
	/* je over the jump's other side: the way that is known comes first */
	ck_assert_int_eq(FIND(0x74, 7, 0xff, 0xe6, 0x48, 0x83, 0xc4, 0x18, 0xc3, 0x5b, 0xc3), 0);
	ck_assert_int_eq(row.cfa_n, 16);
	/* jmp *0x10(%rip): a stub's, and what follows is another one */
	ck_assert_int_eq(FIND(0xff, 0x25, 0x10, 0, 0, 0, 0xc3), -ENOENT);
}
END_TEST

START_TEST(way_that_passes_fewer_calls_is_taken)
{
	/* je +7; call; pop %rbx; ret; add $0x18,%rsp; ret */
	ck_assert_int_eq(FIND(0x74, 7, 0xe8, 0, 0, 0, 0, 0x5b, 0xc3, 0x48, 0x83, 0xc4, 0x18, 0xc3), 0);
	ck_assert_int_eq(row.cfa_n, 0x20);
}
END_TEST

START_TEST(call_that_never_comes_back_does_not_lead_into_the_next_function)
{
	/* call; sub $0x18,%rsp; call; add $0x18,%rsp; ret; int3, where both calls lead */
	static const uint8_t code[] = {0xe8, 14, 0, 0, 0, 0x48, 0x83, 0xec, 0x18, 0xe8, 5, 0, 0, 0,
				       0x48, 0x83, 0xc4, 0x18, 0xc3, 0xcc};

	ck_assert_int_eq(find_at(code, sizeof(code), 0, false), -ENOENT);
	ck_assert_int_eq(find_at(code, sizeof(code), 5, true), -ENOENT);
	ck_assert_int_eq(find_at(code, sizeof(code), 5, false), 0); /* interrupted there, it is the function's own begin */
	ck_assert_int_eq(row.cfa_n, 8);
}
END_TEST

START_TEST(assembly_may_call_without_a_frame_what_comes_back)
{
	/* call; nop; ret; call; ret; ret: the first one leads to the second, that to the last ret */
	uint8_t code[] = {0xe8, 2, 0, 0, 0, 0x90, 0xc3, 0xe8, 1, 0, 0, 0, 0xc3, 0xc3};

	ck_assert_int_eq(find_at(code, sizeof(code), 0, false), 0);
	ck_assert_int_eq(row.cfa_n, 8);
	ck_assert_int_eq(find_at(code, sizeof(code), 5, true), 0);
	ck_assert_int_eq(row.cfa_n, 8);
	code[13] = 0xcc;
	ck_assert_int_eq(find_at(code, sizeof(code), 0, false), -ENOENT);
	ck_assert_int_eq(find_at(code, sizeof(code), 5, true), -ENOENT);
	/* call *%rax: it is not known what is called */
	ck_assert_int_eq(FIND(0xff, 0xd0, 0xc3), -ENOENT);
}
END_TEST

/* Each function calls itself, and so on. */
START_TEST(question_whether_a_call_comes_back_has_an_end)
{
	static const uint8_t code[] = {0xe8, 0xfb, 0xff, 0xff, 0xff, 0xc3};

	ck_assert_int_eq(find(code, sizeof(code)), -ENOENT);
}
END_TEST

/* A call to a function, then so many branches to returns of their own: each may be what it returns by. */
static size_t put_questions(uint8_t *code, uint32_t branches, int32_t callee)
{
	size_t n = 5;

	code[0] = 0xe8;
	memcpy(code + 1, &callee, sizeof(callee));
	for (uint32_t i = 0; i < branches; i++, n += 3)
		memcpy(code + n, "\x74\x01\xc3", 3); /* je over a return */
	return n;
}

START_TEST(whether_calls_come_back_is_asked_a_few_times_only)
{
	enum { BRANCHES = 300, CALLEE = 0x600 };
	static uint8_t code[0x800];
	uint32_t before;

	memset(code, 0x90, sizeof(code));
	put_questions(code, BRANCHES, CALLEE - 5);
	memset(code + CALLEE, 0x90, 0x1f0); /* without a return: the question is dear */
	memset(code + 0x7f0, 0xcc, 16);
	before = decoded;
	ck_assert_int_eq(find(code, sizeof(code)), -ENOENT);
	ck_assert_uint_le(decoded - before, 2 * EPILOGUE_INSNS);
}
END_TEST

START_TEST(frame_that_aligns_calls_is_taken_first)
{
	/* je +5; add $0x10,%rsp; ret; add $0x18,%rsp; ret */
	static const uint8_t code[] = {0x74, 5, 0x48, 0x83, 0xc4, 0x10, 0xc3, 0x48, 0x83, 0xc4, 0x18, 0xc3};

	ck_assert_int_eq(find_at(code, sizeof(code), 0, true), 0);
	ck_assert_int_eq(row.cfa_n, 0x20);
	ck_assert_int_eq(find(code, sizeof(code)), 0); /* no call was made from here */
	ck_assert_int_eq(row.cfa_n, 0x18);
	ck_assert_int_eq(FIND_CALLER(0x48, 0x83, 0xc4, 0x10, 0xc3), 0); /* it is the only one */
	ck_assert_int_eq(row.cfa_n, 0x18);
}
END_TEST

START_TEST(code_without_an_end_has_no_row)
{
	ck_assert_int_eq(FIND(0xeb, 0xfe), -ENOENT);
	ck_assert_int_eq(FIND(0x0f, 0x0b), -ENOENT);
	ck_assert_int_eq(FIND(0xff, 0xe0), -ENOENT);
	ck_assert_int_eq(FIND(0x48, 0x83, 0xe4, 0xe0, 0xc3), -ENOENT); /* and $-32,%rsp */
}
END_TEST

START_TEST(register_that_was_overwritten_cannot_lead_out)
{
	/* mov 8(%rsp),%rbp; mov %rbp,%rsp; ret */
	ck_assert_int_eq(FIND(0x48, 0x8b, 0x6c, 0x24, 8, 0x48, 0x89, 0xec, 0xc3), -ENOENT);
}
END_TEST

/* A jump from address 4 to -4. The number of bytes read lies before the bytes; decoded, it would be a ret. */
START_TEST(jump_below_address_zero_has_no_row)
{
	static struct tiny tiny;
	Elf64_Phdr *code = (void *)(tiny.image + sizeof(Elf64_Ehdr));
	struct binary *b;

	tiny_init(&tiny, EM_X86_64, TINY_NO_HDR);
	code->p_offset = TINY_CODE;
	code->p_filesz = code->p_memsz = 4 + 0xc3; /* 0xc3 bytes are read from address 4 on */
	memcpy(tiny.image + TINY_CODE + 4, "\xeb\xf6", 2);
	b = tiny_open(&tiny);
	ck_assert_ptr_nonnull(b);
	ck_assert_int_eq(epilogue_find(&epilogue_x86_64, b, 4, false, &row), -ENOENT);
	binary_put(b);
}
END_TEST

Suite *epilogue_suite(void)
{
	Suite *s = suite_create("epilogue");
	TCase *t = tcase_create("instructions");

	tcase_add_loop_test(t, instruction_has_its_length_and_meaning, 0, ARRAY_SIZE(insns));
	tcase_add_loop_test(t, cut_instruction_is_none, 0, ARRAY_SIZE(insns));
	tcase_add_loop_test(t, instruction_writes_what_it_names_and_implies, 0, ARRAY_SIZE(operands));
	tcase_add_test(t, endless_prefixes_are_no_instruction);
	suite_add_tcase(s, t);
	t = tcase_create("ways out");
	tcase_add_test(t, leaf_returns_to_the_top_of_the_stack);
	tcase_add_test(t, saved_registers_are_where_they_are_popped_from);
	tcase_add_test(t, realigned_stack_is_found_where_it_was_saved);
	tcase_add_test(t, frame_pointer_leads_out_by_leave);
	tcase_add_test(t, before_the_prologue_registers_are_the_callers);
	tcase_add_test(t, spilled_value_is_not_what_was_saved);
	tcase_add_test(t, what_a_tail_call_saves_is_not_what_was_saved);
	tcase_add_test(t, what_a_tail_call_saves_behind_a_frame_pointer_is_not_what_was_saved);
	tcase_add_test(t, before_the_prologue_a_tail_call_tells_nothing_either);
	tcase_add_test(t, realigned_stack_comes_back_by_the_frame_pointer);
	tcase_add_test(t, loop_is_left_by_its_branch);
	tcase_add_test(t, tail_call_is_followed);
	tcase_add_test(t, new_stack_pointer_is_tested_in_another_register_first);
	tcase_add_test(t, each_of_many_branches_is_followed);
	tcase_add_test(t, code_behind_a_jump_through_a_table_is_of_the_same_function);
	tcase_add_test(t, way_that_passes_fewer_calls_is_taken);
	tcase_add_test(t, call_that_never_comes_back_does_not_lead_into_the_next_function);
	tcase_add_test(t, assembly_may_call_without_a_frame_what_comes_back);
	tcase_add_test(t, question_whether_a_call_comes_back_has_an_end);
	tcase_add_test(t, whether_calls_come_back_is_asked_a_few_times_only);
	tcase_add_test(t, frame_that_aligns_calls_is_taken_first);
	tcase_add_test(t, code_without_an_end_has_no_row);
	tcase_add_test(t, register_that_was_overwritten_cannot_lead_out);
	tcase_add_test(t, jump_below_address_zero_has_no_row);
	suite_add_tcase(s, t);
	return s;
}
