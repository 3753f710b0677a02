// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/jit.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/ledger.h"

#define RETRY_FIRST_NS	 (2 * NSEC_PER_SEC)
#define RETRY_LONGEST_NS (60 * NSEC_PER_SEC)
#define REFRESH_NS	 (500 * NSEC_PER_MSEC)

enum state { NEW, ASKED, ANSWERED };

struct jit_source {
	struct jit_process *of;
	enum jit_kind kind;
	enum state state;
	struct jit_map *map; /* owned; NULL: there is none */
	uint64_t retry_ns, pause_ns;
};

struct jit_process {
	struct jit_process *next;
	struct jit *all;
	uint32_t pid;
	uint64_t start_ns, exec_id; /* a program that follows by exec may be another user's: its names are others */
	uint64_t now_ns, refreshed_ns;
	struct jit_source sources[JIT_KIND_NR];
};

static void jit_process_free(struct jit_process *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(e->sources); i++) {
		if (e->sources[i].state == ASKED)
			host_cancel(e->all->host, &e->sources[i]);
		jit_map_free(e->sources[i].map);
	}
	free(e);
}

void jit_done(struct jit *j)
{
	while (j->first) {
		struct jit_process *e = j->first;

		j->first = e->next;
		jit_process_free(e);
	}
	j->count = 0;
}

static void jit_drop_last(struct jit *j)
{
	struct jit_process **slot = &j->first;

	while ((*slot)->next)
		slot = &(*slot)->next;
	jit_process_free(*slot);
	*slot = NULL;
	j->count--;
}

static bool jit_is_of(const struct jit_process *e, const struct process *p)
{
	return e->pid == p->pid && e->start_ns == p->start_ns && e->exec_id == p->exec_id;
}

/* Moves the process to the front: the last one is the least recently used. */
static struct jit_process *jit_find(struct jit *j, const struct process *p)
{
	for (struct jit_process **slot = &j->first; *slot; slot = &(*slot)->next) {
		struct jit_process *e = *slot;

		if (e->pid != p->pid)
			continue;
		*slot = e->next;
		if (!jit_is_of(e, p)) {
			jit_process_free(e);
			j->count--;
			return NULL;
		}
		e->next = j->first;
		j->first = e;
		return e;
	}
	return NULL;
}

static struct jit_process *jit_add(struct jit *j, const struct process *p)
{
	struct jit_process *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	if (j->count == JIT_PROCESSES)
		jit_drop_last(j);
	e->all = j;
	e->pid = p->pid;
	e->start_ns = p->start_ns;
	e->exec_id = p->exec_id;
	for (int i = 0; i < (int)ARRAY_SIZE(e->sources); i++)
		e->sources[i] = (struct jit_source){.of = e, .kind = (enum jit_kind)i};
	e->next = j->first;
	j->first = e;
	j->count++;
	return e;
}

static void jit_on_answer(void *ctx, int err, int fd, const void *data, size_t len)
{
	struct jit_source *s = ctx;
	struct jit *j = s->of->all;

	s->state = ANSWERED;
	if (err || fd < 0 || jit_map_new(fd, s->kind, &s->map) < 0) {
		if (err)
			closep(&fd);
		s->pause_ns = s->pause_ns ? MIN(2 * s->pause_ns, RETRY_LONGEST_NS) : RETRY_FIRST_NS;
		s->retry_ns = s->of->now_ns + s->pause_ns;
	}
	if (j->settled)
		j->settled(j->ctx);
}

static bool jit_is_dump(const struct mapping *m)
{
	const char *path = m->file->kind == MAPPED_FILE ? str_c(m->file->path) : "", *name = strrchr(path, '/');
	size_t len = name ? strlen(name) : 0;

	return len > 9 && !strncmp(name, "/jit-", 5) && !strcmp(name + len - 5, ".dump");
}

static const struct mapping *jit_find_dump(const struct space *s)
{
	for (uint32_t i = 0; s && i < s->count; i++)
		if (jit_is_dump(&s->maps[i]))
			return &s->maps[i];
	return NULL;
}

