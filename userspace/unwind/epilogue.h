/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How code without tables returns: found by reading on from an address to the
 * end of its function, and noting what happens to the stack pointer and to the
 * saved registers on the way. Hand-written assembly is like that.
 *
 * What a register is at the return is what the caller gets, so nothing need
 * be known of what came before the address. Branches are not taken, jumps are;
 * calls are taken to leave the stack as they found it.
 *
 * Called by arch->returns on a cache miss. Bounds: EPILOGUE_INSNS instructions.
 * -ENOENT: no return was found, or one that a row cannot say.
 */
#ifndef OTP_UNWIND_EPILOGUE_H
#define OTP_UNWIND_EPILOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include "process/binary.h"
#include "unwind/insn.h"
#include "unwind/row.h"

#define EPILOGUE_INSNS 4096

/* Of a processor; registers by DWARF number. */
struct epilogue_arch {
	uint8_t insn_max; /* bytes */
	uint8_t sp, fp;
	uint8_t ra;	  /* where the return address is at the return: in this register, or */
	bool on_stack;	  /* where the stack pointer points to */
	int (*decode)(const uint8_t *code, size_t len, struct insn *ret); /* -EBADMSG */
};

extern const struct epilogue_arch epilogue_x86_64, epilogue_arm64;

int epilogue_find(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, struct row *ret);

#endif
