// SPDX-License-Identifier: Apache-2.0
/*
 * The debug files that the indexer requests: answered from the cache, or
 * noted, and queued once the index is made without them. Bounded: files in
 * the queue, indexes that wait for one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/fetch_jobs_internal.h"
#include "process/host.h"
#include "symbol/index_build.h"

#define TASKS_MAX 256

void fetch_jobs_index_begins(struct monitor *m, const char *key)
{
	if (!m->fetch)
		return;
	m->fetch->nr_notes = 0;
	snprintf(m->fetch->key, sizeof(m->fetch->key), "%s", key);
}

static bool fetch_wishes_is_blamed(const struct fetch_jobs *j, const char *id)
{
	for (uint32_t i = 0; i < FETCH_PAIRS_MAX; i++)
		if (!strcmp(j->pairs[i].key, j->key) && !strcmp(j->pairs[i].id, id))
			return true;
	return false;
}

static void fetch_wishes_blame(struct fetch_jobs *j, const char *id)
{
	struct fetch_pair *p = &j->pairs[j->next_pair++ % FETCH_PAIRS_MAX];

	memcpy(p->key, j->key, sizeof(p->key));
	memcpy(p->id, id, sizeof(p->id));
}

static void fetch_wishes_note(struct fetch_jobs *j, const char *id, enum fetch_state state)
{
	for (uint32_t i = 0; i < j->nr_notes; i++)
		if (!strcmp(j->notes[i].id, id))
			return;
	if (j->nr_notes == FETCH_NOTES_MAX)
		return;
	memcpy(j->notes[j->nr_notes].id, id, strlen(id) + 1);
	j->notes[j->nr_notes++].state = state;
}

static int fetch_wishes_look_up(struct monitor *m, const char *id)
{
	struct fetch_jobs *j = m->fetch;
	enum fetch_state state;
	int fd;

	if (!fetch_is_on(m))
		return -ENOENT;
	if (fetch_wishes_is_blamed(j, id)) {
		fetch_wishes_note(j, id, FETCH_UNREADABLE);
		return -ENOENT;
	}
	fd = fetch_cache_find(&j->cache, id);
	if (fd >= 0) {
		fetch_wishes_note(j, id, FETCH_FETCHED);
		return fd;
	}
	state = fetch_cache_refused(&j->cache, id, (uint64_t)time(NULL));
	fetch_wishes_note(j, id, state == FETCH_NONE ? FETCH_WAITING : state);
	return -ENOENT;
}

bool fetch_jobs_asked(struct monitor *m, const struct ipc_message *msg)
{
	const struct ipc_ask *ask = (const void *)msg->data;
	_cleanup_(closep) int fd = -1;
	struct ipc_answer a = {0};
	char id[FETCH_ID_MAX] = "";

	if (msg->head.len < sizeof(*ask) || ask->kind != HOST_OPEN_DEBUG || ask->len != INDEX_ROOT_FETCHED)
		return false;
	if (msg->head.len == sizeof(*ask) + ask->path_len && ask->path_len < sizeof(id))
		memcpy(id, ask + 1, ask->path_len);
	fd = fetch_id_is_sound(id) ? fetch_wishes_look_up(m, id) : -ENOENT;
	a.err = MIN(fd, 0);
	if (worker_send(&m->workers.indexer, IPC_ANSWER, msg->head.tag, &a, sizeof(a), fd))
		worker_kill(&m->workers.indexer);
	return true;
}

void fetch_count_failure(struct fetch_jobs *j, const char *id, enum fetch_state state, const char *text)
{
	j->figures.failed[state]++;
	snprintf(j->last_error, sizeof(j->last_error), "%s: %s", fetch_state_text(state), *text ? text : id);
}

/* The indexer died of a cached file or of the file that asked for it, or could not use them: it is tried without. */
bool fetch_jobs_blame(struct monitor *m)
{
	struct fetch_jobs *j = m->fetch;
	bool any = false;

	for (uint32_t i = 0; fetch_is_on(m) && i < j->nr_notes; i++) {
		if (j->notes[i].state != FETCH_FETCHED)
			continue;
		any = true;
		log_notice("debuginfod: %s cannot be read, and is not used for the file that asked for it", j->notes[i].id);
		fetch_wishes_blame(j, j->notes[i].id);
		fetch_count_failure(j, j->notes[i].id, FETCH_UNREADABLE, "");
	}
	return any;
}

void fetch_send_state(struct monitor *m, const uint64_t content[2], enum fetch_state state)
{
	const struct ipc_debuginfod d = {.content = {content[0], content[1]}, .state = state};

	/* If this cannot be sent, the engine receives the state when it asks for the index again. */
	worker_send(&m->workers.engine, IPC_DEBUGINFOD, 0, &d, sizeof(d), -1);
}

static struct fetch_task *fetch_wishes_task_of(struct fetch_jobs *j, const char *id)
{
	struct fetch_task *t = j->first;

	while (t && strcmp(t->id, id))
		t = t->next;
	if (t || j->count == TASKS_MAX)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	memcpy(t->id, id, strlen(id) + 1);
	*j->last = t;
	j->last = &t->next;
	j->count++;
	return t;
}

static void fetch_wishes_add_user(struct fetch_task *t, const char *key, const uint64_t content[2])
{
	for (uint32_t i = 0; i < t->nr_users; i++)
		if (!strcmp(t->users[i].key, key))
			return;
	if (t->nr_users == FETCH_USERS_MAX)
		return;
	memcpy(t->users[t->nr_users].key, key, INDEX_KEY_MAX);
	memcpy(t->users[t->nr_users++].content, content, sizeof(t->users[0].content));
}

static bool fetch_wishes_queue(struct fetch_jobs *j, const char *id, const char *key, const uint64_t content[2])
{
	struct fetch_task *t = fetch_wishes_task_of(j, id);

	if (t)
		fetch_wishes_add_user(t, key, content);
	else
		j->figures.dropped++;
	return t;
}

bool fetch_jobs_index_made(struct monitor *m, const char *key, const uint64_t content[2])
{
	struct fetch_jobs *j = m->fetch;
	bool comes = false;

	for (uint32_t i = 0; fetch_is_on(m) && i < j->nr_notes; i++) {
		enum fetch_state state = j->notes[i].state;

		if (state == FETCH_WAITING && !fetch_wishes_queue(j, j->notes[i].id, key, content))
			state = FETCH_NONE;
		comes |= state == FETCH_WAITING;
		fetch_send_state(m, content, state);
	}
	return comes;
}
