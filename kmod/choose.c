// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/choose.h"

#include <linux/cgroup.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "kmod/compat/compat.h"
#include "kmod/plans.h"
#include "kmod/session.h"
#include "kmod/uapi/otprof_copy.h"

/* Zeroes after the end: a name is also a key. */
static void copy_comm(char to[OTP_COMM_LEN], const char *from)
{
	unsigned int i;

	memset(to, 0, OTP_COMM_LEN);
	for (i = 0; i < OTP_COMM_LEN - 1; i++) {
		to[i] = READ_ONCE(from[i]);
		if (!to[i])
			return;
	}
}

#ifdef CONFIG_CGROUPS
static struct cgroup *cgroup_of_current(void)
{
	return rcu_dereference(current->cgroups)->dfl_cgrp;
}

static u64 current_cgroup_id(void)
{
	return otprof_compat_cgroup_id(cgroup_of_current());
}
#else
static u64 current_cgroup_id(void)
{
	return 0;
}
#endif

static bool task_is_alive(const struct task_struct *task)
{
	return data_race(pid_alive(task)); /* what is freed when it is reaped stays until this tick has ended */
}

/* An idle task differs from CPU to CPU, but its interrupts are nobody's on all of them. */
static void subject_of_interrupts(struct otprof_subject *who)
{
	*who = (struct otprof_subject){ .comm = OTP_COMM_INTERRUPTS };
}

/*
 * The tick may interrupt code that changes the task, and another thread's exec
 * may change it concurrently: each field is read once, and a plan applies only
 * if the start and exec read here match it.
 *
 * A task may be reaped while it runs its last instructions; then its parent and
 * leader may be freed. While it has a pid they are not, nor are the parents of
 * its parents: before one of them is freed, its children are reparented, it is
 * reaped, and a grace period waits for this tick's rcu_read_lock.
 */
void otprof_choose_subject(struct otprof_subject *who)
{
	struct task_struct *task = current;

	if (!READ_ONCE(task->pid)) {
		subject_of_interrupts(who);
		return;
	}
	who->pid = READ_ONCE(task->tgid);
	who->tid = READ_ONCE(task->pid);
	who->exec_id = READ_ONCE(task->self_exec_id);
	who->cgroup_id = current_cgroup_id();
	copy_comm(who->comm, task->comm);
	if (task_is_alive(task)) {
		who->parent = rcu_dereference(task->real_parent);
		who->ppid = READ_ONCE(who->parent->tgid);
		who->start_ns = otprof_compat_start_ns(READ_ONCE(task->group_leader));
	} else {
		who->parent = NULL;
		who->ppid = 0;
		who->start_ns = otprof_compat_start_ns(task);
	}
}

/* A plan from before an exec, or of a pid's former owner, is never applied. */
static bool plan_holds(const struct otp_plan *p, u64 start_ns, u64 exec_id)
{
	if (p->any_exec)
		return !p->start_ns || p->start_ns == start_ns;
	return p->start_ns == start_ns && p->exec_id == exec_id;
}

static void choice_take(struct otprof_choice *c, const struct otp_plan *p, enum otprof_walk_of walk)
{
	c->walk = p->flags & OTP_PLAN_WALK ? walk : OTPROF_WALK_OF_NOBODY;
	c->plan_gen = p->generation;
	c->stack_bytes = p->stack_bytes;
	c->base_bytes = p->base_units * OTP_BASE_UNIT;
}

/*
 * Whether the process has run no program of its own since it was forked: its
 * first thread, which a thread that executes one becomes. The count of execs
 * cannot say it: parent and child may each have executed a program since.
 */
static bool is_fork(void)
{
	return task_is_alive(current) && READ_ONCE(READ_ONCE(current->group_leader)->flags) & PF_FORKNOEXEC;
}

/*
 * A process without a plan inherits the selection of its nearest ancestor with
 * one. It inherits the size of the copy, and the walks, only from a parent that
 * runs the same program: a fork, and no exec since.
 */
static void choose_inherited(struct otprof_choice *c, const struct otprof_session *s, const struct otp_defaults *d,
			     const struct otprof_subject *who)
{
	struct task_struct *at = who->parent;
	int up;

	for (up = 0; up < OTP_ANCESTORS_MAX && up < d->ancestors && at && READ_ONCE(at->tgid); up++) {
		const struct otp_plan *p = otprof_plans_find(&s->plans, READ_ONCE(at->tgid));
		u64 exec_id = READ_ONCE(at->self_exec_id);

		if (p && plan_holds(p, otprof_compat_start_ns(READ_ONCE(at->group_leader)), exec_id)) {
			if (!up && who->exec_id == exec_id) {
				choice_take(c, p, is_fork() ? OTPROF_WALK_OF_PARENT : OTPROF_WALK_OF_NOBODY);
				c->mode = OTP_MODE_INHERITED;
			}
			if (!(p->flags & OTP_PLAN_SAME_PROGRAM) || who->exec_id == exec_id)
				c->select = p->select;
			if (c->select != OTP_SELECT_UNSET)
				return;
		}
		at = rcu_dereference(at->real_parent);
	}
}

