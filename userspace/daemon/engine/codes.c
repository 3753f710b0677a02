// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/codes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

static size_t bytes;

static void codes_count(struct codes *t, ptrdiff_t more)
{
	t->bytes += (size_t)more;
	bytes += (size_t)more;
}

static void code_entry_drop_code(struct codes *t, struct code_entry *e)
{
	if (e->code)
		codes_count(t, -(ptrdiff_t)runtime_code_len(e->code));
	free(e->code);
	e->code = NULL;
	e->name = str_put(e->name);
}

static void code_entry_free(struct codes *t, struct code_entry *e)
{
	code_entry_drop_code(t, e);
	codes_count(t, -(ptrdiff_t)sizeof(*e));
	free(e);
}

static void code_entry_take_code(struct codes *t, struct code_entry *e, const struct runtime_code_made *c)
{
	struct runtime_code *block = malloc(runtime_code_len(&c->code));

	if (!block)
		return;
	codes_count(t, (ptrdiff_t)runtime_code_len(&c->code));
	e->code = block;
	*block = c->code;
	e->functions = (void *)(block + 1);
	e->nodes = (void *)(e->functions + c->code.nr_functions);
	e->rows = (void *)(e->nodes + c->code.nr_nodes);
	e->more = (void *)(e->rows + c->code.nr_rows);
	memcpy(e->functions, c->functions, c->code.nr_functions * sizeof(*e->functions));
	memcpy(e->nodes, c->nodes, c->code.nr_nodes * sizeof(*e->nodes));
	memcpy(e->rows, c->rows, c->code.nr_rows * sizeof(*e->rows));
	memcpy(e->more, c->more, c->code.nr_more * sizeof(*e->more));
	if (c->code.name[0])
		e->name = str_get_c(c->code.name);
}

/* --- the table --- */

/* How many entries begin at or before pc. */
static uint32_t codes_until(const struct codes *t, uint64_t pc)
{
	return ARRAY_COUNT_WHILE(t->count, i, t->at[i]->start <= pc);
}

struct code_entry *codes_find(const struct codes *t, uint64_t pc)
{
	uint32_t n = codes_until(t, pc);

	return n && pc < t->at[n - 1]->end ? t->at[n - 1] : NULL;
}

static struct code_entry *codes_insert(struct codes *t, uint64_t start, uint64_t end)
{
	uint32_t i = codes_until(t, start);
	struct code_entry *e;

	if (t->count >= CODES_MAX || array_reserve(&t->at, t->count, &t->cap, sizeof(struct code_entry *)) < 0)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	*e = (struct code_entry){.start = start, .end = end};
	codes_count(t, sizeof(*e));
	memmove(&t->at[i + 1], &t->at[i], (t->count - i) * sizeof(struct code_entry *));
	t->at[i] = e;
	t->count++;
	return e;
}

/* The first entry that overlaps [start, ...), or lies behind. */
static uint32_t codes_first(const struct codes *t, uint64_t start)
{
	uint32_t i = codes_until(t, start);

	return i && t->at[i - 1]->end > start ? i - 1 : i;
}

/* Removes the entries that overlap [start, end). */
static void codes_clear(struct codes *t, uint64_t start, uint64_t end)
{
	uint32_t from = codes_first(t, start), to;

	for (to = from; to < t->count && t->at[to]->start < end; to++)
		code_entry_free(t, t->at[to]);
	memmove(&t->at[from], &t->at[to], (t->count - to) * sizeof(struct code_entry *));
	t->count -= to - from;
}

void codes_done(struct codes *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		code_entry_free(t, t->at[i]);
	free(t->at);
	t->at = NULL;
	t->count = t->cap = 0;
}

/* --- questions --- */

bool codes_are_alert(const struct codes *t, uint64_t time_ns)
{
	return t->replaced_ns && time_ns < t->replaced_ns + CODES_ALERT_NS;
}

