/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User registers in DWARF order, by architecture. The registers of the tick
 * can only be read field by field from the context, saved ones only from a
 * copy of another type: hence macros, which take any type with these fields.
 */
#ifndef OTP_BPF_REGS_H
#define OTP_BPF_REGS_H

#if defined(__TARGET_ARCH_x86)

#define OTP_ARCH_HERE  OTP_ARCH_X86_64
#define OTP_REGS_HERE  OTP_REGS_X86_64
#define OTP_REG_SP_HERE 7
#define OTP_REG_PC_HERE 16
#define REGS_VALID     ((1ULL << OTP_REGS_X86_64) - 1)
#define REGS_VALID_32  0x100ffULL /* r8 to r15 do not exist there */

/* With FRED, the upper bits of the field are not part of cs. */
#define regs_user(r)   (((r)->cs & 3) != 0)
#define regs_compat(r) (((r)->cs & 0xffff) == 0x23)

#define regs_copy(to, r)            \
	do {                        \
		(to)[0] = (r)->ax;  \
		(to)[1] = (r)->dx;  \
		(to)[2] = (r)->cx;  \
		(to)[3] = (r)->bx;  \
		(to)[4] = (r)->si;  \
		(to)[5] = (r)->di;  \
		(to)[6] = (r)->bp;  \
		(to)[7] = (r)->sp;  \
		(to)[8] = (r)->r8;  \
		(to)[9] = (r)->r9;  \
		(to)[10] = (r)->r10; \
		(to)[11] = (r)->r11; \
		(to)[12] = (r)->r12; \
		(to)[13] = (r)->r13; \
		(to)[14] = (r)->r14; \
		(to)[15] = (r)->r15; \
		(to)[16] = (r)->ip; \
	} while (0)

/* Clears the registers that are not in REGS_VALID_32. */
#define regs_forget_64(to)                                       \
	do {                                                     \
		_Pragma("unroll") for (int _i = 8; _i < 16; _i++) \
			(to)[_i] = 0;                            \
	} while (0)

#elif defined(__TARGET_ARCH_arm64)

#define OTP_ARCH_HERE  OTP_ARCH_ARM64
#define OTP_REGS_HERE  OTP_REGS_ARM64
#define OTP_REG_SP_HERE 31
#define OTP_REG_PC_HERE 32
#define REGS_VALID     ((1ULL << OTP_REGS_ARM64) - 1)
#define REGS_VALID_32  0x100007fffULL /* r0 to r14, pc */

#define regs_user(r)   (((r)->pstate & 0xf) == 0)
#define regs_compat(r) (((r)->pstate & 0x10) != 0)

#define regs_copy(to, r)                              \
	do {                                          \
		_Pragma("unroll") for (int _i = 0; _i < 31; _i++) \
			(to)[_i] = (r)->regs[_i];     \
		(to)[31] = (r)->sp;                   \
		(to)[32] = (r)->pc;                   \
	} while (0)

/* Clears the registers that are not in REGS_VALID_32. */
#define regs_forget_64(to)                                        \
	do {                                                      \
		_Pragma("unroll") for (int _i = 15; _i < 32; _i++) \
			(to)[_i] = 0;                             \
	} while (0)

#else
#error "no registers for this architecture"
#endif

/* Base of the thread-local storage. */
static __always_inline u64 tls_base(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return kread(task, thread.fsbase);
#else
	return kread(task, thread.uw.tp_value);
#endif
}

#endif
