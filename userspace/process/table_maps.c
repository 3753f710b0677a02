// SPDX-License-Identifier: Apache-2.0
/* Mappings of a process: reported by the side-band, or read from /proc. */
#include <string.h>

#include "process/maps_text.h"
#include "process/table_internal.h"

#define RESCAN_FIRST_NS  (100 * NSEC_PER_MSEC)
#define RESCAN_LONGEST_NS (60 * NSEC_PER_SEC)
#define USER_LOWEST      4096u
#define USER_HIGHEST     (1ULL << 56) /* five-level page tables */

void maps_forget_newer(struct entry *e)
{
	e->newer_maps = space_put(e->newer_maps);
}

/* The answer to a pending request may be older than this mapping: it is kept apart until then. */
static void maps_remember_newer(struct entry *e, uint64_t start, uint64_t end, uint64_t offset, struct mapped_file *f)
{
	if (!e->newer_maps)
		e->newer_maps = space_new();
	if (e->newer_maps)
		space_map(&e->newer_maps, start, end, offset, f);
}

void maps_add(struct process_table *t, struct entry *e, const struct proc_event *ev)
{
	struct file_name name = {
		.path = ev->name,
		.path_len = ev->name_len,
		.build_id = ev->build_id,
		.build_id_len = ev->build_id_len,
		.dev = ev->dev,
		.ino = ev->ino,
		.ino_generation = ev->ino_generation,
		.container = e->p.cgroup_id,
	};
	struct mapped_file *f = files_get(t, &name);

	if (!f) {
		/* There is no memory for its name: code there must not get the name of an older mapping. */
		space_unmap(&e->p.space, ev->start, ev->end);
		return;
	}
	space_map(&e->p.space, ev->start, ev->end, ev->offset, f);
	if (e->maps_question || t->scan)
		maps_remember_newer(e, ev->start, ev->end, ev->offset, f);
	mapped_file_put(f);
}

static void maps_add_line(struct process_table *t, struct entry *e, struct space **to, const struct maps_line *l)
{
	struct file_name name = {
		.path = l->name,
		.path_len = l->name_len,
		.dev = l->dev,
		.ino = l->ino,
		.container = e->p.cgroup_id,
	};
	struct mapped_file *f = files_get(t, &name);

	if (f)
		space_map(to, l->start, l->end, l->offset, f);
	mapped_file_put(f);
}

/*
 * The text has no build-id and the side-band no inode: where both have a
 * mapping of the same range and path, the file that is known already stays, or
 * a program would be opened twice.
 */
static bool maps_keep_known(const struct space *known, struct space **to, const struct maps_line *l)
{
	const struct mapping *m = space_find(known, l->start);
	const struct mapped_file *f = m ? m->file : NULL;

	if (!m || m->start != l->start || m->end != l->end || m->offset != l->offset || !f->build_id_len ||
	    f->deleted || f->path->len != l->name_len || memcmp(f->path->s, l->name, l->name_len) != 0)
		return false;
	return space_map(to, l->start, l->end, l->offset, m->file) >= 0;
}

static struct space *space_from_text(struct process_table *t, struct entry *e, const char *text, size_t len)
{
	struct space *s = space_new();
	struct maps_text lines;
	struct maps_line l;

	if (!s)
		return NULL;
	maps_text_init(&lines, text, len);
	while (maps_text_next(&lines, &l))
		if (l.exec && !maps_keep_known(e->p.space, &s, &l))
			maps_add_line(t, e, &s, &l);
	return s;
}

static void maps_overlay(struct space **to, const struct space *newer)
{
	for (uint32_t i = 0; newer && i < newer->count; i++) {
		const struct mapping *m = &newer->maps[i];

		space_map(to, m->start, m->end, m->offset, m->file);
	}
}

static bool space_equal(const struct space *a, const struct space *b)
{
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++) {
		const struct mapping *x = &a->maps[i], *y = &b->maps[i];

		if (x->start != y->start || x->end != y->end || x->offset != y->offset || x->file != y->file)
			return false;
	}
	return true;
}

