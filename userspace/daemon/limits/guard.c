// SPDX-License-Identifier: Apache-2.0
#include "daemon/limits/guard.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/limits/guard_internal.h"

#define QUIET_NS  (60 * NSEC_PER_SEC)
#define RETURN_NS (60 * NSEC_PER_SEC)
#define FORGET_NS (1800 * NSEC_PER_SEC)
#define SETTLE_NS (3 * NSEC_PER_SEC) /* shrunk caches return their memory within this time */
#define HALVINGS_MAX  14 /* from 10 kHz to 1 Hz */
#define MEMORY_CACHES 3	 /* levels */
#define MEMORY_STACKS 1
/* Parts of a limit, in percent. */
#define ROOMY  70
#define TIGHT  90
#define URGENT 96
#define STACK_EIGHTH 3

const char *guard_cause_name(enum guard_cause cause)
{
	return cause == GUARD_CPU ? "cpu" : "memory";
}

const char *guard_step_name(enum guard_step step)
{
	static const char *const names[] = {[GUARD_CACHES] = "caches", [GUARD_RATE] = "rate", [GUARD_STACKS] = "stacks"};

	return names[step];
}

/* The halvings after which the rate is 1 Hz. */
static uint32_t guard_halvings_max(const struct guard *g)
{
	uint32_t halvings = 0;

	while (!g->limits.fixed_rate && halvings < HALVINGS_MAX && g->limits.hz >> (halvings + 1))
		halvings++;
	return halvings;
}

static uint32_t guard_memory_last(const struct guard *g)
{
	return MEMORY_CACHES + guard_halvings_max(g) + MEMORY_STACKS;
}

static enum guard_step guard_memory_step(const struct guard *g, uint32_t level)
{
	if (level <= MEMORY_CACHES)
		return GUARD_CACHES;
	return level < guard_memory_last(g) ? GUARD_RATE : GUARD_STACKS;
}

static uint32_t guard_memory_halvings(const struct guard *g)
{
	uint32_t level = g->ladder[GUARD_MEMORY].level;

	return level > MEMORY_CACHES ? MIN(level - MEMORY_CACHES, guard_halvings_max(g)) : 0;
}

static uint32_t guard_stack_shift(const struct guard *g)
{
	if (g->cpu.stack_level > 1 || g->ladder[GUARD_MEMORY].level == guard_memory_last(g))
		return GUARD_STACK_NONE;
	return g->cpu.stack_level ? STACK_EIGHTH : 0;
}

void guard_orders(const struct guard *g, struct guard_orders *ret)
{
	uint32_t hz = g->limits.hz >> guard_memory_halvings(g);

	*ret = (struct guard_orders){
		.hz = MAX(g->cpu.hz ? MIN(hz, g->cpu.hz) : hz, 1u),
		.cache_shift = MIN(g->ladder[GUARD_MEMORY].level, (uint32_t)MEMORY_CACHES),
		.stack_shift = guard_stack_shift(g),
	};
}

void guard_limits(struct guard *g, const struct guard_limits *limits)
{
	struct guard_ladder *memory = &g->ladder[GUARD_MEMORY];

	g->limits = *limits;
	memory->level = MIN(memory->level, guard_memory_last(g));
	guard_cpu_limits(g);
}

void guard_book(struct guard_ladder *l, uint32_t level, bool lowered, enum guard_step step, uint64_t now,
		uint64_t within_ns)
{
	if (lowered && l->raised && now - l->changed_ns < within_ns)
		l->returns = MIN(l->returns + 1, (uint32_t)GUARD_RETURNS_MAX);
	else if (now - l->changed_ns > FORGET_NS)
		l->returns = 0;
	(lowered ? l->lowered : l->raises)[step]++;
	l->level = level;
	l->raised = !lowered;
	l->changed_ns = now;
}

/* Memory. */

static bool guard_move_memory(struct guard *g, uint32_t level, uint64_t now, struct guard_change *ret)
{
	struct guard_ladder *l = &g->ladder[GUARD_MEMORY];
	uint32_t last = guard_memory_last(g);
	bool lowered = level > l->level;

	level = MIN(level, last);
	if (level == l->level)
		return false;
	ret->cause = GUARD_MEMORY;
	ret->lowered = lowered;
	ret->step = guard_memory_step(g, lowered ? level : l->level);
	ret->at_end = level == last;
	guard_book(l, level, lowered, ret->step, now, RETURN_NS);
	return true;
}

static bool guard_look_memory(struct guard *g, const struct guard_look *l, struct guard_change *ret)
{
	const struct guard_ladder *m = &g->ladder[GUARD_MEMORY];
	uint64_t since = l->now_ns - m->changed_ns, percent;

	percent = l->memory_limit ? l->memory_bytes / MAX(l->memory_limit / 100, 1u) : 0;
	ret->used = l->memory_bytes;
	ret->limit = l->memory_limit;
	if (percent >= URGENT && since >= SETTLE_NS / 3)
		return guard_move_memory(g, m->level + 2, l->now_ns, ret);
	if (percent >= TIGHT && since >= SETTLE_NS)
		return guard_move_memory(g, m->level + 1, l->now_ns, ret);
	if (m->level && percent < ROOMY && since >= QUIET_NS << m->returns)
		return guard_move_memory(g, m->level - 1, l->now_ns, ret);
	return false;
}

bool guard_look(struct guard *g, const struct guard_look *l, struct guard_change *ret)
{
	/* Memory first: a process without memory is killed at once. */
	return guard_look_memory(g, l, ret) || guard_cpu_look(g, l, ret);
}
