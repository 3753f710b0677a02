/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes records to the ring and counts them; a record that is not written is
 * counted as lost.
 */
#ifndef OTP_BPF_PUT_H
#define OTP_BPF_PUT_H

#define CHUNKS_MAX ((OTP_STACK_LIMIT + OTP_BASE_LIMIT) / OTP_CHUNK_STACK)

/* One wake-up since the reader last caught up. Two CPUs may both send it: harmless. */
volatile __u32 woken;

/* When the reader was last woken for a young program. Of all CPUs: lines are written where such a one is sampled. */
volatile __u64 woken_for_young_ns;

/*
 * A program's interpreter is walked only after the reader met it: a reader that
 * wakes by a ring's fill alone would be late by most of what it sleeps.
 */
static __always_inline bool is_new_to_reader(const struct otp_sample *s)
{
	u64 age = s->time_ns - s->start_ns;

	if (s->plan_gen || age < OTP_YOUNG_FROM_NS || age >= OTP_YOUNG_TO_NS || !s->pid || s->mode & OTP_MODE_KTHREAD)
		return false;
	/* Another CPU's may be later by now. */
	if ((s64)(s->time_ns - woken_for_young_ns) < (s64)OTP_YOUNG_WAKE_NS)
		return false;
	woken_for_young_ns = s->time_ns;
	return true;
}

/* Unread: the bytes in the ring before the record. */
static __always_inline u64 wake_flags(const struct otp_defaults *d, const struct otp_sample *s, u64 unread)
{
	if (d->wake_bytes && is_new_to_reader(s))
		return BPF_RB_FORCE_WAKEUP;
	if (!d->wake_bytes || unread < d->wake_bytes) {
		if (woken)
			woken = 0;
		return BPF_RB_NO_WAKEUP;
	}
	if (woken)
		return BPF_RB_NO_WAKEUP;
	woken = 1;
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline int put_scratch(u8 *s, u64 len, u64 flags)
{
	opaque(len);
	if (len > OTP_SCRATCH)
		return -1;
	return bpf_ringbuf_output(&ring, s, len, flags);
}

/*
 * Why the ring did not take a record of len bytes; unread: its bytes before the
 * attempt. In an NMI the helper only tries the ring's lock, which the
 * interrupted code or another CPU may hold.
 */
static __always_inline u64 put_failure(u64 unread, u64 len)
{
	return otp_ring_refusal(unread, bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA),
				bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE), len);
}

/*
 * Reports samples that the ring did not take. Losses for lack of scratch memory
 * are not reported by records: such a CPU never writes any. False: the ring did
 * not take the report either.
 */
static __always_inline bool put_loss(struct cpu_state *cpu, u64 slot)
{
	struct loss *lost = &cpu->loss[slot];
	struct otp_loss loss;

	if (!lost->samples)
		return true;
	loss = (struct otp_loss){
		.rec = {.type = OTP_REC_LOSS, .len = sizeof(loss)},
		.time_ns = cpu->time_ns,
		.cpu = bpf_get_smp_processor_id(),
		.reason = lost->reason,
		.origin = cpu->origin,
		.samples = lost->samples,
		.first_seq = lost->first_seq,
	};
	if (bpf_ringbuf_output(&ring, &loss, sizeof(loss), BPF_RB_NO_WAKEUP))
		return false;
	lost->samples = 0;
	return true;
}

/* Returned instead of bytes: the ring did not take the chunk. */
#define CHUNK_LOST (1ULL << 62)

/*
 * Copies and writes one chunk of the sample under way. Returns the bytes copied.
 * Global, as those in stack.h: the verifier checks it once, not once per chunk.
 */
