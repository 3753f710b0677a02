// SPDX-License-Identifier: Apache-2.0
#include "process/table.h"

#include <string.h>

#include "process/table_internal.h"

#define FORK_SLACK_NS     (10 * NSEC_PER_SEC)
#define UNSAMPLED_KEEP_NS NSEC_PER_SEC
#define EXEC_INSTANT_NS   (20 * NSEC_PER_MSEC)
#define FORGET_EVERY_NS   NSEC_PER_SEC

/*
 * Whether the entry is the process that started then, by the entry's exact
 * start, its start in ticks, or its FORK, whose time is shortly after the
 * start.
 */
static bool entry_started_at(const struct entry *e, uint64_t start_ns)
{
	if (e->p.start_ns)
		return e->p.start_ns == start_ns;
	if (e->start_tick_ns)
		return start_ns >= e->start_tick_ns && start_ns - e->start_tick_ns < START_EXACT_NS;
	if (e->born_ns)
		return start_ns <= e->born_ns && e->born_ns - start_ns < FORK_SLACK_NS;
	return true;
}

/* exec_id may be of a sample taken at the instant of the exec itself. */
static bool entry_learned_within_exec(const struct entry *e)
{
	return e->p.exec_time_ns && e->exec_id_ns - e->p.exec_time_ns < EXEC_INSTANT_NS;
}

/*
 * Whether the sample belongs to the entry's program, by exec_id. The kernel
 * counts exec_id up shortly after it writes the COMM record, so for an instant
 * samples of the new program still have the old number.
 */
static bool entry_same_exec(struct entry *e, const struct otp_sample *s)
{
	uint64_t known = e->p.exec_id;

	if (s->exec_id == known && e->exec_id_known)
		return true;
	if (e->exec_id_known && e->p.exec_time_ns && s->exec_id + 1 == known)
		return true;
	if (e->exec_id_known && !(s->exec_id == known + 1 && entry_learned_within_exec(e)))
		return false;
	e->exec_id_ns = e->exec_id_known ? 0 : s->time_ns;
	e->exec_id_known = true;
	e->p.exec_id = s->exec_id;
	return true;
}

/* An EXEC that the side-band lost: another program, whose mappings were not reported. */
static void entry_missed_exec(struct process_table *t, struct entry *e, const struct otp_sample *s)
{
	struct space *empty = space_new();

	if (!empty)
		return;
	entry_renew(t, e, empty);
	e->p.maps_known = false;
	e->p.exec_id = s->exec_id;
	e->todo |= TODO_MAPS;
	entry_set_comm(e, s->comm, strnlen(s->comm, sizeof(s->comm)));
}

static void entry_see_exited(struct process_table *t, struct entry *e, const struct otp_sample *s)
{
	/* Another thread in user code: only the leader has exited. */
	if (s->tid != s->pid && !(s->mode & OTP_MODE_EXITING))
		entry_revive(t, e);
}

static void entry_see_sample(struct process_table *t, struct entry *e, const struct otp_sample *s)
{
	e->p.start_ns = s->start_ns;
	e->p.ppid = s->ppid;
	if (!entry_same_exec(e, s))
		entry_missed_exec(t, e, s);
	if (!e->p.comm)
		entry_set_comm(e, s->comm, strnlen(s->comm, sizeof(s->comm)));
	if (e->p.cgroup_id != s->cgroup_id)
		identity_set_cgroup(t, e, s->cgroup_id);
	if (e->todo & TODO_EXITED)
		entry_see_exited(t, e, s);
	if (s->mode & OTP_MODE_KTHREAD && !e->p.kernel)
		identity_set_kernel(t, e);
	e->sampled = true;
}

/* Sends the requests that are due; one that fails is sent again with later samples. */
static void table_request_pending(struct process_table *t, struct entry *e)
{
	if (e->todo & TODO_WORKLOAD)
		identity_preliminary(t, e);
	if (e->todo & TODO_MAPS)
		maps_request(t, e, &t->first_reads);
	else if (e->epoch != t->epoch && (e->maps_gone || e->p.kernel || e->p.exit_time_ns))
		e->epoch = t->epoch;
	else if (e->epoch != t->epoch)
		maps_request(t, e, &t->rescans);
	if (e->todo & TODO_IDENTITY)
		identity_request(t, e);
}

static struct process *table_find_slowly(struct process_table *t, struct entry *e, const struct otp_sample *s)
{
	table_advance(t, s->time_ns);
	if (e && !entry_started_at(e, s->start_ns)) {
		entry_drop(t, e);
		e = NULL;
	}
	if (!e)
		e = entry_new(t, s->pid);
	if (!e)
		return NULL;
	t->pinned = e;
	entry_see_sample(t, e, s);
	entry_touch(t, e, s->time_ns);
	table_request_pending(t, e);
	t->pinned = NULL;
	return &e->p;
}

