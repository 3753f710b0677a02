/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * The arithmetic that samplers share: how much of a stack a sample copies, and
 * why a ring refused a record.
 *
 * Who uses it: bpf/, kmod/ and the pump of perf events (userspace/source), each
 * in the tick or, for perf, after it. Pure functions on plain numbers, without
 * state, so that unit tests cover them and the verifier checks them inlined.
 * Units: addresses and bytes. Errors: none; every result is within its bounds
 * for any input.
 */
#ifndef OTPROF_COPY_UAPI_H
#define OTPROF_COPY_UAPI_H

#include "kmod/uapi/otprof.h"

/* The stack bytes of a plan, a hint or the default, in whole words within the limit. */
static __always_inline __u64 otp_copy_want(__u64 stack_bytes)
{
	if (stack_bytes > OTP_STACK_LIMIT)
		stack_bytes = OTP_STACK_LIMIT;
	return (stack_bytes + 7) & ~7ULL;
}

/*
 * Where neither plan nor hint sets a depth, the default's applies; the default's base too, if none is set. Returns the
 * bound on the bytes of such a copy, for otp_copy_plan; 0: none, as for a program whose depth is known.
 */
static __always_inline __u32 otp_copy_default(__u32 *stack_bytes, __u32 *base_bytes, const struct otp_defaults *d)
{
	if (*stack_bytes)
		return 0;
	*stack_bytes = d->stack_bytes;
	if (!*base_bytes)
		*base_bytes = d->base_bytes;
	return d->tick_bytes;
}

/*
 * The end of the stack of a thread other than the first, by the base of its
 * thread-local storage; 0: unknown. first: the word at that base, 0 if it cannot
 * be read. On x86-64 this word is the base's own address (System V ABI, AMD64
 * supplement: %fs:0). A base without it belongs to no C library (Go's threads
 * have one within an object of the heap, which may lie just above a stack), or
 * was replaced by WRFSBASE: it would cut a stack anywhere. arm64 has no such
 * word, so every base counts there.
 */
static __always_inline __u64 otp_copy_thread_end(__u32 arch, __u64 base, __u64 first)
{
	return arch == OTP_ARCH_X86_64 && first != base ? 0 : base;
}

/* Nothing above the known end of the stack is copied: returns the bytes from addr to copy. end 0: unknown. */
static __always_inline __u64 otp_copy_clip(__u64 addr, __u64 want, __u64 end)
{
	if (end <= addr || end - addr >= want)
		return want;
	return (end - addr + 7) & ~7ULL;
}

/* Whether a copy that ends at `to` lies below the known end: then pages missing in it were never touched. */
static __always_inline int otp_copy_below_end(__u64 to, __u64 end)
{
	return end && to <= end + 8;
}

/*
 * Bytes of the base: the outermost frames, below the known end of the stack,
 * as far as a copy from addr to `to` does not reach them.
 */
static __always_inline __u64 otp_copy_base(__u64 addr, __u64 to, __u64 end, __u64 base_bytes)
{
	__u64 base = base_bytes & ~7ULL;

	end &= ~7ULL;
	if (!end)
		return 0;
	if (base > OTP_BASE_LIMIT)
		base = OTP_BASE_LIMIT;
	if (base > end)
		base = end;
	if (addr < end && to > end - base)
		base = to < end ? end - to : 0;
	return base;
}

/* The copy of one sample: want bytes from its lowest address on, and base bytes below the known end of the stack. */
struct otp_copy {
	__u64 want, base;
	__u32 mode; /* OTP_MODE_SHORT, OTP_MODE_BOUNDED */
};

/*
 * Cuts the first copies of a program that nobody knows, so that one tick does
 * not hold up interrupts for long. The base gets a third, as by default it is
 * half of the copy, and more than where the whole copy reached the end. What is
 * cut here is not lost for long: the engine sees that bytes are missing, and the
 * plan that it makes is not bounded. Nor is a hint: a program that lives for
 * milliseconds is known by its name alone, and with a bound every one of its
 * stacks would be cut. The bound is of bytes; a page that is missing costs a
 * fault beside it.
 */
static __always_inline void otp_copy_bound(struct otp_copy *c, __u64 addr, __u64 end, __u64 base_bytes, __u64 bound)
{
	__u64 third;

	if (!bound || c->want + c->base <= bound)
		return;
	if (bound < OTP_STACK_FLOOR)
		bound = OTP_STACK_FLOOR;
	third = bound / 3 & ~7ULL;
	if (base_bytes > third)
		base_bytes = third;
	if (!end)
		base_bytes = 0;
	if (c->want > bound - base_bytes)
		c->want = (bound - base_bytes) & ~7ULL;
	c->base = otp_copy_base(addr, addr + c->want, end, base_bytes);
	c->mode |= OTP_MODE_BOUNDED;
}

/*
 * The copy of a stack whose lowest address is addr, by the sizes of a plan, a
 * hint or the default; end: the stack's known end, 0: unknown; bound: of one
 * tick, 0: none. The budget is applied after it.
 */
