// SPDX-License-Identifier: Apache-2.0
/*
 * The engine's and the indexer's questions: queued, given one at a time to an opener that is
 * free, answered in any order. An opener that does not answer in time is
 * killed, and its question answered in its place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"
#include "process/host.h"

#define DEADLINE_NS	 (2 * NSEC_PER_SEC)
/* Of all processes; where one hangs (its arguments may lie in a page that never comes), they are asked about singly. */
#define SCAN_DEADLINE_NS (30 * NSEC_PER_SEC)

void asks_init(struct asks *a)
{
	*a = (struct asks){0};
	a->last = &a->first;
}

static void drop_waiting(struct asks *a)
{
	while (a->first) {
		struct ask *ask = a->first;

		a->first = ask->next;
		free(ask);
	}
	a->last = &a->first;
}

static void drop_kept(struct opener_slot *s)
{
	if (s->answer)
		ipc_close_fds(s->answer);
	free(s->answer);
	s->answer = NULL;
}

void asks_done(struct asks *a)
{
	drop_waiting(a);
	for (int i = 0; i < OPENERS; i++) {
		free(a->slot[i].current);
		drop_kept(&a->slot[i]);
	}
	asks_init(a);
}

/* NULL: the monitor itself. */
static struct worker *asks_worker(struct monitor *m, enum asker from)
{
	switch (from) {
	case ASKER_ENGINE:
		return &m->workers.engine;
	case ASKER_INDEXER:
		return &m->workers.indexer;
	default:
		return NULL;
	}
}

/* An answer that nobody was needed for. One that the asker has no room for is lost: it is hostile or dying. */
static void answer_error(struct monitor *m, enum asker from, uint64_t tag, int err)
{
	const struct ipc_answer answer = {.err = err};
	struct worker *w = asks_worker(m, from);

	if (!w)
		targets_names_answered(m, NULL);
	else if (w->sock >= 0 && worker_send(w, IPC_ANSWER, tag, &answer, sizeof(answer), -1))
		worker_kill(w);
}

/* HOST_OPEN_INDEX is the monitor's own to answer. */
static bool asks_kind_is_sound(uint32_t kind)
{
	switch (kind) {
	case HOST_OPEN_MAPPED:
	case HOST_READ_MAPS:
	case HOST_READ_IDENTITY:
	case HOST_SCAN:
	case HOST_OPEN_PERF_MAP:
	case HOST_OPEN_DEBUG:
	case HOST_READ_CONTAINERS:
		return true;
	default:
		return false;
	}
}

static bool is_sound(const struct ipc_message *msg)
{
	const struct ipc_ask *ask = (const void *)msg->data;

	return ipc_nr_fds(msg) == 0 && msg->head.len >= sizeof(*ask) && ask->path_len < HOST_PATH_MAX &&
	       msg->head.len == sizeof(*ask) + ask->path_len && asks_kind_is_sound(ask->kind) &&
	       (!ask->len || ask->kind == HOST_SCAN || ask->kind == HOST_OPEN_DEBUG);
}

/* The indexer knows two processes: the one whose file it reads, and the host's first. */
static bool is_sound_of(struct monitor *m, enum asker from, struct ipc_message *msg)
{
	struct ipc_ask *ask = (void *)msg->data;

	if (!is_sound(msg) || (from == ASKER_INDEXER) != (ask->kind == HOST_OPEN_DEBUG) ||
	    ask->kind == HOST_READ_CONTAINERS)
		return false;
	if (from == ASKER_INDEXER)
		index_jobs_set_root(m, ask);
	return true;
}

static struct ask *asks_append(struct asks *a, enum asker from, uint64_t tag, uint32_t len)
{
	struct ask *ask = malloc(sizeof(*ask) + len);

	if (!ask)
		return NULL;
	*ask = (struct ask){.from = from, .tag = tag, .len = len};
	*a->last = ask;
	a->last = &ask->next;
	a->open++;
	return ask;
}

void asks_add(struct monitor *m, enum asker from, struct ipc_message *msg)
{
	struct asks *a = &m->asks;
	struct ask *ask;

	a->asked++;
	if (!is_sound_of(m, from, msg)) {
		log_warn("%s asked what cannot be asked: it is killed", worker_name(asks_worker(m, from)));
		worker_kill(asks_worker(m, from));
		return;
	}
	ask = a->open < ASKS_MAX ? asks_append(a, from, msg->head.tag, msg->head.len) : NULL;
	if (!ask) {
		a->refused++;
		answer_error(m, from, msg->head.tag, -EBUSY);
		return;
	}
	memcpy(ask->data, msg->data, msg->head.len);
}

int asks_add_own(struct monitor *m, const struct ipc_ask *question, const char *path)
{
	struct ask *ask = asks_append(&m->asks, ASKER_TARGETS, 0, (uint32_t)(sizeof(*question) + question->path_len));

	if (!ask)
		return -ENOMEM;
	memcpy(ask->data, question, sizeof(*question));
	memcpy(ask->data + sizeof(*question), path, question->path_len);
	return 0;
}

static uint64_t allowed_ns(const struct ask *ask)
{
	return ((const struct ipc_ask *)ask->data)->kind == HOST_SCAN ? SCAN_DEADLINE_NS : DEADLINE_NS;
}

/* The question is over for the monitor; its answer may still wait in the slot. False: nobody waits for it. */
static bool settle(struct asks *a, struct opener_slot *s)
{
	bool wanted = !s->orphan;

	free(s->current);
	s->current = NULL;
	s->orphan = false;
	a->open--;
	return wanted;
}