/* Whether code of the process was seen to go, replaced or not, not long before. */
static bool codes_have_gone(const struct codes *t, uint64_t time_ns)
{
	return t->gone_ns && time_ns < t->gone_ns + CODES_ALERT_NS;
}

/* Code that may go within an epoch, of which a sample of the epoch was seen to have it: it does not. */
static bool codes_is_met(const struct code_entry *e, struct codes_when when)
{
	return e->code && e->code->flags & RUNTIME_CODE_MAY_GO && when.epoch && e->ran_epoch == when.epoch;
}

/* For how long after its last reading code is held to be where it was, or none to be there. */
static uint64_t codes_trust(const struct codes *t, const struct code_entry *e, struct codes_when when)
{
	const bool epochs = when.epoch && e->seen_epoch && e->code;

	if (codes_is_met(e, when))
		return CODES_TRUST_NS;
	if (codes_are_alert(t, when.time_ns) || (e->code && e->code->flags & RUNTIME_CODE_FLEETING))
		return 0;
	if ((t->ended || when.waited) && !codes_have_gone(t, when.time_ns))
		return t->ended ? CODES_ENDED_NS : CODES_TRUST_NS;
	if (epochs)
		return e->code->flags & RUNTIME_CODE_MAY_GO ? 0 : CODES_TRUST_NS;
	return MIN((e->seen_ns - e->found_ns) / CODES_TRUST_SHARE, CODES_TRUST_NS);
}

/* Of a heap that another one has taken the place of, nothing is left. */
static bool codes_is_of_heap(const struct code_entry *e, uint64_t epoch)
{
	return !epoch || !e->seen_epoch || runtime_epoch_heap(e->seen_epoch) == runtime_epoch_heap(epoch);
}

static bool codes_lasts(const struct code_entry *e)
{
	return e->code && e->code->flags & RUNTIME_CODE_LASTS;
}

static bool codes_stays_for_epoch(const struct code_entry *e, struct codes_when when)
{
	return when.epoch && e->seen_epoch && e->code && e->code->flags & RUNTIME_CODE_OF_EPOCH;
}

/* Code that may recur, and a sample of a known epoch: times say nothing. */
static bool codes_go_by_epoch(const struct code_entry *e, struct codes_when when)
{
	return when.epoch && e->seen_epoch && e->code && e->code->flags & RUNTIME_CODE_RECURS;
}

static bool codes_are_of_epoch(const struct code_entry *e, uint64_t epoch)
{
	return (epoch >= e->since_epoch && epoch <= e->seen_epoch) ||
	       (e->former_seen && epoch >= e->former_since && epoch <= e->former_seen);
}

static bool codes_is_read_for_epoch(const struct code_entry *e, struct codes_when when)
{
	return when.ran_ns && e->seen_ns >= when.ran_ns && (when.time_ns <= e->seen_ns || e->ran_epoch == when.epoch);
}

/* Since it was read, or until it was, nothing was replaced. */
static bool codes_are_of_stamp(const struct code_entry *e, struct codes_when when)
{
	return when.stamp && e->code && e->code->stamp == when.stamp;
}

/* Whether no later reading is needed. */
static bool codes_is_fresh(const struct codes *t, const struct code_entry *e, struct codes_when when)
{
	if (codes_lasts(e) || codes_are_of_stamp(e, when))
		return true;
	if (!e->seen_ns || !codes_is_of_heap(e, when.epoch) || (when.epoch && e->seen_epoch && when.epoch > e->seen_epoch))
		return false;
	if (codes_go_by_epoch(e, when))
		return true;
	if (codes_stays_for_epoch(e, when))
		return when.begins || when.epoch < e->seen_epoch || codes_is_read_for_epoch(e, when);
	return when.time_ns <= e->seen_ns + codes_trust(t, e, when);
}

