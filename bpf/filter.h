/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Selection before cost: whether this tick's task is sampled, and how, in the
 * order plan, cgroup rule, default. Nothing is copied for a task that is not
 * selected.
 */
#ifndef OTP_BPF_FILTER_H
#define OTP_BPF_FILTER_H

/* The task of this tick. Its other fields are read where they are needed, not before. */
struct subject {
	struct task_struct *task;
	struct task_struct *parent; /* followed only if ppid is not 0 */
	u32 pid, tid, ppid;
	struct comm comm; /* set once the task is selected */
};

/* Whose walks apply. */
enum walk_of { WALK_OF_NOBODY, WALK_OF_PROCESS, WALK_OF_PARENT };

struct choice {
	u32 stack_bytes; /* 0: no plan sets it */
	u32 base_bytes;
	u32 plan_gen;
	u32 mode; /* OTP_MODE_INHERITED */
	u32 tick_bytes; /* the most that this tick copies; 0: no bound */
	u8 select;
	u8 walk; /* enum walk_of */
	bool planned; /* the process has a plan of its own */
};

static __always_inline void subject_fill(struct subject *s, u64 pid_tgid)
{
	s->task = current_task();
	s->parent = kread(s->task, real_parent);
	s->pid = pid_tgid >> 32;
	s->tid = (u32)pid_tgid;
	s->ppid = is_alive(s->task) ? kread(s->parent, tgid) : 0;
}

struct plan_copy {
	union {
		struct otp_plan plan;
		u64 word[4];
	};
};
_Static_assert(sizeof(struct plan_copy) == sizeof(struct otp_plan), "plan_find copies all words");
_Static_assert(__builtin_offsetof(struct otp_plan, select) == 24, "select and pid are in one word");

/* The exec identity: start of the process, and a count of its execs. */
static __always_inline u64 start_of(struct task_struct *task)
{
	return is_alive(task) ? kread(kread(task, group_leader), start_boottime) : kread(task, start_boottime);
}

static __always_inline u64 exec_of(struct task_struct *task)
{
	return kread(task, self_exec_id);
}

/*
 * A plan from before an exec, or of a pid's former owner, is never applied. In
 * a selection by pid the start may be unknown: 0.
 */
static __always_inline bool plan_holds(const struct otp_plan *p, struct task_struct *task)
{
	u64 start_ns = start_of(task);

	if (p->any_exec)
		return !p->start_ns || p->start_ns == start_ns;
	return p->start_ns == start_ns && p->exec_id == exec_of(task);
}

/*
 * Copies the plan of a process; false: there is none that holds.
 *
 * The map is allocated beforehand, so the kernel reuses the element of a plan
 * that was replaced or removed at once: another CPU may write another process'
 * plan into it while it is read here. Only the copy is used, and it is taken by
 * whole words: what decides (select, any_exec, base_units) together with the
 * pid, which has to be this one, then the identity. Where the writer is in
 * between, some words are the other plan's. If these are pid, start or exec,
 * this plan does not hold for one sample, which is treated as a process without
 * a plan would be. If they are generation and stack_bytes, one copy has another
 * size, within the same bounds.
 */
static __always_inline bool plan_find(struct plan_copy *to, u32 pid, struct task_struct *task)
{
	const volatile struct plan_copy *from = bpf_map_lookup_elem(&plans, &pid);

	if (!from)
		return false;
	to->word[3] = from->word[3];
	to->word[0] = from->word[0];
	to->word[1] = from->word[1];
	to->word[2] = from->word[2];
	return to->plan.pid == pid && plan_holds(&to->plan, task);
}

/* The sizes of the copy, and the plan that they are from. */
static __always_inline void choice_take(struct choice *c, const struct otp_plan *p, enum walk_of walk)
{
	c->walk = p->flags & OTP_PLAN_WALK ? walk : WALK_OF_NOBODY;
	c->plan_gen = p->generation;
	c->stack_bytes = p->stack_bytes;
	c->base_bytes = p->base_units * OTP_BASE_UNIT;
}

/*
 * Whether the process has run no program of its own since it was forked: its
 * first thread, which a thread that executes one becomes. The count of execs
 * cannot say it: parent and child may each have executed a program since.
 */
static __always_inline bool is_fork(struct task_struct *task)
{
	return is_alive(task) && (kread(kread(task, group_leader), flags) & PF_FORKNOEXEC);
}

/*
 * A process without a plan inherits the selection of its nearest ancestor with
 * one. It inherits the size of the copy, and the walks, only from a parent that
 * runs the same program: a fork, and no exec since.
 */
