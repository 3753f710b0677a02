/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the monitor has decided: plans by process, hints by program name, rules
 * by cgroup; three tables of one kind.
 *
 * Set and removed under the session's mutex, where one may sleep; found by any
 * CPU in its tick, inside rcu_read_lock, without waiting. What is found stays
 * as it is until rcu_read_unlock: a change is a new entry in the old one's place.
 * -E2BIG: as many entries as the table may have; -ENOMEM; nothing changed.
 */
#ifndef OTPROF_PLANS_H
#define OTPROF_PLANS_H

#include <linux/types.h>

#include "kmod/uapi/otprof.h"

struct otprof_table {
	struct hlist_head *buckets; /* owned */
	unsigned int bits;
	u32 seed; /* nobody can choose keys that fall into one bucket */
	u32 max, nr;
	u32 key_len, value_len;
};

struct otprof_plans {
	struct otprof_table plans, hints, rules;
	unsigned long swept; /* in jiffies: when plans of the dead were looked for */
};

int otprof_plans_init(struct otprof_plans *p, u32 plans_max, u32 hints_max, u32 rules_max);
/* No reader may be left. */
void otprof_plans_done(struct otprof_plans *p);
u64 otprof_plans_bytes(const struct otprof_plans *p);
/* What tables of that many may come to. */
u64 otprof_plans_most(u32 plans_max, u32 hints_max, u32 rules_max);

/*
 * NULL removes, which is no error where there is nothing. Nobody says when a
 * plan's process has ended: plans of the dead stay until their room is needed.
 */
int otprof_plans_set(struct otprof_plans *p, u32 pid, const struct otp_plan *plan);
int otprof_plans_set_hint(struct otprof_plans *p, const char comm[OTP_COMM_LEN], const struct otp_hint *hint);
int otprof_plans_set_rule(struct otprof_plans *p, u64 cgroup_id, const struct otp_cgroup_rule *rule);

const struct otp_plan *otprof_plans_find(const struct otprof_plans *p, u32 pid);
const struct otp_hint *otprof_plans_find_hint(const struct otprof_plans *p, const char comm[OTP_COMM_LEN]);
const struct otp_cgroup_rule *otprof_plans_find_rule(const struct otprof_plans *p, u64 cgroup_id);

#endif
