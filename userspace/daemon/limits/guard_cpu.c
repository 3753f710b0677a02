// SPDX-License-Identifier: Apache-2.0
/*
 * The guard's part for CPU time: window, credit, and the rate that fits.
 *
 * Why it does not oscillate: a cut leaves 15 % of the limit free, and a return
 * has to gain a quarter of the rate, or all that was given up: so a load near
 * the limit changes nothing.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/limits/guard_internal.h"

#define WINDOW_NS	(10 * NSEC_PER_SEC)
#define FIRST_WINDOW_NS (30 * NSEC_PER_SEC) /* the engine's first samples fill its caches */
#define LOOK_LEAST_NS	(500 * NSEC_PER_MSEC)
#define CREDIT_NS	(300 * NSEC_PER_SEC) /* of the limit */
#define HOLD_NS		(2 * NSEC_PER_SEC)   /* after a cut; doubled by each return that had to be undone */
#define RETURNS_MAX	2		     /* 8 s: what was given up is back within 10 s of room */
#define RETURN_NS	(20 * NSEC_PER_SEC)
#define PENDING_NS	(15 * NSEC_PER_SEC) /* a sampler that takes longer to change its rate may have rejected it */
#define RATE_LEAST	1u
#define STACK_LEVELS	2u
#define SAMPLE_DEEP_NS	(100 * NSEC_PER_USEC) /* the most that a shorter copy saves per sample */
/* Parts of the limit, in percent. */
#define AIM   85
#define ROOMY 70 /* depth returns below this */
/* A return that doubles the rate needs looks of two seconds, a smaller one of four: a second's costs vary by a fifth. */
#define LOOKS_FEW  2
#define LOOKS_MANY (GUARD_RECENT - 1)
/*
 * Costs also change for other reasons than the rate, and the line is wrong then: a rate is at most so many times lower
 * or higher than the one in proportion to the whole cost. Too low costs a second step, too high an excess.
 */
#define LINE_TRUST_DOWN 2
#define LINE_TRUST_UP	1.25

/* Per second and CPU, like cpu_permyriad. */
static uint64_t guard_cpu_share(uint64_t ns, uint64_t elapsed)
{
	return (uint64_t)((unsigned __int128)ns * 10000 / MAX(elapsed, 1u));
}

/* The CPU time that the limit allows in ns. */
static uint64_t guard_cpu_allowed(const struct guard *g, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * g->limits.cpu_permyriad / 10000);
}

/* Measuring. */

static void guard_cpu_begin(struct guard_cpu *c, uint64_t length)
{
	c->window = c->recent[0] = c->now;
	c->recent_count = 1;
	c->window_length_ns = length;
}

static void guard_cpu_push_recent(struct guard_cpu *c)
{
	if (c->recent_count == GUARD_RECENT)
		memmove(&c->recent[0], &c->recent[1], sizeof(c->recent) - sizeof(c->recent[0]));
	else
		c->recent_count++;
	c->recent[c->recent_count - 1] = c->now;
}

/* Counters that start again (a new process, a smaller estimate) add nothing. */
static uint64_t guard_cpu_since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* A debt is what all costs together have exceeded the limit by; more than a window of it is forgiven. */
static void guard_cpu_set_credit(struct guard *g, int64_t credit_ns)
{
	int64_t most = (int64_t)guard_cpu_allowed(g, CREDIT_NS);
	int64_t least = -(int64_t)guard_cpu_allowed(g, FIRST_WINDOW_NS);

	g->cpu.credit_ns = MAX(MIN(credit_ns, most), least);
}

static void guard_cpu_add(struct guard *g, const struct guard_look *l)
{
	struct guard_cpu *c = &g->cpu;
	uint64_t elapsed = l->now_ns - c->last.now_ns, allowed = guard_cpu_allowed(g, elapsed);
	uint64_t cost = guard_cpu_since(l->cpu_ns, c->last.cpu_ns);
	uint64_t samples = guard_cpu_since(l->samples, c->last.samples);
	uint64_t paid = MIN(MIN(guard_cpu_since(l->files_ns, c->last.files_ns), cost), (uint64_t)MAX(c->credit_ns, 0));

	cost -= paid;
	guard_cpu_set_credit(g, c->credit_ns + (int64_t)(allowed - cost - paid));
	c->now = (struct guard_sum){.ns = l->now_ns, .cost_ns = c->now.cost_ns + cost,
				    .files_ns = c->now.files_ns + paid, .samples = c->now.samples + samples};
	c->last = *l;
	guard_cpu_push_recent(c);
	cost_line_add(&c->line, (double)samples / (double)elapsed, (double)cost / (double)elapsed);
}

