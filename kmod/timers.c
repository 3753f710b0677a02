// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/timers.h"

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/errno.h>
#include <asm/irq_regs.h>

#include "kmod/capture.h"
#include "kmod/compat/compat.h"
#include "kmod/session.h"

static enum cpuhp_state hotplug_state;

/* Monotonic time without the clock's lock; also where a tick interrupted the one who sets it. */
static u64 now_ns(void)
{
	return ktime_get_mono_fast_ns();
}

static void account(struct otprof_cpu *c, u64 ns)
{
	WRITE_ONCE(c->run_ns, c->run_ns + ns);
	WRITE_ONCE(c->runs, c->runs + 1);
	if (ns > c->longest_ns)
		WRITE_ONCE(c->longest_ns, ns);
}

/* Periods that went by unseen are no ticks: the expectation counts them. */
static enum hrtimer_restart on_tick(struct hrtimer *timer)
{
	struct otprof_cpu *c = container_of(timer, struct otprof_cpu, timer);
	u64 begin = now_ns();

	otprof_capture_tick(c, get_irq_regs());
	account(c, now_ns() - begin);
	hrtimer_forward_now(timer, ns_to_ktime(c->session->period_ns));
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

static u64 ticks_since(const struct otprof_cpu *c, u64 armed_ns)
{
	u64 now = now_ns();

	return armed_ns && now > armed_ns ? div64_u64(now - armed_ns, c->session->period_ns) : 0;
}

/* Both run on the CPU in question, in its hotplug thread. */
static int on_online(unsigned int cpu, struct hlist_node *node)
{
	struct otprof_session *s = hlist_entry(node, struct otprof_session, hotplug);
	struct otprof_cpu *c = cpu < s->cpus_nr ? s->cpus[cpu] : NULL;

	if (!c)
		return 0;
	WRITE_ONCE(c->armed_ns, now_ns());
	c->armed = true;
	hrtimer_start(&c->timer, ns_to_ktime(first_tick(s, cpu)), OTPROF_HRTIMER_MODE);
	cpumask_set_cpu(cpu, s->changed);
	return 0;
}

static int on_offline(unsigned int cpu, struct hlist_node *node)
{
	struct otprof_session *s = hlist_entry(node, struct otprof_session, hotplug);
	struct otprof_cpu *c = cpu < s->cpus_nr ? s->cpus[cpu] : NULL;

	if (!c || !c->armed)
		return 0;
	hrtimer_cancel(&c->timer);
	c->armed = false;
	WRITE_ONCE(c->past_ticks, c->past_ticks + ticks_since(c, c->armed_ns));
	WRITE_ONCE(c->armed_ns, 0);
	cpumask_set_cpu(cpu, s->changed);
	return 0;
}

int otprof_timers_init(void)
{
	int state = cpuhp_setup_state_multi(CPUHP_AP_ONLINE_DYN, "otprof:online", on_online, on_offline);

	if (state < 0)
		return state;
	hotplug_state = state;
	return 0;
}

void otprof_timers_done(void)
{
	cpuhp_remove_multi_state(hotplug_state);
}

/* Adding and removing the instance calls the functions above for every CPU that is online. */
int otprof_timers_start(struct otprof_session *s)
{
	int err;

	if (s->started)
		return -EALREADY;
	s->phase_ns = now_ns();
	s->spread = max(num_online_cpus(), 1U);
	err = cpuhp_state_add_instance(hotplug_state, &s->hotplug);
	if (err)
		return err;
	cpumask_clear(s->changed);
	s->started = true;
	return 0;
}

void otprof_timers_stop(struct otprof_session *s)
{
	if (!s->started)
		return;
	cpuhp_state_remove_instance(hotplug_state, &s->hotplug);
	cpumask_clear(s->changed);
	s->started = false;
}

u64 otprof_timers_expected(const struct otprof_session *s)
{
	unsigned int cpu;
	u64 ticks = 0;

	for_each_cpu(cpu, s->wanted) {
		const struct otprof_cpu *c = s->cpus[cpu];

		ticks += READ_ONCE(c->past_ticks) + ticks_since(c, READ_ONCE(c->armed_ns));
	}
	return ticks;
}

/* A CPU that went and came between two looks counts once. */
void otprof_timers_cpus(struct otprof_session *s, struct otprof_cpus *ret)
{
	unsigned int cpu;

	ret->changed = 0;
	ret->running = 0;
	for_each_cpu(cpu, s->wanted) {
		ret->changed += cpumask_test_and_clear_cpu(cpu, s->changed);
		ret->running += READ_ONCE(s->cpus[cpu]->armed_ns) != 0;
	}
}
