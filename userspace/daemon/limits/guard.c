// SPDX-License-Identifier: Apache-2.0
#include "daemon/limits/guard.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define WINDOW_NS	(10 * NSEC_PER_SEC)
#define FIRST_WINDOW_NS (30 * NSEC_PER_SEC) /* the start reads what is cached later */
#define LOOK_LEAST_NS	(500 * NSEC_PER_MSEC)
#define QUIET_NS	(20 * NSEC_PER_SEC)
#define QUIET_MEMORY_NS (60 * NSEC_PER_SEC)
#define RETURN_NS	(60 * NSEC_PER_SEC) /* lowered so soon after a raise: the raise was too early */
#define RETURNS_MAX	5
#define FORGET_NS	(1800 * NSEC_PER_SEC)
#define SETTLE_NS	(3 * NSEC_PER_SEC) /* shrunk caches return their memory within this time */
#define HALVINGS_MAX	14 /* from 10 kHz to 1 Hz */
#define CPU_STACKS	2  /* levels of shorter stacks: an eighth, none */
#define MEMORY_CACHES	3
#define MEMORY_STACKS	1
/* Parts of a limit, in percent. */
#define AIM    90
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
	static const char *const names[] = {[GUARD_CACHES] = "caches", [GUARD_STACKS] = "stacks", [GUARD_RATE] = "rate"};

	return names[step];
}

static enum guard_step guard_step_of(enum guard_cause cause, uint32_t level)
{
	if (cause == GUARD_CPU)
		return level <= CPU_STACKS ? GUARD_STACKS : GUARD_RATE;
	if (level <= MEMORY_CACHES)
		return GUARD_CACHES;
	return level <= MEMORY_CACHES + MEMORY_STACKS ? GUARD_STACKS : GUARD_RATE;
}

static uint32_t guard_first_rate_level(enum guard_cause cause)
{
	return cause == GUARD_CPU ? CPU_STACKS : MEMORY_CACHES + MEMORY_STACKS;
}

/* The level at which the rate is 1 Hz. */
static uint32_t guard_last_level(const struct guard *g, enum guard_cause cause)
{
	uint32_t halvings = 0;

	while (halvings < HALVINGS_MAX && g->limits.hz >> (halvings + 1))
		halvings++;
	return guard_first_rate_level(cause) + halvings;
}

static uint32_t guard_halvings(const struct guard *g, enum guard_cause cause)
{
	uint32_t level = g->ladder[cause].level, first = guard_first_rate_level(cause);

	return level > first ? level - first : 0;
}

static uint32_t guard_stack_shift(const struct guard *g)
{
	if (g->ladder[GUARD_CPU].level >= CPU_STACKS || g->ladder[GUARD_MEMORY].level > MEMORY_CACHES)
		return GUARD_STACK_NONE;
	return g->ladder[GUARD_CPU].level ? STACK_EIGHTH : 0;
}

void guard_orders(const struct guard *g, struct guard_orders *ret)
{
	uint32_t shift = MAX(guard_halvings(g, GUARD_CPU), guard_halvings(g, GUARD_MEMORY));

	*ret = (struct guard_orders){
		.hz = MAX(g->limits.hz >> shift, 1u),
		.cache_shift = MIN(g->ladder[GUARD_MEMORY].level, (uint32_t)MEMORY_CACHES),
		.stack_shift = guard_stack_shift(g),
	};
}

void guard_limits(struct guard *g, const struct guard_limits *limits)
{
	g->limits = *limits;
	for (int cause = 0; cause < GUARD_CAUSES; cause++)
		g->ladder[cause].level = MIN(g->ladder[cause].level, guard_last_level(g, cause));
	if (!limits->cpu_permyriad)
		g->ladder[GUARD_CPU].level = 0;
}

/* Changing the level. */

static void guard_begin_window(struct guard *g, const struct guard_look *l, uint64_t length)
{
	g->window_ns = l->now_ns;
	g->window_cpu_ns = l->cpu_ns;
	g->window_length_ns = length;
}

static uint64_t guard_quiet_ns(const struct guard *g, enum guard_cause cause)
{
	return (cause == GUARD_CPU ? QUIET_NS : QUIET_MEMORY_NS) << g->ladder[cause].returns;
}

static bool guard_move(struct guard *g, enum guard_cause cause, uint32_t level, uint64_t now, struct guard_change *ret)
{
	struct guard_ladder *l = &g->ladder[cause];
	uint32_t last = guard_last_level(g, cause);
	bool lowered = level > l->level;

	level = MIN(level, last);
	if (level == l->level)
		return false;
	if (lowered && l->raised && now - l->changed_ns < RETURN_NS)
		l->returns = MIN(l->returns + 1, (uint32_t)RETURNS_MAX);
	else if (now - l->changed_ns > FORGET_NS)
		l->returns = 0;
	ret->cause = cause;
	ret->lowered = lowered;
	ret->step = guard_step_of(cause, lowered ? level : l->level);
	ret->at_end = level == last;
	(lowered ? l->lowered : l->raises)[ret->step]++;
	l->level = level;
	l->raised = !lowered;
	l->changed_ns = now;
	return true;
}

