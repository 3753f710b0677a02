// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/timers.h"

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <asm/irq_regs.h>

#include "kmod/capture.h"
#include "kmod/compat/compat.h"
#include "kmod/compat/hotplug.h"
#include "kmod/counter.h"
#include "kmod/session.h"

/* Monotonic time without the clock's lock; also where a tick interrupted the one who sets it. */
static u64 now_ns(void)
{
	return ktime_get_mono_fast_ns();
}

/* What the kernel measures BPF programs with: quick, and good for differences on one CPU. */
static u64 run_clock(void)
{
	return sched_clock();
}

static void account(struct otprof_cpu *c, u64 ns)
{
	WRITE_ONCE(c->run_ns, c->run_ns + ns);
	WRITE_ONCE(c->runs, c->runs + 1);
	if (ns > c->longest_ns)
		WRITE_ONCE(c->longest_ns, ns);
}

/*
 * After a tick its CPU has several times as long to itself, whatever periods
 * say and whoever's tick comes next: one clock for all sessions, or each more
 * session would take its own share of the CPU with interrupts off. Several
 * times, because the interrupt around a tick costs too, most of all where the
 * kernel watches itself. Used on its own CPU, in ticks.
 */
#define RESTS 4

static DEFINE_PER_CPU(u64, timers_rest_end_ns);

static bool resting(u64 now)
{
	return now < this_cpu_read(timers_rest_end_ns);
}

bool otprof_timers_resting(void)
{
	return resting(now_ns());
}

/*
 * What counts of a tick's duration. The host, or an NMI, may interrupt a tick
 * for many times as long: of what no tick has needed so far only so much counts.
 */
#define UNUSUAL_NS (100 * NSEC_PER_USEC)

static u64 counted_ns(struct otprof_cpu *c, u64 ns)
{
	ns = min_t(u64, ns, 4 * c->usual_ns + UNUSUAL_NS);
	c->usual_ns = (7 * c->usual_ns + ns) / 8;
	return ns;
}

void otprof_timers_tick(struct otprof_cpu *c, struct pt_regs *regs)
{
	u64 begin = run_clock(), ns;
	bool taken = otprof_capture_tick(c, regs);

	ns = run_clock();
	ns = ns > begin ? ns - begin : 0;
	account(c, ns);
	if (taken)
		otprof_capture_timed(c, ns);
	this_cpu_write(timers_rest_end_ns, now_ns() + RESTS * counted_ns(c, ns));
}

/*
 * A tick that falls into the rest after another session's is put off to the
 * rest's end, as are all that do so. There they fire in the order in which they
 * arrived, because the queue of timers keeps the order of equal times (Linux,
 * lib/timerqueue.c). The first of them begins a rest of its own, which puts off
 * the others once more; its next tick is behind theirs by a nanosecond. So
 * sessions take turns, however short their periods: one waits for a tick of each
 * other at most.
 */
static u64 next_tick(struct otprof_cpu *c)
{
	return otprof_schedule_next(&c->schedule, &c->last_tick, this_cpu_read(timers_rest_end_ns) + 1);
}

/*
 * Ticks whose period passed unseen are no ticks: the expectation counts them.
 * The time is that of the timers' own clock, so that a timer which was put off
 * to the rest's end finds it over.
 */
static enum hrtimer_restart on_tick(struct hrtimer *timer)
{
	struct otprof_cpu *c = container_of(timer, struct otprof_cpu, timer);
	u64 next = this_cpu_read(timers_rest_end_ns);

	if (!resting(ktime_to_ns(hrtimer_cb_get_time(timer)))) {
		otprof_timers_tick(c, get_irq_regs());
		next = next_tick(c);
	}
	hrtimer_set_expires(timer, ns_to_ktime(next));
	return HRTIMER_RESTART;
}

void otprof_timers_init_cpu(struct otprof_cpu *c)
{
	otprof_compat_hrtimer(&c->timer, on_tick);
}

static bool ticking(const struct otprof_cpu *c)
{
	return READ_ONCE(c->schedule.begin_ns);
}

/* On c's CPU, or while it is held off: the first period begins now. */
static void begin_ticks(struct otprof_cpu *c)
{
	const struct otprof_session *s = c->session;

	c->last_tick = 0;
	c->schedule.period_ns = s->period_ns;
	c->schedule.seed = s->seed + c->cpu * 0xda942042e4dd58b5ULL;
	WRITE_ONCE(c->schedule.begin_ns, now_ns());
	hrtimer_start(&c->timer, ns_to_ktime(otprof_schedule_at(&c->schedule, 0)), OTPROF_HRTIMER_MODE);
}

