// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/go_table.h"
#include "unwind/arch.h"
#include "unwind/epilogue.h"
#include "unwind/prologue.h"
#include "unwind/rules.h"
#include "unwind/x86_insn.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, RIP };

static void set_cfa(struct row *row, uint8_t reg, int64_t n)
{
	row->cfa_kind = CFA_REG;
	row->cfa_reg = reg;
	row->cfa_n = n;
}

static void at_cfa(struct row *row, unsigned reg, int64_t n)
{
	row->reg[reg] = (struct rule){.kind = RULE_OFFSET, .n = n};
}

static void returns_from(struct row *row, int64_t depth)
{
	memset(row, 0, sizeof(*row));
	row->ra = RIP;
	set_cfa(row, RSP, depth);
	at_cfa(row, RIP, -8);
}

static void frameless(struct row *ret)
{
	returns_from(ret, 8);
}

/*
 * Linux, arch/x86/include/uapi/asm/{ucontext,sigcontext}.h: at the trampoline
 * the stack pointer is at struct ucontext, whose machine context begins 40
 * bytes in.
 */
static void signal_row(struct row *row)
{
	static const uint8_t order[] = {R8,  R9,  R10, R11, R12, R13, R14, R15, RDI,
					RSI, RBP, RBX, RDX, RAX, RCX, RSP, RIP};

	memset(row, 0, sizeof(*row));
	row->ra = RIP;
	row->flags = ROW_SIGNAL;
	set_cfa(row, RSP, 0);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		at_cfa(row, order[i], 40 + 8 * (int64_t)i);
}

static bool code_is(const struct code *code, unsigned at, const uint8_t *bytes, size_t len)
{
	return at + len <= sizeof(code->bytes) && !memcmp(code->bytes + at, bytes, len);
}