/* The question for a file of this kind; false: the process has none now. */
static bool jit_request(enum jit_kind kind, const struct process *p, struct host_request *ret)
{
	const struct mapping *dump;

	switch (kind) {
	case JIT_PERF_MAP:
		*ret = (struct host_request){.kind = HOST_OPEN_PERF_MAP, .pid = p->pid, .pid_start_ns = p->start_ns,
					     .group = p->cgroup_id, .path = ""};
		return true;
	case JIT_DUMP:
		dump = jit_find_dump(p->space);
		if (!dump)
			return false;
		*ret = (struct host_request){.kind = HOST_OPEN_MAPPED, .pid = p->pid, .pid_start_ns = p->start_ns,
					     .group = p->cgroup_id, .start = dump->start, .end = dump->end,
					     .path = str_c(dump->file->path)};
		return true;
	case JIT_KIND_NR:
		break;
	}
	return false;
}

static void jit_ask(struct jit_source *s, const struct process *p)
{
	struct host_request req;

	if (!jit_request(s->kind, p, &req))
		return;
	s->state = ASKED;
	if (host_ask(s->of->all->host, &req, jit_on_answer, s) < 0)
		s->state = NEW;
}

static bool jit_is_due(const struct jit_source *s, uint64_t now)
{
	return s->state == NEW || (s->state == ANSWERED && !s->map && now >= s->retry_ns);
}

static bool jit_has_map(const struct jit_process *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(e->sources); i++)
		if (e->sources[i].map)
			return true;
	return false;
}

struct jit_process *jit_get(struct jit *j, const struct process *p, uint64_t now, bool *ret_wait)
{
	struct jit_process *e = jit_find(j, p);
	bool first = !e;

	*ret_wait = false;
	if (!e && !(e = jit_add(j, p)))
		return NULL;
	e->now_ns = now;
	for (size_t i = 0; i < ARRAY_SIZE(e->sources); i++) {
		if (jit_is_due(&e->sources[i], now))
			jit_ask(&e->sources[i], p);
		/*
		 * Samples wait for the first answer only; later questions of a program without a map are rare, and
		 * nothing waits.
		 */
		*ret_wait |= e->sources[i].state == ASKED && !e->sources[i].pause_ns;
	}
	return first && !*ret_wait && !jit_has_map(e) ? NULL : e;
}

bool jit_functions(const struct jit *j, const struct process *p, uint32_t ret[JIT_KIND_NR])
{
	for (const struct jit_process *e = j->first; e; e = e->next) {
		if (!jit_is_of(e, p))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(e->sources); i++)
			ret[i] = e->sources[i].map ? jit_map_functions(e->sources[i].map) : 0;
		return true;
	}
	return false;
}

/* Also for addresses that have a name: another function may be there by now. */
static void jit_refresh(struct jit_process *e)
{
	if (e->now_ns - e->refreshed_ns < REFRESH_NS)
		return;
	e->refreshed_ns = e->now_ns;
	for (size_t i = 0; i < ARRAY_SIZE(e->sources); i++)
		if (e->sources[i].map)
			jit_map_refresh(e->sources[i].map);
}

static const enum name_source named_by[JIT_KIND_NR] = {[JIT_PERF_MAP] = NAME_PERF_MAP, [JIT_DUMP] = NAME_JITDUMP};

/* The last kind first: a jitdump holds more than a perf map. */
static bool jit_find_line(struct jit_process *e, uint64_t pc, struct symbol_line *ret, enum name_source *ret_source)
{
	for (size_t i = ARRAY_SIZE(e->sources); i-- > 0;)
		if (e->sources[i].map && jit_map_find(e->sources[i].map, pc, ret) == 0) {
			*ret_source = named_by[e->sources[i].kind];
			return true;
		}
	return false;
}

bool jit_name_frame(struct jit_process *e, uint64_t pc, struct frame *f)
{
	enum name_source source;
	struct symbol_line line;

	jit_refresh(e);
	if (!jit_find_line(e, pc, &line, &source))
		return false;
	*f = (struct frame){.kind = KIND_JIT,
			    .flags = f->flags | FRAME_NAMED,
			    .guess = f->guess,
			    .named_by = (uint8_t)source,
			    .line = line.line,
			    .column = line.column,
			    .start_line = line.start_line,
			    .function = line.name,
			    .file = line.file};
	return true;
}
