// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/adapt.h"

#include "base/cleanup.h"

#define ADAPT_BACKOFF_MAX 8
#define ADAPT_FAR 4 /* so many copies away, growing would take too many bytes */
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

static void begin_window(struct process *p, uint64_t now)
{
	p->stack_seen_ns = now;
	p->stack_needed = 0;
	p->stack_samples = 0;
}

/* All of the stack, where its end is known and a copy may be so large; else 0. */
static uint32_t to_the_end(const struct sample *s, uint32_t max)
{
	uint64_t bytes = s->head.stack_end - s->stack_addr;

	return s->head.stack_end > s->stack_addr && bytes <= max ? (uint32_t)bytes : 0;
}

static bool grow(struct process *p, const struct adapt_limits *l, const struct sample *s, uint32_t used)
{
	/* A sample from before the last change says nothing about the present size. */
	if (s->head.stack_bytes < p->stack_bytes || p->stack_bytes >= l->max_bytes)
		return false;
	p->stack_bytes *= p->stack_bytes <= ADAPT_SMALL ? 4 : 2;
	used = MAX(used, to_the_end(s, l->max_bytes));
	p->stack_bytes = MIN(MAX(p->stack_bytes, class_for(used, l->max_bytes)), l->max_bytes);
	if (p->stack_shrunk && p->stack_backoff < ADAPT_BACKOFF_MAX)
		p->stack_backoff++;
	p->stack_shrunk = false;
	begin_window(p, s->head.time_ns);
	return true;
}

/*
 * The outermost bytes are wanted, not more of the innermost: a frame too large
 * to copy, or a stack that was switched to, lies between.
 */
static bool reach_base(struct process *p, const struct sample *s, const struct unwind_stack *out)
{
	uint64_t end = s->head.stack_end, need = end - out->fail_addr;

	if (!out->fail_addr || out->fail_addr >= end || need > OTP_BASE_LIMIT || need <= p->base_bytes)
		return false;
	if (out->end == UNWIND_SHORT && out->fail_addr >= s->stack_addr &&
	    out->fail_addr - s->stack_addr < (uint64_t)ADAPT_FAR * p->stack_bytes)
		return false;
	p->base_bytes = MAX(class_for((uint32_t)need, OTP_BASE_LIMIT), (uint32_t)OTP_BASE_UNIT);
	return true;
}

bool adapt_observe(struct process *p, const struct adapt_limits *l, const struct sample *s,
		   const struct unwind_stack *out)
{
	uint64_t now = s->head.time_ns;
	uint32_t target;

	if (!p->stack_bytes)
		begin_window(p, now);
	/* Without a plan of its own it follows the hint for its name. */
	if (!p->stack_bytes || !p->plan_gen)
		p->stack_bytes = MAX(s->head.stack_bytes, ADAPT_MIN_BYTES);
	/* The bound may have come down since. */
	if (p->plan_gen && p->stack_bytes > l->max_bytes) {
		p->stack_bytes = l->max_bytes;
		begin_window(p, now);
		return true;
	}
	if (reach_base(p, s, out))
		return true;
	if (out->end == UNWIND_SHORT && !(s->head.mode & OTP_MODE_THROTTLE))
		return grow(p, l, s, out->stack_used);
	p->stack_needed = MAX(p->stack_needed, out->stack_used);
	p->stack_samples++;
	if (now < p->stack_seen_ns + (ADAPT_WINDOW_NS << p->stack_backoff) || p->stack_samples < ADAPT_WINDOW_SAMPLES)
		return false;
	target = adapt_shrunk(p->stack_bytes, p->stack_needed);
	begin_window(p, now);
	if (target >= p->stack_bytes)
		return false;
	p->stack_bytes = target;
	p->stack_shrunk = true;
	return true;
}
