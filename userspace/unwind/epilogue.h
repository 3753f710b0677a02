/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The row of code without tables (often hand-written assembly), found by
 * decoding from an address to the function's return, and following the stack
 * pointer and the saved registers on the way.
 *
 * The registers at the return are the caller's, so the code before the address
 * does not matter. The depth of the stack at an address is the same whichever way
 * compiled code goes, so any return that can be reached tells. Ways that pass the
 * fewest calls come first, as a call may never come back; last those behind a
 * jump through a register, as through a table: what follows such a jump is mostly
 * of the same function. Else a call is assumed to restore the stack pointer.
 *
 * Called by arch->returns on a cache miss. Bounds: EPILOGUE_INSNS instructions,
 * and once more 10,240 of functions that are called without a frame, and of those
 * that these call, to see whether they return: some 0.5 ms; 110 KiB of stack for
 * each of the three.
 * -ENOENT: no return was found, or none that a row can express.
 */
#ifndef OTP_UNWIND_EPILOGUE_H
#define OTP_UNWIND_EPILOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include "process/binary.h"
#include "unwind/insn.h"
#include "unwind/row.h"

#define EPILOGUE_INSNS 8192

/* Of a processor; registers by DWARF number. */
struct epilogue_arch {
	uint8_t insn_max; /* bytes */
	uint8_t sp, fp;
	uint8_t ra;	  /* register of the return address at the return, */
	bool on_stack;	  /* or it lies at the stack pointer */
	bool tells_writes; /* instructions tell which registers they write */
	int (*decode)(const uint8_t *code, size_t len, struct insn *ret); /* -EBADMSG */
};

extern const struct epilogue_arch epilogue_x86_64, epilogue_arm64;

/* called: vaddr is what a call returns to, so the frame is made. */
int epilogue_find(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, bool called, struct row *ret);

#endif
