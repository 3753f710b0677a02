/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a list of frames a chain of calls? For each two neighbours: a call
 * instruction ends right before the outer one's return address, and where the
 * call is direct, it goes to the function that the inner one is in, or to a
 * jump or a linkage table entry that leads elsewhere. Disassembles with
 * capstone, so it shares nothing with the unwinder; built without it, nothing
 * is looked at and the counts stay 0.
 * x86-64 and arm64; needs the frames' files to be READY.
 */
#ifndef OTP_TESTS_CALLSITES_H
#define OTP_TESTS_CALLSITES_H

#include "unwind/unwind.h"

struct callsite_counts {
	uint64_t checked;     /* neighbours that a call should link */
	uint64_t after_call;  /* of these: a call instruction precedes */
	uint64_t direct;      /* of these: a direct call, and where it goes is known */
	uint64_t direct_fits; /* of these: to the callee */
};

#if __has_include(<capstone/capstone.h>)
void callsites_check(const struct frame *frames, uint32_t count, struct callsite_counts *counts);
#else
static inline void callsites_check(const struct frame *frames, uint32_t count, struct callsite_counts *counts)
{
}
#endif

#endif
