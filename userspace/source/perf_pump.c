// SPDX-License-Identifier: Apache-2.0
/* From perf's buffers into the ring, in the order of time. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kmod/uapi/otprof_copy.h"
#include "source/perf_internal.h"

/* One record, still in its buffer. */
struct item {
	uint64_t time_ns, at, head;
	uint32_t cpu;
	uint32_t order; /* within its buffer */
	bool is_tick;
};

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	/* At the same instant what is said of a task comes before its sample. */
	if (x->is_tick != y->is_tick)
		return x->is_tick ? 1 : -1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Records of a buffer that has been lossy or throttled carry no time: they belong to the one before. */
static uint64_t time_of(const void *record, size_t len, bool is_tick, uint64_t before)
{
	const struct perf_event_header *h = record;
	const uint64_t *words = record;

	if (!is_tick)
		return len >= 24 ? words[len / 8 - 1] : before;
	return h->type == PERF_RECORD_SAMPLE && len >= 24 ? words[2] : before;
}

/* Adds a buffer's records that are older than until_ns, and says where they end. */
static uint64_t collect(struct source_perf *p, const struct sideband_buffer *b, struct item like, uint64_t until_ns)
{
	uint64_t at = b->page->data_tail, time_ns = 0;
	const void *record;
	int len;

	while ((len = sideband_buffer_record(b, at, like.head, p->scratch, &record)) > 0) {
		time_ns = time_of(record, (size_t)len, like.is_tick, time_ns);
		if (time_ns > until_ns)
			return at;
		like.time_ns = time_ns;
		like.at = at;
		like.order++;
		buf_add(&p->items, &like, sizeof(like));
		if (p->items.failed)
			return at; /* the rest comes with the next pump */
		at += (uint64_t)len;
	}
	/* What cannot be a record ends what can be read. */
	return len < 0 ? like.head : at;
}

/* --- into the ring --- */

static void put_loss(struct source_perf *p, uint32_t cpu, uint64_t time_ns)
{
	struct perf_cpu *c = &p->cpus[cpu];
	struct otp_loss *loss = ring_writer_reserve(&p->ring, sizeof(*loss));

	if (!loss)
		return;
	*loss = (struct otp_loss){
		.rec = {.type = OTP_REC_LOSS, .len = sizeof(*loss)},
		.time_ns = time_ns,
		.cpu = cpu,
		.reason = OTP_LOSS_RING_FULL,
		.samples = c->loss_samples,
		.first_seq = c->loss_first_seq,
	};
	ring_writer_commit(&p->ring, sizeof(*loss));
	c->loss_samples = 0;
}

static void lose(struct source_perf *p, uint32_t cpu, uint64_t samples, enum otp_loss_reason reason)
{
	struct otp_cpu_counters *n = &p->counters[cpu];
	struct perf_cpu *c = &p->cpus[cpu];

	if (!c->loss_samples)
		c->loss_first_seq = n->taken + 1;
	c->loss_samples += samples;
	n->ticks += samples;
	n->taken += samples;
	n->lost[reason] += samples;
}

/*
 * What the bound on bytes per second leaves of a copy. The kernel has copied
 * the bytes already, so only those that there are count.
 */
static uint32_t share_budget(const struct source_perf *p, struct perf_cpu *c, const struct perf_sample *s, uint32_t want)
{
	__u64 take = want, base = 0, copied = MAX(s->stack_len, (uint32_t)OTP_STACK_FLOOR);

	if (!otp_budget_applies(want, base))
		return want;
	c->budget_left = otp_budget_fill(c->budget_left, s->time_ns - c->budget_ns, p->choice.defaults.stack_budget);
	c->budget_ns = s->time_ns;
	otp_budget_share(c->budget_left, &take, &base);
	c->budget_left = otp_budget_spend(c->budget_left, MIN(take, copied) - OTP_STACK_FLOOR);
	return (uint32_t)take;
}

static void put_sample(struct source_perf *p, uint32_t cpu, const struct perf_sample *s, struct perf_subject *who)
{
	struct otp_cpu_counters *n = &p->counters[cpu];
	struct perf_cpu *c = &p->cpus[cpu];
	uint32_t len;
	void *to;

	if (c->loss_samples)
		put_loss(p, cpu, s->time_ns);
	to = ring_writer_reserve(&p->ring, (uint32_t)perf_sample_bound(s));
	if (!to) {
		lose(p, cpu, 1, OTP_LOSS_RING_FULL);
		return;
	}
	who->stack_take = share_budget(p, c, s, who->stack_bytes);
	len = perf_sample_write(to, s, who, n->taken + 1);
	n->ticks++;
	n->taken++;
	n->put++;
	n->put_bytes += len;
	n->short_stacks += (((const struct otp_sample *)to)->mode & OTP_MODE_SHORT) != 0;
	ring_writer_commit(&p->ring, len);
}

static void skip(struct source_perf *p, uint32_t cpu, enum otp_skip_reason reason)
{
	p->counters[cpu].ticks++;
	p->counters[cpu].skip[reason]++;
}

