// SPDX-License-Identifier: Apache-2.0
#include "process/table.h"

#include <string.h>

#include "process/table_internal.h"

#define USED_STEP_NS      NSEC_PER_SEC
#define TICK_NS           (NSEC_PER_SEC / 100) /* of /proc/PID/stat */
#define FORK_SLACK_NS     (10 * NSEC_PER_SEC)
#define UNSAMPLED_KEEP_NS NSEC_PER_SEC
#define EXEC_INSTANT_NS   (20 * NSEC_PER_MSEC)
#define FORGET_EVERY_NS   NSEC_PER_SEC
#define EVICT_AT_ONCE     64

bool rate_take(struct rate *r, uint64_t now_ns)
{
	if (r->due_ns < now_ns)
		r->due_ns = now_ns;
	if (!r->per_second || r->due_ns - now_ns >= NSEC_PER_SEC)
		return false;
	r->due_ns += NSEC_PER_SEC / r->per_second;
	return true;
}

static void list_add(struct entry_list *l, struct entry *e)
{
	e->list = l;
	e->newer = NULL;
	e->older = l->newest;
	*(l->newest ? &l->newest->newer : &l->oldest) = e;
	l->newest = e;
}

static void list_remove(struct entry *e)
{
	*(e->newer ? &e->newer->older : &e->list->newest) = e->older;
	*(e->older ? &e->older->newer : &e->list->oldest) = e->newer;
}

static void list_move(struct entry_list *l, struct entry *e)
{
	list_remove(e);
	list_add(l, e);
}

int question_new(struct process_table *t, struct entry *e, struct question **ret)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->t = t;
	q->e = e;
	q->epoch = t->epoch;
	q->asked_ns = t->now_ns;
	q->pid = e ? e->p.pid : 0;
	q->next = t->questions;
	q->link = &t->questions;
	if (q->next)
		q->next->link = &q->next;
	t->questions = q;
	*ret = q;
	return 0;
}

struct question *question_free(struct question *q)
{
	if (!q)
		return NULL;
	*q->link = q->next;
	if (q->next)
		q->next->link = q->link;
	mapped_file_put(q->file);
	free(q);
	return NULL;
}

void question_cancel(struct question *q)
{
	if (!q)
		return;
	host_cancel(q->t->cfg.host, q);
	question_free(q);
}

struct entry *entry_get(const struct process_table *t, uint32_t pid)
{
	return map_find_ptr(&t->by_pid, pid);
}

static void entry_free(struct entry *e)
{
	str_put(e->p.comm);
	str_put(e->p.exe);
	str_put(e->script);
	space_put(e->p.space);
	space_put(e->newer_maps);
	workload_put(e->p.workload);
	identity_put(e->identity);
	free(e);
}

static void entry_cancel(struct entry *e)
{
	question_cancel(e->maps_question);
	question_cancel(e->identity_question);
	e->maps_question = e->identity_question = NULL;
	e->p.maps_pending = e->p.identity_pending = false;
	maps_forget_newer(e);
}

void entry_drop(struct process_table *t, struct entry *e)
{
	entry_cancel(e);
	map_remove(&t->by_pid, e->p.pid);
	list_remove(e);
	if (t->pinned == e)
		t->pinned = NULL;
	entry_free(e);
}

static bool evict_oldest(struct process_table *t, struct entry_list *l)
{
	struct entry *e = l->oldest;

	if (e && e == t->pinned)
		e = e->newer;
	if (!e)
		return false;
	entry_drop(t, e);
	t->stats.evicted++;
	return true;
}

static bool evict(struct process_table *t)
{
	return evict_oldest(t, &t->dead) || evict_oldest(t, &t->live);
}

void table_make_room(struct process_table *t)
{
	/* Shared spaces free nothing: a bound, so that one event never empties the table. */
	for (int i = 0; i < EVICT_AT_ONCE && space_total() > t->cfg.limits.mappings; i++)
		if (!evict(t))
			return;
}

static struct entry *entry_alloc(struct process_table *t, uint32_t pid)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->p.space = space_new();
	if (!e->p.space || map_put_ptr(&t->by_pid, pid, e) < 0) {
		entry_free(e);
		return NULL;
	}
	return e;
}

struct entry *entry_new(struct process_table *t, uint32_t pid)
{
	struct entry *e;

