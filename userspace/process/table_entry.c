// SPDX-License-Identifier: Apache-2.0
/* Entries of the process table: made, ordered by use, dropped with their questions. */
#include <string.h>

#include "process/table_internal.h"

#define USED_STEP_NS  NSEC_PER_SEC
#define EVICT_AT_ONCE 64

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
	binary_put(q->found);
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
	free(e->p.stacks);
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
	e->p.stack_bytes = e->p.stack_needed = e->p.plan_gen = e->p.walks = 0;
	e->p.base_bytes = e->p.base_needed = 0;
	e->p.stack_seen_ns = 0;
	free(e->p.stacks);
	e->p.stacks = NULL;
	e->identity_tries = 0;
	e->identity_after_ns = e->rescan_after_ns = e->rescan_wait_ns = 0;
	e->epoch = t->epoch;
	e->todo |= TODO_WORKLOAD | TODO_IDENTITY;
	if (e->identity == t->kernel)
		e->identity = identity_put(e->identity);
}