bool codes_hold(const struct codes *t, const struct code_entry *e, struct codes_when when)
{
	if (e && codes_are_of_stamp(e, when))
		return true;
	if (e && codes_go_by_epoch(e, when))
		return codes_are_of_epoch(e, when.epoch);
	/* Nothing was freed since, or else what was first read later may be other code. */
	if (e && e->code && when.bound && e->since_epoch > when.bound + !!(e->code->flags & RUNTIME_CODE_RECURS))
		return false;
	if (!e || !e->code || when.time_ns < e->since_ns)
		return false;
	if (when.epoch && when.epoch - (when.begins && codes_stays_for_epoch(e, when)) < e->since_epoch)
		return false;
	return codes_is_fresh(t, e, when);
}

void codes_run(struct code_entry *e, struct codes_when when)
{
	if (when.epoch > e->ran_epoch && !when.begins && when.time_ns <= e->seen_ns)
		e->ran_epoch = when.epoch;
}

bool codes_want(struct codes *t, uint64_t pc, struct codes_when when, uint64_t now, struct runtime_frame *ret)
{
	struct code_entry *e = codes_find(t, pc);

	if (t->ended || (e && (e->pending || codes_is_fresh(t, e, when))))
		return false;
	if (!e)
		e = codes_insert(t, pc, pc + 1);
	if (!e)
		return false;
	e->pending = true;
	e->asked_ns = now;
	*ret = (struct runtime_frame){.key = pc, .cookie = {e->asked++}, .position = runtime_epoch_heap(when.epoch),
				      .flags = RUNTIME_CODE};
	if (e->code) {
		memcpy(ret->cookie + 1, e->code->identity, sizeof(e->code->identity));
		ret->cookie[RUNTIME_COOKIE_EPOCH] = e->seen_epoch;
	}
	return true;
}

void codes_unask(struct codes *t, uint64_t pc)
{
	struct code_entry *e = codes_find(t, pc);

	if (!e)
		return;
	e->pending = false;
	e->asked--;
}

static bool code_entry_is_same(const struct code_entry *e, const struct runtime_code *c)
{
	return e && e->code && e->start == c->start && e->end == c->end && codes_is_of_heap(e, c->epoch) &&
	       !memcmp(e->code->identity, c->identity, sizeof(c->identity));
}

/*
 * Whether the end of an epoch, or of a heap, parts what was known of a place from what was found now. What was found is then
 * of all samples of its own epoch, as if nothing had been known.
 */
static bool codes_is_of_former_epoch(const struct code_entry *e, const struct runtime_code *c)
{
	return c->epoch && (!e->code || e->seen_epoch < c->epoch || !codes_is_of_heap(e, c->epoch));
}

/* What is known already of the code that was found; NULL: nothing. */
static const struct code_entry *codes_find_same(const struct codes *t, const struct runtime_code *c)
{
	const struct code_entry *e = codes_find(t, c->start);

	return code_entry_is_same(e, c) ? e : NULL;
}

/* Whether what is found in a place may have come there a moment ago: with an epoch, only what is said to. */
static bool codes_come_and_go(const struct codes *t, const struct runtime_code *c, uint64_t now)
{
	return c->flags & RUNTIME_CODE_FLEETING || (!c->epoch && codes_have_gone(t, now));
}

/* Whether code came where nothing was a moment ago, in a process where none goes. */
static bool codes_is_made(const struct codes *t, const struct code_entry *e, uint64_t now)
{
	return !e->code && now - e->seen_ns < CODES_TRUST_NS && !codes_have_gone(t, now);
}

/* Whether other code took its place. Code that no sample of the epoch ran may have been dead already when it was read. */
static bool codes_is_replaced(const struct code_entry *e, const struct runtime_code *c)
{
	return e->code && (!c->epoch || e->ran_epoch == c->epoch);
}

/*
 * From when on code holds that was not known before: if nothing was known of the place, what is there now was there when
 * it was sampled, however long a decoder took to attach, unless code comes and goes. If nothing was there a moment ago,
 * as an address was asked for before its code was made, from then on.
 */
static struct codes_when codes_since(struct codes *t, const struct runtime_code *c, uint64_t now)
{
	struct codes_when since = {.epoch = c->epoch, .time_ns = codes_come_and_go(t, c, now) ? now : 0};

