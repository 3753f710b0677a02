/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row of an unwind table: for one address, how to find the canonical frame
 * address (CFA) and where the caller's registers lie (DWARF 5, section 6.4.1).
 *
 * Made by cfi_run.c from a file's tables, by go.c from Go's, or by an
 * architecture that knows the code; kept, packed, by rules.c; applied by step.c.
 * Plain data: a row holds no pointer and outlives its file.
 */
#ifndef OTP_UNWIND_ROW_H
#define OTP_UNWIND_ROW_H

#include <stdint.h>

#include "kmod/uapi/otprof.h"

enum rule_kind {
	RULE_UNSPECIFIED, /* not in the table: the ABI decides */
	RULE_UNDEFINED,   /* lost; for the return address: no caller */
	RULE_SAME,
	RULE_OFFSET,     /* at CFA + n */
	RULE_VAL_OFFSET, /* is CFA + n */
	RULE_REGISTER,   /* is in register n */
	RULE_EXPR,       /* at the expression's value */
	RULE_VAL_EXPR,   /* is the expression's value */
};

enum cfa_kind {
	CFA_NONE,
	CFA_REG,  /* register + n */
	CFA_EXPR, /* the expression's value */
	CFA_DEREF, /* what lies at register + n, and cfa_add */
};

/* An expression is stored as its place in the file: n, and len bytes. */
struct rule {
	int64_t n;
	uint32_t len;
	uint8_t kind; /* enum rule_kind */
};

enum row_flags {
	ROW_SIGNAL = 1,    /* a signal trampoline: the caller was interrupted, not called from */
	ROW_BY_OFFSET = 2, /* expressions lie in .debug_frame, not at addresses: cfi_read */
	ROW_SIGNED_RA = 4, /* arm64: the return address carries a signature */
	ROW_GUESS = 8,     /* from the code itself: accepted if the return address follows a call */
	ROW_CLONE = 16,    /* after the system call that begins a thread: the caller's row, not the new thread's */
	ROW_SWITCHED = 32, /* the function switched stacks: its caller's frame is on the former one */
	ROW_PROVES = 64,   /* likewise, if its frame keeps the former stack's id; else what the row says */
	ROW_RETURNS = 128, /* the row itself leads to the former stack, by a register that holds its stack pointer */
	ROW_INJECTED = 256, /* no call of its caller's led to it, as a signal's handler did: the return address is where that goes on */
	ROW_PROVES_BELOW = 512, /* as ROW_PROVES, by the frame of what it called */
};

struct row {
	struct rule reg[OTP_REGS_MAX];
	int64_t cfa_n;    /* offset, or place of the expression */
	uint32_t cfa_len; /* of the expression */
	int32_t cfa_add;  /* CFA_DEREF */
	uint8_t cfa_kind; /* enum cfa_kind */
	uint8_t cfa_reg;
	uint8_t ra;       /* column of the return address */
	uint16_t flags;   /* enum row_flags */
};

#endif
