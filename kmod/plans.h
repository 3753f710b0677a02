/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The monitor's decisions: plans and walks by process, hints by program name,
 * rules by cgroup; four tables of one kind.
 *
 * Set and removed under the session's mutex, may sleep; looked up by any CPU in
 * its tick, inside rcu_read_lock, without waiting. An entry that was found does
 * not change until rcu_read_unlock: a change replaces the entry.
 * -E2BIG: the table is full; -ENOMEM; in both cases nothing changed.
 */
#ifndef OTPROF_PLANS_H
#define OTPROF_PLANS_H

#include <linux/types.h>

#include "kmod/uapi/otprof.h"
#include "kmod/uapi/otprof_walk.h"

struct otprof_table {
	struct hlist_head *buckets; /* owned */
	unsigned int bits;
	u32 seed; /* random, so that no one can choose keys that share a bucket */
	u32 max, nr;
	u32 key_len, value_len;
	unsigned long swept; /* in jiffies: when entries of ended processes were last removed */
};

/* The most entries of each table. */
struct otprof_plans_sizes {
	u32 plans, walks, hints, rules;
};

struct otprof_plans {
	struct otprof_table plans, walks, hints, rules;
};

int otprof_plans_init(struct otprof_plans *p, const struct otprof_plans_sizes *max);
/* No lookup may be under way. */
void otprof_plans_done(struct otprof_plans *p);
/* Memory in use; and the most that tables of these sizes may use. */
u64 otprof_plans_bytes(const struct otprof_plans *p);
u64 otprof_plans_most(const struct otprof_plans_sizes *max);

/*
 * NULL removes; an entry that does not exist is no error. The module is not
 * notified when a process ends: its plan and walks stay until the room is needed.
 */
int otprof_plans_set(struct otprof_plans *p, u32 pid, const struct otp_plan *plan);
/* Walks that are sound. */
int otprof_plans_set_walks(struct otprof_plans *p, u32 pid, const struct otp_walks *walks);
int otprof_plans_set_hint(struct otprof_plans *p, const char comm[OTP_COMM_LEN], const struct otp_hint *hint);
int otprof_plans_set_rule(struct otprof_plans *p, u64 cgroup_id, const struct otp_cgroup_rule *rule);

/* Borrowed until rcu_read_unlock; NULL: none. */
const struct otp_plan *otprof_plans_find(const struct otprof_plans *p, u32 pid);
const struct otp_walks_ready *otprof_plans_find_walks(const struct otprof_plans *p, u32 pid);
const struct otp_hint *otprof_plans_find_hint(const struct otprof_plans *p, const char comm[OTP_COMM_LEN]);
const struct otp_cgroup_rule *otprof_plans_find_rule(const struct otprof_plans *p, u64 cgroup_id);

#endif