/* -EAGAIN: its socket has no room. */
static int forward(struct monitor *m, enum asker to, const struct ipc_message *answer)
{
	const struct worker *w = asks_worker(m, to);

	if (!w) {
		targets_names_answered(m, answer);
		return 0;
	}
	return w->sock < 0 ? -EPIPE : ipc_send(w->sock, IPC_ANSWER, answer->head.tag, answer->data, answer->head.len, answer->fds,
			ipc_nr_fds(answer));
}

static struct ipc_message *keep(struct ipc_message *answer)
{
	struct ipc_message *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *answer;
	for (int i = 0; i < IPC_FDS_MAX; i++)
		answer->fds[i] = -1;
	return copy;
}

void asks_answered(struct monitor *m, int opener, struct ipc_message *msg)
{
	struct opener_slot *s = &m->asks.slot[opener];
	enum asker from;
	uint64_t tag;
	int err;

	if (!s->current || msg->head.tag != s->current->tag || msg->head.len < sizeof(struct ipc_answer) ||
	    ipc_nr_fds(msg) > 1) {
		log_warn("opener answered what nobody asked: it is killed");
		worker_kill(&m->workers.opener[opener]);
		return;
	}
	tag = s->current->tag;
	from = s->current->from;
	if (!settle(&m->asks, s))
		return;
	err = forward(m, from, msg);
	s->answer_to = from;
	if (err == -EAGAIN && !(s->answer = keep(msg)))
		answer_error(m, from, tag, -ENOMEM);
}

/* Its question goes with it, answered: another opener would hang on it too. */
void asks_opener_died(struct monitor *m, int opener, bool timed_out)
{
	struct opener_slot *s = &m->asks.slot[opener];
	enum asker from;
	uint64_t tag;

	if (!s->current)
		return;
	tag = s->current->tag;
	from = s->current->from;
	if (settle(&m->asks, s))
		answer_error(m, from, tag, timed_out ? -ETIMEDOUT : -EIO);
}

static void drop_waiting_of(struct asks *a, enum asker from)
{
	struct ask **slot = &a->first, *ask;

	while ((ask = *slot)) {
		if (ask->from != from) {
			slot = &ask->next;
			continue;
		}
		*slot = ask->next;
		free(ask);
		a->open--;
	}
	a->last = slot;
}

/* What the dead one asked, no other waits for; openers finish what they have, unheard. */
void asks_asker_died(struct monitor *m, enum asker from)
{
	struct asks *a = &m->asks;

	drop_waiting_of(a, from);
	for (int i = 0; i < OPENERS; i++) {
		struct opener_slot *s = &a->slot[i];

		if (s->answer && s->answer_to == from)
			drop_kept(s);
		s->orphan |= s->current && s->current->from == from;
	}
}

static void hand_out(struct monitor *m, int i, uint64_t now)
{
	struct opener_slot *s = &m->asks.slot[i];
	struct ask *ask = m->asks.first;

	if (!ask || s->current || s->answer || !m->workers.opener[i].ready)
		return;
	if (worker_send(&m->workers.opener[i], IPC_ASK, ask->tag, ask->data, ask->len, -1))
		return;
	m->asks.first = ask->next;
	if (!m->asks.first)
		m->asks.last = &m->asks.first;
	s->current = ask;
	s->deadline_ns = now + allowed_ns(ask);
}

/*
 * No signal ends a process that waits for a dead file server. It is left to
 * itself: the answer goes out now, another opener takes its place, and there
 * is a limit to how many we leave.
 */
static void abandon(struct monitor *m, int i)
{
	struct worker *w = &m->workers.opener[i];
	static struct log_rate rate;

	log_rated(&rate, LOG_LEVEL_WARN, "opener (pid %d) did not answer in time: it is killed", w->pid);
	m->asks.timed_out++;
	worker_kill(w);
	asks_opener_died(m, i, true);
	close(w->sock);
	w->sock = -1;
	w->pid = 0;
	w->ready = false;
	w->restarts++;
	w->next_start_ns = clock_now_ns();
	m->workers.abandoned++;
	if (m->workers.abandoned == ABANDONED_MAX)
		log_error("%u openers hang in the kernel: files and mappings of processes cannot be read until one ends",
			  ABANDONED_MAX);
}

static void send_kept(struct monitor *m, struct opener_slot *s)
{
	if (s->answer && forward(m, s->answer_to, s->answer) != -EAGAIN)
		drop_kept(s);
}

/* Nobody is left to ask: rather an answer now than none. */
static void refuse_waiting(struct monitor *m)
{
	struct asks *a = &m->asks;

	while (a->first) {
		struct ask *ask = a->first;

		a->first = ask->next;
		if (!a->first)
			a->last = &a->first;
		a->open--;
		answer_error(m, ask->from, ask->tag, -ETIMEDOUT);
		free(ask);
	}
}

void asks_run(struct monitor *m, uint64_t now)
{
	for (int i = 0; i < OPENERS; i++) {
		struct opener_slot *s = &m->asks.slot[i];

		send_kept(m, s);
		if (s->current && now >= s->deadline_ns)
			abandon(m, i);
		hand_out(m, i, now);
	}
	if (m->workers.abandoned >= ABANDONED_MAX && !m->workers.opener[0].pid && !m->workers.opener[1].pid)
		refuse_waiting(m);
}

uint64_t asks_next_ns(const struct monitor *m)
{
	uint64_t next = UINT64_MAX;

	for (int i = 0; i < OPENERS; i++)
		if (m->asks.slot[i].current)
			next = MIN(next, m->asks.slot[i].deadline_ns);
	return next;
}

bool asks_wait_for_room(const struct monitor *m)
{
	for (int i = 0; i < OPENERS; i++)
		if (m->asks.slot[i].answer)
			return true;
	return false;
}
