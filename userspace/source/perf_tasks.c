// SPDX-License-Identifier: Apache-2.0
#include "source/perf_tasks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "process/proc_stat.h"
#include "source/perf_cgroup.h"

#define KEEP_DEAD_NS  (2 * NSEC_PER_SEC) /* a few samples follow a process' EXIT */
#define SWEEP_NS      NSEC_PER_SEC
#define PF_KTHREAD    0x00200000 /* Linux, include/linux/sched.h */
#define KTHREADD      2		 /* every kernel thread is its child */

static void tasks_free_all(struct map *m)
{
	map_for_each(m, slot)
		free((void *)(uintptr_t)slot->value);
	map_done(m);
}

void perf_tasks_done(struct perf_tasks *t)
{
	tasks_free_all(&t->processes);
	tasks_free_all(&t->threads);
}

/* A zeroed entry in the map, or NULL. An entry that is found again after it was dropped costs a read of /proc. */
static void *tasks_add(struct map *m, uint32_t id, size_t size)
{
	void *p = map_find_ptr(m, id);

	if (p)
		return memset(p, 0, size);
	if (m->count >= TASKS_MAX)
		tasks_free_all(m);
	p = calloc(1, size);
	if (p && map_put_ptr(m, id, p) < 0) {
		free(p);
		return NULL;
	}
	return p;
}

static void tasks_set_comm(char to[OTP_COMM_LEN], const char *from, size_t len)
{
	memset(to, 0, OTP_COMM_LEN);
	memcpy(to, from, MIN(len, (size_t)OTP_COMM_LEN - 1));
}

/* --- /proc --- */

static int tasks_read_process(struct perf_tasks *t, uint32_t pid, struct perf_process *ret)
{
	struct proc_stat stat;
	int err;

	if (t->reads >= READS_MAX)
		return -EAGAIN;
	t->reads++;
	err = proc_stat_read(pid, &stat);
	if (err)
		return err;
	if (stat.pid != pid)
		return -EBADMSG; /* a /proc of another pid namespace */
	*ret = (struct perf_process){.pid = pid, .ppid = stat.ppid, .kthread = stat.flags & PF_KTHREAD};
	ret->start_ns = proc_stat_start_ns(&stat);
	tasks_set_comm(ret->comm, stat.comm, strlen(stat.comm));
	ret->cgroup_id = t->read_cgroups ? perf_cgroup_of(pid) : 0;
	return 0;
}

static struct perf_process *tasks_first_sight(struct perf_tasks *t, uint32_t pid)
{
	struct perf_process now, *p;

	if (pid == UINT32_MAX || tasks_read_process(t, pid, &now) < 0)
		return NULL;
	p = tasks_add(&t->processes, pid, sizeof(*p));
	if (!p)
		return NULL;
	*p = now;
	p->epoch = t->epoch;
	return p;
}

/* Records were lost since it was read: checks whether it is still the same process and program. */
static struct perf_process *tasks_read_again(struct perf_tasks *t, struct perf_process *p)
{
	struct perf_process now;

	if (tasks_read_process(t, p->pid, &now) < 0)
		return p;
	p->epoch = t->epoch;
	p->ppid = now.ppid;
	if (p->start_ns < now.start_ns || p->start_ns - now.start_ns > NSEC_PER_SEC / 50) {
		now.epoch = t->epoch;
		*p = now;
	} else if (memcmp(p->comm, now.comm, sizeof(now.comm)) != 0) {
		memcpy(p->comm, now.comm, sizeof(now.comm));
		p->exec_id++;
	}
	return p;
}

const struct perf_process *perf_tasks_find(struct perf_tasks *t, uint32_t pid)
{
	struct perf_process *p = map_find_ptr(&t->processes, pid);

	if (!p)
		return tasks_first_sight(t, pid);
	return p->epoch == t->epoch || p->exit_ns ? p : tasks_read_again(t, p);
}

static struct perf_thread *tasks_thread_seen(struct perf_tasks *t, uint32_t pid, uint32_t tid)
{
	char name[32], text[OTP_COMM_LEN + 2];
	struct perf_thread *th;

	if (t->reads >= READS_MAX)
		return NULL;
	t->reads++;
	snprintf(name, sizeof(name), "task/%" PRIu32 "/comm", tid);
	if (file_read_proc(pid, name, text, sizeof(text)) < 0)
		return NULL;
	th = tasks_add(&t->threads, tid, sizeof(*th));
	if (th)
		tasks_set_comm(th->comm, text, strcspn(text, "\n"));
	return th;
}

void perf_tasks_comm(struct perf_tasks *t, const struct perf_process *p, uint32_t tid, char to[OTP_COMM_LEN])
{
	const struct perf_thread *th = NULL;

	if (tid != p->pid && !p->kthread)
		th = map_find_ptr(&t->threads, tid);
	if (tid != p->pid && !p->kthread && !th)
		th = tasks_thread_seen(t, p->pid, tid);
	memcpy(to, th ? th->comm : p->comm, OTP_COMM_LEN);
}

