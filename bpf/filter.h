/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Selection before cost: whether this tick's task is sampled, and how, in the
 * order plan, cgroup rule, default. Nothing is copied for a task that is not
 * selected.
 */
#ifndef OTP_BPF_FILTER_H
#define OTP_BPF_FILTER_H

/* The task of this tick, as far as the selection had to read it. */
struct subject {
	const struct task_struct *task;
	const struct task_struct *parent;
	u64 start_ns;
	u64 exec_id;
	u32 pid, tid, ppid, flags;
};

struct choice {
	u32 stack_bytes;
	u32 plan_gen;
	u32 mode; /* OTP_MODE_INHERITED */
	u8 select;
	u8 capture;
};

static __always_inline void subject_fill(struct subject *s, u64 pid_tgid)
{
	const struct task_struct *task = (const struct task_struct *)bpf_get_current_task();
	const struct task_struct *parent = BPF_CORE_READ(task, real_parent);

	s->task = task;
	s->parent = parent;
	s->pid = pid_tgid >> 32;
	s->tid = (u32)pid_tgid;
	s->flags = BPF_CORE_READ(task, flags);
	s->ppid = BPF_CORE_READ(parent, tgid);
	s->start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	s->exec_id = BPF_CORE_READ(task, self_exec_id);
}

/*
 * A plan from before an exec, or of a pid's former owner, is never applied. A
 * selection by pid may not know the start as exactly as the kernel does: 0.
 */
static __always_inline bool plan_holds(const struct otp_plan *p, u64 start_ns, u64 exec_id)
{
	if (p->any_exec)
		return !p->start_ns || p->start_ns == start_ns;
	return p->start_ns == start_ns && p->exec_id == exec_id;
}

/* How to copy, and by which plan. */
static __always_inline void choice_take(struct choice *c, const struct otp_plan *p)
{
	c->plan_gen = p->generation;
	c->capture = p->capture;
	if (p->stack_bytes)
		c->stack_bytes = p->stack_bytes;
}

/* What programs of this name have needed: a short-lived one never has a plan of its own. */
static __always_inline void take_hint(struct choice *c)
{
	const struct otp_hint *hint;
	struct comm comm;

	bpf_get_current_comm(&comm, sizeof(comm));
	hint = bpf_map_lookup_elem(&hints, &comm);
	if (hint && hint->stack_bytes)
		c->stack_bytes = hint->stack_bytes;
}

/*
 * A process without a plan belongs to the selection of its nearest ancestor
 * that has one. The size of the copy comes along only from a parent that runs
 * the same program: a fork, and no exec since.
 */
static __always_inline void inherit(struct choice *c, const struct subject *s, const struct otp_defaults *d)
{
	const struct task_struct *at = s->parent;
	u32 pid = s->ppid;

	for (int up = 0; up < OTP_ANCESTORS_MAX && up < d->ancestors && pid; up++) {
		const struct otp_plan *p = bpf_map_lookup_elem(&plans, &pid);
		u64 exec_id = BPF_CORE_READ(at, self_exec_id);

		if (p && plan_holds(p, BPF_CORE_READ(at, group_leader, start_boottime), exec_id)) {
			if (!up && s->exec_id == exec_id) {
				choice_take(c, p);
				c->mode = OTP_MODE_INHERITED;
			}
			c->select = p->select;
			if (c->select != OTP_SELECT_UNSET)
				return;
		}
		at = BPF_CORE_READ(at, real_parent);
		pid = BPF_CORE_READ(at, tgid);
	}
}

static __always_inline void choose_by_plan(struct choice *c, const struct subject *s, const struct otp_defaults *d)
{
	const struct otp_plan *p = bpf_map_lookup_elem(&plans, &s->pid);

	if (p && plan_holds(p, s->start_ns, s->exec_id)) {
		choice_take(c, p);
		c->select = p->select;
		return;
	}
	take_hint(c);
	inherit(c, s, d);
}

/*
 * The nearest rule upward from the task's own cgroup. Walked by hand: 5.10 has
 * no bpf_get_current_ancestor_cgroup_id for perf events.
 */
static __always_inline u8 cgroup_select(const struct task_struct *task)
{
	const struct cgroup *at = BPF_CORE_READ(task, cgroups, dfl_cgrp);

	for (int up = 0; up < OTP_CGROUP_DEPTH && at; up++) {
		u64 id = BPF_CORE_READ(at, kn, id);
		const struct otp_cgroup_rule *rule = bpf_map_lookup_elem(&cgroup_rules, &id);

		if (rule && rule->select != OTP_SELECT_UNSET)
			return rule->select;
		at = BPF_CORE_READ(at, self.parent, cgroup);
	}
	return OTP_SELECT_UNSET;
}

static __always_inline bool choose(struct choice *c, const struct subject *s, const struct otp_defaults *d)
{
	c->stack_bytes = d->stack_bytes;
	choose_by_plan(c, s, d);
	if (c->select == OTP_SELECT_UNSET && d->have_rules)
		c->select = cgroup_select(s->task);
	if (c->select == OTP_SELECT_UNSET && (s->flags & PF_KTHREAD))
		c->select = d->kthreads;
	if (c->select == OTP_SELECT_UNSET)
		c->select = d->select;
	return c->select == OTP_SELECT_YES;
}

#endif
