// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/arch.h"
#include "unwind/arm64_insn.h"
#include "unwind/epilogue.h"
#include "unwind/rules.h"

enum { X0 = 0, X16 = 16, X19 = 19, X29 = 29, X30 = 30, SP = 31, PC = 32 };

static void begin(struct row *row, int64_t depth)
{
	memset(row, 0, sizeof(*row));
	row->ra = X30;
	row->cfa_kind = CFA_REG;
	row->cfa_reg = SP;
	row->cfa_n = depth;
}

/* The return address is still in the link register. */
static void frameless(struct row *ret)
{
	begin(ret, 0);
}

/*
 * Linux, arch/arm64/kernel/signal.c: at the trampoline the stack pointer is at
 * struct rt_sigframe: siginfo (128 bytes), ucontext, whose machine context
 * begins 176 bytes in with the fault address, then x0..x30, sp, pc.
 */
static void signal_row(struct row *row)
{
	begin(row, 0);
	row->ra = PC;
	row->flags = ROW_SIGNAL;
	for (unsigned i = X0; i <= PC; i++)
		row->reg[i] = (struct rule){.kind = RULE_OFFSET, .n = 128 + 176 + 8 + 8 * (int64_t)i};
}

static uint32_t insn(const struct code *code, unsigned at)
{
	uint32_t v;

	memcpy(&v, code->bytes + at, sizeof(v));
	return v;
}

/* mov x8,#__NR_rt_sigreturn; svc #0 */
static bool sigreturn_at(const struct code *code, unsigned at)
{
	return insn(code, at) == 0xd2801168 && insn(code, at + 4) == 0xd4000001;
}

/*
 * The kernel's own trampoline, in the vDSO, had tables that took the frame
 * record for the frame, and has none since 5.10: its code is what holds.
 */
static bool misled(struct binary *b, uint64_t vaddr, struct row *ret)
{
	struct code code;

	code_read(b, vaddr, &code);
	if (!sigreturn_at(&code, CODE_RETURN) && !sigreturn_at(&code, CODE_AT) && !sigreturn_at(&code, CODE_AT - 4) &&
	    !sigreturn_at(&code, CODE_AT - 8))
		return false;
	signal_row(ret);
	return true;
}

/*
 * Go stores the return address at the stack pointer as it moves it, and the frame pointer
 * below it: stur x29,[sp,#-8], or both at once in large frames.
 */
static void go(struct binary *b, uint64_t vaddr, uint64_t moved, int64_t depth, struct row *ret)
{
	(void)b;
	begin(ret, depth);
	if (!depth)
		return;
	ret->reg[X30] = (struct rule){.kind = RULE_OFFSET, .n = -depth};
	if (vaddr >= moved + ARM64_INSN_LEN)
		ret->reg[X29] = (struct rule){.kind = RULE_OFFSET, .n = -depth - 8};
}

/* Entries of .plt touch no stack; the first one stores x16 and x30 with its first instruction. */
static bool known(struct binary *b, uint64_t vaddr, const struct code *code, struct row *ret)
{
	const struct binary_section *plt = binary_section(b, ".plt");

	(void)code;
	if (!plt || vaddr < plt->addr || vaddr - plt->addr >= plt->size)
		return false;
	begin(ret, 0);
	/* stp x16,x30,[sp,#-16]!, after bti c where branch targets are marked */
	if (vaddr - plt->addr >= 4 && vaddr - plt->addr < 32 && insn(code, CODE_AT - 4) != 0xd503245f) {
		begin(ret, 16);
		ret->reg[X30] = (struct rule){.kind = RULE_OFFSET, .n = -8};
	}
	return true;
}

/* musl 1.2, src/thread/aarch64/clone.s: mov x8,#__NR_exit; svc #0 */
static bool is_clone(const struct code *code)
{
	return insn(code, CODE_RETURN) == 0xd2800ba8 && insn(code, CODE_RETURN + 4) == 0xd4000001;
}

/* Padding, or how functions begin: stp to new stack, sub sp,sp,#n, paciasp, bti c. */
static bool is_behind_function(uint32_t i)
{
	return i == 0xd503201f || (i & 0xffc003e0) == 0xa98003e0 || (i & 0xff8003ff) == 0xd10003ff || i == 0xd503233f ||
	       i == 0xd503245f;
}

/*
 * musl 1.2, src/env/__libc_start_main.c, libc_start_main_stage2:
 * exit(main(argc, argv, envp)), which is blr; bl, and nothing: exit does not return.
 */
