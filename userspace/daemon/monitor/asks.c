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
#define DEATH_NS	 NSEC_PER_SEC /* a process that a signal can end has ended by then */
#define BAN_NS		 (600 * NSEC_PER_SEC)
#define BAN_SHORT_NS	 (60 * NSEC_PER_SEC)
#define BESIDE_OPEN_MAX	 4 /* of one decoder, which waits for each; openers may not have reported the last ones yet */

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

void asks_done(struct asks *a)
{
	asks_drop_waiting(a);
	for (int i = 0; i < OPENERS; i++)
		free(a->slot[i].current);
	asks_init(a, a->workers, a->own, a->own_ctx);
}

/* NULL: the monitor itself. */
static struct worker *asks_worker(struct asks *a, enum asker from)
{
	if (from >= ASKER_DECODER)
		return &a->workers->decoder[from - ASKER_DECODER];
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

/* The monitor answers HOST_OPEN_INDEX and HOST_OPEN_DECODER itself, and asks HOST_READ_CONTAINERS. */
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

int asks_add_decoder(struct asks *a, int decoder, const struct ipc_ask *question)
{
	struct ask *ask = asks_new(a, ASKER_DECODER + decoder, 0, sizeof(*question));

	a->decoder_touches[decoder] = (struct blame){0};
	if (!ask)
		return -ENOMEM;
	a->asked++;
	asks_put_first(a, ask);
	memcpy(ask->data, question, sizeof(*question));
	return 0;
}

static uint32_t asks_open_of(const struct asks *a, enum asker from)
{
	uint32_t n = 0;

	for (const struct ask *ask = a->first; ask; ask = ask->next)
		n += ask->from == from;
	for (int i = 0; i < OPENERS; i++)
		n += a->slot[i].current && a->slot[i].current->from == from;
	return n;
}

int asks_add_beside(struct asks *a, int decoder, uint64_t tag, const struct ipc_ask *question, const char *name)
{
	const enum asker from = ASKER_DECODER + decoder;
	struct ask *ask;

	a->asked++;
	if (a->open >= ASKS_MAX || asks_open_of(a, from) >= BESIDE_OPEN_MAX) {
		a->refused++;
		return -EBUSY;
	}
	ask = asks_append(a, from, tag, (uint32_t)sizeof(*question) + question->path_len);
	if (!ask)
		return -ENOMEM;
	memcpy(ask->data, question, sizeof(*question));
	memcpy(ask->data + sizeof(*question), name, question->path_len);
	return 0;
}

static uint32_t asks_kind(const struct ask *ask)
{
	return ((const struct ipc_ask *)ask->data)->kind;
}

static uint64_t asks_allowed_ns(const struct ask *ask)
{
	return asks_kind(ask) == HOST_SCAN ? SCAN_DEADLINE_NS : DEADLINE_NS;
}

/* Ends the question. false: nobody waits for the answer. */
static bool asks_settle(struct asks *a, struct opener_slot *s)
{
	bool wanted = !s->orphan;

	if (wanted && asks_kind(s->current) == HOST_OPEN_DECODER)
		a->decoder_touches[s->current->from - ASKER_DECODER] = s->touches;
	free(s->current);
	s->current = NULL;
	s->orphan = false;
	a->open--;
	return wanted;
}

/* What an opener sends for the question it has; a question of the monitor is answered to the monitor. */
static bool asks_fits(const struct opener_slot *s, const struct ipc_message *msg)
{
	if (!s->current || msg->head.tag != s->current->tag)
		return false;
	if (msg->head.type == IPC_ANSWER)
		return s->current->from == ASKER_MONITOR && msg->head.len >= sizeof(struct ipc_answer);
	return ipc_fits(msg, 0, 0);
}

void asks_from_opener(struct asks *a, int opener, struct ipc_message *msg)
{
	struct opener_slot *s = &a->slot[opener];

	if (msg->head.type == IPC_BLAME && ipc_fits(msg, sizeof(s->touches), 0)) {
		memcpy(&s->touches, msg->data, sizeof(s->touches));
	} else if (!asks_fits(s, msg)) {
		log_warn("opener sent an answer without a question: it is killed");
		worker_kill(&a->workers->opener[opener]);
	} else if (msg->head.type == IPC_FOUND) {
		s->deadline_ns = UINT64_MAX;
	} else if (asks_settle(a, s) && msg->head.type == IPC_ANSWER) {
		a->own(a->own_ctx, msg);
	}
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

		s->orphan |= s->current && s->current->from == from;
	}
}

int asks_opener_started(struct asks *a, int opener)
{
	struct ipc_bans bans = {.count = a->bans.count, .copy_overlays = a->copy_overlays};

	memcpy(bans.ban, a->bans.ban, sizeof(bans.ban));
	return worker_send_patiently(&a->workers->opener[opener], IPC_BANS, &bans, sizeof(bans), -1);
}