/* mov $__NR_rt_sigreturn,%rax; syscall: interrupted before, within or after it, or returned to. */
static bool is_sigreturn(const struct code *code)
{
	static const uint8_t stub[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

	return code_is(code, CODE_RETURN, stub, sizeof(stub)) || code_is(code, CODE_AT, stub, sizeof(stub)) ||
	       code_is(code, CODE_AT - 7, stub, sizeof(stub)) || code_is(code, CODE_AT - 9, stub, sizeof(stub));
}

static bool within(const struct binary_section *s, uint64_t vaddr)
{
	return s && vaddr >= s->addr && vaddr - s->addr < s->size;
}

/*
 * Procedure linkage tables as GNU ld and lld lay them out, for the linkers that
 * describe them in no table. Only .plt pushes, at the eleventh byte of an
 * entry, and its first entry once more.
 */
static bool plt_row(struct binary *b, uint64_t vaddr, struct row *ret)
{
	const struct binary_section *plt = binary_section(b, ".plt");

	if (within(binary_section(b, ".plt.sec"), vaddr) || within(binary_section(b, ".plt.got"), vaddr)) {
		returns_from(ret, 8);
		return true;
	}
	if (!within(plt, vaddr))
		return false;
	if (vaddr - plt->addr < 16)
		returns_from(ret, vaddr - plt->addr < 6 ? 16 : 24);
	else
		returns_from(ret, ((vaddr - plt->addr) & 15) >= 11 ? 16 : 8);
	return true;
}

static bool known(struct binary *b, uint64_t vaddr, const struct code *code, struct row *ret)
{
	if (is_sigreturn(code)) {
		signal_row(ret);
		return true;
	}
	return plt_row(b, vaddr, ret);
}

/* musl 1.2, src/thread/x86_64/clone.s: mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall */
static bool is_clone(const struct code *code)
{
	static const uint8_t exits[] = {0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05};

	return code_is(code, CODE_RETURN, exits, sizeof(exits));
}

/*
 * Go, src/runtime/asm_amd64.s, goexit: nop; call goexit1; nop, returned to after the first nop. Other compilers' code may
 * have these instructions at any call.
 */
static bool is_goexit(const struct code *code)
{
	const uint8_t *at = code->bytes + CODE_RETURN;

	return at[-1] == 0x90 && at[0] == 0xe8 && at[5] == 0x90;
}

static bool is_go(struct binary *b)
{
	return binary_section(b, ".gopclntab") || binary_section(b, ".data.rel.ro.gopclntab") || go_table_get(b);
}

/* rt0_go: call osinit; call schedinit; lea mainPC(%rip),%rax; push %rax; call newproc. */
static bool starts_go(const struct code *code, unsigned at)
{
	static const uint8_t lea[] = {0x48, 0x8d, 0x05}, push[] = {0x50, 0xe8};

	return code->bytes[at - 5] == 0xe8 && code_is(code, at, lea, sizeof(lea)) &&
	       code_is(code, at + 7, push, sizeof(push));
}

/* mcall: push %rax, the goroutine that it leaves, for fn(g); mov (%rdx),%r12; call *%r12. */
static bool leaves_by_mcall(const struct code *code)
{
	static const uint8_t mcall[] = {0x50, 0x4c, 0x8b, 0x22, 0x41, 0xff, 0xd4},
			     until_1_16[] = {0x50, 0x48, 0x89, 0xfa, 0x48, 0x8b, 0x3f, 0xff, 0xd7};

	return code_is(code, CODE_RETURN - 7, mcall, sizeof(mcall)) ||
	       code_is(code, CODE_RETURN - 9, until_1_16, sizeof(until_1_16));
}

/* morestack: mov $0,%rbp; call newstack, which has g in its frame; call (mstart's call has a ret behind it). */
static bool leaves_by_morestack(const struct code *code)
{
	static const uint8_t morestack[] = {0x48, 0xc7, 0xc5, 0, 0, 0, 0, 0xe8};

	return code->bytes[CODE_RETURN] == 0xe8 && code_is(code, CODE_RETURN - 12, morestack, sizeof(morestack));
}

/*
 * goexit. clone in the new thread: call *%r12; mov $111,%edi; mov $__NR_exit,%eax.
 * rt0_go: call mstart; call; ret; movq $2,(%rsp).
 */
static bool begins_go_stack(const struct code *code)
{
	static const uint8_t clone[] = {0x41, 0xff, 0xd4, 0xbf, 0x6f, 0, 0, 0, 0xb8, 0x3c, 0, 0, 0};
	static const uint8_t rt0[] = {0xc3, 0x48, 0xc7, 0x04, 0x24, 2, 0, 0, 0};
	bool calls_on = code->bytes[CODE_RETURN] == 0xe8;

	return is_goexit(code) || starts_go(code, CODE_RETURN) || starts_go(code, CODE_RETURN + 5) ||
	       code_is(code, CODE_RETURN - 3, clone, sizeof(clone)) ||
	       (calls_on && code_is(code, CODE_RETURN + 5, rt0, sizeof(rt0)));
}

/*
 * systemstack: mov %rdi,%rdx; mov (%rdi),%rdi; call *%rdi. asmcgocall: mov %rdi,(%rsp);
 * call; mov 8(%rsp),%rdi; mov 8(%rdi),%rsi: only where it has left the goroutine's stack.
 */
static bool left_go_stack(const struct code *code)
{
	static const uint8_t systemstack[] = {0x48, 0x89, 0xfa, 0x48, 0x8b, 0x3f, 0xff, 0xd7};
	static const uint8_t depth[] = {0x48, 0x89, 0x3c, 0x24, 0xe8}, back[] = {0x48, 0x8b, 0x7c, 0x24, 8};

	return code_is(code, CODE_RETURN - 8, systemstack, sizeof(systemstack)) ||
	       (code_is(code, CODE_RETURN - 9, depth, sizeof(depth)) && code_is(code, CODE_RETURN, back, sizeof(back)));
}

/*
 * Go, src/runtime/asm_amd64.s, sys_linux_amd64.s. sigreturn has the table of a
 * function that was called. On a thread's own stack (g0) the others are the
 * outermost, but the tables describe them as if they still were on the stack
 * that they left. mcall and morestack never return to it: they are roots, unless
 * what they called still works for the goroutine. systemstack and asmcgocall
 * return to it.
 */
static bool misled(struct binary *b, uint64_t vaddr, struct row *ret)
{
	struct code code;

	if (!is_go(b))
		return false;
	code_read(b, vaddr, &code);
	if (is_sigreturn(&code)) {
		signal_row(ret);
		return true;
	}
	returns_from(ret, 8);
	if (leaves_by_mcall(&code))
		ret->flags = ROW_PROVES;
	else if (leaves_by_morestack(&code))
		ret->flags = ROW_PROVES_BELOW;
	else if (left_go_stack(&code))
		ret->flags = ROW_SWITCHED;
	else if (!begins_go_stack(&code))
		return false;
	if (ret->flags != ROW_SWITCHED)
		ret->reg[RIP].kind = RULE_UNDEFINED;
	return true;
}

/*
 * From which address on the caller's frame pointer lies below the return address. Since Go 1.21
 * functions begin with push %rbp; mov %rsp,%rbp; before, with sub $n,%rsp; mov %rbp,n-8(%rsp).
 * Assembly without a frame has neither and leaves the register alone. 0: not saved.
 */
static uint64_t go_saved_from(struct binary *b, uint64_t moved)
{
	static const uint8_t push[] = {0x55, 0x48, 0x89, 0xe5}, store8[] = {0x48, 0x89, 0x6c, 0x24},
			     store32[] = {0x48, 0x89, 0xac, 0x24};
	struct code code;

	code_read(b, moved, &code);
	if (code_is(&code, CODE_RETURN - 2, push, sizeof(push)))
		return moved;
	if (code_is(&code, CODE_RETURN - 1, store8, sizeof(store8)))
		return moved + sizeof(store8) + 1;
	return code_is(&code, CODE_RETURN - 1, store32, sizeof(store32)) ? moved + sizeof(store32) + 4 : 0;
}

/* mov n(%rsp),%rbp; add $n,%rsp; ret: from the second one on %rbp is the caller's. */
static bool go_gave_back(struct binary *b, uint64_t vaddr)
{
	static const uint8_t restores[] = {0x48, 0x8b, 0x6c, 0x24}, adds[] = {0x48, 0x83, 0xc4};
	uint8_t before[9];

	if (vaddr < sizeof(before) || binary_read_vaddr(b, vaddr - sizeof(before), before, sizeof(before)) != sizeof(before))
		return false;
	return !memcmp(before + 4, restores, sizeof(restores)) ||
	       (!memcmp(before, restores, sizeof(restores)) && !memcmp(before + 5, adds, sizeof(adds)));
}

/*
 * mov %rsp,%r12, %rbx (callCgoMmap and the like), or until Go 1.16 %rbp, which behind push %rbp only makes a frame; what is
 * called keeps them, as every C function does.
 */
static uint64_t go_keeps_sp(struct binary *b, uint64_t start, uint64_t vaddr, uint8_t *ret_reg)
{
	static const struct { uint8_t code[3], reg; } keeps[] = {
		{{0x49, 0x89, 0xe4}, R12}, {{0x48, 0x89, 0xe3}, RBX}, {{0x48, 0x89, 0xe5}, RBP}};
	uint8_t code[64];
	size_t len = vaddr > start ? MIN(vaddr - start, sizeof(code)) : 0;

	if (!len || binary_read_vaddr(b, start, code, len) != (ssize_t)len)
		return 0;
	for (size_t at = 0; at + sizeof(keeps[0].code) <= len; at++)
		for (size_t i = 0; i < ARRAY_SIZE(keeps); i++) {
			if (memcmp(code + at, keeps[i].code, sizeof(keeps[i].code)) ||
			    (keeps[i].reg == RBP && at && code[at - 1] == 0x55))
				continue;
			*ret_reg = keeps[i].reg;
			return keeps[i].reg == RBP && go_gave_back(b, vaddr) ? 0 : start + at + sizeof(keeps[i].code);
		}
	return 0;
}

/* mov n(%rsp),%reg; mov %reg,%rsp */
static bool go_loads_sp(const struct code *code, uint8_t *ret_offset)
{
	const uint8_t *at = code->bytes + CODE_RETURN;
	const uint8_t reg = at[2] >> 3 & 7, near = (uint8_t)(reg << 3 | 4), back[] = {0x48, 0x89, (uint8_t)(0xc0 | reg << 3 | 4)};
	const unsigned len = at[2] == near ? 4 : 5;

	if (at[0] != 0x48 || at[1] != 0x8b || (at[2] & ~0x78) != 4 || at[3] != 0x24 ||
	    !code_is(code, CODE_RETURN + len, back, sizeof(back)))
		return false;
	*ret_offset = len == 4 ? 0 : at[4];
	return true;
}

/* mov %rsp,%rdx, the last one before the call: asmcgocall on a stack of the thread. */
static uint64_t go_saves_sp(struct binary *b, uint64_t start, uint64_t vaddr, uint8_t *ret_offset)
{
	static const uint8_t saves[] = {0x48, 0x89, 0xe2};
	uint8_t bytes[256];
	struct code code;
	size_t len = vaddr > start ? MIN(vaddr - start, sizeof(bytes)) : 0;

	code_read(b, vaddr, &code);
	if (!go_loads_sp(&code, ret_offset) || binary_read_vaddr(b, start, bytes, len) != (ssize_t)len)
		return 0;
	for (size_t end = len; end >= sizeof(saves); end--)
		if (!memcmp(bytes + end - sizeof(saves), saves, sizeof(saves)))
			return start + end;
	return 0;
}

/*
 * mov 56(%reg),%rsp: of g.sched, of that which it goes over to and of that which systemstack goes back to; until Go 1.20
 * that puts mstart as its caller on the stack that it goes over to: mov %rbx,%rsp.
 */
static bool go_takes_sp(const uint8_t *at)
{
	static const uint8_t below[] = {0x48, 0x89, 0xdc};

	return (at[0] == 0x48 && at[1] == 0x8b && (at[2] & 0xf8) == 0x60 && at[3] == 56) || !memcmp(at, below, sizeof(below));
}

/* mov %reg,%rsp, by which asmcgocall goes back. */
static bool go_sets_sp(const uint8_t *at)
{
	return at[0] == 0x48 && at[1] == 0x89 && (at[2] & 0xc7) == 0xc4;
}

static enum go_stack go_stack(struct binary *b, uint64_t start, uint64_t end, uint64_t vaddr)
{
	enum go_stack before = GO_STACK_OWN;
	uint8_t code[256];
	size_t len = MIN(end - start, sizeof(code));

	if (binary_read_vaddr(b, start, code, len) != (ssize_t)len)
		return GO_STACK_UNKNOWN;
	for (size_t at = 0; at + 4 <= len; at++) {
		if (!go_takes_sp(code + at) && (before == GO_STACK_OWN || !go_sets_sp(code + at)))
			continue;
		if (vaddr <= start + at)
			return before;
		if (before == GO_STACK_OTHER)
			break;
		before = GO_STACK_OTHER;
	}
	return GO_STACK_UNKNOWN;
}

static void go(struct binary *b, uint64_t vaddr, uint64_t moved, int64_t depth, struct row *ret)
{
	uint64_t saved = depth && moved ? go_saved_from(b, moved) : 0;

	returns_from(ret, depth + 8);
	if (saved && vaddr >= saved)
		at_cfa(ret, RBP, -16);
}

/* Padding, or how functions begin: push, sub $n,%rsp, endbr64. */
static bool is_behind_function(const uint8_t *at)
{
	static const uint8_t padding[][3] = {{0x66, 0x2e, 0x0f}, {0x66, 0x66, 0x2e}, {0x2e, 0x66, 0x0f}, {0x0f, 0x1f},
					     {0x66, 0x0f, 0x1f}, {0x66, 0x90}, {0x90}, {0xcc}};
	static const uint8_t starts[][4] = {{0x48, 0x83, 0xec}, {0x48, 0x81, 0xec}, {0xf3, 0x0f, 0x1e, 0xfa}};

	if ((at[0] & 0xf8) == 0x50 || (at[0] == 0x41 && (at[1] & 0xf8) == 0x50))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(padding); i++)
		if (!memcmp(at, padding[i], padding[i][1] ? padding[i][2] ? 3 : 2 : 1))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (!memcmp(at, starts[i], starts[i][3] ? 4 : 3))
			return true;
	return false;
}

