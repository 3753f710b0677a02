// SPDX-License-Identifier: Apache-2.0
#include "source/perf_choice.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kmod/uapi/otprof_copy.h"
#include "source/pids.h"

#define SWEEP_EVERY_NS NSEC_PER_SEC

void perf_choice_init(struct perf_choice *c, const struct otp_defaults *d, uint32_t plans_max)
{
	*c = (struct perf_choice){.defaults = *d, .plans_max = plans_max};
	perf_cgroups_init(&c->cgroups);
}

void perf_choice_done(struct perf_choice *c)
{
	map_for_each(&c->plans, slot)
		free((void *)(uintptr_t)slot->value);
	map_done(&c->plans);
	map_done(&c->hints);
	perf_cgroups_done(&c->cgroups);
}

/* The end of a plan's process is not reported: plans of dead processes stay until their room is needed. */
static void choice_sweep(struct perf_choice *c)
{
	struct map left = {0};
	uint64_t now = clock_now_ns();

	if (now - c->swept_ns < SWEEP_EVERY_NS)
		return;
	c->swept_ns = now;
	map_for_each(&c->plans, slot) {
		void *p = (void *)(uintptr_t)slot->value;

		if (pid_is_gone((uint32_t)slot->key) || map_put_ptr(&left, slot->key, p) < 0)
			free(p);
	}
	map_done(&c->plans);
	c->plans = left;
}

static int choice_add_plan(struct perf_choice *c, uint32_t pid, const struct otp_plan *p)
{
	struct otp_plan *mine;
	int err;

	if (c->plans.count >= c->plans_max)
		choice_sweep(c);
	if (c->plans.count >= c->plans_max)
		return -E2BIG;
	mine = malloc(sizeof(*mine));
	err = mine ? map_put_ptr(&c->plans, pid, mine) : -ENOMEM;
	if (err < 0) {
		free(mine);
		return err;
	}
	*mine = *p;
	return 0;
}

int perf_choice_set_plan(struct perf_choice *c, uint32_t pid, const struct otp_plan *p)
{
	struct otp_plan *have = map_find_ptr(&c->plans, pid);

	if (!p) {
		map_remove(&c->plans, pid);
		free(have);
		return 0;
	}
	if (!have)
		return choice_add_plan(c, pid, p);
	*have = *p;
	return 0;
}

static uint64_t choice_hint_key(const char comm[OTP_COMM_LEN])
{
	return hash_bytes(comm, OTP_COMM_LEN, hash_seed);
}

int perf_choice_set_hint(struct perf_choice *c, const char comm[OTP_COMM_LEN], uint32_t stack_bytes)
{
	uint64_t key = choice_hint_key(comm);

	if (!stack_bytes) {
		map_remove(&c->hints, key);
		return 0;
	}
	if (c->hints.count >= HINTS_MAX && !map_find(&c->hints, key))
		return -E2BIG;
	return map_put(&c->hints, key, stack_bytes);
}

/* A plan from before an exec, or of an earlier process of this pid, is never applied. */
static bool choice_plan_holds(const struct otp_plan *p, const struct perf_process *proc)
{
	if (p->any_exec)
		return !p->start_ns || p->start_ns == proc->start_ns;
	return p->start_ns == proc->start_ns && p->exec_id == proc->exec_id;
}

static const struct otp_plan *choice_plan_of(const struct perf_choice *c, const struct perf_process *proc)
{
	const struct otp_plan *p = map_find_ptr(&c->plans, proc->pid);

	return p && choice_plan_holds(p, proc) ? p : NULL;
}

static void choice_set_plan(struct perf_subject *who, const struct otp_plan *p)
{
	who->plan_gen = p->generation;
	who->stack_bytes = p->stack_bytes;
}

/*
 * A process without a plan inherits the selection of its nearest ancestor with
 * one. The size of the copy is inherited only from a parent that runs the same
 * program: a fork, and no exec since.
 */
static uint8_t choice_inherit(const struct perf_choice *c, struct perf_tasks *tasks, const struct perf_process *proc,
			      struct perf_subject *who)
{
	uint32_t pid = proc->ppid;
	uint64_t exec_id = proc->exec_id;