struct process *table_find(struct process_table *t, const struct otp_sample *s)
{
	struct entry *e = entry_get(t, s->pid);

	if (likely(e && !e->todo && e->sampled && e->p.start_ns == s->start_ns && e->p.exec_id == s->exec_id &&
		   e->p.cgroup_id == s->cgroup_id && e->epoch == t->epoch)) {
		entry_touch(t, e, s->time_ns);
		return &e->p;
	}
	return table_find_slowly(t, e, s);
}

struct process *table_peek(struct process_table *t, uint32_t pid)
{
	struct entry *e = entry_get(t, pid);

	return e ? &e->p : NULL;
}

static uint64_t entry_keep_ns(const struct process_table *t, const struct entry *e)
{
	uint64_t keep = t->cfg.limits.exited_keep_ms * NSEC_PER_MSEC;

	/* It was never sampled: the few samples after an EXIT arrive at once. */
	return e->sampled ? keep : MIN(keep, UNSAMPLED_KEEP_NS);
}

static void table_drop_dead(struct process_table *t)
{
	struct entry *e = t->dead.oldest;

	if (t->now_ns - t->forgot_ns < FORGET_EVERY_NS)
		return;
	t->forgot_ns = t->now_ns;
	while (e && t->now_ns - MIN(e->p.exit_time_ns, t->now_ns) > UNSAMPLED_KEEP_NS) {
		struct entry *next = e->newer;

		if (t->now_ns - MIN(MAX(e->last_ns, e->p.exit_time_ns), t->now_ns) > entry_keep_ns(t, e))
			entry_drop(t, e);
		e = next;
	}
}

void table_tick(struct process_table *t, uint64_t now_ns)
{
	table_advance(t, now_ns);
	files_pump(t);
	table_drop_dead(t);
	files_sweep(t);
}

void table_stats(const struct process_table *t, struct process_stats *ret)
{
	*ret = t->stats;
	ret->processes = t->by_pid.count;
	ret->mappings = space_total();
}

static void limits_set_default(uint32_t *value, uint32_t standard)
{
	if (!*value)
		*value = standard;
}

static void table_limits_default(struct process_limits *l)
{
	limits_set_default(&l->processes, 16384);
	limits_set_default(&l->exited_keep_ms, 10000);
	limits_set_default(&l->rescans_per_second, 50);
	limits_set_default(&l->files, 1024);
	limits_set_default(&l->mappings, 262144);
}

int table_make_workloads(struct process_table *t)
{
	struct workload *kernel = NULL, *interrupts = NULL, *nobody = NULL;
	struct identity *unknown = NULL;
	int r = identity_guess(NULL, NULL, "", "", &unknown);

	if (r == 0)
		r = identity_workload(unknown, t->cfg.resource, t->cfg.nr_resource, &nobody);
	if (r == 0)
		r = identity_workload(t->kernel, t->cfg.resource, t->cfg.nr_resource, &kernel);
	if (r == 0)
		r = identity_workload(t->interrupts, t->cfg.resource, t->cfg.nr_resource, &interrupts);
	identity_put(unknown);
	if (r < 0) {
		workload_put(nobody);
		workload_put(kernel);
		return r;
	}
	workload_put(t->unknown_workload);
	workload_put(t->kernel_workload);
	workload_put(t->interrupts_workload);
	t->unknown_workload = nobody;
	t->kernel_workload = kernel;
	t->interrupts_workload = interrupts;
	return 0;
}

static int table_init(struct process_table *t)
{
	int r = identity_new_kernel(&t->kernel);

	if (r == 0)
		r = identity_new_interrupts(&t->interrupts);
	if (r == 0)
		r = table_make_workloads(t);
	return r < 0 ? r : files_init(t);
}

int table_new(const struct process_table_config *cfg, struct process_table **ret)
{
	struct process_table *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->cfg = *cfg;
	table_limits_default(&t->cfg.limits);
	t->rescans.per_second = t->cfg.limits.rescans_per_second;
	/* Reading a process for the first time is more urgent than reading one again. */
	t->first_reads.per_second = t->identities.per_second = 8 * t->cfg.limits.rescans_per_second;
	r = table_init(t);
	if (r < 0) {
		table_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

struct process_table *table_free(struct process_table *t)
{
	if (!t)
		return NULL;
	while (t->live.oldest)
		entry_drop(t, t->live.oldest);
	while (t->dead.oldest)
		entry_drop(t, t->dead.oldest);
	while (t->questions)
		question_cancel(t->questions);
	files_done(t);
	cgroup_notes_clear(t);
	identity_put(t->kernel);
	identity_put(t->interrupts);
	workload_put(t->kernel_workload);
	workload_put(t->interrupts_workload);
	workload_put(t->unknown_workload);
	map_done(&t->by_pid);
	free(t);
	return NULL;
}
