/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How x86-64 code without tables returns: found by reading on from an address
 * to the end of its function, and noting what happens to the stack pointer and
 * to the saved registers on the way. Hand-written assembly is like that.
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

#include "process/binary.h"
#include "unwind/row.h"

#define EPILOGUE_INSNS 4096

int x86_epilogue(struct binary *b, uint64_t vaddr, struct row *ret);

#endif
