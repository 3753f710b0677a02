/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * How much of a stack a sample copies: the arithmetic that all samplers share.
 *
 * Who uses it: bpf/, kmod/ and the pump of perf events (userspace/source), each
 * in the tick or, for perf, after it. Pure functions on plain numbers: no
 * memory is read, nothing is kept, so the arithmetic is tested in userspace
 * and the verifier sees it inlined.
 * Units: addresses and bytes. Errors: none; every result is within its bounds
 * for any input.
 */
#ifndef OTPROF_COPY_UAPI_H
#define OTPROF_COPY_UAPI_H

#include "kmod/uapi/otprof.h"

/* Stack bytes that a plan, a hint or the default asks for, as whole words within the bound. */
static __always_inline __u64 otp_copy_want(__u64 stack_bytes)
{
	if (stack_bytes > OTP_STACK_LIMIT)
		stack_bytes = OTP_STACK_LIMIT;
	return (stack_bytes + 7) & ~7ULL;
}

/* Where neither plan nor hint sets a depth, the default's applies; the default's base too, if none is set. */
static __always_inline void otp_copy_default(__u32 *stack_bytes, __u32 *base_bytes, const struct otp_defaults *d)
{
	if (*stack_bytes)
		return;
	*stack_bytes = d->stack_bytes;
	if (!*base_bytes)
		*base_bytes = d->base_bytes;
}

/* Nothing above the known end of the stack is copied: the bytes from addr that are left of want. 0 for end: unknown. */
static __always_inline __u64 otp_copy_clip(__u64 addr, __u64 want, __u64 end)
{
	if (end <= addr || end - addr >= want)
		return want;
	return (end - addr + 7) & ~7ULL;
}

/* A copy that ends at `to` lies below the known end: pages that are missing in it were never touched. */
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

/* Stack bytes above OTP_STACK_FLOOR are charged to a budget per CPU: so many in this time, and never more saved up. */
#define OTP_BUDGET_WINDOW_NS 100000000ULL

/* What may be copied now: what was left some time ago, and what that time has added. */
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
 * What the budget leaves of a copy and its base; 1 where it took something. A
 * copy takes half of what is left above the floor, so that a deep one never
 * leaves nothing for the small ones after it, and where all are deep each gets
 * about as much. The base comes first, and whole: without it the stack is cut
 * whatever else is copied, so where it does not fit, all is left to the next.
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
 * The flags of a chunk that wanted some bytes and found *got of them. left is
 * what the sample still wants of its kind (stack or base), this chunk
 * included, base_left the same of the base. below_end: otp_copy_below_end of
 * all that is wanted. Where more of the same follows, pages that are missing
 * at the chunk's end, or all of a base chunk, are a hole: *got becomes want.
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

#endif /* OTPROF_COPY_UAPI_H */
