// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/session.h"

#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "kmod/compat/compat.h"
#include "kmod/counter.h"
#include "kmod/life.h"
#include "kmod/timers.h"
#include "kmod/walk.h"

unsigned int otprof_memory_max = 256;
unsigned int otprof_sessions_max = 4;

/* Counts sessions until their memory is freed: otherwise views could hold any amount of it. */
static atomic_t sessions = ATOMIC_INIT(0);

/* In interrupt context, not in the tick: the reader's wait queue has a lock, which ticks must not take. */
static void wake_readers(struct irq_work *work)
{
	struct otprof_session *s = container_of(work, struct otprof_session, wake);

	wake_up_interruptible_all(&s->readers);
}

/* One wake-up since the reader last caught up. Two CPUs may both send it: harmless. */
void otprof_session_notice(struct otprof_session *s, u32 wake_bytes)
{
	if (!wake_bytes || otprof_ring_avail(&s->ring) < wake_bytes) {
		if (READ_ONCE(s->woken))
			WRITE_ONCE(s->woken, 0);
	} else if (!READ_ONCE(s->woken)) {
		WRITE_ONCE(s->woken, 1);
		irq_work_queue(&s->wake);
	}
}

void otprof_session_notice_young(struct otprof_session *s, u64 now_ns)
{
	/* Another CPU's may be later by now. */
	if ((s64)(now_ns - READ_ONCE(s->woken_for_young_ns)) < (s64)OTP_YOUNG_WAKE_NS)
		return;
	WRITE_ONCE(s->woken_for_young_ns, now_ns);
	irq_work_queue(&s->wake);
}

static struct cpumask *mask_new(void)
{
	return kzalloc(cpumask_size(), GFP_KERNEL_ACCOUNT);
}

static struct otprof_session *session_alloc(void)
{
	struct otprof_session *s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);

	if (!s)
		return NULL;
	kref_init(&s->kref);
	mutex_init(&s->mutex);
	init_waitqueue_head(&s->readers);
	init_irq_work(&s->wake, wake_readers);
	return s;
}

int otprof_session_new(struct otprof_session **ret)
{
	int err = -EBUSY;

	if ((unsigned int)atomic_inc_return(&sessions) <= otprof_sessions_max) {
		*ret = session_alloc();
		err = *ret ? 0 : -ENOMEM;
	}
	if (err)
		atomic_dec(&sessions);
	return err;
}

struct otprof_session *otprof_session_get(struct otprof_session *s)
{
	kref_get(&s->kref);
	return s;
}

static struct otprof_cpu *session_new_cpu(struct otprof_session *s, unsigned int cpu)
{
	struct otprof_cpu *c = kzalloc_node(sizeof(*c), GFP_KERNEL_ACCOUNT, cpu_to_node(cpu));

	if (!c)
		return NULL;
	c->session = s;
	c->cpu = cpu;
	c->counters = otprof_session_counters(s, cpu);
	if (s->walks_max) {
		c->walking = otprof_compat_vzalloc(sizeof(*c->walking));
		if (!c->walking) {
			kfree(c);
			return NULL;
		}
	}
	otprof_timers_init_cpu(c);
	return c;
}

static void session_free_cpu(struct otprof_cpu *c)
{
	if (c)
		vfree(c->walking);
	kfree(c);
}

/* Frees what config allocated, whole or in part. Neither ticks nor the wake-up may run any more. */
static void config_undo(struct otprof_session *s)
{
	unsigned int cpu;

	for (cpu = 0; s->cpus && cpu < s->cpus_nr; cpu++)
		session_free_cpu(s->cpus[cpu]);
	vfree(s->cpus);
	vfree(s->pending);
	kfree(rcu_dereference_protected(s->defaults, true));
	otprof_plans_done(&s->plans);
	otprof_area_done(&s->counters_area);
	otprof_area_done(&s->ring_area);
	kfree(s->wanted);
	kfree(s->changed);
	s->cpus = NULL;
	s->pending = NULL;
	RCU_INIT_POINTER(s->defaults, NULL);
	s->wanted = NULL;
	s->changed = NULL;
}

static void session_free(struct kref *kref)
{
	struct otprof_session *s = container_of(kref, struct otprof_session, kref);

	irq_work_sync(&s->wake);
	config_undo(s);
	kfree(s);
	atomic_dec(&sessions);
}

