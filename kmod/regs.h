/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User registers in DWARF order, by architecture (the order: kmod/uapi/otprof.h).
 * Context: the tick.
 */
#ifndef OTPROF_REGS_H
#define OTPROF_REGS_H

#include <linux/ptrace.h>
#include <linux/types.h>

#include "kmod/uapi/otprof.h"

#if defined(CONFIG_X86_64)

#define OTPROF_ARCH    OTP_ARCH_X86_64
#define OTPROF_REGS    OTP_REGS_X86_64
#define OTPROF_REG_SP  7
#define OTPROF_REG_PC  16
#define OTPROF_VALID_ALL ((1ULL << OTP_REGS_X86_64) - 1)
#define OTPROF_VALID_32 0x100ffULL /* 32-bit code has no r8 to r15 */
/* rbx rbp r12 to r15: a called function preserves them. */
#define OTPROF_CALLEE_SAVED 0xf048ULL

/* With FRED, the upper bits of the field are not part of cs. */
static inline bool otprof_regs_compat(const struct pt_regs *r)
{
	return (r->cs & 0xffff) == __USER32_CS;
}

/*
 * Before 4.17 a fast system call saves only the registers that a called
 * function may change. 4.17 also introduced the wrapper of system calls, so a
 * kernel that has it saves all. orig_ax is the number of a system call or the
 * error code of an exception; the two cannot be distinguished, so callee-saved
 * registers are invalid after both.
 */
static inline u64 otprof_regs_saved(const struct pt_regs *r)
{
#ifndef CONFIG_ARCH_HAS_SYSCALL_WRAPPER
	if ((long)r->orig_ax >= 0)
		return OTPROF_VALID_ALL & ~OTPROF_CALLEE_SAVED;
#endif
	return OTPROF_VALID_ALL;
}

static inline u64 otprof_regs_pc(const struct pt_regs *r)
{
	return r->ip;
}

static inline u64 otprof_regs_sp(const struct pt_regs *r)
{
	return r->sp;
}

static inline u64 otprof_regs_fp(const struct pt_regs *r)
{
	return r->bp;
}

static inline void otprof_regs_copy(u64 *to, const struct pt_regs *r)
{
	to[0] = r->ax;
	to[1] = r->dx;
	to[2] = r->cx;
	to[3] = r->bx;
	to[4] = r->si;
	to[5] = r->di;
	to[6] = r->bp;
	to[7] = r->sp;
	to[8] = r->r8;
	to[9] = r->r9;
	to[10] = r->r10;
	to[11] = r->r11;
	to[12] = r->r12;
	to[13] = r->r13;
	to[14] = r->r14;
	to[15] = r->r15;
	to[16] = r->ip;
}

#elif defined(CONFIG_ARM64)

#define OTPROF_ARCH    OTP_ARCH_ARM64
#define OTPROF_REGS    OTP_REGS_ARM64
#define OTPROF_REG_SP  31
#define OTPROF_REG_PC  32
#define OTPROF_VALID_ALL ((1ULL << OTP_REGS_ARM64) - 1)
#define OTPROF_VALID_32 0x100007fffULL /* r0 to r14, pc */

static inline bool otprof_regs_compat(const struct pt_regs *r)
{
	return compat_user_mode(r);
}

static inline u64 otprof_regs_saved(const struct pt_regs *r)
{
	return OTPROF_VALID_ALL;
}

static inline u64 otprof_regs_pc(const struct pt_regs *r)
{
	return r->pc;
}

static inline u64 otprof_regs_sp(const struct pt_regs *r)
{
	return r->sp;
}

static inline u64 otprof_regs_fp(const struct pt_regs *r)
{
	return r->regs[29];
}

static inline void otprof_regs_copy(u64 *to, const struct pt_regs *r)
{
	unsigned int i;

	for (i = 0; i < 31; i++)
		to[i] = r->regs[i];
	to[31] = r->sp;
	to[32] = r->pc;
}

#endif

/* Those that were not saved may be anything that lay on the kernel's stack: they are 0. */
static inline void otprof_regs_copy_valid(u64 *to, const struct pt_regs *r, u64 valid)
{
	unsigned int i;

	otprof_regs_copy(to, r);
	if (valid == OTPROF_VALID_ALL)
		return;
	for (i = 0; i < OTPROF_REGS; i++)
		if (!(valid >> i & 1))
			to[i] = 0;
}

/* saved: r was saved on entry to the kernel, not by the tick's own interrupt. */
static inline u64 otprof_regs_valid(const struct pt_regs *r, bool saved)
{
	u64 valid = saved ? otprof_regs_saved(r) : OTPROF_VALID_ALL;

	return otprof_regs_compat(r) ? valid & OTPROF_VALID_32 : valid;
}

#endif
