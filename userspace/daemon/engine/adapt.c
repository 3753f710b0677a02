// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/adapt.h"

#include "base/cleanup.h"

#define ADAPT_BACKOFF_MAX 8
#define ADAPT_FAR 4 /* this many copies away, growth would take too many bytes */
/* Most stacks that exceed this little are still small: one step covers them. */
#define ADAPT_SMALL 4096u

static uint32_t class_for(uint32_t needed, uint32_t max)
{
	uint32_t bytes = ADAPT_MIN_BYTES;

	while (bytes < needed && bytes < max)
		bytes *= 2;
	return MIN(bytes, max);
}

uint32_t adapt_shrunk(uint32_t bytes, uint32_t needed)
{
	uint32_t target = class_for(needed > UINT32_MAX / 2 ? needed : needed * 2, bytes);

	return MAX(target, bytes / 4);
}

uint32_t adapt_base(uint32_t needed)
{
	return MIN(ALIGN_UP(needed, (uint32_t)OTP_BASE_UNIT), (uint32_t)OTP_BASE_LIMIT);
}

/* Bytes from the stack pointer to the stack's end; 0: unknown. */
static uint64_t depth_of(const struct sample *s)
{
	return s->head.stack_end > s->stack_addr ? s->head.stack_end - s->stack_addr : 0;
}

/* Bytes of the whole stack, where its end is known and a copy may be so large; else 0. */
static uint32_t to_the_end(const struct sample *s, uint32_t max)
{
	uint64_t bytes = depth_of(s);

	return bytes <= max ? (uint32_t)bytes : 0;
}

/* Bytes between the last one read and the missing one: one frame, most of which is not needed. */
static uint64_t skipped(const struct sample *s, const struct unwind_stack *out)
{
	uint64_t from = s->stack_addr + out->stack_read;

	return out->fail_addr > from ? out->fail_addr - from : 0;
}

/* Distance from the missing byte to the stack's end; 0: unknown. */
static uint64_t below_end(const struct sample *s, const struct unwind_stack *out)
{
	return out->fail_addr && out->fail_addr < s->head.stack_end ? s->head.stack_end - out->fail_addr : 0;
}

/*
 * Whether outermost bytes are needed rather than more innermost ones: a frame too large to copy, or a switch of
 * stacks, lies between.
 */
static bool wants_base(const struct otp_hint *now, const struct adapt_limits *l, const struct sample *s,
		       const struct unwind_stack *out)
{
	uint64_t need = below_end(s, out), far = out->fail_addr - s->stack_addr, gap = skipped(s, out);

	if (!need || need > l->base_max || out->end == UNWIND_CHUNK_LOST)
		return false;
	if (out->end != UNWIND_SHORT || out->fail_addr < s->stack_addr)
		return true;
	/* Cut by the bound on bytes, or copied before the last change: a copy of the present size reaches this far. */
	if (far < now->stack_bytes)
		return false;
	return (gap > ADAPT_SMALL && gap > need) || far >= (uint64_t)ADAPT_FAR * now->stack_bytes || far >= l->max_bytes;
}

/* Beyond a large frame that exceeds the copy, and too far from the end for any base. */
static bool is_out_of_reach(const struct otp_hint *now, const struct adapt_limits *l, const struct sample *s,
			    const struct unwind_stack *out)
{
	uint32_t large = MAX(now->stack_bytes, l->max_bytes / ADAPT_FAR);

	return skipped(s, out) > large && depth_of(s) > (uint64_t)l->max_bytes + l->base_max;
}

static bool adapt_grow_stack(struct otp_hint *now, const struct adapt_limits *l, const struct sample *s,
			     const struct unwind_stack *out)
{
	uint32_t bytes = now->stack_bytes * (now->stack_bytes <= ADAPT_SMALL ? 4 : 2);
	uint32_t used = MAX(out->stack_used, to_the_end(s, l->max_bytes));

	/* A sample from before the last change says nothing about the present size. */
	if (s->head.stack_bytes < now->stack_bytes || now->stack_bytes >= l->max_bytes)
		return false;
	if (is_out_of_reach(now, l, s, out))
		return false;
	now->stack_bytes = MIN(MAX(bytes, class_for(used, l->max_bytes)), l->max_bytes);
	return true;
}