void otprof_session_put(struct otprof_session *s)
{
	kref_put(&s->kref, session_free);
}

static bool defaults_valid(const struct otp_defaults *d)
{
	return !d->running && (d->select == OTP_SELECT_YES || d->select == OTP_SELECT_NO) &&
	       d->kthreads <= OTP_SELECT_NO && d->have_rules <= 1 && d->ancestors <= OTP_ANCESTORS_MAX &&
	       d->stack_bytes <= OTP_STACK_LIMIT && d->base_bytes <= OTP_BASE_LIMIT && !d->reserved &&
	       d->stack_budget <= OTP_BUDGET_LIMIT && (!d->tick_bytes || d->tick_bytes >= OTP_STACK_FLOOR);
}

bool otprof_session_period_valid(u64 period_ns)
{
	return period_ns >= NSEC_PER_SEC / OTPROF_RATE_MAX && period_ns <= NSEC_PER_SEC;
}

static bool config_valid(const struct otprof_config *c)
{
	if (!otprof_session_period_valid(c->period_ns) ||
	    c->flags & ~(OTPROF_CONFIG_HARDWARE | OTPROF_CONFIG_LIFE))
		return false;
	if (!is_power_of_2(c->ring_bytes) || c->ring_bytes < PAGE_SIZE || c->ring_bytes > OTPROF_RING_MAX)
		return false;
	if (c->walks_max > OTPROF_PLANS_MAX)
		return false;
	if (c->plans_max > OTPROF_PLANS_MAX || c->hints_max > OTPROF_PLANS_MAX || c->rules_max > OTPROF_PLANS_MAX)
		return false;
	return !memchr_inv(c->reserved, 0, sizeof(c->reserved)) && defaults_valid(&c->defaults);
}

static int config_check_flags(const struct otprof_config *c)
{
	if ((c->flags & OTPROF_CONFIG_LIFE) && !otprof_life_possible())
		return -EOPNOTSUPP;
	return c->flags & OTPROF_CONFIG_HARDWARE ? otprof_counter_try(c->period_ns) : 0;
}

static struct otprof_plans_sizes config_sizes(const struct otprof_config *c)
{
	return (struct otprof_plans_sizes){
		.plans = c->plans_max, .walks = c->walks_max, .hints = c->hints_max, .rules = c->rules_max,
	};
}

/* Memory that grows with the requested sizes. */
static int config_check_memory(const struct otprof_config *c)
{
	const struct otprof_plans_sizes max = config_sizes(c);
	u64 bytes = c->ring_bytes + otprof_plans_most(&max);

	return bytes > (u64)otprof_memory_max << 20 ? -E2BIG : 0;
}

static int session_init_masks(struct otprof_session *s, const struct otprof_config *c)
{
	unsigned int cpu;

	s->wanted = mask_new();
	s->changed = mask_new();
	if (!s->wanted || !s->changed)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		if (cpu < OTPROF_CPUS_MAX && (c->cpus[cpu / 64] >> (cpu % 64) & 1))
			cpumask_set_cpu(cpu, s->wanted);
	return cpumask_intersects(s->wanted, cpu_online_mask) ? 0 : -ENODEV;
}

static int session_init_cpus(struct otprof_session *s)
{
	unsigned int cpu;

	s->cpus_nr = nr_cpu_ids;
	s->cpus = otprof_compat_vzalloc(s->cpus_nr * sizeof(*s->cpus));
	if (!s->cpus)
		return -ENOMEM;
	for_each_cpu(cpu, s->wanted) {
		s->cpus[cpu] = session_new_cpu(s, cpu);
		if (!s->cpus[cpu])
			return -ENOMEM;
	}
	return 0;
}

static int session_init_ring(struct otprof_session *s, u32 bytes)
{
	u8 *at;
	int err;

	s->ring_bytes = bytes;
	err = otprof_area_init(&s->ring_area, OTPROF_RING_HEAD_PAGES + otprof_session_data_pages(s),
			       otprof_session_data_pages(s));
	if (err)
		return err;
	s->pending = otprof_compat_vzalloc(otprof_session_slots(s) * sizeof(*s->pending));
	if (!s->pending)
		return -ENOMEM;
	at = s->ring_area.at;
	otprof_ring_init(&s->ring, at + OTPROF_RING_HEAD_PAGES * PAGE_SIZE, bytes, (u64 *)at, (u64 *)(at + PAGE_SIZE),
			 s->pending, otprof_session_slots(s));
	return 0;
}

