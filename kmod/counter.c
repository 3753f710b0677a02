// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/counter.h"

#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/perf_event.h>
#include <linux/smp.h>

#include "kmod/capture.h"
#include "kmod/compat/compat.h"
#include "kmod/session.h"
#include "kmod/timers.h"

#if defined(OTPROF_HAVE_KERNEL_COUNTER) && defined(OTPROF_NMI_IS_SAFE)

static void on_overflow(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	struct otprof_cpu *c = event->overflow_handler_context;

	if (otprof_timers_resting())
		otprof_capture_rest(c);
	else
		otprof_timers_tick(c, regs);
}

static void on_nothing(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
}

static struct perf_event *counter_new(unsigned int cpu, u64 period_ns, perf_overflow_handler_t fn, void *context)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.size = sizeof(attr),
		.freq = 1,
		.sample_freq = div64_u64(NSEC_PER_SEC, period_ns),
		.pinned = 1,
	};

	return perf_event_create_kernel_counter(&attr, cpu, NULL, fn, context);
}

bool otprof_counter_possible(void)
{
	return true;
}

/*
 * A pinned event that finds every counter of its CPU taken, now or later, stays
 * open in error: it counts nothing until it is enabled anew (Linux,
 * kernel/events/core.c, merge_sched_in and _perf_event_enable).
 */
static bool counter_counts(const struct perf_event *event)
{
	return READ_ONCE(event->state) != PERF_EVENT_STATE_ERROR;
}

/* On any CPU: they are expected to be alike. */
int otprof_counter_try(u64 period_ns)
{
	struct perf_event *event = counter_new(raw_smp_processor_id(), period_ns, on_nothing, NULL);
	bool counts;

	if (IS_ERR(event))
		return PTR_ERR(event);
	counts = counter_counts(event);
	perf_event_release_kernel(event);
	return counts ? 0 : -EBUSY;
}

bool otprof_counter_runs(const struct otprof_cpu *c)
{
	return c->counter && counter_counts(c->counter);
}

/* Reported as a change: when it is found to count nothing, and when it counts again. */
static void cpu_revive(struct otprof_cpu *c)
{
	bool failed = !counter_counts(c->counter);

	if (failed != c->failed)
		cpumask_set_cpu(c->cpu, c->session->changed);
	c->failed = failed;
	if (failed)
		perf_event_enable(c->counter);
}

static void cpu_close(struct otprof_cpu *c)
{
	if (c->counter)
		perf_event_release_kernel(c->counter);
	c->counter = NULL;
	c->failed = false;
}

/* A CPU that goes takes its counter along, which does not count again when it comes back. */
static int cpu_follow(struct otprof_cpu *c)
{
	struct perf_event *event;

	if (c->counter && !READ_ONCE(c->stale)) {
		cpu_revive(c);
		return 0;
	}
	cpu_close(c);
	WRITE_ONCE(c->stale, false);
	if (!cpu_online(c->cpu))
		return 0;
	event = counter_new(c->cpu, c->session->period_ns, on_overflow, c);
	if (IS_ERR(event))
		return PTR_ERR(event) == -ENODEV ? 0 : PTR_ERR(event);
	c->counter = event;
	return 0;
}

int otprof_counter_follow(struct otprof_session *s)
{
	unsigned int cpu;
	int err;

	for_each_cpu(cpu, s->wanted) {
		err = cpu_follow(s->cpus[cpu]);
		if (err)
			return err;
	}
	return 0;
}

void otprof_counter_close(struct otprof_session *s)
{
	unsigned int cpu;

	for_each_cpu(cpu, s->wanted)
		cpu_close(s->cpus[cpu]);
}

#else

bool otprof_counter_possible(void)
{
	return false;
}

int otprof_counter_try(u64 period_ns)
{
	return -EOPNOTSUPP;
}

bool otprof_counter_runs(const struct otprof_cpu *c)
{
	return false;
}

int otprof_counter_follow(struct otprof_session *s)
{
	return -EOPNOTSUPP;
}

void otprof_counter_close(struct otprof_session *s)
{
}

#endif
