// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/ledger_sum.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "source/source.h"

#define READINGS_MAX 50 /* of the whole; then the last result counts */

void ledger_look_engine(const struct ledger_engine_page *page, struct ledger_engine *ret)
{
	ledger_read(page, ret);
	ret->top_name[sizeof(ret->top_name) - 1] = '\0';
}

/* The name is printed in status and metrics. */
static void ledger_sum_clean_name(char *name, size_t size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	name[size - 1] = '\0';
	for (; *name; name++)
		if (!strchr(plain, *name))
			*name = '?';
}

void ledger_look_net(const struct ledger_net_page *page, struct ledger_net *ret)
{
	ledger_read(page, ret);
	ret->destinations = MIN(ret->destinations, LEDGER_DESTINATIONS_MAX);
	for (int i = 0; i < LEDGER_DESTINATIONS_MAX; i++) {
		ret->dest[i].last_error[sizeof(ret->dest[i].last_error) - 1] = '\0';
		ledger_sum_clean_name(ret->dest[i].name, sizeof(ret->dest[i].name));
	}
}

const char *ledger_loss_name(uint32_t reason)
{
	static const char *const names[] = {
#define X(number, NAME, name, place, text) [number] = name,
		OTP_LOSS_REASONS(X)
#undef X
	};

	return reason < ARRAY_SIZE(names) ? names[reason] : NULL;
}

const char *ledger_skip_name(uint32_t reason)
{
	static const char *const names[] = {
#define X(number, NAME, name, text) [number] = name,
		OTP_SKIP_REASONS(X)
#undef X
	};

	return reason < ARRAY_SIZE(names) ? names[reason] : NULL;
}

static void ledger_sum_add_counters(struct ledger_sum_origin *s, const struct otp_cpu_counters *c)
{
	s->ticks += c->ticks;
	s->taken += c->taken;
	s->value += c->value;
	s->put += c->put;
	s->put_bytes += c->put_bytes;
	s->chunks += c->chunks;
	s->chunks_lost += c->chunks_lost;
	s->short_stacks += c->short_stacks;
	for (int i = 0; i < OTP_SKIP_MAX; i++)
		s->skip[i] += c->skip[i];
	for (int i = 0; i < OTP_LOSS_MAX; i++)
		s->sampler_lost[i] += c->lost[i];
}

/* The slot of a sample that was taken before the counters were read, else -1. */
static int ledger_sum_counted_slot(const struct otp_rec *rec, const struct origins *origins, const uint64_t *taken,
				   uint32_t cpus)
{
	const struct otp_sample *s = (const void *)rec;
	uint32_t slot;

	if (rec->type != OTP_REC_SAMPLE)
		return -1;
	slot = origins_slot_of(origins, rec);
	if (taken && rec->len >= sizeof(*s) && s->cpu < cpus && s->seq > taken[(size_t)slot * cpus + s->cpu])
		return -1;
	return (int)slot;
}

/* taken: for each slot and CPU, the number of the last sample that counts; NULL: all count. */
static void ledger_sum_count_ring(const struct ring *ring, uint64_t pos, const struct origins *origins,
				  const uint64_t *taken, uint32_t cpus, struct ledger_counts *ret)
{
	uint64_t end = ring_producer(ring);
	const struct otp_rec *rec;

	*ret = (struct ledger_counts){0};
	/* Every record advances pos; an invalid position ends the loop. */
	if (pos > end || end - pos > ring->size)
		return;
	while (ring_next(ring, &pos, end, &rec) > 0) {
		int slot = ledger_sum_counted_slot(rec, origins, taken, cpus);

		if (slot >= 0)
			ret->of[slot]++;
	}
}

void ledger_count_ring(const struct ring *ring, uint64_t pos, const struct origins *origins, struct ledger_counts *ret)
{
	ledger_sum_count_ring(ring, pos, origins, NULL, 0, ret);
}

static bool ledger_sum_cpu_ticks(const struct ledger_view *v, uint32_t cpu)
{
	for (uint32_t slot = 0; slot < v->origins->count; slot++)
		if (ledger_view_counters(v, slot, cpu)->ticks)
			return true;
	return false;
}