static void take_sample(struct source_perf *p, uint32_t cpu, const void *record, size_t len)
{
	struct perf_subject who;
	struct perf_sample s;

	if (perf_sample_decode(record, len, &p->format, &s) < 0) {
		lose(p, cpu, 1, OTP_LOSS_BAD_RECORD);
		return;
	}
	s.cpu = cpu;
	if (!s.pid && !s.tid)
		skip(p, cpu, OTP_SKIP_IDLE);
	else if (!p->started)
		skip(p, cpu, OTP_SKIP_STOPPED);
	else if (!perf_choice_make(&p->choice, &p->tasks, &s, &who))
		skip(p, cpu, OTP_SKIP_NOT_SELECTED);
	else
		put_sample(p, cpu, &s, &who);
}

static void take_tick(struct source_perf *p, uint32_t cpu, const void *record, size_t len)
{
	const struct perf_event_header *h = record;
	const uint64_t *words = record;

	if (h->type == PERF_RECORD_SAMPLE)
		take_sample(p, cpu, record, len);
	else if (h->type == PERF_RECORD_LOST && len >= 24)
		lose(p, cpu, words[2], OTP_LOSS_RING_FULL);
	/* THROTTLE: the ticks that do not come are missed ones, by the time that the event was enabled. */
}

/* The engine's parser is the side-band's: the record goes to it as it is. */
static void put_event(struct source_perf *p, uint32_t cpu, const void *record, size_t len)
{
	struct otp_life *to = ring_writer_reserve(&p->ring, (uint32_t)(sizeof(*to) + len));

	if (!to) {
		p->counters[cpu].life_lost++;
		return;
	}
	to->rec = (struct otp_rec){.type = OTP_REC_LIFE, .len = (uint32_t)(sizeof(*to) + len)};
	memcpy(to + 1, record, len);
	p->counters[cpu].life++;
	ring_writer_commit(&p->ring, to->rec.len);
}

static void take_life(struct source_perf *p, uint32_t cpu, const void *record, size_t len)
{
	struct proc_event ev;

	if (proc_event_decode(record, len, &ev) < 0)
		return;
	perf_tasks_apply(&p->tasks, &ev);
	if (p->single)
		put_event(p, cpu, record, len);
}

static void take(struct source_perf *p, const struct item *it)
{
	const struct sideband_buffer *b = it->is_tick ? &p->cpus[it->cpu].ticks : &p->cpus[it->cpu].life;
	const void *record;
	int len = sideband_buffer_record(b, it->at, it->head, p->scratch, &record);

	if (len <= 0)
		return;
	if (it->is_tick)
		take_tick(p, it->cpu, record, (size_t)len);
	else
		take_life(p, it->cpu, record, (size_t)len);
}

/* --- all of them --- */

/* Pairs with the kernel's release of data_head: the records below it are whole. */
static uint64_t head_of(const struct sideband_buffer *b)
{
	return b->page ? __atomic_load_n(&b->page->data_head, __ATOMIC_ACQUIRE) : 0;
}

/* Pairs with the kernel's read of data_tail before it overwrites: our reads are over. */
static void release(struct sideband_buffer *b, uint64_t at)
{
	if (b->page)
		__atomic_store_n(&b->page->data_tail, at, __ATOMIC_RELEASE);
}

static void wake_once(struct source_perf *p)
{
	uint32_t limit = p->choice.defaults.wake_bytes;
	bool full = limit && ring_writer_unread(&p->ring) >= limit;
	uint64_t one = 1;

	if (full && !p->woken && write(p->wake_fd, &one, sizeof(one)) < 0)
		return;
	p->woken = full;
}

struct ends {
	uint64_t tick, life;
};

static void look(struct source_perf *p, struct ends *ends, uint64_t until_ns)
{
	for (uint32_t cpu = 0; cpu < p->nr; cpu++)
		ends[cpu] = (struct ends){head_of(&p->cpus[cpu].ticks), head_of(&p->cpus[cpu].life)};
	for (uint32_t cpu = 0; cpu < p->nr; cpu++) {
		const struct perf_cpu *c = &p->cpus[cpu];
		struct item tick = {.cpu = cpu, .head = ends[cpu].tick, .is_tick = true};
		struct item life = {.cpu = cpu, .head = ends[cpu].life};

		if (c->ticks.page)
			ends[cpu].tick = collect(p, &c->ticks, tick, until_ns);
		if (c->life.page)
			ends[cpu].life = collect(p, &c->life, life, until_ns);
	}
}

void perf_pump_until(struct source_perf *p, uint64_t until_ns)
{
	_cleanup_(freep) struct ends *ends = calloc(p->nr, sizeof(*ends));
	const struct item *items;
	size_t nr;

	if (!ends)
		return; /* what the buffers cannot hold meanwhile, the kernel counts */
	buf_reset(&p->items);
	p->items.failed = false;
	look(p, ends, until_ns);
	nr = p->items.len / sizeof(*items);
	if (nr)
		qsort(p->items.data, nr, sizeof(*items), compare);
	items = (const struct item *)(const void *)p->items.data;
	for (size_t i = 0; i < nr; i++)
		take(p, &items[i]);
	for (uint32_t cpu = 0; cpu < p->nr; cpu++) {
		release(&p->cpus[cpu].ticks, ends[cpu].tick);
		release(&p->cpus[cpu].life, ends[cpu].life);
	}
	perf_tasks_tick(&p->tasks, clock_now_ns());
	wake_once(p);
}
