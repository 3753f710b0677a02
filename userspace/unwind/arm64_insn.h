/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm64 instructions, as far as unwinding needs them (insn.h).
 *
 * Called by arm64.c for epilogue*.c. Encodings: Arm Architecture Reference
 * Manual for A-profile, DDI 0487, chapter C4.
 * Never fails: an unknown word is INSN_OTHER. Cost: some ten comparisons.
 */
#ifndef OTP_UNWIND_ARM64_INSN_H
#define OTP_UNWIND_ARM64_INSN_H

#include "unwind/insn.h"

#define ARM64_INSN_LEN 4

/* Jumps are counted from the instruction itself in the manual, from the next one in *ret. */
void arm64_decode(uint32_t word, struct insn *ret);

#endif