uint32_t ledger_count_cpus(const struct ledger_view *v)
{
	uint32_t n = 0;

	for (uint32_t cpu = 0; cpu < v->cpus; cpu++)
		n += ledger_sum_cpu_ticks(v, cpu);
	return n;
}

static void ledger_sum_read_counters(const struct ledger_view *v, uint32_t slot, uint64_t *taken,
				     struct ledger_sum_origin *s)
{
	struct otp_cpu_counters c;

	for (uint32_t cpu = 0; cpu < v->cpus; cpu++) {
		counters_read(ledger_view_counters(v, slot, cpu), &c);
		ledger_sum_add_counters(s, &c);
		if (taken)
			taken[(size_t)slot * v->cpus + cpu] = c.taken;
	}
}

/*
 * The ring is read after the counters, and samples that arrived in between are left out: with many CPUs samples
 * always arrive, so the reading must not depend on a pause.
 */
static void ledger_sum_read_all(const struct ledger_view *v, uint64_t *taken, struct ledger_sum *s)
{
	struct ledger_counts on_ring;

	memset(s, 0, sizeof(*s));
	s->slots = MIN(v->origins->count, (uint32_t)OTP_ORIGINS_MAX);
	ledger_look_engine(v->engine, &s->engine);
	ledger_look_net(v->net, &s->net);
	for (uint32_t slot = 0; slot < s->slots; slot++)
		ledger_sum_read_counters(v, slot, taken, &s->origin[slot]);
	ledger_sum_count_ring(v->ring, s->engine.ring_pos, v->origins, taken, v->cpus, &on_ring);
	for (uint32_t slot = 0; slot < s->slots; slot++)
		s->origin[slot].on_ring = on_ring.of[slot];
}

#define SAME(a, b) (!memcmp(&(a), &(b), sizeof(a)))

static bool ledger_sum_same_pages(const struct ledger_engine *e, const struct ledger_engine *f,
				  const struct ledger_net *n, const struct ledger_net *o)
{
	return SAME(e->read, f->read) && SAME(e->held, f->held) && SAME(e->handed, f->handed) &&
	       e->ring_pos == f->ring_pos && SAME(e->lost, f->lost) && SAME(n->received, o->received) &&
	       SAME(n->dest, o->dest);
}

/* Whether the workers moved no sample since their pages were read, so that the count of the ring fits the pages. */
static bool ledger_sum_pages_rest(const struct ledger_view *v, const struct ledger_sum *s)
{
	struct ledger_engine e;
	struct ledger_net n;

	ledger_look_engine(v->engine, &e);
	ledger_look_net(v->net, &n);
	return ledger_sum_same_pages(&e, &s->engine, &n, &s->net);
}

/* Compares the fields that change when samples move. */
static bool ledger_sum_same_moment(const struct ledger_sum *a, const struct ledger_sum *b)
{
	return a->all.taken == b->all.taken && a->all.put == b->all.put && a->all.on_ring == b->all.on_ring &&
	       ledger_sum_same_pages(&a->engine, &b->engine, &a->net, &b->net);
}

static uint64_t ledger_sum_total(const uint64_t *counts, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += counts[i];
	return sum;
}

/* common: samples in flight before net. */
static void ledger_sum_fill_destination(const struct ledger_destination *from, uint32_t slot, uint64_t common,
					struct ledger_sum_origin *o, struct ledger_sum_destination *to)
{
	to->earlier = from->earlier.of[slot];
	to->exported = from->exported.of[slot];
	to->unconfirmed = from->unconfirmed.of[slot];
	to->spooled = from->spooled.of[slot];
	to->restored = from->restored.of[slot];
	to->repeated = from->repeated.of[slot];
	to->in_flight = common + from->queued.of[slot] + from->sending.of[slot] + to->spooled;
	for (int r = 0; r < OTP_LOSS_MAX; r++)
		to->lost[r] = o->lost[r] + from->lost[r].of[slot];
	to->balanced = o->taken + to->restored == to->earlier + to->exported + to->unconfirmed + to->in_flight +
				   ledger_sum_total(to->lost, OTP_LOSS_MAX);
	o->balanced = o->balanced && to->balanced;
}

/* Called for the sum of all origins after adding up: the destination with the most may be another for each origin. */
static void ledger_sum_find_in_flight(struct ledger_sum_origin *o, uint32_t destinations)
{
	o->in_flight = o->on_ring + o->held + o->between;
	for (uint32_t i = 0; i < destinations; i++)
		o->in_flight = MAX(o->in_flight, o->dest[i].in_flight);
}