int otprof_session_set_defaults(struct otprof_session *s, const struct otp_defaults *d)
{
	struct otprof_defaults *new, *old;

	if (!defaults_valid(d))
		return -EINVAL;
	new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	if (!new)
		return -ENOMEM;
	new->d = *d;
	old = rcu_dereference_protected(s->defaults, lockdep_is_held(&s->mutex));
	rcu_assign_pointer(s->defaults, new);
	if (old)
		kfree_rcu(old, rcu);
	return 0;
}

static int config_parts(struct otprof_session *s, const struct otprof_config *c)
{
	const struct otprof_plans_sizes max = config_sizes(c);
	unsigned long counters = PAGE_ALIGN(nr_cpu_ids * sizeof(struct otp_cpu_counters)) >> PAGE_SHIFT;
	int err;

	err = session_init_masks(s, c);
	err = err ? err : otprof_area_init(&s->counters_area, counters, 0);
	err = err ? err : session_init_ring(s, c->ring_bytes);
	err = err ? err : otprof_plans_init(&s->plans, &max);
	err = err ? err : session_init_cpus(s);
	return err ? err : otprof_session_set_defaults(s, &c->defaults);
}

int otprof_session_config(struct otprof_session *s, const struct otprof_config *c)
{
	int err;

	if (s->configured)
		return -EBUSY;
	if (!config_valid(c))
		return -EINVAL;
	err = config_check_memory(c);
	err = err ? err : config_check_flags(c);
	if (err)
		return err;
	s->period_ns = c->period_ns;
	s->flags = c->flags;
	s->walks_max = c->walks_max;
	err = config_parts(s, c);
	if (err)
		config_undo(s);
	s->configured = !err;
	return err;
}

/* Process life first, so that events precede the samples of their task. */
int otprof_session_start(struct otprof_session *s)
{
	bool events = s->flags & OTPROF_CONFIG_LIFE;
	int err = 0;

	if (s->started)
		return -EALREADY;
	if (events)
		err = otprof_life_start(s);
	if (err)
		return err;
	err = otprof_timers_start(s);
	if (err && events)
		otprof_life_stop(s);
	return err;
}

void otprof_session_stop(struct otprof_session *s)
{
	if (!s->started)
		return;
	otprof_timers_stop(s);
	if (s->flags & OTPROF_CONFIG_LIFE)
		otprof_life_stop(s);
}

/* If the timers cannot be started again, the session has stopped. */
int otprof_session_set_period(struct otprof_session *s, u64 period_ns)
{
	bool was = s->started;
	int err;

	if (!otprof_session_period_valid(period_ns))
		return -EINVAL;
	err = otprof_timers_period(s, period_ns);
	if (was && !s->started && (s->flags & OTPROF_CONFIG_LIFE))
		otprof_life_stop(s);
	return err;
}

static u64 session_memory(const struct otprof_session *s)
{
	u64 per_cpu = sizeof(struct otprof_cpu) + (s->walks_max ? sizeof(struct otprof_walking) : 0);

	return otprof_plans_bytes(&s->plans) + cpumask_weight(s->wanted) * per_cpu;
}

void otprof_session_times(struct otprof_session *s, struct otprof_times *ret)
{
	unsigned int cpu;

	memset(ret, 0, sizeof(*ret));
	ret->memory_bytes = session_memory(s);
	for_each_cpu(cpu, s->wanted) {
		const struct otprof_cpu *c = s->cpus[cpu];

		ret->run_ns += READ_ONCE(c->run_ns);
		ret->runs += READ_ONCE(c->runs);
		ret->longest_ns = max(ret->longest_ns, READ_ONCE(c->longest_ns));
	}
	/* Cycles are not counted while a CPU is idle, so their ticks cannot be predicted. */
	if (!(s->flags & OTPROF_CONFIG_HARDWARE))
		ret->expected_ticks = otprof_timers_expected(s);
}