bool maps_take(struct process_table *t, struct entry *e, const char *text, size_t len)
{
	struct space *s = space_from_text(t, e, text, len);
	bool changed;

	if (!s)
		return false;
	/* A process that is exiting shows no mapping at all. */
	if (!s->count && e->p.space->count) {
		space_put(s);
		return false;
	}
	/* A text that was cut shows which mappings exist, not which are gone. */
	if (len >= HOST_MAPS_MAX)
		maps_overlay(&s, e->p.space);
	maps_overlay(&s, e->newer_maps);
	changed = !space_equal(s, e->p.space);
	if (changed) {
		s->generation = e->p.space->generation + 1;
		space_put(e->p.space);
		e->p.space = s;
	} else {
		space_put(s);
	}
	e->p.maps_known = true;
	e->todo &= (uint8_t)~TODO_MAPS;
	return changed;
}

/* A process for which reading again does not help is read less and less often. */
static void maps_back_off(struct process_table *t, struct entry *e, bool helped)
{
	if (helped || !e->rescan_wait_ns)
		e->rescan_wait_ns = RESCAN_FIRST_NS;
	else
		e->rescan_wait_ns = MIN(2 * e->rescan_wait_ns, RESCAN_LONGEST_NS);
	e->rescan_after_ns = t->now_ns + e->rescan_wait_ns;
}

static void maps_failed(struct entry *e, int err)
{
	if (err == -ESRCH || err == -ENOENT) {
		e->maps_gone = true;
		e->todo &= (uint8_t)~TODO_MAPS;
	}
}

static void maps_on_answer(void *ctx, int err, int fd, const void *data, size_t len)
{
	struct question *q = ctx;
	struct process_table *t = q->t;
	struct entry *e = q->e;
	uint32_t epoch = q->epoch;
	bool changed = false;

	closep(&fd);
	question_free(q);
	e->maps_question = NULL;
	e->p.maps_pending = false;
	t->pinned = e;
	if (err == 0) {
		changed = maps_take(t, e, data, len);
		e->epoch = epoch;
		table_make_room(t);
	} else {
		maps_failed(e, err);
	}
	t->pinned = NULL;
	if (!t->scan)
		maps_forget_newer(e);
	maps_back_off(t, e, changed);
	if (t->cfg.process_settled)
		t->cfg.process_settled(t->cfg.ctx, &e->p);
}

static bool maps_may_request(struct process_table *t, struct entry *e, struct rate *rate)
{
	if (e->maps_gone || e->p.kernel)
		return false;
	if (t->now_ns >= e->rescan_after_ns && rate_take(rate, t->now_ns))
		return true;
	t->stats.rescans_denied++;
	return false;
}

bool maps_request(struct process_table *t, struct entry *e, struct rate *rate)
{
	struct host_request req = {.kind = HOST_READ_MAPS, .pid = e->p.pid, .pid_start_ns = entry_start(e),
				   .group = e->p.cgroup_id};
	struct question *q;

	if (e->maps_question)
		return true;
	if (!maps_may_request(t, e, rate) || question_new(t, e, &q) < 0)
		return false;
	e->maps_question = q;
	e->p.maps_pending = true;
	if (host_ask(t->cfg.host, &req, maps_on_answer, q) < 0) {
		question_free(q);
		e->maps_question = NULL;
		e->p.maps_pending = false;
		t->stats.rescans_denied++;
		return false;
	}
	return true;
}

bool table_uncovered(struct process_table *t, struct process *p, uint64_t pc, uint64_t time_ns)
{
	struct entry *e = container_of(p, struct entry, p);

	table_advance(t, time_ns);
	if (pc < USER_LOWEST || pc >= USER_HIGHEST)
		return false;
	if (e->maps_question)
		return true;
	if (e->p.exit_time_ns && !(e->todo & TODO_MAPS))
		return false;
	if (!maps_request(t, e, e->todo & TODO_MAPS ? &t->first_reads : &t->rescans))
		return false;
	/* The host may have answered during the call: then the mapping exists, or waiting would not help. */
	return e->maps_question || space_find(e->p.space, pc);
}