static void asks_tell_openers(struct asks *a)
{
	for (int i = 0; i < OPENERS; i++)
		if (a->workers->opener[i].ready && asks_opener_started(a, i))
			worker_kill(&a->workers->opener[i]);
}

void asks_copy_overlays(struct asks *a)
{
	a->copy_overlays = true;
	asks_tell_openers(a);
}

static void asks_ban(struct asks *a, const struct blame *who, uint64_t until)
{
	bans_add(&a->bans, who, until);
	asks_tell_openers(a);
}

/*
 * A user's is banned at once: the next opener would hang on it, too. Root's only when no signal ends the opener: the
 * time may have been that of a busy disk.
 */
static void asks_suspect(struct asks *a, pid_t pid, const struct blame *touches, uint64_t now)
{
	if (!touches->uid && !touches->pid && !touches->dev)
		return;
	if (touches->uid)
		asks_ban(a, touches, now + BAN_SHORT_NS);
	for (int i = 0; i < ABANDONED_MAX; i++)
		if (!a->suspect[i].pid) {
			a->suspect[i] = (struct suspect){pid, *touches, now, touches->uid};
			return;
		}
}

void asks_decoder_hangs(struct asks *a, int decoder, pid_t pid, uint64_t now)
{
	asks_suspect(a, pid, &a->decoder_touches[decoder], now);
}

void asks_abandoned_ended(struct asks *a, pid_t pid)
{
	for (int i = 0; i < ABANDONED_MAX; i++)
		if (a->suspect[i].pid == pid)
			a->suspect[i].pid = 0;
}

/* Those that no signal ended: each is an opener lost, so no other one may touch what it hangs on. */
static void asks_ban_suspects(struct asks *a, uint64_t now)
{
	for (int i = 0; i < ABANDONED_MAX; i++) {
		struct suspect *s = &a->suspect[i];

		if (!s->pid || now < s->since_ns + DEATH_NS)
			continue;
		if (s->banned)
			bans_extend(&a->bans, &s->touches, now + BAN_NS);
		else
			asks_ban(a, &s->touches, now + BAN_NS);
		s->banned = true;
	}
}

static bool asks_is_beside_open(const struct asks *a)
{
	for (int i = 0; i < OPENERS; i++)
		if (a->slot[i].current && asks_kind(a->slot[i].current) == HOST_OPEN_BESIDE)
			return true;
	return false;
}

/* Where the next one is; NULL: none. Files of lines are opened one at a time, when nobody else waits. */
static struct ask **asks_next(struct asks *a)
{
	struct ask **at = &a->first;

	while (*at && asks_kind(*at) == HOST_OPEN_BESIDE)
		at = &(*at)->next;
	if (*at)
		return at;
	return a->first && !asks_is_beside_open(a) ? &a->first : NULL;
}

static void asks_hand_out(struct asks *a, int i, uint64_t now)
{
	struct opener_slot *s = &a->slot[i];
	struct ask **at = asks_next(a), *ask = at ? *at : NULL;
	const struct worker *asker;

	if (!ask || s->current || !a->workers->opener[i].ready)
		return;
	asker = asks_worker(a, ask->from);
	if (worker_send(&a->workers->opener[i], IPC_ASK, ask->tag, ask->data, ask->len, asker ? asker->sock : -1))
		return;
	*at = ask->next;
	if (!*at)
		a->last = at;
	s->current = ask;
	s->touches = (struct blame){0};
	s->deadline_ns = now + asks_allowed_ns(ask);
}

/*
 * No signal ends a process that waits for a dead file server. It is abandoned: its question is answered now, another
 * opener replaces it, and the number of abandoned ones is bounded.
 */
static void asks_abandon(struct asks *a, int i, uint64_t now)
{
	const struct blame touches = a->slot[i].touches;
	struct worker *w = &a->workers->opener[i];
	static struct log_rate rate;

	log_rated(&rate, LOG_LEVEL_WARN, "opener (pid %d) did not answer in time, for a process of user %u: it is killed",
		  w->pid, touches.uid);
	a->timed_out++;
	asks_suspect(a, w->pid, &touches, now);
	asks_opener_died(a, i, true);
	workers_abandon(a->workers, w);
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
	asks_ban_suspects(a, now);
	if (bans_expire(&a->bans, now))
		asks_tell_openers(a);
	for (int i = 0; i < OPENERS; i++) {
		struct opener_slot *s = &a->slot[i];

		if (s->current && now >= s->deadline_ns)
			asks_abandon(a, i, now);
		asks_hand_out(a, i, now);
	}
	if (a->workers->abandoned >= ABANDONED_MAX && !a->workers->opener[0].pid && !a->workers->opener[1].pid)
		asks_refuse_waiting(a);
}

uint64_t asks_next_ns(const struct asks *a)
{
	uint64_t next = bans_next_ns(&a->bans);

	for (int i = 0; i < OPENERS; i++)
		if (a->slot[i].current)
			next = MIN(next, a->slot[i].deadline_ns);
	return next;
}