	for (int up = 0; up < OTP_ANCESTORS_MAX && up < c->defaults.ancestors && pid; up++) {
		const struct perf_process *at = perf_tasks_find(tasks, pid);
		const struct otp_plan *p = at ? choice_plan_of(c, at) : NULL;

		if (!at)
			break;
		if (p && !up && exec_id == at->exec_id) {
			choice_set_plan(who, p);
			who->mode |= OTP_MODE_INHERITED;
		}
		if (p && p->select != OTP_SELECT_UNSET && (!(p->flags & OTP_PLAN_SAME_PROGRAM) || proc->exec_id == at->exec_id))
			return p->select;
		pid = at->ppid;
	}
	return OTP_SELECT_UNSET;
}

static bool choice_is_selected(struct perf_choice *c, uint8_t select, const struct perf_subject *who)
{
	if (select == OTP_SELECT_UNSET && c->defaults.have_rules)
		select = perf_cgroups_select(&c->cgroups, who->cgroup_id);
	if (select == OTP_SELECT_UNSET && who->mode & OTP_MODE_KTHREAD)
		select = c->defaults.kthreads;
	if (select == OTP_SELECT_UNSET)
		select = c->defaults.select;
	return select == OTP_SELECT_YES;
}

/* A short-lived program never gets a plan of its own: it gets the hint for its name. */
static uint32_t choice_stack_unplanned(const struct perf_choice *c, const struct perf_subject *who, bool planned)
{
	const uint64_t *hint = planned ? NULL : map_find(&c->hints, choice_hint_key(who->comm));

	return hint ? (uint32_t)*hint : c->defaults.stack_bytes;
}

static void choice_set_process(struct perf_tasks *tasks, const struct perf_process *proc, const struct perf_sample *s,
			       struct perf_subject *who)
{
	who->start_ns = proc->start_ns;
	who->exec_id = proc->exec_id;
	who->ppid = proc->ppid;
	if (!s->cgroup_id)
		who->cgroup_id = proc->cgroup_id;
	if (proc->kthread)
		who->mode |= OTP_MODE_KTHREAD;
	else if (!s->valid)
		who->mode |= OTP_MODE_EXITING;
	perf_tasks_comm(tasks, proc, s->tid, who->comm);
}

/* Interrupts on an idle CPU are selected as kernel threads are; plans and rules are for processes. */
static bool choice_make_interrupts(const struct perf_choice *c, struct perf_subject *who)
{
	uint8_t select = c->defaults.kthreads == OTP_SELECT_UNSET ? c->defaults.select : c->defaults.kthreads;

	*who = (struct perf_subject){.mode = OTP_MODE_KTHREAD, .comm = OTP_COMM_INTERRUPTS};
	return select == OTP_SELECT_YES;
}

static bool choice_make_process(struct perf_choice *c, struct perf_tasks *tasks, const struct perf_sample *s,
				struct perf_subject *who)
{
	const struct perf_process *proc = perf_tasks_find(tasks, s->pid);
	const struct otp_plan *own = proc ? choice_plan_of(c, proc) : NULL;
	uint8_t select = own ? own->select : OTP_SELECT_UNSET;

	*who = (struct perf_subject){.cgroup_id = s->cgroup_id};
	if (own)
		choice_set_plan(who, own);
	else if (proc)
		select = choice_inherit(c, tasks, proc, who);
	/* Looking up ancestors may have moved it. */
	proc = proc ? perf_tasks_find(tasks, s->pid) : NULL;
	if (proc)
		choice_set_process(tasks, proc, s, who);
	if (!choice_is_selected(c, select, who))
		return false;
	if (!who->stack_bytes)
		who->stack_bytes = choice_stack_unplanned(c, who, own);
	who->stack_bytes = (uint32_t)otp_copy_want(who->stack_bytes);
	return true;
}

bool perf_choice_make(struct perf_choice *c, struct perf_tasks *tasks, const struct perf_sample *s,
		      struct perf_subject *who)
{
	return s->pid ? choice_make_process(c, tasks, s, who) : choice_make_interrupts(c, who);
}

uint32_t perf_choice_deepest(const struct perf_choice *c)
{
	uint32_t most = c->defaults.stack_bytes;

	map_for_each(&c->plans, slot)
		most = MAX(most, ((const struct otp_plan *)(uintptr_t)slot->value)->stack_bytes);
	map_for_each(&c->hints, slot)
		most = MAX(most, (uint32_t)slot->value);
	return most;
}
