/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One sample: first what belongs into it, so that its room in the ring is
 * known, then the record itself, written once, where it stays.
 *
 * Context: the tick, on c's CPU. No lock, no allocation, no page fault; every
 * loop has a bound. The kernel's stack, whose length is not known before it is
 * walked, waits in c; the user's stack is copied last, straight into the record,
 * and may turn out shorter.
 */
#ifndef OTPROF_SAMPLE_H
#define OTPROF_SAMPLE_H

#include <linux/types.h>

#include "kmod/choose.h"
#include "kmod/uapi/otprof.h"

struct otprof_cpu;
struct pt_regs;

struct otprof_sample {
	struct otprof_cpu *c;
	struct pt_regs *regs; /* what the tick interrupted */
	const struct otp_defaults *d;
	struct otprof_subject who;
	struct otprof_choice choice;

	/* Measured: */
	const struct pt_regs *user; /* NULL: there is no user side */
	u64 user_valid; /* bits of its registers */
	u64 sp, tls_base;
	u32 mode; /* OTP_MODE_* */
	u32 kstack_bytes; /* waiting in c */
	u64 stack_addr;
	u64 stack_end;   /* of the thread's own stack, 0: unknown */
	bool stack_known; /* all that is wanted lies below that: what is missing is a hole */
	u32 stack_bytes; /* of the user's stack, in the head record */
	u64 stack_more;  /* and wanted beyond it */
	u64 stack_next;  /* from here */
	u64 base_more;   /* the same of the bytes below the stack's end */
	u64 base_next;
};

/* The bytes that write may need. */
u32 otprof_sample_measure(struct otprof_sample *s);
/* Into that many bytes at `to`; returns how many it used. */
u32 otprof_sample_write(struct otprof_sample *s, void *to);

/* One of the chunks that follow: first of the stack, then of its base. */
struct otprof_chunk {
	u32 index, want;
	u16 flags; /* OTP_CHUNK_* */
};

/* What the next one may hold; false: there is none. */
bool otprof_chunk_measure(const struct otprof_sample *s, struct otprof_chunk *ret);
/* Returns how many bytes of stack it holds: fewer where the memory ends, which its flags say then. */
u32 otprof_chunk_write(struct otprof_sample *s, struct otprof_chunk *chunk, void *to);

#endif
