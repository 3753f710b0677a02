// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/timers.h"

#include <linux/errno.h>
#include <linux/math64.h>
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

u64 otprof_timers_tick(struct otprof_cpu *c, struct pt_regs *regs)
{
	u64 begin = run_clock(), ns;
	bool taken = otprof_capture_tick(c, regs);

	ns = run_clock();
	ns = ns > begin ? ns - begin : 0;
	account(c, ns);
	if (taken)
		otprof_capture_timed(c, ns);
	return ns;
}

/*
 * What a tick usually takes. One that was interrupted by the host, or by an
 * NMI, took no longer for that: it counts for little.
 */
static u64 usual_ns(struct otprof_cpu *c, u64 ns)
{
	ns = min_t(u64, ns, 4 * c->usual_ns + 10 * NSEC_PER_USEC);
	c->usual_ns = (7 * c->usual_ns + ns) / 8;
	return c->usual_ns;
}

/*
 * After a tick its CPU has several times as long to itself, whatever the
 * period says: a machine that needs a period for a tick would come to nothing
 * else. Several times, because the interrupt around it costs too, most of all
 * where the kernel watches itself. Periods that went by unseen are no ticks:
 * the expectation counts them.
 */
#define RESTS 4

static enum hrtimer_restart on_tick(struct hrtimer *timer)
{
	struct otprof_cpu *c = container_of(timer, struct otprof_cpu, timer);
	u64 rest = RESTS * usual_ns(c, otprof_timers_tick(c, get_irq_regs()));

	hrtimer_forward(timer, ktime_add_ns(hrtimer_cb_get_time(timer), rest), ns_to_ktime(c->session->period_ns));
	return HRTIMER_RESTART;
}

void otprof_timers_init_cpu(struct otprof_cpu *c)
{
	otprof_compat_hrtimer(&c->timer, on_tick);
}

/* The CPU's own place in the period: what all CPUs do at once, they do against each other. */
static u64 first_tick(const struct otprof_session *s, unsigned int cpu)
{
	u64 place = div_u64(s->period_ns * (cpu % s->spread), s->spread);
	u64 periods = div64_u64(now_ns() - s->phase_ns, s->period_ns) + 1;

	return s->phase_ns + periods * s->period_ns + place;
}

static u64 ticks_due(const struct otprof_cpu *c)
{
	u64 now = now_ns();

	return c->due_ns && now >= c->due_ns ? div64_u64(now - c->due_ns, c->session->period_ns) + 1 : 0;
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
	if (s->flags & OTPROF_CONFIG_HARDWARE)
		return 0;
	WRITE_ONCE(c->due_ns, first_tick(s, cpu));
	hrtimer_start(&c->timer, ns_to_ktime(c->due_ns), OTPROF_HRTIMER_MODE);
	return 0;
}

static int on_offline(unsigned int cpu, struct hlist_node *node)
{
	struct otprof_session *s = hlist_entry(node, struct otprof_session, hotplug);
	struct otprof_cpu *c = cpu_changed(s, cpu);

	if (!c)
		return 0;
	WRITE_ONCE(c->stale, true);
	if (!c->due_ns)
		return 0;
	hrtimer_cancel(&c->timer);
	c->past_ticks += ticks_due(c);
	WRITE_ONCE(c->due_ns, 0);
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

	s->phase_ns = now_ns();
	s->spread = max(num_online_cpus(), 1U);
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
		ret->running += READ_ONCE(s->cpus[cpu]->due_ns) || s->cpus[cpu]->counter;
	}
}