	while (t->by_pid.count >= t->cfg.limits.processes)
		if (!evict(t))
			return NULL;
	e = entry_alloc(t, pid);
	if (!e)
		return NULL;
	e->p.pid = pid;
	e->p.workload = workload_ref(t->unknown_workload);
	e->epoch = t->epoch;
	e->todo = TODO_WORKLOAD | TODO_IDENTITY | TODO_MAPS;
	e->last_ns = e->used_ns = t->now_ns;
	list_add(&t->live, e);
	return e;
}

void entry_touch(struct process_table *t, struct entry *e, uint64_t time_ns)
{
	table_advance(t, time_ns);
	e->last_ns = t->now_ns;
	if (e->list == &t->live && t->now_ns - e->used_ns > USED_STEP_NS) {
		e->used_ns = t->now_ns;
		list_move(&t->live, e);
	}
}

void entry_revive(struct process_table *t, struct entry *e)
{
	e->p.exit_time_ns = 0;
	e->todo &= (uint8_t)~TODO_EXITED;
	if (e->list != &t->live)
		list_move(&t->live, e);
}

void entry_die(struct process_table *t, struct entry *e, uint64_t time_ns)
{
	e->p.exit_time_ns = time_ns;
	e->todo |= TODO_EXITED;
	list_move(&t->dead, e);
}

void entry_set_comm(struct entry *e, const char *comm, size_t len)
{
	struct str *s = str_get(comm, len);

	if (!s)
		return;
	str_put(e->p.comm);
	e->p.comm = s;
}

void entry_renew(struct process_table *t, struct entry *e, struct space *empty)
{
	entry_cancel(e);
	space_put(e->p.space);
	e->p.space = empty;
	e->p.exe = str_put(e->p.exe);
	e->script = str_put(e->script);
	e->p.identity_known = e->p.kernel = e->maps_gone = e->identity_own = false;
	e->p.stack_bytes = e->p.stack_needed = e->p.plan_gen = 0;
	e->p.stack_seen_ns = 0;
	e->identity_tries = 0;
	e->identity_after_ns = e->rescan_after_ns = e->rescan_wait_ns = 0;
	e->epoch = t->epoch;
	e->todo |= TODO_WORKLOAD | TODO_IDENTITY;
	if (e->identity == t->kernel)
		e->identity = identity_put(e->identity);
}

/*
 * Is it the process that started then? By what is known of the entry: the
 * exact time, the time in ticks, or that of its FORK, which comes shortly
 * after the start.
 */
bool entry_started_at(const struct entry *e, uint64_t start_ns)
{
	if (e->p.start_ns)
		return e->p.start_ns == start_ns;
	if (e->start_tick_ns)
		return start_ns >= e->start_tick_ns && start_ns - e->start_tick_ns < TICK_NS;
	if (e->born_ns)
		return start_ns <= e->born_ns && e->born_ns - start_ns < FORK_SLACK_NS;
	return true;
}

/* The number may have been taken from a sample of that instant itself. */
static bool learned_within_exec(const struct entry *e)
{
	return e->p.exec_time_ns && e->exec_id_ns - e->p.exec_time_ns < EXEC_INSTANT_NS;
}

/*
 * The exec that a sample belongs to, against the one that the side-band told.
 * The kernel counts up shortly after it wrote the COMM record, so for an
 * instant samples of the new program still have the old number.
 */
static bool same_exec(struct entry *e, const struct otp_sample *s)
{
	uint64_t known = e->p.exec_id;

	if (s->exec_id == known && e->exec_id_known)
		return true;
	if (e->exec_id_known && e->p.exec_time_ns && s->exec_id + 1 == known)
		return true;
	if (e->exec_id_known && !(s->exec_id == known + 1 && learned_within_exec(e)))
		return false;
	e->exec_id_ns = e->exec_id_known ? 0 : s->time_ns;
	e->exec_id_known = true;
	e->p.exec_id = s->exec_id;
	return true;
}

/* An EXEC that the side-band lost: another program, and nobody said what it maps. */
static void missed_exec(struct process_table *t, struct entry *e, const struct otp_sample *s)
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

static void see_exited(struct process_table *t, struct entry *e, const struct otp_sample *s)
{
	/* Another thread in user code: only the leader has gone. */
	if (s->tid != s->pid && !(s->mode & OTP_MODE_EXITING))
		entry_revive(t, e);
}

