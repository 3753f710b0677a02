// SPDX-License-Identifier: Apache-2.0
/*
 * What the engine asks of decoders, and which of them have a process: states
 * and timers. The messages are in decoders_live.c, a replay's answers in
 * decoders_replay.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/engine/decoders_state.h"

#define IDLE_NS		(2 * NSEC_PER_SEC)
#define IDLE_WAITED_NS	(50 * NSEC_PER_MSEC) /* while others wait for a process */
#define OLD_NS		(20 * NSEC_PER_SEC)  /* before the monitor ends it, perhaps in a question */
#define PAUSE_MIN_NS	(100 * NSEC_PER_MSEC)
#define PAUSE_MAX_NS	(10 * NSEC_PER_SEC)
#define PAUSE_LONG_NS	(600 * NSEC_PER_SEC)
#define PAUSE_PART	4  /* of a decoder's age, once that is longer: an unused runtime never starts */
#define FAILURES_MAX	8  /* one after the other, before it is given up */
#define REPEATS_AHEAD	8  /* started at once after a pause */
#define GROUP_SHARED	(DECODERS_LIVE / 2)
#define GROUP_ALONE	(DECODERS_LIVE - 1) /* one is left for who comes next */

int decoders_new(const struct decoders_config *cfg, struct decoders **ret)
{
	struct decoders *ds = calloc(1, sizeof(*ds));

	if (!ds)
		return -ENOMEM;
	ds->cfg = *cfg;
	*ret = ds;
	return 0;
}

struct decoders *decoders_free(struct decoders *ds)
{
	if (!ds)
		return NULL;
	while (ds->first)
		decoders_drop(ds->first);
	free(ds);
	return NULL;
}

void decoders_listen(struct decoders *ds, const struct decoders_ops *ops, void *ctx)
{
	ds->ops = ops;
	ds->ctx = ctx;
}

static void decoders_begin_call(struct decoder *d, struct decoders_call *c)
{
	*c = (struct decoders_call){.d = d, .outer = d->ds->calls};
	d->ds->calls = c;
}

static bool decoders_end_call(struct decoders *ds)
{
	const struct decoders_call *c = ds->calls;

	ds->calls = c->outer;
	return c->d;
}

/* --- callers' decoders --- */

void decoder_set_seen(struct decoder *d, const struct runtime_seen *seen)
{
	d->target.seen = *seen;
}

bool decoders_group_is_full(const struct decoders *ds, uint64_t group)
{
	uint32_t same = 0;

	for (const struct decoder *d = ds->first; d; d = d->next)
		same += d->target.group == group;
	return same >= DECODERS_MAX / 2;
}

bool decoders_has_room(const struct decoders *ds, uint64_t group)
{
	return ds->count < DECODERS_MAX && !decoders_group_is_full(ds, group);
}

static void decoders_link(struct decoders *ds, struct decoder *d)
{
	d->ds = ds;
	d->at = ds->last ? &ds->last->next : &ds->first;
	*d->at = d;
	ds->last = d;
	ds->count++;
}

static void decoders_unlink(struct decoder *d)
{
	struct decoders *ds = d->ds;

	if (ds->last == d)
		ds->last = d->at == &ds->first ? NULL : container_of(d->at, struct decoder, next);
	if (d->next)
		d->next->at = d->at;
	*d->at = d->next;
	ds->count--;
}

struct decoder *decoders_attach(struct decoders *ds, const struct decoders_target *t, void *owner)
{
	struct decoder *d = decoders_has_room(ds, t->group) ? calloc(1, sizeof(*d)) : NULL;
	struct decoders_call call;

	if (!d)
		return NULL;
	d->target = *t;
	binary_ref(t->binary);
	d->owner = owner;
	d->sock = -1;
	d->began_ns = clock_now_ns();
	buf_init_secret(&d->reads, DECODER_READS_MAX);
	decoders_link(ds, d);
	decoders_begin_call(d, &call);
	decoders_start(d, d->began_ns);
	return decoders_end_call(ds) ? d : NULL;
}