static void choose_by_plan(struct otprof_choice *c, const struct otprof_session *s, const struct otp_defaults *d,
			   const struct otprof_subject *who)
{
	const struct otp_plan *p = otprof_plans_find(&s->plans, who->pid);

	if (p && plan_holds(p, who->start_ns, who->exec_id)) {
		choice_take(c, p, OTPROF_WALK_OF_PROCESS);
		c->select = p->select;
		c->planned = true;
		return;
	}
	choose_inherited(c, s, d, who);
}

/* The nearest rule upward from the task's own cgroup. */
static u8 cgroup_select(const struct otprof_session *s)
{
#ifdef CONFIG_CGROUPS
	struct cgroup *at = cgroup_of_current();
	int up;

	for (up = 0; up < OTP_CGROUP_DEPTH && at; up++) {
		const struct otp_cgroup_rule *rule = otprof_plans_find_rule(&s->plans, otprof_compat_cgroup_id(at));
		struct cgroup_subsys_state *parent = at->self.parent;

		if (rule && rule->select != OTP_SELECT_UNSET)
			return rule->select;
		at = parent ? container_of(parent, struct cgroup, self) : NULL;
	}
#endif
	return OTP_SELECT_UNSET;
}

/*
 * Without a plan, the sizes that programs of this name needed before: a
 * short-lived process never gets a plan of its own. The first thread's name is
 * used, because threads choose their names freely.
 */
static void choose_hint(struct otprof_choice *c, const struct otprof_session *s)
{
	const struct task_struct *task = task_is_alive(current) ? READ_ONCE(current->group_leader) : current;
	const struct otp_hint *hint;
	char name[OTP_COMM_LEN];

	copy_comm(name, task->comm);
	hint = otprof_plans_find_hint(&s->plans, name);
	if (!hint)
		return;
	c->stack_bytes = hint->stack_bytes;
	c->base_bytes = hint->base_bytes;
}

/* The rest of the choice, needed only for a selected task. */
static void choose_copy(struct otprof_choice *c, const struct otprof_session *s, const struct otp_defaults *d)
{
	if (!c->stack_bytes && !c->planned)
		choose_hint(c, s);
	c->tick_bytes = otp_copy_default(&c->stack_bytes, &c->base_bytes, d);
}

/* Of the exec that they were made for, whatever the plan holds for. */
const struct otp_walks_ready *otprof_choose_walks(const struct otprof_session *s, const struct otprof_subject *who,
						  const struct otprof_choice *choice)
{
	const struct otp_walks_ready *w;
	u64 start_ns = who->start_ns;
	u32 pid = who->pid;

	if (!choice->walk)
		return NULL;
	if (choice->walk == OTPROF_WALK_OF_PARENT) {
		pid = who->ppid;
		start_ns = otprof_compat_start_ns(READ_ONCE(who->parent->group_leader));
	}
	w = otprof_plans_find_walks(&s->plans, pid);
	/* A child that has not executed anything has its parent's count of execs. */
	return w && w->start_ns == start_ns && w->exec_id == who->exec_id ? w : NULL;
}

/* Interrupts on an idle CPU are of no process: plans and rules are not for them, nor for the idle task's parent. */
static void choose_by_process(struct otprof_choice *c, const struct otprof_session *s, const struct otp_defaults *d,
			      const struct otprof_subject *who)
{
	choose_by_plan(c, s, d, who);
	if (c->select == OTP_SELECT_UNSET && d->have_rules)
		c->select = cgroup_select(s);
}

bool otprof_choose(const struct otprof_session *s, const struct otp_defaults *d, const struct otprof_subject *who,
		   struct otprof_choice *ret)
{
	struct otprof_choice c = { 0 };

	if (who->pid)
		choose_by_process(&c, s, d, who);
	if (c.select == OTP_SELECT_UNSET && (!who->pid || (READ_ONCE(current->flags) & PF_KTHREAD)))
		c.select = d->kthreads;
	if (c.select == OTP_SELECT_UNSET)
		c.select = d->select;
	if (c.select != OTP_SELECT_YES)
		return false;
	if (who->pid)
		choose_copy(&c, s, d);
	*ret = c;
	return true;
}
