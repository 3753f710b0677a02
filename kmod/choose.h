/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Selection before cost: whether this tick's task is sampled, and how, in the
 * order plan, cgroup rule, default.
 * Context: the tick, inside rcu_read_lock. Every loop has a bound.
 */
#ifndef OTPROF_CHOOSE_H
#define OTPROF_CHOOSE_H

#include <linux/types.h>

#include "kmod/uapi/otprof.h"

struct otp_walks_ready;
struct otprof_session;
struct task_struct;

/* The interrupted task, by the fields that the selection reads. */
struct otprof_subject {
	struct task_struct *parent; /* borrowed until rcu_read_unlock; NULL: the task was reaped */
	u64 start_ns, exec_id, cgroup_id;
	u32 pid, tid, ppid;
	char comm[OTP_COMM_LEN];
};

/* Whose walks apply. */
enum otprof_walk_of { OTPROF_WALK_OF_NOBODY, OTPROF_WALK_OF_PROCESS, OTPROF_WALK_OF_PARENT };

struct otprof_choice {
	u32 stack_bytes; /* by plan, hint or default */
	u32 base_bytes;
	u32 plan_gen;
	u32 mode; /* OTP_MODE_INHERITED */
	u32 tick_bytes; /* the most that this tick copies; 0: no bound */
	u8 select;
	u8 walk; /* enum otprof_walk_of */
	bool planned; /* the process has a plan of its own */
};

/* Fills who from current. */
void otprof_choose_subject(struct otprof_subject *who);
/* True: selected, and *ret is set. */
bool otprof_choose(const struct otprof_session *s, const struct otp_defaults *d, const struct otprof_subject *who,
		   struct otprof_choice *ret);
/* The walks that apply to a task that was chosen; borrowed until rcu_read_unlock. NULL: none. */
const struct otp_walks_ready *otprof_choose_walks(const struct otprof_session *s, const struct otprof_subject *who,
						  const struct otprof_choice *choice);

#endif