static void ledger_sum_fill_origin(struct ledger_sum *s, uint32_t slot)
{
	struct ledger_sum_origin *o = &s->origin[slot];
	uint64_t common;

	for (int r = 0; r < OTP_LOSS_MAX; r++)
		o->lost[r] = o->sampler_lost[r] + s->engine.lost[r].of[slot];
	o->held = s->engine.held.of[slot];
	o->between = s->engine.handed.of[slot] - s->net.received.of[slot];
	common = o->on_ring + o->held + o->between;
	o->balanced = true;
	for (uint32_t i = 0; i < s->destinations; i++)
		ledger_sum_fill_destination(&s->net.dest[i], slot, common, o, &o->dest[i]);
	ledger_sum_find_in_flight(o, s->destinations);
	if (s->destinations == 1)
		memcpy(o->lost, o->dest[0].lost, sizeof(o->lost));
}

static void ledger_sum_add_destination(struct ledger_sum_destination *to, const struct ledger_sum_destination *d)
{
	to->earlier += d->earlier;
	to->exported += d->exported;
	to->unconfirmed += d->unconfirmed;
	to->in_flight += d->in_flight;
	to->spooled += d->spooled;
	to->restored += d->restored;
	to->repeated += d->repeated;
	for (int r = 0; r < OTP_LOSS_MAX; r++)
		to->lost[r] += d->lost[r];
	to->balanced = to->balanced && d->balanced;
}

static void ledger_sum_add_origin(struct ledger_sum_origin *to, const struct ledger_sum_origin *o,
				  uint32_t destinations)
{
	to->ticks += o->ticks;
	to->taken += o->taken;
	to->put += o->put;
	to->put_bytes += o->put_bytes;
	to->chunks += o->chunks;
	to->chunks_lost += o->chunks_lost;
	to->short_stacks += o->short_stacks;
	to->on_ring += o->on_ring;
	to->held += o->held;
	to->between += o->between;
	for (int i = 0; i < OTP_SKIP_MAX; i++)
		to->skip[i] += o->skip[i];
	for (int r = 0; r < OTP_LOSS_MAX; r++) {
		to->sampler_lost[r] += o->sampler_lost[r];
		to->lost[r] += o->lost[r];
	}
	to->balanced = to->balanced && o->balanced;
	for (uint32_t i = 0; i < destinations; i++)
		ledger_sum_add_destination(&to->dest[i], &o->dest[i]);
}

static void ledger_sum_add_up(struct ledger_sum *s, uint32_t destinations)
{
	s->destinations = s->net.destinations ? s->net.destinations : MIN(destinations, LEDGER_DESTINATIONS_MAX);
	s->all.balanced = true;
	for (uint32_t i = 0; i < s->destinations; i++)
		s->all.dest[i].balanced = true;
	for (uint32_t slot = 0; slot < s->slots; slot++) {
		ledger_sum_fill_origin(s, slot);
		ledger_sum_add_origin(&s->all, &s->origin[slot], s->destinations);
	}
	ledger_sum_find_in_flight(&s->all, s->destinations);
}

void ledger_sum_read(const struct ledger_view *v, uint32_t destinations, struct ledger_sum *ret)
{
	/* Without memory, only a moment at which no sample moves is exact. */
	_cleanup_(freep) uint64_t *taken = calloc(MAX(v->cpus, 1u) * OTP_ORIGINS_MAX, sizeof(*taken));
	_cleanup_(freep) struct ledger_sum *before = malloc(sizeof(*before));
	bool stable = false;

	ledger_sum_read_all(v, taken, ret);
	ledger_sum_add_up(ret, destinations);
	for (int i = 0; before && i < READINGS_MAX && !stable; i++) {
		*before = *ret;
		ledger_sum_read_all(v, taken, ret);
		ledger_sum_add_up(ret, destinations);
		/* Only a sample between counter and ring can be missed: then the reading is repeated. */
		stable = (ret->all.balanced && ledger_sum_pages_rest(v, ret)) || ledger_sum_same_moment(before, ret);
		if (!stable)
			sched_yield();
	}
	ret->stable = stable;
}