/*
 * musl 1.2, src/env/__libc_start_main.c, libc_start_main_stage2:
 * exit(main(argc, argv, envp)), which is call *%reg; mov %eax,%edi; call, and
 * nothing: exit does not return.
 */
static bool is_exit_of_main(const struct code *code)
{
	const uint8_t *at = code->bytes + CODE_RETURN;

	return at[-2] == 0xff && (at[-1] & 0xf8) == 0xd0 && at[0] == 0x89 && at[1] == 0xc7 && at[2] == 0xe8 &&
	       is_behind_function(at + 7);
}

/*
 * Boost.Context, make_x86_64_sysv_elf_gas.S: jmp *%rbx; endbr64 where it is built for CET; xor %rdi,%rdi; call _exit;
 * hlt, returned to behind the jump.
 */
static bool is_fcontext(const struct code *code)
{
	static const uint8_t head[] = {0xff, 0xe3, 0x48, 0x31, 0xff, 0xe8},
			     cet[] = {0xff, 0xe3, 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x31, 0xff, 0xe8};

	return (code_is(code, CODE_RETURN - 2, head, sizeof(head)) && code->bytes[CODE_RETURN + 8] == 0xf4) ||
	       (code_is(code, CODE_RETURN - 2, cet, sizeof(cet)) && code->bytes[CODE_RETURN + 12] == 0xf4);
}