static bool is_short(const struct sample *s, const struct unwind_stack *out)
{
	return out->end == UNWIND_SHORT && !(s->head.mode & OTP_MODE_THROTTLE);
}

bool adapt_deepen(struct otp_hint *now, const struct adapt_limits *l, const struct sample *s,
		  const struct unwind_stack *out)
{
	uint64_t need = below_end(s, out);

	if (out->fail_in_other)
		return false;
	/* The present base covers this: the sample is older than it. */
	if (need && need <= now->base_bytes)
		return false;
	if (wants_base(now, l, s, out)) {
		now->base_bytes = MIN(MAX(adapt_base((uint32_t)need), 2 * now->base_bytes), l->base_max);
		return true;
	}
	return is_short(s, out) && adapt_grow_stack(now, l, s, out);
}

uint32_t adapt_base_given(const struct sample *s, const struct process *parent, uint32_t by_name)
{
	if (s->head.mode & OTP_MODE_BOUNDED)
		return s->base_len;
	if (!(s->head.mode & OTP_MODE_INHERITED))
		return by_name;
	/* The parent's plan has changed, or is the monitor's: the base is at least the sample's. */
	return parent && parent->plan_gen == s->head.plan_gen ? parent->base_bytes : s->base_len;
}

void adapt_at_least(struct process *p, const struct adapt_limits *l, const struct otp_hint *sizes)
{
	p->stack_bytes = MAX(p->stack_bytes, MIN(sizes->stack_bytes, l->max_bytes));
	p->base_bytes = MAX(p->base_bytes, MIN(sizes->base_bytes, l->base_max));
}

static void adapt_begin_window(struct process *p, uint64_t now)
{
	p->stack_seen_ns = now;
	p->stack_needed = p->base_needed = 0;
	p->stack_samples = 0;
}

static bool adapt_deepen_process(struct process *p, const struct adapt_limits *l, const struct sample *s,
				 const struct unwind_stack *out)
{
	struct otp_hint now = {.stack_bytes = p->stack_bytes, .base_bytes = p->base_bytes};

	if (!adapt_deepen(&now, l, s, out))
		return false;
	p->stack_bytes = now.stack_bytes;
	p->base_bytes = now.base_bytes;
	if (p->stack_shrunk && p->stack_backoff < ADAPT_BACKOFF_MAX)
		p->stack_backoff++;
	p->stack_shrunk = false;
	adapt_begin_window(p, s->head.time_ns);
	return true;
}

/* At the end of a window: drops the bytes that no stack needed in it. */
static bool adapt_shrink(struct process *p, uint64_t now)
{
	uint32_t stack = MIN(p->stack_bytes, adapt_shrunk(p->stack_bytes, p->stack_needed));
	uint32_t base = MIN(p->base_bytes, adapt_base(p->base_needed));

	adapt_begin_window(p, now);
	if (stack == p->stack_bytes && base == p->base_bytes)
		return false;
	p->stack_bytes = stack;
	p->base_bytes = base;
	p->stack_shrunk = true;
	return true;
}

bool adapt_observe(struct process *p, const struct adapt_limits *l, const struct sample *s,
		   const struct unwind_stack *out)
{
	uint64_t now = s->head.time_ns;

	if (!p->stack_bytes)
		adapt_begin_window(p, now);
	/* Without a plan of its own the process is copied by the hint for its name. */
	if (!p->stack_bytes || !p->plan_gen)
		p->stack_bytes = MAX(s->head.stack_bytes, ADAPT_MIN_BYTES);
	/* The bound may have been lowered since. */
	if (p->plan_gen && p->stack_bytes > l->max_bytes) {
		p->stack_bytes = l->max_bytes;
		adapt_begin_window(p, now);
		return true;
	}
	if (adapt_deepen_process(p, l, s, out))
		return true;
	if (is_short(s, out) && !out->fail_in_other)
		return false;
	p->stack_needed = MAX(p->stack_needed, out->stack_used);
	p->base_needed = MAX(p->base_needed, out->base_used);
	p->stack_samples++;
	if (now < p->stack_seen_ns + (ADAPT_WINDOW_NS << p->stack_backoff) || p->stack_samples < ADAPT_WINDOW_SAMPLES)
		return false;
	return adapt_shrink(p, now);
}