/* CPU time. */

/* Halvings that bring used below the aim, if all CPU time is proportional to the rate. */
static uint32_t guard_halvings_needed(uint64_t used, uint64_t limit)
{
	uint32_t n = 0;

	while (n < HALVINGS_MAX && (used >> n) > limit * AIM / 100)
		n++;
	return n;
}

static bool guard_lower_cpu(struct guard *g, uint64_t used, uint64_t now, struct guard_change *ret)
{
	uint32_t level = g->ladder[GUARD_CPU].level, need = guard_halvings_needed(used, g->limits.cpu_permyriad);

	/* A small excess may be due to the stacks alone. */
	if (level < CPU_STACKS && need <= 1)
		return guard_move(g, GUARD_CPU, level + 1, now, ret);
	return guard_move(g, GUARD_CPU, MAX(level, (uint32_t)CPU_STACKS) + MAX(need, 1u), now, ret);
}

/* Part of the CPU time does not depend on the rate, so a raise beyond the estimate is tried too, but rarely. */
static bool guard_raise_cpu(struct guard *g, uint64_t used, uint64_t now, struct guard_change *ret)
{
	const struct guard_ladder *l = &g->ladder[GUARD_CPU];
	uint64_t limit = g->limits.cpu_permyriad, quiet = guard_quiet_ns(g, GUARD_CPU), since = now - l->changed_ns;
	uint32_t up = 0;

	if (!l->level || since < quiet || used > limit * ROOMY / 100)
		return false;
	while (up < guard_halvings(g, GUARD_CPU) && (used << (up + 1)) <= limit * ROOMY / 100)
		up++;
	if (!up && (l->level <= CPU_STACKS || since >= 6 * quiet))
		up = 1;
	return up && guard_move(g, GUARD_CPU, l->level - up, now, ret);
}

static bool guard_look_cpu(struct guard *g, const struct guard_look *l, struct guard_change *ret)
{
	uint64_t elapsed = l->now_ns - g->window_ns, used = l->cpu_ns - MIN(g->window_cpu_ns, l->cpu_ns), share;
	uint64_t limit = g->limits.cpu_permyriad;
	bool over, changed = false;

	if (!limit || elapsed < LOOK_LEAST_NS)
		return false;
	share = (uint64_t)((unsigned __int128)used * 10000 / elapsed);
	/* The whole window's CPU time is used up: the guard does not wait for its end. */
	over = (unsigned __int128)used * 10000 > (unsigned __int128)limit * g->window_length_ns;
	if (!over && elapsed < g->window_length_ns)
		return false;
	ret->used = g->cpu_share = share;
	ret->limit = limit;
	if (over)
		changed = guard_lower_cpu(g, share, l->now_ns, ret);
	else
		changed = guard_raise_cpu(g, share, l->now_ns, ret);
	guard_begin_window(g, l, WINDOW_NS);
	return changed;
}

/* Memory. */

static bool guard_look_memory(struct guard *g, const struct guard_look *l, struct guard_change *ret)
{
	const struct guard_ladder *m = &g->ladder[GUARD_MEMORY];
	uint64_t since = l->now_ns - m->changed_ns, percent;

	percent = l->memory_limit ? l->memory_bytes / MAX(l->memory_limit / 100, 1u) : 0;
	ret->used = l->memory_bytes;
	ret->limit = l->memory_limit;
	if (percent >= URGENT && since >= SETTLE_NS / 3)
		return guard_move(g, GUARD_MEMORY, m->level + 2, l->now_ns, ret);
	if (percent >= TIGHT && since >= SETTLE_NS)
		return guard_move(g, GUARD_MEMORY, m->level + 1, l->now_ns, ret);
	if (m->level && percent < ROOMY && since >= guard_quiet_ns(g, GUARD_MEMORY))
		return guard_move(g, GUARD_MEMORY, m->level - 1, l->now_ns, ret);
	return false;
}

bool guard_look(struct guard *g, const struct guard_look *l, struct guard_change *ret)
{
	if (!g->started) {
		guard_begin_window(g, l, FIRST_WINDOW_NS);
		g->started = true;
	}
	/* Memory first: a process without memory is killed at once. */
	return guard_look_memory(g, l, ret) || guard_look_cpu(g, l, ret);
}
