/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where compiled code of HotSpot has more on the stack than its frame: words that it pushes, or takes, to give them back some
 * instructions on. Numbers pass to the x87 unit through such a word (OpenJDK, x86_64.ad, modD_reg; until 9 the functions of
 * Math), C1 pushes arguments of its stubs (c1_LIRAssembler_x86.cpp), intrinsics save registers (macroAssembler_x86.cpp).
 *
 * Private to hotspot*.c. Called by decoders, for each instruction, in the order of the code; behind one that control does not
 * go on from, jumps to there tell, else the frame is all that there is.
 */
#ifndef OTP_RUNTIME_HOTSPOT_PUSHED_H
#define OTP_RUNTIME_HOTSPOT_PUSHED_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/hotspot.h"
#include "unwind/x86_insn.h"

#define PUSHED_BYTES (256u << 10) /* of code: what lies behind is not told */
#define PUSHED_AIMS 32
#define PUSHED_MAX  (1u << 16)
/* As words: it is not known how many, and the frame was left, and not yet returned from. */
#define PUSHED_UNKNOWN (PUSHED_MAX + 1)
#define PUSHED_LEFT    (PUSHED_MAX + 2)

struct hotspot_pushed {
	struct runtime_code_made *made; /* borrowed: gets the ranges */
	uint32_t words, from;	   /* now, and from which offset on */
	uint32_t end;		   /* of the last instruction */
	bool by_push;		   /* a call takes them for arguments */
	bool frame_pointer;	   /* the last instruction has pushed it */
	bool reached;		   /* control gets here from the instruction before, or by a jump */
	uint32_t nr_aims;
	struct { uint32_t at, words; bool by_push; } aim[PUSHED_AIMS]; /* where jumps lead to with words */
};

/* Of a region whose frame is known. */
void hotspot_pushed_begin(struct hotspot_pushed *p, struct runtime_code_made *made);
/* An instruction behind the prologue, and the offset at which it ends. */
void hotspot_pushed_take(struct hotspot_pushed *p, const struct x86_insn *i, uint32_t end);

/* The rest of them. What cannot be read is untold (hotspot_range_untold). */
void hotspot_pushed_read(struct hotspot_pushed *p, struct memory *m);

#endif