static bool thread_start(const struct code *code)
{
	return is_clone(code) || is_exit_of_main(code) || is_fcontext(code);
}

/*
 * glibc, sysdeps/unix/sysv/linux/x86_64/clone.S and clone3.S, end their tables
 * here: mov $nr,%eax; syscall; test %rax,%rax; jl. musl 1.2, clone.s, has none:
 * mov %rcx,(%rsi); syscall; test %eax,%eax; jne.
 */
static bool after_clone(const struct code *code)
{
	static const uint8_t clone[] = {0xb8, 56, 0, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xc0};
	static const uint8_t clone3[] = {0xb8, 0xb3, 0x01, 0, 0, 0x0f, 0x05, 0x48, 0x85, 0xc0};
	static const uint8_t musl[] = {0x48, 0x89, 0x0e, 0x0f, 0x05, 0x85, 0xc0};

	/* Behind the call, the test and the first jump. */
	for (unsigned passed = 0; passed <= 9; passed++)
		if (code_is(code, CODE_AT - 7 - passed, clone, sizeof(clone)) ||
		    code_is(code, CODE_AT - 7 - passed, clone3, sizeof(clone3)) ||
		    (passed <= 4 && code_is(code, CODE_AT - 5 - passed, musl, sizeof(musl))))
			return true;
	return false;
}