static bool is_exit_of_main(const struct code *code)
{
	return (insn(code, CODE_RETURN - 4) & 0xfffffc1f) == 0xd63f0000 &&
	       (insn(code, CODE_RETURN) & 0xfc000000) == 0x94000000 && is_behind_function(insn(code, CODE_RETURN + 4));
}

static bool thread_start(const struct code *code)
{
	return is_clone(code) || is_exit_of_main(code);
}

/*
 * glibc, sysdeps/unix/sysv/linux/aarch64/clone.S and clone3.S, end their
 * tables before it; musl 1.2, clone.s, has none:
 * mov x8,#nr; svc #0; cmp x0,#0 or cbz x0; b.eq.
 */
static bool after_clone(const struct code *code)
{
	for (unsigned at = CODE_AT - 8; at <= CODE_AT; at += ARM64_INSN_LEN) {
		uint32_t nr = insn(code, at - 8), test = insn(code, at);

		if ((nr == 0xd2801b88 || nr == 0xd2803668) && insn(code, at - 4) == 0xd4000001 && /* 220, 435 */
		    (test == 0xf100001f || (test & 0xff00001f) == 0xb4000000))
			return true;
	}
	return false;
}

/* bl, blr, and blr with pointer authentication */
static bool after_call(const struct code *code)
{
	uint32_t i = insn(code, CODE_RETURN - 4);

	return (i & 0xfc000000) == 0x94000000 || (i & 0xfffffc1f) == 0xd63f0000 || (i & 0xfefff800) == 0xd63f0800;
}

/* bl */
static uint64_t call_target(uint32_t i, uint64_t at)
{
	return at + (uint64_t)((int64_t)(int32_t)(i << 6) >> 4);
}

static bool has_call(const uint8_t *bytes, size_t len, uint64_t at, uint64_t target)
{
	uint32_t i;

	for (size_t n = 0; n + sizeof(i) <= len; n += sizeof(i)) {
		memcpy(&i, bytes + n, sizeof(i));
		if ((i & 0xfc000000) == 0x94000000 && call_target(i, at + n) == target)
			return true;
	}
	return false;
}

static enum arch_call call_kind(const struct code *code, uint64_t ret, uint64_t *target)
{
	uint32_t i = insn(code, CODE_RETURN - 4);

	if ((i & 0xfc000000) != 0x94000000)
		return after_call(code) ? CALL_INDIRECT : CALL_NONE;
	*target = call_target(i, ret - 4);
	return CALL_DIRECT;
}

static bool may_call(const struct code *code, uint64_t ret, uint64_t target)
{
	uint64_t direct;

	switch (call_kind(code, ret, &direct)) {
	case CALL_DIRECT:
		return direct == target;
	case CALL_INDIRECT:
		return true;
	default:
		return false;
	}
}

static int decode(const uint8_t *code, size_t len, struct insn *ret)
{
	uint32_t word;

	if (len < sizeof(word))
		return -EBADMSG;
	memcpy(&word, code, sizeof(word));
	arm64_decode(word, ret);
	return 0;
}

const struct epilogue_arch epilogue_arm64 = {
	.insn_max = ARM64_INSN_LEN,
	.sp = SP,
	.fp = X29,
	.ra = X30,
	.decode = decode,
};

/* An address may be that of the last byte of what comes before. */
static int returns(struct binary *b, uint64_t vaddr, bool called, struct row *ret)
{
	return epilogue_find(&epilogue_arm64, b, ALIGN_DOWN(vaddr, ARM64_INSN_LEN), called, ret);
}

const struct arch arch_arm64 = {
	.machine = EM_AARCH64,
	.nr_regs = OTP_REGS_ARM64,
	.pc = PC,
	.sp = SP,
	.fp = X29,
	.ra = X30,
	.result = X0,
	/* x30 survives as the address that was returned to; x19..x28 as the ABI says. */
	.survive = (REG(X30 + 1) - REG(X19)) | REG(SP) | REG(PC),
	.address_end = 1ULL << 48,
	.address_mask = (1ULL << 48) - 1,
	.sp_is_cfa_by_fp = false,
	.leaf_slack = 1,
	.frameless = frameless,
	.known = known,
	.misled = misled,
	.go = go,
	.thread_start = thread_start,
	.after_clone = after_clone,
	.after_call = after_call,
	.call_kind = call_kind,
	.has_call = has_call,
	.may_call = may_call,
	.returns = returns,
	.decode = decode,
};
