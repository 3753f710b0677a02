/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The most frequent sample by far: of user code, with a stack copy of a usual
 * size. Its length is known beforehand, so it is written directly into the
 * ring, and the stack is copied once instead of twice. Every other sample, and
 * one that fails here, is written and counted by way of the scratch area.
 */
#ifndef OTP_BPF_DIRECT_H
#define OTP_BPF_DIRECT_H

#define DIRECT_REGS_AT  sizeof(struct otp_sample)
#define DIRECT_STACK    (DIRECT_REGS_AT + sizeof(struct otp_section) + sizeof(struct otp_regs) + \
			 OTP_REGS_HERE * sizeof(u64))
#define DIRECT_STACK_AT (DIRECT_STACK + sizeof(struct otp_section) + sizeof(struct otp_ustack))

/*
 * Reserves room for a sample in the ring and copies the stack into it. The
 * verifier requires a constant size. No size exceeds OTP_STACK_FLOOR, above
 * which the budget applies.
 */
static __always_inline u8 *direct_copy(const u64 bytes, u64 addr)
{
	u8 *s = bpf_ringbuf_reserve(&ring, DIRECT_STACK_AT + bytes, 0);

	if (s && bpf_probe_read_user(s + DIRECT_STACK_AT, bytes, (const void *)addr)) {
		bpf_ringbuf_discard(s, BPF_RB_NO_WAKEUP);
		return NULL;
	}
	return s;
}

static __always_inline u8 *direct_begin(u32 bytes, u64 addr)
{
	switch (bytes) {
	case 1024:
		return direct_copy(1024, addr);
	case 2048:
		return direct_copy(2048, addr);
	case 4096:
		return direct_copy(4096, addr);
	}
	return NULL;
}

static __always_inline void direct_fill(struct bpf_perf_event_data *ctx, u8 *s, const struct subject *who,
					const struct choice *choice, const struct cpu_state *cpu, u64 addr)
{
	struct otp_sample *head = (void *)s;

	put_head(s, who, choice, cpu, 0);
	put_regs(ctx, s, DIRECT_REGS_AT, who, 0);
	section_begin(s, DIRECT_STACK, OTP_SEC_USTACK, sizeof(struct otp_ustack) + choice->stack_bytes);
	((struct otp_ustack *)(s + DIRECT_STACK_AT))[-1].addr = addr;
	head->rec.len = DIRECT_STACK_AT + choice->stack_bytes;
}

/*
 * False: nothing was written, nothing counted. Not used while a loss is to be
 * reported, because its record precedes the next sample; nor for threads whose
 * stack lately ended early, because a failed read is expensive.
 */
static __always_inline bool put_direct(struct bpf_perf_event_data *ctx, const struct subject *who,
				       const struct choice *choice, struct cpu_state *cpu,
				       struct otp_cpu_counters *c, const struct otp_defaults *d)
{
	u64 sp = ctx->regs.sp, addr = (sp - OTP_RED_ZONE) & ~7ULL;
	u8 *s;

	if (choice->base_bytes || !sp || cpu->loss[0].samples || cpu->short_tid[who->tid % SHORT_TIDS] == who->tid)
		return false;
	s = direct_begin(choice->stack_bytes, addr);
	if (!s)
		return false;
	direct_fill(ctx, s, who, choice, cpu, addr);
	c->ticks++;
	c->taken++;
	c->put++;
	c->put_bytes += DIRECT_STACK_AT + choice->stack_bytes;
	bpf_ringbuf_submit(s, wake_flags(d, (const void *)s, bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA)));
	return true;
}

#endif