static void end_ticks(struct otprof_cpu *c)
{
	hrtimer_cancel(&c->timer);
	c->past_ticks += otprof_schedule_due(&c->schedule, now_ns());
	WRITE_ONCE(c->schedule.begin_ns, 0);
}

static u64 ticks_due(const struct otprof_cpu *c)
{
	return ticking(c) ? otprof_schedule_due(&c->schedule, now_ns()) : 0;
}

static struct otprof_cpu *cpu_of(const struct otprof_session *s, unsigned int cpu)
{
	return cpu < s->cpus_nr ? s->cpus[cpu] : NULL;
}

/* Marks a CPU that went online or offline as changed, and returns it; NULL: the session does not sample it. */
static struct otprof_cpu *cpu_changed(struct otprof_session *s, unsigned int cpu)
{
	struct otprof_cpu *c = cpu_of(s, cpu);

	if (c && !READ_ONCE(s->quiet))
		cpumask_set_cpu(cpu, s->changed);
	return c;
}

static int on_online(unsigned int cpu, struct hlist_node *node)
{
	struct otprof_session *s = hlist_entry(node, struct otprof_session, hotplug);
	struct otprof_cpu *c = cpu_changed(s, cpu);

	if (!c)
		return 0;
	if (!(s->flags & OTPROF_CONFIG_HARDWARE))
		begin_ticks(c);
	return 0;
}

static int on_offline(unsigned int cpu, struct hlist_node *node)
{
	struct otprof_session *s = hlist_entry(node, struct otprof_session, hotplug);
	struct otprof_cpu *c = cpu_changed(s, cpu);

	if (!c)
		return 0;
	WRITE_ONCE(c->stale, true);
	if (ticking(c))
		end_ticks(c);
	return 0;
}

int otprof_timers_init(void)
{
	return otprof_hotplug_init(on_online, on_offline);
}

void otprof_timers_done(void)
{
	otprof_hotplug_done();
}

/* Adding and removing the instance calls the functions above for every CPU that is online. */
static int timers_begin(struct otprof_session *s)
{
	int err;

	get_random_bytes(&s->seed, sizeof(s->seed));
	WRITE_ONCE(s->quiet, true);
	err = otprof_hotplug_add(&s->hotplug);
	WRITE_ONCE(s->quiet, false);
	if (!err && (s->flags & OTPROF_CONFIG_HARDWARE)) {
		err = otprof_counter_follow(s);
		if (err) {
			otprof_hotplug_remove(&s->hotplug);
			otprof_counter_close(s);
		}
	}
	return err;
}

static void timers_end(struct otprof_session *s)
{
	WRITE_ONCE(s->quiet, true);
	otprof_hotplug_remove(&s->hotplug);
	WRITE_ONCE(s->quiet, false);
	otprof_counter_close(s);
}

int otprof_timers_start(struct otprof_session *s)
{
	int err;

	if (s->started)
		return -EALREADY;
	cpumask_clear(s->changed);
	err = timers_begin(s);
	s->started = !err;
	return err;
}

void otprof_timers_stop(struct otprof_session *s)
{
	if (!s->started)
		return;
	timers_end(s);
	cpumask_clear(s->changed);
	s->started = false;
}

int otprof_timers_period(struct otprof_session *s, u64 period_ns)
{
	int err = 0;

	if (s->started)
		timers_end(s);
	s->period_ns = period_ns;
	if (s->started)
		err = timers_begin(s);
	s->started = s->started && !err;
	return err;
}

u64 otprof_timers_expected(const struct otprof_session *s)
{
	unsigned int cpu;
	u64 ticks = 0;

	otprof_hotplug_hold();
	for_each_cpu(cpu, s->wanted)
		ticks += s->cpus[cpu]->past_ticks + ticks_due(s->cpus[cpu]);
	otprof_hotplug_release();
	return ticks;
}

/* A CPU that went and came between two looks counts once. */
void otprof_timers_cpus(struct otprof_session *s, struct otprof_cpus *ret)
{
	unsigned int cpu;

	if (s->started && (s->flags & OTPROF_CONFIG_HARDWARE))
		otprof_counter_follow(s);
	ret->changed = 0;
	ret->running = 0;
	for_each_cpu(cpu, s->wanted) {
		ret->changed += cpumask_test_and_clear_cpu(cpu, s->changed);
		ret->running += ticking(s->cpus[cpu]) || otprof_counter_runs(s->cpus[cpu]);
	}
}