	if (c->flags & RUNTIME_CODE_LASTS)
		return (struct codes_when){0};
	for (uint32_t i = codes_first(t, c->start); i < t->count && t->at[i]->start < c->end; i++) {
		const struct code_entry *e = t->at[i];

		if (!e->seen_ns || codes_is_of_former_epoch(e, c))
			continue;
		since.time_ns = MAX(since.time_ns, codes_is_made(t, e, now) ? e->seen_ns : now);
		if (codes_is_replaced(e, c))
			t->replaced_ns = t->gone_ns = now;
	}
	return since;
}

/* Whether equal code in the last reading and in this one, which was asked for at that time, was there all the while. */
static bool codes_is_continued(const struct codes *t, const struct code_entry *same, uint32_t flags, uint64_t epoch,
			       uint64_t asked_ns, uint64_t now)
{
	if (!(flags & RUNTIME_CODE_RECURS) || (epoch ? same->seen_epoch == epoch : !codes_are_alert(t, now)))
		return true;
	return asked_ns - same->seen_ns <= (same->seen_ns - same->found_ns) / CODES_TRUST_SHARE;
}

static void codes_settle_known(struct codes *t, uint64_t pc, const struct runtime_code_made *c, uint64_t now)
{
	const struct code_entry *old = codes_find(t, pc), *same = codes_find_same(t, &c->code);
	struct code_entry known, *e;
	struct codes_when since;
	bool continued;

	if (!old)
		return; /* the table was emptied meanwhile */
	continued = same && codes_is_continued(t, same, c->code.flags, c->code.epoch, old->asked_ns, now);
	if (continued)
		since = (struct codes_when){.time_ns = same->since_ns, .epoch = same->since_epoch};
	else
		since = same ? (struct codes_when){.time_ns = now, .epoch = c->code.epoch} : codes_since(t, &c->code, now);
	known = (struct code_entry){
		.start = c->code.start,
		.end = c->code.end,
		.since_ns = since.time_ns,
		.since_epoch = since.epoch,
		.seen_epoch = c->code.epoch,
		.former_since = continued ? same->former_since : (same ? same->since_epoch : 0),
		.former_seen = continued ? same->former_seen : (same ? same->seen_epoch : 0),
		.ran_epoch = same ? same->ran_epoch : 0,
		.found_ns = same ? same->found_ns : old->asked_ns,
		.seen_ns = old->asked_ns,
		.asked_ns = old->asked_ns,
		.asked = old->asked,
	};
	codes_clear(t, c->code.start, c->code.end);
	e = codes_insert(t, c->code.start, c->code.end);
	if (!e)
		return;
	*e = known;
	code_entry_take_code(t, e, c);
}

void codes_settle(struct codes *t, uint64_t pc, int err, const struct runtime_code_made *c, uint64_t now)
{
	struct code_entry *e = codes_find(t, pc);

	if (!err) {
		codes_settle_known(t, pc, c, now);
		return;
	}
	if (!e)
		return;
	e->pending = false;
	if (err == -ESRCH) {
		t->ended = true;
		return;
	}
	if (err == -EALREADY && e->code && !codes_is_continued(t, e, e->code->flags, e->seen_epoch, e->asked_ns, now))
		e->since_ns = now;
	/* A decoder that was late or has ended says nothing of the code. */
	if (e->code && (err == -ETIMEDOUT || err == -EIO || err == -EPIPE))
		return;
	if (err != -EALREADY && (e->code || !e->seen_ns)) {
		/* What changed while it was read is most likely still there. */
		if (e->code && err != -ESTALE)
			t->gone_ns = now;
		code_entry_drop_code(t, e);
		/* Where nothing is, no epoch is known: else each sample of a later one would ask again. */
		e->seen_epoch = 0;
		e->found_ns = e->asked_ns;
	}
	e->seen_ns = e->asked_ns;
}

size_t codes_bytes(void)
{
	return bytes;
}
