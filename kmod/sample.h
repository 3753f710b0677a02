/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One sample: it is measured first, so that its room in the ring can be
 * reserved, then written once, in place.
 *
 * Context: the tick, on c's CPU. No lock, no allocation, no page fault; every
 * loop has a bound. The length of the kernel stack is only known once it was
 * walked, so its addresses are kept in c meanwhile; the user stack is copied
 * last, directly into the record, and may be shorter than measured.
 */
#ifndef OTPROF_SAMPLE_H
#define OTPROF_SAMPLE_H

#include <linux/types.h>

#include "kmod/choose.h"
#include "kmod/uapi/otprof.h"

struct otprof_cpu;
struct pt_regs;

struct otprof_sample {
	struct otprof_cpu *c; /* borrowed for the tick, as regs, d and user */
	struct pt_regs *regs; /* what the tick interrupted */
	const struct otp_defaults *d;
	struct otprof_subject who;
	struct otprof_choice choice;

	/* Measured: */
	const struct pt_regs *user; /* user registers; NULL: none */
	u64 user_valid; /* a bit per valid register */
	u64 sp, tls_base;
	u32 mode; /* OTP_MODE_* */
	u32 kstack_bytes; /* of addresses in c->kstack */
	u32 walk_bytes; /* of sections in c->walking */
	u64 stack_addr;
	u64 stack_end;   /* of the thread's own stack, 0: unknown */
	bool stack_known; /* the copy lies below stack_end: missing pages are holes */
	u32 stack_bytes; /* of user stack in the head record */
	u64 stack_more;  /* still to copy, in chunks */
	u64 stack_next;  /* from this address */
	u64 base_more;   /* the same of the base: bytes below stack_end */
	u64 base_next;
};

/* An upper bound of the record's bytes. */
u32 otprof_sample_measure(struct otprof_sample *s);
/* Writes into that many bytes at `to`; returns the record's bytes. */
u32 otprof_sample_write(struct otprof_sample *s, void *to);

/* One of the chunks that continue the sample: first of the stack, then of its base. */
struct otprof_chunk {
	u32 index, want;
	u16 flags; /* OTP_CHUNK_* */
};

/* The next chunk; false: there is none. */
bool otprof_chunk_measure(const struct otprof_sample *s, struct otprof_chunk *ret);
/* Returns its bytes of stack: fewer than wanted where memory ends, which its flags record. */
u32 otprof_chunk_write(struct otprof_sample *s, struct otprof_chunk *chunk, void *to);

#endif
