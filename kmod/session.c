// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/session.h"

#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "kmod/compat/compat.h"
#include "kmod/timers.h"

/* In interrupt context: the reader's queue has a lock that ticks stay away from. */
static void wake_readers(struct irq_work *work)
{
	struct otprof_session *s = container_of(work, struct otprof_session, wake);

	wake_up_interruptible_all(&s->readers);
}

static struct cpumask *mask_new(void)
{
	return kzalloc(cpumask_size(), GFP_KERNEL_ACCOUNT);
}

struct otprof_session *otprof_session_new(void)
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

struct otprof_session *otprof_session_get(struct otprof_session *s)
{
	kref_get(&s->kref);
	return s;
}

/*
 * The scratch area lies in the kernel's linear mapping: some kernels look up
 * where user memory is copied to, and for addresses of vmap they do it with a
 * lock that the interrupted code may hold (5.19 to 6.0, HARDENED_USERCOPY).
 */
static u8 *scratch_new(unsigned int cpu)
{
	struct page *page = alloc_pages_node(cpu_to_node(cpu), GFP_KERNEL_ACCOUNT | __GFP_COMP | __GFP_ZERO | __GFP_NOWARN,
					     get_order(OTP_SCRATCH));

	return page ? page_address(page) : NULL;
}

static void cpu_free(struct otprof_cpu *c)
{
	if (!c)
		return;
	if (c->scratch)
		__free_pages(virt_to_page(c->scratch), get_order(OTP_SCRATCH));
	kfree(c);
}

static struct otprof_cpu *cpu_new(struct otprof_session *s, unsigned int cpu)
{
	struct otprof_cpu *c = kzalloc_node(sizeof(*c), GFP_KERNEL_ACCOUNT, cpu_to_node(cpu));

	if (!c)
		return NULL;
	c->session = s;
	c->cpu = cpu;
	c->counters = (struct otp_cpu_counters *)s->counters_area.at + cpu;
	c->scratch = scratch_new(cpu);
	otprof_timers_init_cpu(c);
	return c;
}

/* Gives back what config took, whole or in part. Neither timers nor the wake-up may run any more. */
static void config_undo(struct otprof_session *s)
{
	unsigned int cpu;

	for (cpu = 0; s->cpus && cpu < s->cpus_nr; cpu++)
		cpu_free(s->cpus[cpu]);
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
}

void otprof_session_put(struct otprof_session *s)
{
	kref_put(&s->kref, session_free);
}

static bool defaults_valid(const struct otp_defaults *d)
{
	return !d->running && !d->reserved2 && (d->select == OTP_SELECT_YES || d->select == OTP_SELECT_NO) &&
	       d->kthreads <= OTP_SELECT_NO && d->have_rules <= 1 && d->ancestors <= OTP_ANCESTORS_MAX &&
	       d->stack_bytes <= OTP_STACK_LIMIT;
}

static bool config_valid(const struct otprof_config *c)
{
	if (c->period_ns < NSEC_PER_SEC / OTPROF_RATE_MAX || c->period_ns > NSEC_PER_SEC)
		return false;
	if (!is_power_of_2(c->ring_bytes) || c->ring_bytes < PAGE_SIZE || c->ring_bytes > OTPROF_RING_MAX)
		return false;
	if (c->plans_max > OTPROF_PLANS_MAX || c->hints_max > OTPROF_PLANS_MAX || c->rules_max > OTPROF_PLANS_MAX)
		return false;
	return !memchr_inv(c->reserved, 0, sizeof(c->reserved)) && defaults_valid(&c->defaults);
}

static int masks_init(struct otprof_session *s, const struct otprof_config *c)
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

static int cpus_init(struct otprof_session *s)
{
	unsigned int cpu;

	s->cpus_nr = nr_cpu_ids;
	s->cpus = vzalloc(s->cpus_nr * sizeof(*s->cpus));
	if (!s->cpus)
		return -ENOMEM;
	for_each_cpu(cpu, s->wanted) {
		s->cpus[cpu] = cpu_new(s, cpu);
		if (!s->cpus[cpu])
			return -ENOMEM;
	}
	return 0;
}

static int ring_init(struct otprof_session *s, u32 bytes)
{
	u8 *at;
	int err;

	s->ring_bytes = bytes;
	err = otprof_area_init(&s->ring_area, OTPROF_RING_HEAD_PAGES + otprof_session_data_pages(s),
			       otprof_session_data_pages(s));
	if (err)
		return err;
	s->pending = vzalloc(nr_cpu_ids * sizeof(*s->pending));
	if (!s->pending)
		return -ENOMEM;
	at = s->ring_area.at;
	otprof_ring_init(&s->ring, at + OTPROF_RING_HEAD_PAGES * PAGE_SIZE, bytes, (u64 *)at, (u64 *)(at + PAGE_SIZE),
			 s->pending, nr_cpu_ids);
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
	unsigned long counters = PAGE_ALIGN(nr_cpu_ids * sizeof(struct otp_cpu_counters)) >> PAGE_SHIFT;
	int err;

	err = masks_init(s, c);
	err = err ? err : otprof_area_init(&s->counters_area, counters, 0);
	err = err ? err : ring_init(s, c->ring_bytes);
	err = err ? err : otprof_plans_init(&s->plans, c->plans_max, c->hints_max, c->rules_max);
	err = err ? err : cpus_init(s);
	return err ? err : otprof_session_set_defaults(s, &c->defaults);
}

int otprof_session_config(struct otprof_session *s, const struct otprof_config *c)
{
	int err;

	if (s->configured)
		return -EBUSY;
	if (!config_valid(c))
		return -EINVAL;
	s->period_ns = c->period_ns;
	err = config_parts(s, c);
	if (err)
		config_undo(s);
	s->configured = !err;
	return err;
}

static u64 memory_of(const struct otprof_session *s)
{
	return otprof_plans_bytes(&s->plans) + cpumask_weight(s->wanted) * (OTP_SCRATCH + sizeof(struct otprof_cpu));
}

void otprof_session_times(struct otprof_session *s, struct otprof_times *ret)
{
	unsigned int cpu;

	memset(ret, 0, sizeof(*ret));
	ret->memory_bytes = memory_of(s);
	for_each_cpu(cpu, s->wanted) {
		const struct otprof_cpu *c = s->cpus[cpu];

		ret->run_ns += READ_ONCE(c->run_ns);
		ret->runs += READ_ONCE(c->runs);
		ret->longest_ns = max(ret->longest_ns, READ_ONCE(c->longest_ns));
	}
	ret->expected_ticks = otprof_timers_expected(s);
}
