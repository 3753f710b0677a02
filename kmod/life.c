// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracepoints call these functions in the task that the event is about, or
 * in its parent: they may not sleep. A record is built first and then put into
 * the ring with interrupts off, in this CPU's second slot, so that no event
 * interrupts another one; a tick, which may be an NMI, uses the first slot.
 */
#include "kmod/life.h"

#include <linux/binfmts.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "kmod/compat/compat.h"
#include "kmod/lifemaps.h"
#include "kmod/session.h"

#ifdef CONFIG_TRACEPOINTS

/* Fork and exit. */
struct task_record {
	struct otp_life event;
	struct perf_event_header header;
	u32 pid, ppid, tid, ptid;
	u64 time_ns;
	struct otprof_life_tail tail;
};

struct comm_record {
	struct otp_life event;
	struct perf_event_header header;
	u32 pid, tid;
	char comm[OTP_COMM_LEN];
	struct otprof_life_tail tail;
};

_Static_assert(sizeof(struct task_record) == 56, "as perf writes it, behind the event's head");
_Static_assert(sizeof(struct comm_record) == 56, "likewise");

enum { ON_FORK, ON_EXEC, ON_EXIT, ON_RENAME, POINTS };

/* Tracepoints of the kernel itself, which are never removed. NULL: this kernel has none. */
static struct tracepoint *points[POINTS];

static void life_put(struct otprof_session *s, const void *record, u32 len)
{
	struct otp_cpu_counters *n;
	unsigned long flags;
	unsigned int cpu;
	u64 *counter;

	local_irq_save(flags);
	cpu = smp_processor_id();
	n = otprof_session_counters(s, cpu);
	counter = otprof_ring_put(&s->ring, nr_cpu_ids + cpu, record, len) ? &n->life_lost : &n->life;
	WRITE_ONCE(*counter, *counter + 1);
	rcu_read_lock();
	otprof_session_notice(s, rcu_dereference(s->defaults)->d.wake_bytes);
	rcu_read_unlock();
	local_irq_restore(flags);
}

static void life_count_lost(struct otprof_session *s)
{
	struct otp_cpu_counters *n;
	unsigned long flags;

	local_irq_save(flags);
	n = otprof_session_counters(s, smp_processor_id());
	WRITE_ONCE(n->life_lost, n->life_lost + 1);
	local_irq_restore(flags);
}

static void life_put_task(struct otprof_session *s, u32 type, const struct task_struct *task,
			  const struct task_struct *parent)
{
	struct task_record r = {
		.pid = task->tgid,
		.ppid = parent->tgid,
		.tid = task->pid,
		.ptid = parent->pid,
	};

	otprof_life_head(&r.event, &r.header, sizeof(r), type, 0);
	otprof_life_tail(&r.tail);
	r.time_ns = r.tail.time_ns;
	life_put(s, &r, sizeof(r));
}

static void life_put_comm(struct otprof_session *s, const struct task_struct *task, const char *comm, u16 misc)
{
	struct comm_record r = {
		.pid = task->tgid,
		.tid = task->pid,
	};
	unsigned int i;

	for (i = 0; i < OTP_COMM_LEN - 1 && comm[i]; i++)
		r.comm[i] = comm[i];
	otprof_life_head(&r.event, &r.header, sizeof(r), PERF_RECORD_COMM, misc);
	otprof_life_tail(&r.tail);
	life_put(s, &r, sizeof(r));
}

static void life_on_fork(void *session, struct task_struct *parent, struct task_struct *child)
{
	life_put_task(session, PERF_RECORD_FORK, child, parent);
}

#ifdef OTPROF_HAVE_EXIT_GROUP_DEAD
static void life_on_exit(void *session, struct task_struct *task, bool group_dead)
#else
static void life_on_exit(void *session, struct task_struct *task)
#endif
{
	rcu_read_lock();
	life_put_task(session, PERF_RECORD_EXIT, task, rcu_dereference(task->real_parent));
	rcu_read_unlock();
}

static void life_put_map(void *session, const void *record, u32 len)
{
	life_put(session, record, len);
}

/* The new program is mapped and has not started. */
static void life_on_exec(void *session, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	life_put_comm(session, task, task->comm, PERF_RECORD_MISC_COMM_EXEC);
	if (otprof_life_maps(task, life_put_map, session))
		life_count_lost(session);
}

static void life_on_rename(void *session, struct task_struct *task, const char *comm)
{
	if (!otprof_compat_in_exec(task))
		life_put_comm(session, task, comm, 0);
}

static const struct {
	const char *name;
	void *fn;
} wanted[POINTS] = {
	[ON_FORK] = { "sched_process_fork", life_on_fork },
	[ON_EXEC] = { "sched_process_exec", life_on_exec },
	[ON_EXIT] = { "sched_process_exit", life_on_exit },
	[ON_RENAME] = { "task_rename", life_on_rename },
};

static void life_match_point(struct tracepoint *point, void *unused)
{
	unsigned int i;

	for (i = 0; i < POINTS; i++)
		if (strcmp(point->name, wanted[i].name) == 0)
			points[i] = point;
}

void otprof_life_init(void)
{
	for_each_kernel_tracepoint(life_match_point, NULL);
}

bool otprof_life_possible(void)
{
	unsigned int i;

	for (i = 0; i < POINTS; i++)
		if (!points[i])
			return false;
	return true;
}

/* Unregisters the first n. Waits for calls under way, which still use the session. */
static void life_unregister(struct otprof_session *s, unsigned int n)
{
	while (n--)
		tracepoint_probe_unregister(points[n], wanted[n].fn, s);
	tracepoint_synchronize_unregister();
}

int otprof_life_start(struct otprof_session *s)
{
	unsigned int i;
	int err;

	for (i = 0; i < POINTS; i++) {
		err = tracepoint_probe_register(points[i], wanted[i].fn, s);
		if (err) {
			life_unregister(s, i);
			return err;
		}
	}
	return 0;
}

void otprof_life_stop(struct otprof_session *s)
{
	life_unregister(s, POINTS);
}

#else

void otprof_life_init(void)
{
}

bool otprof_life_possible(void)
{
	return false;
}

int otprof_life_start(struct otprof_session *s)
{
	return -EOPNOTSUPP;
}

void otprof_life_stop(struct otprof_session *s)
{
}

#endif