/* --- records --- */

/* A child's name is its parent's at first. */
static const char *tasks_name_of(const struct perf_tasks *t, uint32_t pid, uint32_t tid)
{
	const struct perf_process *p = map_find_ptr(&t->processes, pid);
	const struct perf_thread *th = tid == pid ? NULL : map_find_ptr(&t->threads, tid);

	return th ? th->comm : p ? p->comm : NULL;
}

static void tasks_apply_thread(struct perf_tasks *t, const struct proc_event *ev)
{
	char comm[OTP_COMM_LEN] = "";
	const char *name = tasks_name_of(t, ev->ppid, ev->ptid);
	struct perf_thread *th;

	if (!name)
		return;
	memcpy(comm, name, sizeof(comm));
	th = tasks_add(&t->threads, ev->tid, sizeof(*th));
	if (th)
		memcpy(th->comm, comm, sizeof(comm));
}

static void tasks_apply_fork(struct perf_tasks *t, const struct proc_event *ev)
{
	const struct perf_process *parent = perf_tasks_find(t, ev->ppid);
	struct perf_process child = {.pid = ev->pid, .ppid = ev->ppid, .start_ns = ev->time_ns, .epoch = t->epoch};
	const char *name = tasks_name_of(t, ev->ppid, ev->ptid);
	struct perf_process *p;

	if (name)
		memcpy(child.comm, name, sizeof(child.comm));
	if (parent) {
		child.exec_id = parent->exec_id;
		child.cgroup_id = parent->cgroup_id;
		child.kthread = parent->kthread;
	}
	child.kthread = child.kthread || ev->ppid == KTHREADD;
	p = tasks_add(&t->processes, ev->pid, sizeof(*p));
	if (p)
		*p = child;
}

static void tasks_apply_exec(struct perf_tasks *t, const struct proc_event *ev)
{
	struct perf_process *p = map_find_ptr(&t->processes, ev->pid);

	if (!p)
		return; /* it is read from /proc when first sampled, as the new program */
	p->exec_id++;
	p->exit_ns = 0; /* another thread's exec: that thread is the leader from now on */
	p->kthread = false;
	if (t->read_cgroups)
		p->cgroup_id = perf_cgroup_of(ev->pid);
	tasks_set_comm(p->comm, ev->name, ev->name_len);
}

static void tasks_apply_comm(struct perf_tasks *t, const struct proc_event *ev)
{
	struct perf_process *p = map_find_ptr(&t->processes, ev->pid);
	struct perf_thread *th = map_find_ptr(&t->threads, ev->tid);

	if (ev->tid == ev->pid && p)
		tasks_set_comm(p->comm, ev->name, ev->name_len);
	else if (ev->tid != ev->pid && th)
		tasks_set_comm(th->comm, ev->name, ev->name_len);
}

static void tasks_apply_exit(struct perf_tasks *t, const struct proc_event *ev)
{
	struct perf_process *p = map_find_ptr(&t->processes, ev->pid);
	struct perf_thread *th = ev->tid == ev->pid ? NULL : map_find_ptr(&t->threads, ev->tid);

	if (ev->tid == ev->pid && p)
		p->exit_ns = ev->time_ns;
	if (th)
		th->exit_ns = ev->time_ns;
}

void perf_tasks_apply(struct perf_tasks *t, const struct proc_event *ev)
{
	switch (ev->type) {
	case PROC_FORK:
		if (ev->pid == ev->ppid)
			tasks_apply_thread(t, ev);
		else
			tasks_apply_fork(t, ev);
		break;
	case PROC_EXEC:
		tasks_apply_exec(t, ev);
		break;
	case PROC_COMM:
		tasks_apply_comm(t, ev);
		break;
	case PROC_EXIT:
		tasks_apply_exit(t, ev);
		break;
	case PROC_LOST:
		t->epoch++;
		break;
	}
}

/* A process whose leader exited while its threads run is read from /proc again when they are sampled. */
static void tasks_sweep(struct map *m, size_t exit_at, uint64_t now_ns)
{
	struct map left = {0};

	map_for_each(m, slot) {
		uint8_t *p = (uint8_t *)(uintptr_t)slot->value;
		uint64_t exit_ns = *(const uint64_t *)(const void *)(p + exit_at);

		if ((exit_ns && now_ns > exit_ns + KEEP_DEAD_NS) || map_put_ptr(&left, slot->key, p) < 0)
			free(p);
	}
	map_done(m);
	*m = left;
}

void perf_tasks_tick(struct perf_tasks *t, uint64_t now_ns)
{
	t->reads = 0;
	if (now_ns < t->swept_ns + SWEEP_NS)
		return;
	t->swept_ns = now_ns;
	tasks_sweep(&t->processes, offsetof(struct perf_process, exit_ns), now_ns);
	tasks_sweep(&t->threads, offsetof(struct perf_thread, exit_ns), now_ns);
}
