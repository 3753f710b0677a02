/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where BEAM's interpreter has the place of the instruction that it runs, and the
 * process' stack pointer, at each of its own instructions. A compiler gives them
 * the registers that the source wants only between instructions of BEAM: inside
 * of one, it moves them elsewhere and computes with these registers.
 *
 * Private to beam*.c. Called by decoders. Bytes that are no instructions have
 * both nowhere. Bounds: BEAM_FLOW_CODE_MAX bytes, for each of which 48 bytes are used
 * meanwhile. Cost: some milliseconds for the 47 KiB of OTP 23.
 */
#ifndef OTP_RUNTIME_BEAM_FLOW_H
#define OTP_RUNTIME_BEAM_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#define BEAM_FLOW_CODE_MAX (128u << 10)

/* A register, by its DWARF number, or a word of the frame, counted from the stack pointer. */
enum { BEAM_FLOW_NOWHERE = 0, BEAM_FLOW_REGISTER = 1, BEAM_FLOW_SLOT = 32, BEAM_FLOW_SLOTS = 64 };

struct beam_flow_code {
	const uint8_t *code; /* of len bytes */
	uint32_t len;
	const uint8_t *entry; /* a bit for each byte: an instruction of BEAM begins there */
	int16_t stop;	      /* of a process: its stack pointer */
};

/* Instructions that have both in the same places. */
struct beam_flow_run {
	uint32_t start, end;
	uint32_t place, stack; /* BEAM_FLOW_REGISTER + number, BEAM_FLOW_SLOT + word, or BEAM_FLOW_NOWHERE */
	/*
	 * The instruction of BEAM has not written to the word at the stack pointer so far, nor returned by it, nor begun a
	 * frame: a return address there is that of the running function itself, not of one that it calls.
	 */
	bool top_kept;
};

/* All runs, in order: how many; what exceeds max is left out. -ENOMEM; -EBADMSG: too long, or it does not settle. */
int beam_flow_read(const struct beam_flow_code *c, struct beam_flow_run *ret, uint32_t max);

#endif
