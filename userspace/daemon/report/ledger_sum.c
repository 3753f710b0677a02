// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/ledger_sum.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "source/source.h"

#define LOOKS_MAX 50 /* at the whole; then the last one stands */
#define FLIPS_MAX 50 /* of one page */

/* ledger_read, with an end even if the writer never rests. */
#define LOOK(page, ret)                                                                        \
	for (int _i = 0; _i < FLIPS_MAX; _i++) {                                               \
		uint32_t _now = __atomic_load_n(&(page)->current, __ATOMIC_ACQUIRE);           \
		memcpy((ret), &(page)->slot[_now & 1], sizeof(*(ret)));                        \
		__atomic_thread_fence(__ATOMIC_ACQUIRE);                                       \
		if (_now == __atomic_load_n(&(page)->current, __ATOMIC_RELAXED))               \
			break;                                                                 \
	}

void ledger_look_engine(const struct ledger_engine_page *page, struct ledger_engine *ret)
{
	LOOK(page, ret);
	ret->top_name[sizeof(ret->top_name) - 1] = '\0';
}

/* It goes into texts that others read. */
static void clean_name(char *name, size_t size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	name[size - 1] = '\0';
	for (; *name; name++)
		if (!strchr(plain, *name))
			*name = '?';
}

void ledger_look_net(const struct ledger_net_page *page, struct ledger_net *ret)
{
	LOOK(page, ret);
	ret->destinations = MIN(ret->destinations, LEDGER_DESTINATIONS_MAX);
	for (int i = 0; i < LEDGER_DESTINATIONS_MAX; i++) {
		ret->dest[i].last_error[sizeof(ret->dest[i].last_error) - 1] = '\0';
		clean_name(ret->dest[i].name, sizeof(ret->dest[i].name));
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

static const struct otp_cpu_counters *cpu(const struct ledger_view *v, uint32_t i)
{
	return (const void *)((const char *)v->counters + (size_t)i * v->counters_stride);
}

static void add_cpu(struct ledger_sum *s, const struct otp_cpu_counters *c)
{
	s->ticks += c->ticks;
	s->taken += c->taken;
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

/* Whether it was taken by the time that the counters were looked at. */
static bool is_within(const struct otp_rec *rec, const uint64_t *taken, uint32_t nr)
{
	const struct otp_sample *s = (const void *)rec;

	return !taken || rec->len < sizeof(*s) || s->cpu >= nr || s->seq <= taken[s->cpu];
}

/* taken: of each CPU, the last sample that counts; NULL: all do. */
static uint64_t count_ring(const struct ring *ring, uint64_t pos, const uint64_t *taken, uint32_t nr)
{
	uint64_t end = ring_producer(ring), n = 0;
	const struct otp_rec *rec;

	/* Every record moves pos on; a position that the page made up ends at once. */
	if (pos > end || end - pos > ring->size)
		return 0;
	while (ring_next(ring, &pos, end, &rec) > 0)
		n += rec->type == OTP_REC_SAMPLE && is_within(rec, taken, nr);
	return n;
}

uint64_t ledger_count_ring(const struct ring *ring, uint64_t pos)
{
	return count_ring(ring, pos, NULL, 0);
}

/*
 * The ring comes after the counters, and samples that came between the two are
 * passed over: with many CPUs a sample is always on its way, so the sampler
 * must not have to hold still.
 */
static void look(const struct ledger_view *v, uint64_t *taken, struct ledger_sum *s)
{
	struct otp_cpu_counters c;

	memset(s, 0, sizeof(*s));
	ledger_look_engine(v->engine, &s->engine);
	ledger_look_net(v->net, &s->net);
	for (uint32_t i = 0; i < v->counters_nr; i++) {
		counters_read(cpu(v, i), &c);
		add_cpu(s, &c);
		if (taken)
			taken[i] = c.taken;
	}
	s->on_ring = count_ring(v->ring, s->engine.ring_pos, taken, v->counters_nr);
}

static bool same_pages(const struct ledger_engine *e, const struct ledger_engine *f, const struct ledger_net *n,
		       const struct ledger_net *o)
{
	return e->read == f->read && e->held == f->held && e->handed == f->handed && e->ring_pos == f->ring_pos &&
	       !memcmp(e->lost, f->lost, sizeof(e->lost)) && n->received == o->received &&
	       !memcmp(n->dest, o->dest, sizeof(n->dest));
}

/* The workers moved nothing since they were looked at: the ring was still theirs to be counted. */
static bool pages_rest(const struct ledger_view *v, const struct ledger_sum *s)
{
	struct ledger_engine e;
	struct ledger_net n;

	ledger_look_engine(v->engine, &e);
	ledger_look_net(v->net, &n);
	return same_pages(&e, &s->engine, &n, &s->net);
}

/* What moves samples: nothing else needs to hold still. */
static bool same_moment(const struct ledger_sum *a, const struct ledger_sum *b)
{
	return a->taken == b->taken && a->put == b->put && a->on_ring == b->on_ring &&
	       same_pages(&a->engine, &b->engine, &a->net, &b->net);
}

static uint64_t total(const uint64_t *counts, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += counts[i];
	return sum;
}

static void sum_destination(struct ledger_sum *s, uint32_t i, uint64_t common_in_flight)
{
	const struct ledger_destination *from = &s->net.dest[i];
	struct ledger_sum_destination *to = &s->dest[i];

	to->earlier = from->earlier;
	to->exported = from->exported;
	to->unconfirmed = from->unconfirmed;
	to->in_flight = common_in_flight + from->queued + from->sending;
	for (int r = 0; r < OTP_LOSS_MAX; r++)
		to->lost[r] = s->lost[r] + from->lost[r];
	to->balanced = s->taken == to->earlier + to->exported + to->unconfirmed + to->in_flight + total(to->lost, OTP_LOSS_MAX);
	s->in_flight = MAX(s->in_flight, to->in_flight);
	s->balanced = s->balanced && to->balanced;
}

static void add_up(struct ledger_sum *s, uint32_t destinations)
{
	uint64_t common;

	s->destinations = s->net.destinations ? s->net.destinations : MIN(destinations, LEDGER_DESTINATIONS_MAX);
	for (int r = 0; r < OTP_LOSS_MAX; r++)
		s->lost[r] = s->sampler_lost[r] + s->engine.lost[r];
	s->between = s->engine.handed - s->net.received;
	common = s->on_ring + s->engine.held + s->between;
	s->in_flight = common;
	s->balanced = true;
	for (uint32_t i = 0; i < s->destinations; i++)
		sum_destination(s, i, common);
	if (s->destinations == 1)
		memcpy(s->lost, s->dest[0].lost, sizeof(s->lost));
}

void ledger_sum_read(const struct ledger_view *v, uint32_t destinations, struct ledger_sum *ret)
{
	/* Without memory the moment has to be one at which nothing moves. */
	_cleanup_(freep) uint64_t *taken = calloc(MAX(v->counters_nr, 1u), sizeof(*taken));
	struct ledger_sum before;
	bool stable = false;

	look(v, taken, ret);
	for (int i = 0; i < LOOKS_MAX && !stable; i++) {
		before = *ret;
		look(v, taken, ret);
		add_up(ret, destinations);
		/* A sample between counter and ring is the only one missed: then once more. */
		stable = (ret->balanced && pages_rest(v, ret)) || same_moment(&before, ret);
		if (!stable)
			sched_yield();
	}
	ret->stable = stable;
}