static void guard_cpu_start(struct guard *g, const struct guard_look *l)
{
	struct guard_cpu *c = &g->cpu;

	c->last = *l;
	c->now.ns = l->now_ns;
	guard_cpu_set_credit(g, INT64_MAX);
	guard_cpu_begin(c, FIRST_WINDOW_NS);
}

/* 1: the rate; 2 and 3: stacks, with the rate or, where that is fixed, alone. */
static uint32_t guard_cpu_level(const struct guard_cpu *c)
{
	return c->stack_level ? 1 + c->stack_level : c->hz != 0;
}

void guard_cpu_limits(struct guard *g)
{
	struct guard_cpu *c = &g->cpu;

	if (!g->limits.cpu_permyriad) {
		*c = (struct guard_cpu){0};
		g->ladder[GUARD_CPU].level = 0;
		return;
	}
	if (c->hz >= g->limits.hz)
		c->hz = 0;
	guard_cpu_set_credit(g, c->credit_ns);
	g->ladder[GUARD_CPU].level = guard_cpu_level(c);
}

/* Deciding. */

/* The rate at which the CPU time since `from` would have been AIM percent of the limit. */
static uint32_t guard_cpu_fit(const struct guard *g, const struct guard_sum *from)
{
	const struct guard_cpu *c = &g->cpu;
	double elapsed = (double)(c->now.ns - from->ns), cost = (double)(c->now.cost_ns - from->cost_ns) / elapsed;
	double limit = (double)g->limits.cpu_permyriad / 10000 * AIM / 100, hz = c->last.hz, part, fixed, fit;

	if (cost <= 0)
		return g->limits.hz;
	part = hz * limit / cost;
	fixed = cost_line_fixed(&c->line, cost);
	fit = fixed < cost ? hz * (limit - fixed) / (cost - fixed) : part;
	fit = MAX(part / LINE_TRUST_DOWN, MIN(fit, part * LINE_TRUST_UP));
	return (uint32_t)MAX(MIN(fit, (double)g->limits.hz), (double)RATE_LEAST);
}

static void guard_cpu_changed(struct guard *g, struct guard_change *ret, bool lowered, enum guard_step step)
{
	struct guard_cpu *c = &g->cpu;
	struct guard_ladder *l = &g->ladder[GUARD_CPU];

	*ret = (struct guard_change){.cause = GUARD_CPU, .step = step, .lowered = lowered,
				     .at_end = (c->hz == RATE_LEAST || g->limits.fixed_rate) &&
					       c->stack_level == STACK_LEVELS,
				     .used = c->share, .limit = g->limits.cpu_permyriad};
	guard_book(l, guard_cpu_level(c), lowered, step, c->now.ns, RETURN_NS);
	l->returns = MIN(l->returns, (uint32_t)RETURNS_MAX);
	guard_cpu_begin(c, WINDOW_NS);
}

/* Whether shorter copies of the window's samples could save a quarter of the excess: else cutting stacks is useless. */
static bool guard_cpu_depth_helps(const struct guard *g)
{
	const struct guard_cpu *c = &g->cpu;
	uint64_t allowed = guard_cpu_allowed(g, c->now.ns - c->window.ns);
	uint64_t excess = guard_cpu_since(c->now.cost_ns - c->window.cost_ns, allowed);

	return (c->now.samples - c->window.samples) * SAMPLE_DEEP_NS >= excess / 4;
}

static bool guard_cpu_lower(struct guard *g, struct guard_change *ret)
{
	struct guard_cpu *c = &g->cpu;
	uint32_t most = c->hz ? MIN(c->hz, c->last.hz) : c->last.hz;

	if (!g->limits.fixed_rate && most > RATE_LEAST) {
		c->hz = MIN(guard_cpu_fit(g, &c->window), most - 1);
		guard_cpu_changed(g, ret, true, GUARD_RATE);
		return true;
	}
	if (c->stack_level < STACK_LEVELS && guard_cpu_depth_helps(g)) {
		c->stack_level++;
		guard_cpu_changed(g, ret, true, GUARD_STACKS);
		return true;
	}
	guard_cpu_begin(c, WINDOW_NS);
	return false;
}

