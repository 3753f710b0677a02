// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/plans.h"

#include <linux/errno.h>
#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "kmod/compat/compat.h"

#define KEY_MAX OTP_COMM_LEN

struct entry {
	struct hlist_node node;
	struct rcu_head rcu;
	u8 key[KEY_MAX] __aligned(8);
	u64 value[];
};

static unsigned int table_bits(u32 max)
{
	return ilog2(roundup_pow_of_two(max ? max : 1));
}

static int table_init(struct otprof_table *t, u32 max, u32 key_len, u32 value_len)
{
	t->bits = table_bits(max);
	t->buckets = otprof_compat_vzalloc(sizeof(*t->buckets) << t->bits);
	get_random_bytes(&t->seed, sizeof(t->seed));
	t->max = max;
	t->nr = 0;
	t->swept = jiffies - HZ;
	t->key_len = key_len;
	t->value_len = value_len;
	return t->buckets ? 0 : -ENOMEM;
}

static void table_done(struct otprof_table *t)
{
	struct hlist_node *next;
	struct entry *e;
	u32 i;

	for (i = 0; t->buckets && i < 1U << t->bits; i++)
		hlist_for_each_entry_safe(e, next, &t->buckets[i], node)
			kfree(e);
	vfree(t->buckets);
	t->buckets = NULL;
}

static struct hlist_head *bucket_of(const struct otprof_table *t, const void *key)
{
	return &t->buckets[jhash(key, t->key_len, t->seed) & ((1U << t->bits) - 1)];
}

/* Called inside rcu_read_lock, or by the only writer; the caller knows which. */
static struct entry *entry_find(const struct otprof_table *t, const void *key)
{
	struct entry *e;

	hlist_for_each_entry_rcu_notrace(e, bucket_of(t, key), node)
		if (!memcmp(e->key, key, t->key_len))
			return e;
	return NULL;
}

static const void *table_find(const struct otprof_table *t, const void *key)
{
	const struct entry *e = entry_find(t, key);

	return e ? e->value : NULL;
}

static struct entry *entry_new(const struct otprof_table *t, const void *key, const void *value)
{
	struct entry *e = kzalloc(sizeof(*e) + t->value_len, GFP_KERNEL_ACCOUNT);

	if (!e)
		return NULL;
	memcpy(e->key, key, t->key_len);
	memcpy(e->value, value, t->value_len);
	return e;
}

static void table_remove(struct otprof_table *t, struct entry *e)
{
	hlist_del_rcu(&e->node);
	kfree_rcu(e, rcu);
	t->nr--;
}

static int table_set(struct otprof_table *t, const void *key, const void *value)
{
	struct entry *old = entry_find(t, key), *e;

	if (!value) {
		if (old)
			table_remove(t, old);
		return 0;
	}
	if (!old && t->nr >= t->max)
		return -E2BIG;
	e = entry_new(t, key, value);
	if (!e)
		return -ENOMEM;
	if (old) {
		hlist_replace_rcu(&old->node, &e->node);
		kfree_rcu(old, rcu);
	} else {
		hlist_add_head_rcu(&e->node, bucket_of(t, key));
		t->nr++;
	}
	return 0;
}

static u64 table_bytes(const struct otprof_table *t)
{
	return (sizeof(*t->buckets) << t->bits) + (u64)t->nr * (sizeof(struct entry) + t->value_len);
}

static bool is_gone(u32 pid)
{
	bool gone;

	rcu_read_lock();
	gone = !find_pid_ns(pid, &init_pid_ns);
	rcu_read_unlock();
	return gone;
}

/* Of a table by process: whether there is room now. Not more often than once a second: it looks at every entry. */
static bool table_sweep(struct otprof_table *t)
{
	struct hlist_node *next;
	struct entry *e;
	u32 i;

	if (time_before(jiffies, t->swept + HZ))
		return false;
	t->swept = jiffies;
	for (i = 0; i < 1U << t->bits; i++)
		hlist_for_each_entry_safe(e, next, &t->buckets[i], node)
			if (is_gone(*(const u32 *)e->key))
				table_remove(t, e);
	return t->nr < t->max;
}