static __always_inline void otp_copy_plan(struct otp_copy *c, __u64 addr, __u64 end, __u64 stack_bytes, __u64 base_bytes,
					  __u64 bound)
{
	__u64 wish = otp_copy_want(stack_bytes), whole = otp_copy_clip(addr, wish, end);

	c->mode = 0;
	c->want = whole;
	c->base = otp_copy_base(addr, addr + whole, end, base_bytes);
	otp_copy_bound(c, addr, end, base_bytes, bound);
	/* A copy that the bound cut does not end where the stack does. */
	if (whole < wish && c->want == whole)
		c->mode |= OTP_MODE_SHORT;
}

/*
 * The bytes that a tick may copy in limit_ns, where copying so many bytes took
 * so long: half of what that speed allows, because a sampler copies twice where
 * it works in a scratch area (bpf/), and because others' stacks are not in the
 * cache. Not below the floor, nor so many that no copy would reach it: then 0,
 * no bound.
 */
static __always_inline __u32 otp_tick_bytes(__u64 bytes, __u64 ns, __u64 limit_ns)
{
	__u64 bound = ns ? bytes * limit_ns / ns / 2 : 0;

	if (!ns || bound >= OTP_STACK_LIMIT + OTP_BASE_LIMIT)
		return 0;
	return bound < OTP_STACK_FLOOR ? OTP_STACK_FLOOR : (__u32)bound & ~7U;
}

/* Stack bytes above OTP_STACK_FLOOR are charged to a budget per CPU, in bytes per this time; no more is saved up. */
#define OTP_BUDGET_WINDOW_NS 100000000ULL

/* The bytes that may be copied now: those left since_ns ago, and those added since. */
static __always_inline __u64 otp_budget_fill(__u64 left, __u64 since_ns, __u64 budget)
{
	if (since_ns >= OTP_BUDGET_WINDOW_NS)
		return budget;
	left += since_ns * budget / OTP_BUDGET_WINDOW_NS;
	return left < budget ? left : budget;
}

static __always_inline __u64 otp_budget_spend(__u64 left, __u64 bytes)
{
	return bytes < left ? left - bytes : 0;
}

/* Whether a copy of that size, with that base, needs the budget at all. */
static __always_inline int otp_budget_applies(__u64 want, __u64 base)
{
	return want > OTP_STACK_FLOOR || base;
}

/*
 * Cuts a copy and its base to the budget; returns 1 if it cut anything. A copy
 * takes at most half of what is left, above the floor, so that a deep stack
 * always leaves room for the small ones after it, and deep stacks get about
 * equal shares. The base is taken first and whole: without it the stack is cut
 * whatever else is copied, so a base that does not fit is dropped, and its
 * sample copies the floor alone.
 */
static __always_inline int otp_budget_share(__u64 left, __u64 *want, __u64 *base)
{
	__u64 room = 0;
	int cut = 0;

	if (*base <= left) {
		room = (left - *base) / 2 & ~7ULL;
	} else {
		*base = 0;
		cut = 1;
	}
	if (*want <= OTP_STACK_FLOOR + room)
		return cut;
	*want = OTP_STACK_FLOOR + room;
	return 1;
}

/*
 * The flags of a chunk of want bytes, of which *got could be read. left: bytes
 * of its kind (stack or base) still to copy, this chunk included; base_left:
 * the same of the base. below_end: otp_copy_below_end of the whole copy. Where
 * more of the same kind follows, pages missing at the chunk's end, or a whole
 * base chunk, are a hole: *got becomes want.
 */
static __always_inline __u32 otp_chunk_flags(__u32 flags, __u64 *got, __u64 want, __u64 left, __u64 base_left,
					     int below_end)
{
	int is_base = flags & OTP_CHUNK_BASE, more = want < left && (is_base || below_end);

	if (*got && *got < want && more) {
		*got = want;
		flags |= OTP_CHUNK_HOLES;
	}
	if (*got >= want || (is_base && more))
		return flags;
	flags |= OTP_CHUNK_SHORT;
	return is_base || !base_left ? flags | OTP_CHUNK_LAST : flags;
}

/*
 * Why a BPF ring of size bytes did not take a record of len bytes: it had no
 * room, or its lock was held, for which the kernel returns the same error (Linux
 * 5.10 to 6.18, kernel/bpf/ringbuf.c, __bpf_ringbuf_reserve). before, after:
 * unread bytes before and after the attempt. Room at both times is the lock's
 * sign: the reader may make room meanwhile, and other CPUs may take it. A ring
 * is never filled to its last byte.
 */
static __always_inline __u64 otp_ring_refusal(__u64 before, __u64 after, __u64 size, __u64 len)
{
	__u64 need = (len + OTP_RING_HDR + 7) & ~7ULL;

	return (after > before ? after : before) + need >= size ? OTP_LOSS_RING_FULL : OTP_LOSS_RING_BUSY;
}

#endif /* OTPROF_COPY_UAPI_H */