struct decoder *decoders_drop(struct decoder *d)
{
	if (!d)
		return NULL;
	for (struct decoders_call *c = d->ds->calls; c; c = c->outer)
		if (c->d == d)
			c->d = NULL;
	if (d->ds->turn == d)
		d->ds->turn = d->next;
	host_cancel(d->ds->cfg.host, d);
	decoder_close(d);
	decoders_unlink(d);
	binary_put(d->target.binary);
	binary_put(d->own);
	buf_done(&d->reads);
	free(d->frames);
	free(d);
	return NULL;
}

void *decoder_owner(const struct decoder *d)
{
	return d->owner;
}

const struct decoders_target *decoder_target(const struct decoder *d)
{
	return &d->target;
}

bool decoder_is_attached(const struct decoder *d)
{
	return d->attached;
}

bool decoder_is_replayed(const struct decoder *d)
{
	return d->replay;
}

/* --- frames --- */

static bool decoder_make_room(struct decoder *d)
{
	if (d->first && d->count > DECODER_QUEUE / 2) {
		d->count -= d->first;
		memmove(d->frames, d->frames + d->first, d->count * sizeof(*d->frames));
		d->first = 0;
	}
	if (!d->frames)
		d->frames = malloc(DECODER_QUEUE * sizeof(*d->frames));
	return d->frames;
}

size_t decoders_decode(struct decoder *d, const struct runtime_frame *frames, size_t n)
{
	if (!d->attached || !n || !decoder_make_room(d))
		return 0;
	n = MIN(n, (size_t)DECODER_QUEUE - d->count);
	memcpy(d->frames + d->count, frames, n * sizeof(*frames));
	d->count += (uint32_t)n;
	d->ds->next_ns = 0;
	if (d->replay)
		decoder_replay_frames(d);
	else if (d->state == DECODER_READY)
		decoder_send_batch(d, clock_now_ns());
	return n;
}

/* Code that is still there was read, too. */
static void decoder_count_answer(struct decoders *ds, const struct runtime_frame *f, int err)
{
	bool code = f->flags & RUNTIME_CODE, read = !err || (code && err == -EALREADY);

	*(read ? &ds->figures.functions : &ds->figures.failed) += 1;
	if (read && !code)
		ds->figures.line_files[ds->function.line_file]++;
}

bool decoder_answer(struct decoder *d, int err)
{
	struct decoders *ds = d->ds;
	const struct runtime_frame frame = d->frames[d->first++];
	struct decoders_call call;

	if (d->sent)
		d->sent--;
	if (d->first == d->count)
		d->first = d->count = 0;
	decoder_count_answer(ds, &frame, err);
	decoders_begin_call(d, &call);
	if (!(frame.flags & RUNTIME_CODE))
		ds->ops->function(ds->ctx, d, &frame, err, err ? NULL : &ds->function);
	else if (ds->ops->code)
		ds->ops->code(ds->ctx, d, &frame, err, err ? NULL : &ds->code);
	return decoders_end_call(ds);
}

bool decoder_report(struct decoder *d, int err, const struct runtime_attached *a, const char *why)
{
	struct decoders *ds = d->ds;
	struct decoders_call call;

	d->reported = true;
	d->attached = !err;
	decoders_begin_call(d, &call);
	ds->ops->attached(ds->ctx, d, err, a, why);
	return decoders_end_call(ds);
}

/* --- failures --- */

bool decoder_is_final(int err)
{
	return err == -ENOTSUP || err == -ENOENT || err == -ESRCH || err == -EPERM || err == -ESTALE || err == -ENOSYS ||
	       err == -ENOEXEC;
}