/* Of a table by process; NULL removes. */
static int table_set_of_process(struct otprof_table *t, u32 pid, const void *value)
{
	int err = table_set(t, &pid, value);

	return err == -E2BIG && table_sweep(t) ? table_set(t, &pid, value) : err;
}

int otprof_plans_init(struct otprof_plans *p, const struct otprof_plans_sizes *max)
{
	int err;

	memset(p, 0, sizeof(*p));
	err = table_init(&p->plans, max->plans, sizeof(u32), sizeof(struct otp_plan));
	if (!err)
		err = table_init(&p->walks, max->walks, sizeof(u32), sizeof(struct otp_walks_ready));
	if (!err)
		err = table_init(&p->hints, max->hints, OTP_COMM_LEN, sizeof(struct otp_hint));
	if (!err)
		err = table_init(&p->rules, max->rules, sizeof(u64), sizeof(struct otp_cgroup_rule));
	if (err)
		otprof_plans_done(p);
	return err;
}

void otprof_plans_done(struct otprof_plans *p)
{
	table_done(&p->plans);
	table_done(&p->walks);
	table_done(&p->hints);
	table_done(&p->rules);
}

u64 otprof_plans_bytes(const struct otprof_plans *p)
{
	return table_bytes(&p->plans) + table_bytes(&p->walks) + table_bytes(&p->hints) + table_bytes(&p->rules);
}

static u64 table_most(u32 max, u32 value_len)
{
	return (sizeof(struct hlist_head) << table_bits(max)) + max * (u64)(sizeof(struct entry) + value_len);
}

u64 otprof_plans_most(const struct otprof_plans_sizes *max)
{
	return table_most(max->plans, sizeof(struct otp_plan)) + table_most(max->walks, sizeof(struct otp_walks_ready)) +
	       table_most(max->hints, sizeof(struct otp_hint)) + table_most(max->rules, sizeof(struct otp_cgroup_rule));
}

int otprof_plans_set(struct otprof_plans *p, u32 pid, const struct otp_plan *plan)
{
	return table_set_of_process(&p->plans, pid, plan);
}

int otprof_plans_set_walks(struct otprof_plans *p, u32 pid, const struct otp_walks *walks)
{
	struct otp_walks_ready *ready;
	int err;

	if (!walks)
		return table_set_of_process(&p->walks, pid, NULL);
	ready = kmalloc(sizeof(*ready), GFP_KERNEL);
	if (!ready)
		return -ENOMEM;
	otp_walks_prepare(ready, walks, pid);
	err = table_set_of_process(&p->walks, pid, ready);
	kfree(ready);
	return err;
}

int otprof_plans_set_hint(struct otprof_plans *p, const char comm[OTP_COMM_LEN], const struct otp_hint *hint)
{
	return table_set(&p->hints, comm, hint);
}

int otprof_plans_set_rule(struct otprof_plans *p, u64 cgroup_id, const struct otp_cgroup_rule *rule)
{
	return table_set(&p->rules, &cgroup_id, rule);
}

const struct otp_plan *otprof_plans_find(const struct otprof_plans *p, u32 pid)
{
	return table_find(&p->plans, &pid);
}

const struct otp_walks_ready *otprof_plans_find_walks(const struct otprof_plans *p, u32 pid)
{
	return table_find(&p->walks, &pid);
}

const struct otp_hint *otprof_plans_find_hint(const struct otprof_plans *p, const char comm[OTP_COMM_LEN])
{
	return table_find(&p->hints, comm);
}

const struct otp_cgroup_rule *otprof_plans_find_rule(const struct otprof_plans *p, u64 cgroup_id)
{
	return table_find(&p->rules, &cgroup_id);
}