static bool guard_cpu_raise_depth(struct guard *g, struct guard_change *ret)
{
	struct guard_cpu *c = &g->cpu;
	uint64_t used = c->now.cost_ns - c->recent[0].cost_ns;

	if (c->recent_count < GUARD_RECENT || used > guard_cpu_allowed(g, c->now.ns - c->recent[0].ns) / 100 * ROOMY)
		return false;
	c->stack_level--;
	guard_cpu_changed(g, ret, false, GUARD_STACKS);
	return true;
}

/* The rate that fitted in the last few looks, if it gains enough; else 0. */
static uint32_t guard_cpu_gain(const struct guard *g, uint32_t looks, uint32_t least_hz)
{
	const struct guard_cpu *c = &g->cpu;
	uint32_t fit;

	if (c->recent_count <= looks)
		return 0;
	fit = guard_cpu_fit(g, &c->recent[c->recent_count - 1 - looks]);
	return fit >= least_hz ? fit : 0;
}

static bool guard_cpu_raise_rate(struct guard *g, struct guard_change *ret)
{
	struct guard_cpu *c = &g->cpu;
	bool steady = !g->ladder[GUARD_CPU].returns; /* else two seconds have misled before */
	uint32_t fit = steady ? guard_cpu_gain(g, LOOKS_FEW, 2 * c->hz) : 0;

	if (!fit)
		fit = guard_cpu_gain(g, LOOKS_MANY, MIN(c->hz + MAX(c->hz / 4, 1u), g->limits.hz));
	if (!fit)
		return false;
	c->hz = fit < g->limits.hz ? fit : 0;
	guard_cpu_changed(g, ret, false, GUARD_RATE);
	return true;
}

/* The depth first: it was given up last, and is worth more. */
static bool guard_cpu_raise(struct guard *g, struct guard_change *ret)
{
	const struct guard_ladder *l = &g->ladder[GUARD_CPU];
	struct guard_cpu *c = &g->cpu;

	if (!l->level)
		return false;
	if (!l->raised && c->now.ns - l->changed_ns < HOLD_NS << l->returns)
		return false;
	return c->stack_level ? guard_cpu_raise_depth(g, ret) : guard_cpu_raise_rate(g, ret);
}

static bool guard_cpu_decide(struct guard *g, struct guard_change *ret)
{
	struct guard_cpu *c = &g->cpu;
	uint64_t elapsed = c->now.ns - c->window.ns, used = c->now.cost_ns - c->window.cost_ns;

	c->share = guard_cpu_share(used, elapsed);
	c->files_share = guard_cpu_share(c->now.files_ns - c->window.files_ns, elapsed);
	/* The whole window's CPU time is used up: the guard does not wait for its end. */
	if (used > guard_cpu_allowed(g, c->window_length_ns))
		return guard_cpu_lower(g, ret);
	if (guard_cpu_raise(g, ret))
		return true;
	if (elapsed >= c->window_length_ns)
		guard_cpu_begin(c, WINDOW_NS);
	return false;
}

bool guard_cpu_look(struct guard *g, const struct guard_look *l, struct guard_change *ret)
{
	struct guard_cpu *c = &g->cpu;
	struct guard_orders orders;
	bool changed;

	if (!g->limits.cpu_permyriad)
		return false;
	if (!c->last.now_ns) {
		guard_cpu_start(g, l);
		return false;
	}
	if (l->now_ns - c->last.now_ns < LOOK_LEAST_NS)
		return false;
	changed = l->hz != c->last.hz;
	guard_cpu_add(g, l);
	guard_orders(g, &orders);
	/* A change of the rate is under way, or was: what was measured holds for neither rate. */
	if (!l->hz || changed || (l->hz != orders.hz && l->now_ns - g->ladder[GUARD_CPU].changed_ns < PENDING_NS)) {
		guard_cpu_begin(c, WINDOW_NS);
		return false;
	}
	return guard_cpu_decide(g, ret);
}
