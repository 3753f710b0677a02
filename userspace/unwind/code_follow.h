/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code of a file that is followed from address to address: its instructions, and
 * the basic blocks that were met.
 *
 * Private to epilogue*.c and prologue.c. No memory of its own: both structs are
 * their caller's, 300 bytes and 24 KiB. Bounds: CODE_BLOCKS.
 */
#ifndef OTP_UNWIND_CODE_FOLLOW_H
#define OTP_UNWIND_CODE_FOLLOW_H

#include <stddef.h>
#include <stdint.h>

#include "process/binary.h"
#include "unwind/epilogue.h"
#include "unwind/insn.h"

#define CODE_BLOCKS 2048 /* of some four instructions each */
#define CODE_SLOTS  4096

/* The bytes that were read last. */
struct code_window {
	const struct epilogue_arch *arch; /* borrowed */
	struct binary *binary;		  /* borrowed */
	uint64_t at;
	size_t len;
	uint8_t byte[256];
};

/* Where each block begins, by its number, in the order in which they were met. */
struct code_blocks {
	uint16_t nr;
	uint16_t slots[CODE_SLOTS]; /* by address; 0: empty, else the number + 1 */
	uint64_t at[CODE_BLOCKS];
};

/* The instruction at any address: a jump may lead there. -ENOENT: there is no code, or none that is known. */
int code_window_insn(struct code_window *w, uint64_t at, struct insn *ret);

void code_blocks_begin(struct code_blocks *b);
/* Its number; -EEXIST: it was met before; -ENOSPC. */
int code_blocks_add(struct code_blocks *b, uint64_t at);

#endif
