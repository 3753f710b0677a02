// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/asks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "process/host.h"

#define DEADLINE_NS	 (2 * NSEC_PER_SEC)
/*
 * For a scan of all processes; where one hangs (its arguments may lie in a page that is never read in), they are
 * asked for singly.
 */
#define SCAN_DEADLINE_NS (30 * NSEC_PER_SEC)

void asks_init(struct asks *a, struct workers *workers, asks_own_fn *own, void *ctx)
{
	*a = (struct asks){.workers = workers, .own = own, .own_ctx = ctx};
	a->last = &a->first;
}

static void asks_drop_waiting(struct asks *a)
{
	while (a->first) {
		struct ask *ask = a->first;

		a->first = ask->next;
		free(ask);
	}
	a->last = &a->first;
}

static void asks_drop_kept(struct opener_slot *s)
{
	if (s->answer)
		ipc_close_fds(s->answer);
	free(s->answer);
	s->answer = NULL;
}

void asks_done(struct asks *a)
{
	asks_drop_waiting(a);
	for (int i = 0; i < OPENERS; i++) {
		free(a->slot[i].current);
		asks_drop_kept(&a->slot[i]);
	}
	asks_init(a, a->workers, a->own, a->own_ctx);
}

/* NULL: the monitor itself. */
static struct worker *asks_worker(struct asks *a, enum asker from)
{
	switch (from) {
	case ASKER_ENGINE:
		return &a->workers->engine;
	case ASKER_INDEXER:
		return &a->workers->indexer;
	default:
		return NULL;
	}
}

/*
 * An answer of the monitor, without an opener. If the asker's socket has no room it is lost: such an asker is hostile
 * or dying.
 */
static void asks_answer_error(struct asks *a, enum asker from, uint64_t tag, int err)
{
	const struct ipc_answer answer = {.err = err};
	struct worker *w = asks_worker(a, from);

	if (!w)
		a->own(a->own_ctx, NULL);
	else if (w->sock >= 0 && worker_send(w, IPC_ANSWER, tag, &answer, sizeof(answer), -1))
		worker_kill(w);
}

/* The monitor answers HOST_OPEN_INDEX, and asks HOST_READ_CONTAINERS. */
static bool asks_kind_is_sound(uint32_t kind)
{
	switch (kind) {
	case HOST_OPEN_MAPPED:
	case HOST_READ_MAPS:
	case HOST_READ_IDENTITY:
	case HOST_SCAN:
	case HOST_OPEN_PERF_MAP:
	case HOST_OPEN_DEBUG:
		return true;
	default:
		return false;
	}
}

static bool asks_is_sound(const struct ipc_message *msg)
{
	const struct ipc_ask *ask = (const void *)msg->data;

	return ipc_nr_fds(msg) == 0 && msg->head.len >= sizeof(*ask) && ask->path_len < HOST_PATH_MAX &&
	       msg->head.len == sizeof(*ask) + ask->path_len && asks_kind_is_sound(ask->kind) &&
	       (!ask->len || ask->kind == HOST_SCAN);
}

/* The indexer may ask for debug files only, and it alone may. */
static bool asks_is_sound_of(enum asker from, const struct ipc_message *msg)
{
	const struct ipc_ask *ask = (const void *)msg->data;

	return asks_is_sound(msg) && (from == ASKER_INDEXER) == (ask->kind == HOST_OPEN_DEBUG);
}

static struct ask *asks_new(struct asks *a, enum asker from, uint64_t tag, uint32_t len)
{
	struct ask *ask = malloc(sizeof(*ask) + len);

	if (!ask)
		return NULL;
	*ask = (struct ask){.from = from, .tag = tag, .len = len};
	a->open++;
	return ask;
}

static struct ask *asks_append(struct asks *a, enum asker from, uint64_t tag, uint32_t len)
{
	struct ask *ask = asks_new(a, from, tag, len);

	if (!ask)
		return NULL;
	*a->last = ask;
	a->last = &ask->next;
	return ask;
}

static void asks_put_first(struct asks *a, struct ask *ask)
{
	ask->next = a->first;
	a->first = ask;
	if (!ask->next)
		a->last = &ask->next;
}

void asks_add(struct asks *a, enum asker from, struct ipc_message *msg)
{
	struct ask *ask;

	a->asked++;
	if (!asks_is_sound_of(from, msg)) {
		log_warn("%s sent a malformed question: it is killed", worker_name(asks_worker(a, from)));
		worker_kill(asks_worker(a, from));
		return;
	}
	ask = a->open < ASKS_MAX ? asks_append(a, from, msg->head.tag, msg->head.len) : NULL;
	if (!ask) {
		a->refused++;
		asks_answer_error(a, from, msg->head.tag, -EBUSY);
		return;
	}
	memcpy(ask->data, msg->data, msg->head.len);
}

int asks_add_own(struct asks *a, const struct ipc_ask *question, const char *path)
{
	struct ask *ask = asks_new(a, ASKER_MONITOR, 0, (uint32_t)(sizeof(*question) + question->path_len));

	if (!ask)
		return -ENOMEM;
	asks_put_first(a, ask);
	memcpy(ask->data, question, sizeof(*question));
	memcpy(ask->data + sizeof(*question), path, question->path_len);
	return 0;
}

static uint64_t asks_allowed_ns(const struct ask *ask)
{
	return ((const struct ipc_ask *)ask->data)->kind == HOST_SCAN ? SCAN_DEADLINE_NS : DEADLINE_NS;
}

/* Ends the question; its answer may still wait in the slot. false: nobody waits for the answer. */
static bool asks_settle(struct asks *a, struct opener_slot *s)
{
	bool wanted = !s->orphan;

	free(s->current);
	s->current = NULL;
	s->orphan = false;
	a->open--;
	return wanted;
}