/* Length of the call through a register or memory whose ModRM byte this is, prefix excluded; 0: no call. */
static unsigned indirect_length(uint8_t modrm, uint8_t sib)
{
	unsigned mod = modrm >> 6, rm = modrm & 7;

	if (((modrm >> 3) & 7) != 2)
		return 0;
	if (mod == 3)
		return 2;
	if (mod == 1)
		return rm == 4 ? 4 : 3;
	if (mod == 2)
		return rm == 4 ? 7 : 6;
	if (rm == 5 || (rm == 4 && (sib & 7) == 5))
		return rm == 5 ? 6 : 7;
	return rm == 4 ? 3 : 2;
}

static bool is_indirect_call(const uint8_t *end)
{
	for (unsigned len = 2; len <= 7; len++)
		if (end[-(int)len] == 0xff && indirect_length(end[1 - (int)len], end[2 - (int)len]) == len)
			return true;
	return false;
}

static bool after_call(const struct code *code)
{
	const uint8_t *end = code->bytes + CODE_RETURN;

	return end[-5] == 0xe8 || is_indirect_call(end);
}

/* Bytes that are both are rarely a direct call: its target would be far from the file. */
static enum arch_call call_kind(const struct code *code, uint64_t ret, uint64_t *target)
{
	const uint8_t *end = code->bytes + CODE_RETURN;
	int32_t rel;

	if (end[-6] == 0xff && end[-5] == 0x15)
		return CALL_SLOT;
	if (is_indirect_call(end))
		return CALL_INDIRECT;
	if (end[-5] != 0xe8)
		return CALL_NONE;
	memcpy(&rel, end - 4, sizeof(rel));
	*target = ret + (uint64_t)(int64_t)rel;
	return CALL_DIRECT;
}

static bool has_call(const uint8_t *bytes, size_t len, uint64_t at, uint64_t target)
{
	int32_t rel;

	for (size_t i = 0; i + 5 <= len; i++) {
		if (bytes[i] != 0xe8)
			continue;
		memcpy(&rel, bytes + i + 1, sizeof(rel));
		if (at + i + 5 + (uint64_t)(int64_t)rel == target)
			return true;
	}
	return false;
}

/* By its last byte. */
static bool is_near_jump(const uint8_t *operand)
{
	return operand[-1] == 0xeb || operand[-1] >> 4 == 7;
}

/* By its last four bytes. */
static bool is_far_jump(const uint8_t *operand)
{
	return operand[-1] == 0xe9 || (operand[-2] == 0x0f && operand[-1] >> 4 == 8);
}

static bool takes_address(const uint8_t *operand)
{
	return operand[-2] == 0x8d && (operand[-1] & 0xc7) == 5;
}

