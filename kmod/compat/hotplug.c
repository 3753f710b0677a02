// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/compat/hotplug.h"

#include <linux/cpu.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/smp.h>

#ifdef OTPROF_HAVE_CPUS_READ_LOCK
void otprof_hotplug_hold(void)
{
	cpus_read_lock();
}

void otprof_hotplug_release(void)
{
	cpus_read_unlock();
}
#else
void otprof_hotplug_hold(void)
{
	get_online_cpus();
}

void otprof_hotplug_release(void)
{
	put_online_cpus();
}
#endif

#ifdef OTPROF_HAVE_CPUHP_MULTI
#include <linux/cpuhotplug.h>

static enum cpuhp_state state;

int otprof_hotplug_init(otprof_hotplug_fn *online, otprof_hotplug_fn *offline)
{
	int got = cpuhp_setup_state_multi(CPUHP_AP_ONLINE_DYN, "otprof:online", online, offline);

	if (got < 0)
		return got;
	state = got;
	return 0;
}

void otprof_hotplug_done(void)
{
	cpuhp_remove_multi_state(state);
}

int otprof_hotplug_add(struct hlist_node *node)
{
	return cpuhp_state_add_instance(state, node);
}

void otprof_hotplug_remove(struct hlist_node *node)
{
	cpuhp_state_remove_instance(state, node);
}

#else

static otprof_hotplug_fn *on_online, *on_offline;
/* Changed with the mutex and hotplug held off; the notifier runs where neither can be held. */
static HLIST_HEAD(instances);
static DEFINE_MUTEX(instances_mutex);

/* On the CPU itself, with interrupts off. */
static void come(void *node)
{
	on_online(smp_processor_id(), node);
}

static void come_to(unsigned int cpu, struct hlist_node *node)
{
	smp_call_function_single(cpu, come, node, 1);
}

static int on_change(struct notifier_block *nb, unsigned long action, void *arg)
{
	unsigned int cpu = (unsigned long)arg;
	struct hlist_node *node;

	switch (action & ~CPU_TASKS_FROZEN) {
	case CPU_ONLINE:
	case CPU_DOWN_FAILED:
		for (node = instances.first; node; node = node->next)
			come_to(cpu, node);
		break;
	case CPU_DOWN_PREPARE:
		for (node = instances.first; node; node = node->next)
			on_offline(cpu, node);
		break;
	}
	return NOTIFY_OK;
}

static struct notifier_block notifier = {
	.notifier_call = on_change,
};

int otprof_hotplug_init(otprof_hotplug_fn *online, otprof_hotplug_fn *offline)
{
	on_online = online;
	on_offline = offline;
	return register_cpu_notifier(&notifier);
}

void otprof_hotplug_done(void)
{
	unregister_cpu_notifier(&notifier);
}

int otprof_hotplug_add(struct hlist_node *node)
{
	unsigned int cpu;

	otprof_hotplug_hold();
	mutex_lock(&instances_mutex);
	hlist_add_head(node, &instances);
	for_each_online_cpu(cpu)
		come_to(cpu, node);
	mutex_unlock(&instances_mutex);
	otprof_hotplug_release();
	return 0;
}

void otprof_hotplug_remove(struct hlist_node *node)
{
	unsigned int cpu;

	otprof_hotplug_hold();
	mutex_lock(&instances_mutex);
	for_each_online_cpu(cpu)
		on_offline(cpu, node);
	hlist_del_init(node);
	mutex_unlock(&instances_mutex);
	otprof_hotplug_release();
}
#endif