static void decoder_pause(struct decoder *d, uint64_t now)
{
	uint64_t longest = MAX(PAUSE_MAX_NS, MIN((now - d->began_ns) / PAUSE_PART, PAUSE_LONG_NS));

	d->pause_ns = d->pause_ns ? MIN(2 * d->pause_ns, longest) : PAUSE_MIN_NS;
	d->retry_ns = now + d->pause_ns;
	d->state = DECODER_AWAY;
	d->ds->next_ns = 0;
}

/* It is over: what waits is answered with the error. */
static void decoder_give_up(struct decoder *d, int err, const char *why)
{
	bool was_attached = d->attached;

	d->over = err;
	d->state = DECODER_AWAY;
	if (!d->reported && !decoder_report(d, err, NULL, why))
		return;
	for (uint32_t n = d->count - d->first; n; n--)
		if (!decoder_answer(d, err))
			return;
	if (was_attached)
		decoder_report(d, err, NULL, why);
}

/* A runtime that is beginning may look like one of another layout: it is read once more. */
static bool decoder_is_doubtful(const struct decoder *d, int err)
{
	return err == -ENOTSUP && !d->attached && !d->doubted && d->ds->cfg.epoll >= 0;
}

void decoder_failed(struct decoder *d, int err, const char *why, uint64_t now)
{
	bool doubtful = decoder_is_doubtful(d, err);

	decoder_close(d);
	d->failures += err != -EAGAIN && err != -EBUSY;
	d->doubted |= doubtful;
	if (!doubtful && (decoder_is_final(err) || d->failures >= FAILURES_MAX))
		decoder_give_up(d, err, why);
	else
		decoder_pause(d, now);
}

/* The question that it has not answered ends it: the first frame of its batch, or ATTACH. */
void decoder_broke(struct decoder *d, int err, uint64_t now)
{
	bool in_batch = d->state == DECODER_ASKED && d->sent;

	*(err == -ETIMEDOUT ? &d->ds->figures.late : &d->ds->figures.died) += 1;
	if (!in_batch) {
		decoder_failed(d, err, "", now);
		return;
	}
	decoder_close(d);
	decoder_pause(d, now);
	decoder_answer(d, err);
}

/* --- processes --- */

static bool decoder_has_process(const struct decoder *d)
{
	return d->state != DECODER_AWAY;
}

/* Whether it wants a process, now or after its pause. */
static bool decoder_wants_process(const struct decoder *d)
{
	return !decoder_has_process(d) && !d->over && (!d->reported || d->count);
}

static uint64_t decoders_repeat_cost_ns(const struct decoders *ds)
{
	return ds->cfg.repeats ? NSEC_PER_SEC / ds->cfg.repeats : 0;
}

/* When it may have a process. */
static uint64_t decoder_start_ns(const struct decoder *d)
{
	uint64_t ahead = REPEATS_AHEAD * decoders_repeat_cost_ns(d->ds);

	return d->attached && d->ds->paid_ns > ahead ? MAX(d->retry_ns, d->ds->paid_ns - ahead) : d->retry_ns;
}

static void decoder_pay(struct decoder *d, uint64_t now)
{
	if (d->attached)
		d->ds->paid_ns = MAX(d->ds->paid_ns, now) + decoders_repeat_cost_ns(d->ds);
}

static uint32_t decoders_live_of(const struct decoders *ds, uint64_t group)
{
	uint32_t n = 0;

	for (int i = 0; i < DECODERS_LIVE; i++)
		n += ds->process[i] && ds->process[i]->target.group == group;
	return n;
}

/* The first of those that are due and whose group has the fewest processes; *ret_live: that number. */
static struct decoder *decoders_choose(const struct decoders *ds, uint64_t now, uint32_t *ret_live, bool *ret_others)
{
	struct decoder *best = NULL;

	*ret_others = false;
	for (struct decoder *d = ds->first; d; d = d->next) {
		uint32_t live;

		if (!decoder_wants_process(d) || now < decoder_start_ns(d))
			continue;
		live = decoders_live_of(ds, d->target.group);
		*ret_others |= best && best->target.group != d->target.group;
		if (!best || live < *ret_live || (live == *ret_live && d->left_ns < best->left_ns)) {
			best = d;
			*ret_live = live;
		}
	}
	return best;
}