/* -EAGAIN: the asker's socket has no room. */
static int asks_forward(struct asks *a, enum asker to, const struct ipc_message *answer)
{
	const struct worker *w = asks_worker(a, to);

	if (!w) {
		a->own(a->own_ctx, answer);
		return 0;
	}
	return w->sock < 0 ? -EPIPE : ipc_send(w->sock, IPC_ANSWER, answer->head.tag, answer->data, answer->head.len, answer->fds,
			ipc_nr_fds(answer));
}

static struct ipc_message *asks_keep(struct ipc_message *answer)
{
	struct ipc_message *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *answer;
	for (int i = 0; i < IPC_FDS_MAX; i++)
		answer->fds[i] = -1;
	return copy;
}

void asks_answered(struct asks *a, int opener, struct ipc_message *msg)
{
	struct opener_slot *s = &a->slot[opener];
	enum asker from;
	uint64_t tag;
	int err;

	if (!s->current || msg->head.tag != s->current->tag || msg->head.len < sizeof(struct ipc_answer) ||
	    ipc_nr_fds(msg) > 1) {
		log_warn("opener sent an answer without a question: it is killed");
		worker_kill(&a->workers->opener[opener]);
		return;
	}
	tag = s->current->tag;
	from = s->current->from;
	if (!asks_settle(a, s))
		return;
	err = asks_forward(a, from, msg);
	s->answer_to = from;
	if (err == -EAGAIN && !(s->answer = asks_keep(msg)))
		asks_answer_error(a, from, tag, -ENOMEM);
}

/* Its question is answered with an error, not repeated: another opener would hang on it too. */
void asks_opener_died(struct asks *a, int opener, bool timed_out)
{
	struct opener_slot *s = &a->slot[opener];
	enum asker from;
	uint64_t tag;

	if (!s->current)
		return;
	tag = s->current->tag;
	from = s->current->from;
	if (asks_settle(a, s))
		asks_answer_error(a, from, tag, timed_out ? -ETIMEDOUT : -EIO);
}

static void asks_drop_waiting_of(struct asks *a, enum asker from)
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

/* Nobody waits for a dead worker's questions; openers finish theirs, and the answers are dropped. */
void asks_asker_died(struct asks *a, enum asker from)
{
	asks_drop_waiting_of(a, from);
	for (int i = 0; i < OPENERS; i++) {
		struct opener_slot *s = &a->slot[i];

		if (s->answer && s->answer_to == from)
			asks_drop_kept(s);
		s->orphan |= s->current && s->current->from == from;
	}
}

static void asks_hand_out(struct asks *a, int i, uint64_t now)
{
	struct opener_slot *s = &a->slot[i];
	struct ask *ask = a->first;

	if (!ask || s->current || s->answer || !a->workers->opener[i].ready)
		return;
	if (worker_send(&a->workers->opener[i], IPC_ASK, ask->tag, ask->data, ask->len, -1))
		return;
	a->first = ask->next;
	if (!a->first)
		a->last = &a->first;
	s->current = ask;
	s->deadline_ns = now + asks_allowed_ns(ask);
}

/*
 * No signal ends a process that waits for a dead file server. It is abandoned: its question is answered now, another
 * opener replaces it, and the number of abandoned ones is bounded.
 */
static void asks_abandon(struct asks *a, int i)
{
	struct worker *w = &a->workers->opener[i];
	static struct log_rate rate;

	log_rated(&rate, LOG_LEVEL_WARN, "opener (pid %d) did not answer in time: it is killed", w->pid);
	a->timed_out++;
	worker_kill(w);
	asks_opener_died(a, i, true);
	close(w->sock);
	w->sock = -1;
	w->pid = 0;
	w->ready = false;
	w->restarts++;
	w->next_start_ns = clock_now_ns();
	a->workers->abandoned++;
	if (a->workers->abandoned == ABANDONED_MAX)
		log_error("%u openers hang in the kernel: files and mappings of processes cannot be read until one ends",
			  ABANDONED_MAX);
}

static void asks_send_kept(struct asks *a, struct opener_slot *s)
{
	if (s->answer && asks_forward(a, s->answer_to, s->answer) != -EAGAIN)
		asks_drop_kept(s);
}

/* No opener is left: the questions are answered with an error. */
static void asks_refuse_waiting(struct asks *a)
{
	while (a->first) {
		struct ask *ask = a->first;

		a->first = ask->next;
		if (!a->first)
			a->last = &a->first;
		a->open--;
		asks_answer_error(a, ask->from, ask->tag, -ETIMEDOUT);
		free(ask);
	}
}

void asks_run(struct asks *a, uint64_t now)
{
	for (int i = 0; i < OPENERS; i++) {
		struct opener_slot *s = &a->slot[i];

		asks_send_kept(a, s);
		if (s->current && now >= s->deadline_ns)
			asks_abandon(a, i);
		asks_hand_out(a, i, now);
	}
	if (a->workers->abandoned >= ABANDONED_MAX && !a->workers->opener[0].pid && !a->workers->opener[1].pid)
		asks_refuse_waiting(a);
}

uint64_t asks_next_ns(const struct asks *a)
{
	uint64_t next = UINT64_MAX;

	for (int i = 0; i < OPENERS; i++)
		if (a->slot[i].current)
			next = MIN(next, a->slot[i].deadline_ns);
	return next;
}

bool asks_wait_for_room(const struct asks *a)
{
	for (int i = 0; i < OPENERS; i++)
		if (a->slot[i].answer)
			return true;
	return false;
}