/* Wherever instructions begin. Jumps to the function's first instruction count; those into it are of its rarer part. */
static bool mentions(const uint8_t *bytes, size_t len, uint64_t at, uint64_t start, uint64_t end, bool *called)
{
	int32_t rel;

	for (size_t i = 2; i + sizeof(rel) <= len; i++) {
		const uint64_t here = at + i, near = here + 1 + (uint64_t)(int64_t)(int8_t)bytes[i];
		const uint64_t last = here >= start && here < end ? start + 1 : end;
		const bool calls = bytes[i - 1] == 0xe8;
		uint64_t far;

		memcpy(&rel, bytes + i, sizeof(rel));
		far = here + sizeof(rel) + (uint64_t)(int64_t)rel;
		if (far == start && calls)
			*called = true;
		else if ((near == start && is_near_jump(bytes + i)) || (far == start && is_far_jump(bytes + i)) ||
			 (far >= start && far < last && (calls || takes_address(bytes + i))))
			return true;
	}
	return false;
}

/* Through a register, or memory without a displacement from one. */
static bool is_plain_call(const uint8_t *end)
{
	for (unsigned len = 2; len <= 6; len++) {
		uint8_t modrm = end[1 - (int)len];

		if (end[-(int)len] == 0xff && indirect_length(modrm, end[2 - (int)len]) == len &&
		    (modrm >> 6 == 3 || (modrm >> 6 == 0 && (modrm & 7) != 4)))
			return true;
	}
	return false;
}

static bool may_call(const struct code *code, uint64_t ret, uint64_t target)
{
	const uint8_t *end = code->bytes + CODE_RETURN;
	int32_t rel;

	memcpy(&rel, end - 4, sizeof(rel));
	return (end[-5] == 0xe8 && ret + (uint64_t)(int64_t)rel == target) || is_plain_call(end);
}

static uint32_t x86_64_dwarf_bits(uint32_t bits)
{
	uint32_t ret = bits & ~0xffu; /* the others' numbers are the same */

	if (bits == X86_WRITES_ALL)
		return INSN_WRITES_ALL;
	for (uint32_t b = bits & 0xff; b; b &= b - 1)
		ret |= 1u << x86_dwarf[__builtin_ctz(b)];
	return ret;
}

static int decode(const uint8_t *code, size_t len, struct insn *ret)
{
	struct x86_insn i;
	int r = x86_decode(code, len, &i);

	if (r < 0)
		return r;
	*ret = (struct insn){.len = i.len, .kind = i.kind, .reg = x86_dwarf[i.reg], .pair = INSN_NO_REG,
			     .base = x86_dwarf[i.base], .writes = x86_64_dwarf_bits(i.writes), .n = i.n};
	return 0;
}

const struct epilogue_arch epilogue_x86_64 = {
	.insn_max = X86_INSN_MAX,
	.sp = RSP,
	.fp = RBP,
	.ra = RIP,
	.on_stack = true,
	.tells_writes = true,
	.decode = decode,
};

static int returns(struct binary *b, uint64_t vaddr, bool called, struct row *ret)
{
	if (epilogue_find(&epilogue_x86_64, b, vaddr, called, ret) == 0)
		return 0;
	return prologue_find(&epilogue_x86_64, b, vaddr, called, ret);
}

const struct arch arch_x86_64 = {
	.machine = EM_X86_64,
	.nr_regs = OTP_REGS_X86_64,
	.pc = RIP,
	.sp = RSP,
	.fp = RBP,
	.ra = RIP,
	.result = RAX,
	.survive = REG(RBX) | REG(RBP) | REG(RSP) | REG(R12) | REG(R13) | REG(R14) | REG(R15) | REG(RIP),
	.address_end = 1ULL << 56,
	.address_mask = ~0ULL,
	.sp_is_cfa_by_fp = true,
	.red_zone = OTP_RED_ZONE,
	.leaf_slack = 1, /* glibc's vfork has its return address in a register */
	.frameless = frameless,
	.known = known,
	.misled = misled,
	.go = go,
	.go_keeps_sp = go_keeps_sp,
	.go_saves_sp = go_saves_sp,
	.go_stack = go_stack,
	.thread_start = thread_start,
	.after_clone = after_clone,
	.after_call = after_call,
	.call_kind = call_kind,
	.has_call = has_call,
	.mentions = mentions,
	.may_call = may_call,
	.returns = returns,
	.decode = decode,
};
