/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies interpreters' frames, by the walks of the process: a section for each
 * plan.
 *
 * Context: the tick, on the CPU whose walking it is. No lock, no allocation, no
 * page fault. Bounds: those of the walker (kmod/uapi/otprof_walk.h), which the
 * eBPF sampler shares. The sections are kept until the record has its room in
 * the ring, because their length is known only then.
 */
#ifndef OTPROF_WALK_H
#define OTPROF_WALK_H

#include <linux/types.h>

#include "kmod/ustack.h"

/* The walker reads as every other copy of user memory does. */
#define OTP_WALK_READ(to, len, from) (!otprof_ustack_read(to, len, from))
#define OTP_WALK_OPAQUE(value)	     do { } while (0)
#include "kmod/uapi/otprof_walk.h"

struct pt_regs;

/* State of one CPU; allocated with its session, because it is large. */
struct otprof_walking {
	struct otp_walker walker;
	u32 bytes; /* of sections */
	u32 nr;
	u64 sections[OTP_WALK_BYTES / sizeof(u64)];
};

/*
 * Walks, for a thread with this base of its thread-local storage and this stack pointer; 0: unknown. regs: its user
 * registers, borrowed; valid: a bit for each that was saved.
 */
void otprof_walk(struct otprof_walking *w, const struct otp_walks_ready *walks, u64 tls_base, u64 sp,
		 const struct pt_regs *regs, u64 valid);

#endif