static void see_sample(struct process_table *t, struct entry *e, const struct otp_sample *s)
{
	e->p.start_ns = s->start_ns;
	e->p.ppid = s->ppid;
	if (!same_exec(e, s))
		missed_exec(t, e, s);
	if (!e->p.comm)
		entry_set_comm(e, s->comm, strnlen(s->comm, sizeof(s->comm)));
	if (e->p.cgroup_id != s->cgroup_id)
		identity_set_cgroup(t, e, s->cgroup_id);
	if (e->todo & TODO_EXITED)
		see_exited(t, e, s);
	if (s->mode & OTP_MODE_KTHREAD && !e->p.kernel)
		identity_set_kernel(t, e);
	e->sampled = true;
}

/* What is to be asked, asked again with later samples where that fails. */
static void ask_open_questions(struct process_table *t, struct entry *e)
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

static struct process *find_slowly(struct process_table *t, struct entry *e, const struct otp_sample *s)
{
	table_advance(t, s->time_ns);
	if (e && !entry_started_at(e, s->start_ns)) {
		entry_drop(t, e);
		e = NULL;
	}
	if (!e) {
		t->stats.unknown_pid++;
		e = entry_new(t, s->pid);
	}
	if (!e)
		return NULL;
	t->pinned = e;
	see_sample(t, e, s);
	entry_touch(t, e, s->time_ns);
	ask_open_questions(t, e);
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
	return find_slowly(t, e, s);
}

struct process *table_peek(struct process_table *t, uint32_t pid)
{
	struct entry *e = entry_get(t, pid);

	return e ? &e->p : NULL;
}

static uint64_t keep_ns(const struct process_table *t, const struct entry *e)
{
	uint64_t keep = t->cfg.limits.exited_keep_ms * NSEC_PER_MSEC;

	/* Nobody asked for it in its life; the few samples behind an EXIT come at once. */
	return e->sampled ? keep : MIN(keep, UNSAMPLED_KEEP_NS);
}

static void forget_dead(struct process_table *t)
{
	struct entry *e = t->dead.oldest;

	if (t->now_ns - t->forgot_ns < FORGET_EVERY_NS)
		return;
	t->forgot_ns = t->now_ns;
	while (e && t->now_ns - MIN(e->p.exit_time_ns, t->now_ns) > UNSAMPLED_KEEP_NS) {
		struct entry *next = e->newer;

		if (t->now_ns - MIN(MAX(e->last_ns, e->p.exit_time_ns), t->now_ns) > keep_ns(t, e))
			entry_drop(t, e);
		e = next;
	}
}

void table_tick(struct process_table *t, uint64_t now_ns)
{
	table_advance(t, now_ns);
	files_pump(t);
	forget_dead(t);
	files_sweep(t);
}

void table_stats(const struct process_table *t, struct process_stats *ret)
{
	*ret = t->stats;
	ret->processes = t->by_pid.count;
	ret->mappings = space_total();
}

static void set_default(uint32_t *value, uint32_t standard)
{
	if (!*value)
		*value = standard;
}

static void limits_default(struct process_limits *l)
{
	set_default(&l->processes, 16384);
	set_default(&l->exited_keep_ms, 10000);
	set_default(&l->rescans_per_second, 50);
	set_default(&l->files, 1024);
	set_default(&l->mappings, 262144);
}

static int table_init(struct process_table *t)
{
	struct identity *unknown = NULL;
	int r;

	r = identity_guess(NULL, NULL, "", "", &unknown);
	if (r == 0)
		r = identity_workload(unknown, t->cfg.resource, t->cfg.nr_resource, &t->unknown_workload);
	identity_put(unknown);
	if (r == 0)
		r = identity_new_kernel(&t->kernel);
	if (r == 0)
		r = identity_workload(t->kernel, t->cfg.resource, t->cfg.nr_resource, &t->kernel_workload);
	return r < 0 ? r : files_init(t);
}

int table_new(const struct process_table_config *cfg, struct process_table **ret)
{
	struct process_table *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->cfg = *cfg;
	limits_default(&t->cfg.limits);
	t->rescans.per_second = t->cfg.limits.rescans_per_second;
	/* What was never read is more urgent than what may have changed. */
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
	workload_put(t->kernel_workload);
	workload_put(t->unknown_workload);
	map_done(&t->by_pid);
	free(t);
	return NULL;
}