static bool decoders_start_one(struct decoders *ds, uint64_t now)
{
	bool others;
	uint32_t live;
	struct decoder *d = ds->live < DECODERS_LIVE ? decoders_choose(ds, now, &live, &others) : NULL;

	if (!d || live >= (others ? GROUP_SHARED : GROUP_ALONE))
		return false;
	decoder_pay(d, now);
	decoder_open(d, now);
	return true;
}

void decoders_start(struct decoder *d, uint64_t now)
{
	struct decoders *ds = d->ds;

	ds->next_ns = 0;
	if (ds->cfg.epoll < 0)
		decoder_open(d, now);
	else if (ds->live < DECODERS_LIVE)
		decoders_start_one(ds, now);
}

bool decoder_is_old(const struct decoder *d, uint64_t now)
{
	return now >= d->opened_ns + OLD_NS;
}

static uint64_t decoder_due_ns(const struct decoder *d, bool waited)
{
	if (decoder_wants_process(d))
		return decoder_start_ns(d);
	if (d->over)
		return d->count ? 0 : UINT64_MAX;
	switch (d->state) {
	case DECODER_ATTACHING:
	case DECODER_ASKED:
		return d->deadline_ns;
	case DECODER_READY:
		return MIN(d->used_ns + (waited ? IDLE_WAITED_NS : IDLE_NS), d->opened_ns + OLD_NS);
	default:
		return UINT64_MAX;
	}
}

/* May drop d, by what its caller does. */
static void decoder_turn(struct decoder *d, uint64_t now, bool waited)
{
	if (d->over && d->count) {
		decoder_give_up(d, d->over, "");
	} else if (d->state == DECODER_READY && d->count && !decoder_is_old(d, now)) {
		decoder_send_batch(d, now);
	} else if (decoder_has_process(d) && now >= decoder_due_ns(d, waited)) {
		if (d->state == DECODER_READY)
			decoder_close(d);
		else
			decoder_broke(d, -ETIMEDOUT, now);
	}
}

static bool decoders_are_waited_for(const struct decoders *ds, uint64_t now)
{
	for (const struct decoder *d = ds->first; d; d = d->next)
		if (decoder_wants_process(d) && now >= decoder_start_ns(d))
			return true;
	return false;
}

/* One that waits only for others' processes is looked at when one of these ends. */
static uint64_t decoders_find_next(const struct decoders *ds, uint64_t now, bool waited)
{
	uint64_t next = UINT64_MAX;

	for (const struct decoder *d = ds->first; d; d = d->next) {
		uint64_t due = decoder_due_ns(d, waited);

		if (!decoder_wants_process(d) || due > now)
			next = MIN(next, due);
	}
	return next;
}

void decoders_run(struct decoders *ds, uint64_t now)
{
	bool waited;

	if (now < ds->next_ns)
		return;
	waited = decoders_are_waited_for(ds, now);
	ds->next_ns = UINT64_MAX;
	/* A call may drop any: each turn is by its place. */
	for (struct decoder *d = ds->first; d; d = ds->turn) {
		ds->turn = d->next;
		decoder_turn(d, now, waited);
	}
	while (decoders_start_one(ds, now))
		;
	waited = decoders_are_waited_for(ds, now);
	ds->next_ns = MIN(ds->next_ns, decoders_find_next(ds, now, waited));
}

uint64_t decoders_next_ns(const struct decoders *ds)
{
	return ds->next_ns;
}

void decoders_count(const struct decoders *ds, struct decoders_figures *ret)
{
	*ret = ds->figures;
	ret->decoders = ds->count;
	ret->live = ds->live;
	ret->waiting = 0;
	for (const struct decoder *d = ds->first; d; d = d->next)
		ret->waiting += decoder_wants_process(d);
}