static __always_inline void inherit(struct choice *c, const struct subject *s, const struct otp_defaults *d)
{
	struct task_struct *at = s->parent;
	u32 pid = s->ppid;

	for (int up = 0; up < OTP_ANCESTORS_MAX && up < d->ancestors && pid; up++) {
		struct plan_copy p;

		if (plan_find(&p, pid, at)) {
			if (!up && exec_of(s->task) == exec_of(at)) {
				choice_take(c, &p.plan, is_fork(s->task) ? WALK_OF_PARENT : WALK_OF_NOBODY);
				c->mode = OTP_MODE_INHERITED;
			}
			if (!(p.plan.flags & OTP_PLAN_SAME_PROGRAM) || exec_of(s->task) == exec_of(at))
				c->select = p.plan.select;
			if (c->select != OTP_SELECT_UNSET)
				return;
		}
		at = kread(at, real_parent);
		pid = kread(at, tgid);
	}
}

static __always_inline void choose_by_plan(struct choice *c, const struct subject *s, const struct otp_defaults *d)
{
	struct plan_copy p;

	if (plan_find(&p, s->pid, s->task)) {
		choice_take(c, &p.plan, WALK_OF_PROCESS);
		c->select = p.plan.select;
		c->planned = true;
		return;
	}
	inherit(c, s, d);
}

static __always_inline u8 cgroup_rule(u64 id)
{
	const struct otp_cgroup_rule *rule = bpf_map_lookup_elem(&cgroup_rules, &id);

	return rule ? rule->select : OTP_SELECT_UNSET;
}

/*
 * The nearest rule upward from the task's own cgroup. Walked by hand: 5.10 has
 * no bpf_get_current_ancestor_cgroup_id for perf events.
 */
static __always_inline u8 cgroup_select(struct task_struct *task)
{
	struct cgroup *at = kread(kread(task, cgroups), dfl_cgrp);
	u8 select = cgroup_rule(bpf_get_current_cgroup_id());

	for (int up = 1; up < OTP_CGROUP_DEPTH && select == OTP_SELECT_UNSET; up++) {
		struct cgroup_subsys_state *parent = kread(at, self.parent);

		if (!parent)
			break;
		at = kread(parent, cgroup);
		select = cgroup_rule(kread(kread(at, kn), id));
	}
	return select;
}

/* Interrupts on an idle CPU are of no process: plans and rules are not for them, nor for the idle task's parent. */
static __always_inline void choose_by_process(struct choice *c, const struct subject *s, const struct otp_defaults *d)
{
	if (!s->pid)
		return;
	choose_by_plan(c, s, d);
	if (c->select == OTP_SELECT_UNSET && d->have_rules)
		c->select = cgroup_select(s->task);
}

static __always_inline bool choose(struct choice *c, const struct subject *s, const struct otp_defaults *d)
{
	choose_by_process(c, s, d);
	if (c->select == OTP_SELECT_UNSET && (!s->pid || (kread(s->task, flags) & PF_KTHREAD)))
		c->select = d->kthreads;
	if (c->select == OTP_SELECT_UNSET)
		c->select = d->select;
	return c->select == OTP_SELECT_YES;
}

/*
 * Without a plan, the sizes that programs of this name needed before: a
 * short-lived process never gets a plan of its own. The first thread's name is
 * used, because threads choose their names freely; it is read up to its NUL,
 * because before Linux 5.17 the rest of a longer, earlier name follows.
 */
static __always_inline void take_hint(struct choice *c, const struct subject *s)
{
	struct comm name = {};
	const struct otp_hint *hint;

	bpf_probe_read_kernel_str(&name, sizeof(name), &kread(s->task, group_leader)->comm);
	hint = bpf_map_lookup_elem(&hints, &name);
	if (!hint)
		return;
	c->stack_bytes = hint->stack_bytes;
	c->base_bytes = hint->base_bytes;
}

/* The rest of subject and choice, needed only for a selected task. */
static __always_inline void settle(struct choice *c, struct subject *s, const struct otp_defaults *d)
{
	if (!s->pid) {
		s->comm = (struct comm){OTP_COMM_INTERRUPTS};
		return;
	}
	bpf_get_current_comm(&s->comm, sizeof(s->comm));
	if (!c->stack_bytes && !c->planned)
		take_hint(c, s);
	c->tick_bytes = otp_copy_default(&c->stack_bytes, &c->base_bytes, d);
}

#endif
