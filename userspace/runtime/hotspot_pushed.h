/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where compiled code of HotSpot has more on the stack than its frame: words that it pushes, or takes, to give them back some
 * instructions on. Numbers pass to the x87 unit through such a word (OpenJDK, x86_64.ad, modD_reg; until 9 the functions of
 * Math), C1 pushes arguments of its stubs (c1_LIRAssembler_x86.cpp), intrinsics save registers (macroAssembler_x86.cpp).
 * One that takes now so many words, now others, copies the stack pointer before, and pushes the copy (string_indexof).
 *
 * Private to hotspot*.c. Called by decoders, for each instruction, in the order of the code. Where control does not get to from
 * the instruction before, jumps to there tell, else the frame is taken to be all that there is, as where an exception is
 * handled; where ways meet that differ, it is not known. As jumps lead back, too, code that takes any words is gone through until
 * nothing else is found; if that is not so after PUSHED_PASSES times, nothing is known behind the prologue.
 */
#ifndef OTP_RUNTIME_HOTSPOT_PUSHED_H
#define OTP_RUNTIME_HOTSPOT_PUSHED_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/hotspot.h"
#include "runtime/hotspot_ways.h"
#include "unwind/x86_insn.h"

#define PUSHED_BYTES  WAYS_BYTES /* of code: what lies behind is not told */
#define PUSHED_PASSES 8

struct hotspot_pushed {
	struct runtime_code_made *made; /* borrowed: gets the ranges */
	uint32_t size;		   /* of what is gone through */
	uint32_t nr_before;	   /* numbers of made that are not its ranges */
	struct hotspot_way now;
	uint32_t from;		   /* as now since this offset */
	uint32_t end;		   /* of the last instruction */
	bool frame_pointer;	   /* the last instruction has pushed it */
	bool reached;		   /* control gets here from the instruction before, or by a jump */
	bool takes;		   /* there was any word */
	bool full;		   /* a way had no room */
	struct hotspot_ways ways;
};

/* Of a region whose frame is known. */
void hotspot_pushed_begin(struct hotspot_pushed *p, struct runtime_code_made *made);
/* An instruction behind the prologue, and the offset at which it ends. */
void hotspot_pushed_take(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end);

/* The rest of them. What cannot be read is untold (hotspot_range_untold). */
void hotspot_pushed_read(struct hotspot_pushed *p, struct memory *m);

#endif
