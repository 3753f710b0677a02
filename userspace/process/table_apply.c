// SPDX-License-Identifier: Apache-2.0
/* Applies the side-band's records, in time order. */
#include <string.h>

#include "process/table_internal.h"

/* A process outside of the opener's pid namespace (0), or one that has ended (-1). */
static bool table_is_no_pid(uint32_t pid)
{
	return pid == 0 || pid == UINT32_MAX;
}

static void table_copy_maps(struct entry *child, const struct entry *parent)
{
	space_put(child->p.space);
	child->p.space = space_ref(parent->p.space);
	child->p.maps_known = parent->p.maps_known;
	child->epoch = parent->epoch;
	if (parent->newer_maps)
		child->newer_maps = space_ref(parent->newer_maps);
	if (parent->p.maps_known)
		child->todo &= (uint8_t)~TODO_MAPS;
}

static void table_copy_parent(struct process_table *t, struct entry *child, const struct entry *parent)
{
	table_copy_maps(child, parent);
	child->p.comm = str_ref(parent->p.comm);
	child->p.exe = str_ref(parent->p.exe);
	child->script = str_ref(parent->script);
	child->p.cgroup_id = parent->p.cgroup_id;
	child->p.exec_id = parent->p.exec_id;
	child->exec_id_known = parent->exec_id_known;
	identity_inherit(t, child, parent);
}

static void table_apply_fork(struct process_table *t, const struct proc_event *ev)
{
	struct entry *parent = table_is_no_pid(ev->ppid) ? NULL : entry_get(t, ev->ppid), *e;

	if (ev->pid == ev->ppid) {
		/* A new thread: the process lives, even if its leader has exited. */
		if (parent && parent->p.exit_time_ns)
			entry_revive(t, parent);
		return;
	}
	e = entry_get(t, ev->pid);
	if (e)
		entry_drop(t, e);
	t->pinned = parent;
	e = entry_new(t, ev->pid);
	t->pinned = NULL;
	if (!e)
		return;
	e->born_ns = ev->time_ns;
	e->p.ppid = ev->ppid;
	if (parent)
		table_copy_parent(t, e, parent);
}

static struct entry *table_get_or_new(struct process_table *t, uint32_t pid)
{
	struct entry *e = entry_get(t, pid);

	return e ? e : entry_new(t, pid);
}

static void table_apply_exec(struct process_table *t, const struct proc_event *ev)
{
	struct entry *e = table_get_or_new(t, ev->pid);
	struct space *empty = e ? space_new() : NULL;

	if (!empty)
		return;
	entry_renew(t, e, empty);
	entry_revive(t, e);
	entry_set_comm(e, ev->name, ev->name_len);
	/* All mappings of the program are reported from here on. */
	e->p.maps_known = true;
	e->todo &= (uint8_t)~TODO_MAPS;
	e->p.exec_time_ns = ev->time_ns;
	e->p.exec_id += e->exec_id_known;
	e->exec_id_ns = 0;
	e->name_pending = true;
}

static void table_apply_comm(struct process_table *t, const struct proc_event *ev)
{
	struct entry *e = entry_get(t, ev->pid);

	if (e && ev->tid == ev->pid)
		entry_set_comm(e, ev->name, ev->name_len);
}

static void table_apply_exit(struct process_table *t, const struct proc_event *ev)
{
	struct entry *e = entry_get(t, ev->pid);

	if (e && ev->tid == ev->pid)
		entry_die(t, e, ev->time_ns);
}

static void table_apply_mmap(struct process_table *t, const struct proc_event *ev)
{
	struct entry *e = table_get_or_new(t, ev->pid);

	if (!e)
		return;
	if (e->p.exit_time_ns)
		entry_revive(t, e);
	if (e->name_pending && ev->name_len && ev->name[0] == '/') {
		identity_name_program(e, ev->name, ev->name_len);
		e->name_pending = false;
	}
	t->pinned = e;
	maps_add(t, e, ev);
	table_make_room(t);
	t->pinned = NULL;
}

/* The processes concerned are unknown: each one is read again when it is sampled. */
static void table_apply_lost(struct process_table *t, const struct proc_event *ev)
{
	t->stats.sideband_lost += ev->lost;
	t->epoch++;
}

void table_apply(struct process_table *t, const struct proc_event *ev)
{
	struct entry *e;

	table_advance(t, ev->time_ns);
	if (ev->type == PROC_LOST) {
		table_apply_lost(t, ev);
		return;
	}
	if (table_is_no_pid(ev->pid))
		return;
	switch (ev->type) {
	case PROC_FORK:
		table_apply_fork(t, ev);
		break;
	case PROC_EXEC:
		table_apply_exec(t, ev);
		break;
	case PROC_COMM:
		table_apply_comm(t, ev);
		break;
	case PROC_EXIT:
		table_apply_exit(t, ev);
		break;
	case PROC_MMAP:
		table_apply_mmap(t, ev);
		break;
	}
	e = entry_get(t, ev->pid);
	if (e)
		entry_touch(t, e, ev->time_ns);
}