__noinline u64 put_chunk(u64 index, u64 addr, u64 want, u64 flags)
{
	u32 nr = bpf_get_smp_processor_id();
	struct cpu_state *cpu = bpf_map_lookup_elem(&cpus, &nr);
	struct scratch *s = bpf_map_lookup_elem(&scratch, &nr);
	struct otp_cpu_counters *c;
	struct otp_chunk *chunk;
	struct budget *budget;
	u64 got;

	if (!cpu || !s)
		return CHUNK_LOST;
	c = counters_of(cpu->slot);
	if (!c)
		return CHUNK_LOST;
	chunk = (void *)s->byte;
	got = copy_user(sizeof(*chunk), want, addr);
	if (got & COPY_HOLES)
		flags |= OTP_CHUNK_HOLES;
	got &= ~COPY_HOLES;
	flags = otp_chunk_flags(flags, &got, want, flags & OTP_CHUNK_BASE ? cpu->base_left : cpu->stack_left, cpu->base_left,
				cpu->stack_known);
	chunk->rec.type = OTP_REC_CHUNK;
	chunk->rec.flags = flags;
	chunk->rec.len = sizeof(*chunk) + got;
	chunk->seq = cpu->seq;
	chunk->cpu = nr;
	chunk->index = index;
	chunk->addr = addr;
	chunk->len = got;
	chunk->origin = cpu->origin;
	chunk->reserved = 0;
	if (put_scratch(s->byte, sizeof(*chunk) + got, BPF_RB_NO_WAKEUP)) {
		c->chunks_lost++;
		return CHUNK_LOST;
	}
	c->chunks++;
	c->put_bytes += sizeof(*chunk) + got;
	budget = budget_of(cpu);
	budget->left = otp_budget_spend(budget->left, got);
	if (flags & OTP_CHUNK_SHORT)
		c->short_stacks++;
	return got;
}

/* The next chunk: of the stack, then of its base. 0: none is left. */
static __always_inline int next_chunk(struct cpu_state *cpu, u32 index)
{
	u64 base = !cpu->stack_left, want = base ? cpu->base_left : cpu->stack_left, got;

	if (!want)
		return 0;
	if (want > OTP_CHUNK_STACK)
		want = OTP_CHUNK_STACK;
	got = put_chunk(index, base ? cpu->base_next : cpu->stack_next, want,
			(base ? OTP_CHUNK_BASE : 0) |
				(cpu->stack_left + cpu->base_left == want ? OTP_CHUNK_LAST : 0));
	if (got & CHUNK_LOST)
		return 0;
	if (base) {
		cpu->base_left -= want;
		cpu->base_next += want;
	} else {
		cpu->stack_left = got < want ? 0 : cpu->stack_left - want;
		cpu->stack_next += want;
	}
	return 1;
}

/*
 * The rest of a deep stack, then its base. The sample itself is written: a
 * failure here only cuts its stack.
 */
__noinline int put_chunks(u32 nr)
{
	struct cpu_state *cpu = bpf_map_lookup_elem(&cpus, &nr);

	for (u32 i = 0; cpu && i < CHUNKS_MAX; i++)
		if (!next_chunk(cpu, i))
			break;
	return 0;
}

/*
 * The three counts of a sample change together, before its record is visible:
 * a reader of the ring never sees more samples than are counted in put.
 */
static __always_inline void put_sample(u8 *s, u64 len, struct cpu_state *cpu, struct otp_cpu_counters *c,
				       const struct otp_defaults *d, u64 slot)
{
	u32 mode = ((struct otp_sample *)s)->mode;
	u64 unread = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA), why;
	struct loss *lost = &cpu->loss[slot];

	c->ticks++;
	c->taken++;
	c->put++;
	/* The record of a loss always precedes the next sample. */
	if (!put_loss(cpu, slot) || put_scratch(s, len, wake_flags(d, (const void *)s, unread))) {
		why = put_failure(unread, len);
		c->put--;
		c->lost[why]++;
		if (!lost->samples) {
			lost->first_seq = cpu->seq;
			lost->reason = why;
		}
		lost->samples++;
		return;
	}
	c->put_bytes += len;
	if (mode & OTP_MODE_SHORT)
		c->short_stacks++;
	if (mode & OTP_MODE_CHUNKED)
		put_chunks(bpf_get_smp_processor_id());
}

#endif
