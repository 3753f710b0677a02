// SPDX-License-Identifier: Apache-2.0
/* Moves records from perf's buffers into the ring, in the order of time. */
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
	uint8_t slot;	/* of a sample */
	bool is_sample; /* else of process life */
};

static int pump_compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	/* At the same instant a record about a task precedes its sample. */
	if (x->is_sample != y->is_sample)
		return x->is_sample ? 1 : -1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Records of a buffer that lost or throttled some carry no time: they get that of the record before. */
static uint64_t pump_time_of(const void *record, size_t len, bool is_sample, uint64_t before)
{
	const struct perf_event_header *h = record;
	const uint64_t *words = record;

	if (!is_sample)
		return len >= 24 ? words[len / 8 - 1] : before;
	return h->type == PERF_RECORD_SAMPLE && len >= 24 ? words[2] : before;
}

/* Adds a buffer's records that are older than until_ns; returns where they end. */
static uint64_t pump_collect(struct source_perf *p, const struct sideband_buffer *b, struct item like,
			     uint64_t until_ns)
{
	uint64_t at = b->page->data_tail, time_ns = 0;
	const void *record;
	int len;

	while ((len = sideband_buffer_record(b, at, like.head, p->scratch, &record)) > 0) {
		time_ns = pump_time_of(record, (size_t)len, like.is_sample, time_ns);
		if (time_ns > until_ns)
			return at;
		like.time_ns = time_ns;
		like.at = at;
		like.order++;
		buf_add(&p->items, &like, sizeof(like));
		if (p->items.failed)
			return at; /* the rest is handled by the next pump */
		at += (uint64_t)len;
	}
	/* A malformed record ends the readable part: the rest is skipped. */
	return len < 0 ? like.head : at;
}

/* --- into the ring --- */

static void pump_put_loss(struct source_perf *p, uint32_t cpu, uint32_t slot, uint64_t time_ns)
{
	struct perf_loss *lost = &p->cpus[cpu].loss[slot];
	struct otp_loss *loss = ring_writer_reserve(&p->ring, sizeof(*loss));

	if (!loss)
		return;
	*loss = (struct otp_loss){
		.rec = {.type = OTP_REC_LOSS, .len = sizeof(*loss)},
		.time_ns = time_ns,
		.cpu = cpu,
		.reason = OTP_LOSS_RING_FULL,
		.origin = p->slots.origins.slot[slot].origin,
		.samples = lost->samples,
		.first_seq = lost->first_seq,
	};
	ring_writer_commit(&p->ring, sizeof(*loss));
	lost->samples = 0;
}

/* value: of these samples together; 0 where the kernel does not say it. */
static void pump_lose(struct source_perf *p, uint32_t cpu, uint32_t slot, uint64_t samples, uint64_t value,
		      enum otp_loss_reason reason)
{
	struct otp_cpu_counters *n = perf_counters(p, slot, cpu);
	struct perf_loss *lost = &p->cpus[cpu].loss[slot];

	if (!lost->samples)
		lost->first_seq = n->taken + 1;
	lost->samples += samples;
	n->ticks += samples;
	n->taken += samples;
	n->value += value;
	n->lost[reason] += samples;
}

/*
 * The part of a copy that the bound on bytes per second leaves. The kernel has
 * copied the bytes already, so only existing ones count.
 */
static uint32_t pump_share_budget(const struct source_perf *p, struct perf_budget *b, const struct perf_sample *s,
				  uint32_t want)
{
	__u64 take = want, base = 0, copied = MAX(s->stack_len, (uint32_t)OTP_STACK_FLOOR);

	if (!otp_budget_applies(want, base))
		return want;
	b->left = otp_budget_fill(b->left, s->time_ns - b->time_ns, p->choice.defaults.stack_budget);
	b->time_ns = s->time_ns;
	otp_budget_share(b->left, &take, &base);
	b->left = otp_budget_spend(b->left, MIN(take, copied) - OTP_STACK_FLOOR);
	return (uint32_t)take;
}

static void pump_put_sample(struct source_perf *p, uint32_t cpu, uint32_t slot, const struct perf_sample *s,
			    struct perf_subject *who)
{
	struct otp_cpu_counters *n = perf_counters(p, slot, cpu);
	struct perf_cpu *c = &p->cpus[cpu];
	uint32_t len;
	void *to;

	if (c->loss[slot].samples)
		pump_put_loss(p, cpu, slot, s->time_ns);
	to = ring_writer_reserve(&p->ring, (uint32_t)perf_sample_bound(s));
	if (!to) {
		pump_lose(p, cpu, slot, 1, slot ? s->value : 0, OTP_LOSS_RING_FULL);
		return;
	}
	who->stack_take = pump_share_budget(p, slot ? &c->events : &c->ticks, s, who->stack_bytes);
	who->origin = p->slots.origins.slot[slot].origin;
	len = perf_sample_write(to, s, who, n->taken + 1);
	n->ticks++;
	n->taken++;
	n->put++;
	n->value += slot ? s->value : 0;
	n->put_bytes += len;
	n->short_stacks += (((const struct otp_sample *)to)->mode & OTP_MODE_SHORT) != 0;
	ring_writer_commit(&p->ring, len);
}

static void pump_skip(struct source_perf *p, uint32_t cpu, uint32_t slot, enum otp_skip_reason reason)
{
	struct otp_cpu_counters *n = perf_counters(p, slot, cpu);

	n->ticks++;
	n->skip[reason]++;
}

/* The events for which each sample of a slot stands; 0: the clock's, and where each sample says it. */
static uint64_t pump_period(const struct source_perf *p, uint32_t slot)
{
	const struct event_setup *setup = slots_in_force(&p->slots, slot);

	return slot && !setup->by_frequency ? setup->period : 0;
}

/* The kernel had no room for these. */
static void pump_handle_lost(struct source_perf *p, uint32_t cpu, uint32_t slot, uint64_t samples)
{
	pump_lose(p, cpu, slot, samples, samples * pump_period(p, slot), OTP_LOSS_RING_FULL);
}

/* Softirqs on an idle CPU are of no process; the idle loop is no sample. */
static bool pump_is_idle(const struct source_perf *p, const struct perf_sample *s)
{
	return !s->pid && !s->tid && !softirq_code_has(&p->softirqs, s->kstack, s->nr_kstack);
}

static void pump_handle_sample(struct source_perf *p, uint32_t cpu, uint32_t slot, const void *record, size_t len)
{
	struct perf_format format = p->format;
	struct perf_subject who;
	struct perf_sample s;

	format.period = slot && slots_in_force(&p->slots, slot)->by_frequency;
	if (perf_sample_decode(record, len, &format, &s) < 0) {
		pump_lose(p, cpu, slot, 1, pump_period(p, slot), OTP_LOSS_BAD_RECORD);
		return;
	}
	if (slot && !format.period)
		s.value = pump_period(p, slot);
	s.cpu = cpu;
	if (!s.pid)
		s.cgroup_id = 0;
	if (pump_is_idle(p, &s))
		pump_skip(p, cpu, slot, OTP_SKIP_IDLE);
	else if (!p->started)
		pump_skip(p, cpu, slot, OTP_SKIP_STOPPED);
	else if (!perf_choice_make(&p->choice, &p->tasks, &s, &who))
		pump_skip(p, cpu, slot, OTP_SKIP_NOT_SELECTED);
	else
		pump_put_sample(p, cpu, slot, &s, &who);
}

static void pump_handle_record(struct source_perf *p, uint32_t cpu, uint32_t slot, const void *record, size_t len)
{
	const struct perf_event_header *h = record;
	const uint64_t *words = record;

	if (h->type == PERF_RECORD_SAMPLE)
		pump_handle_sample(p, cpu, slot, record, len);
	else if (h->type == PERF_RECORD_LOST && len >= 24)
		pump_handle_lost(p, cpu, slot, words[2]);
	/* THROTTLE: the ticks not taken are counted as missed, by the time that the event was enabled. */
}

/* The engine parses these records as it does the side-band's: passed on unchanged. */
static void pump_put_event(struct source_perf *p, uint32_t cpu, const void *record, size_t len)
{
	struct otp_life *to = ring_writer_reserve(&p->ring, (uint32_t)(sizeof(*to) + len));

	if (!to) {
		perf_counters(p, 0, cpu)->life_lost++;
		return;
	}
	to->rec = (struct otp_rec){.type = OTP_REC_LIFE, .len = (uint32_t)(sizeof(*to) + len)};
	memcpy(to + 1, record, len);
	perf_counters(p, 0, cpu)->life++;
	ring_writer_commit(&p->ring, to->rec.len);
}

static void pump_handle_life(struct source_perf *p, uint32_t cpu, const void *record, size_t len)
{
	struct proc_event ev;

	if (proc_event_decode(record, len, &ev) < 0)
		return;
	perf_tasks_apply(&p->tasks, &ev);
	if (p->single)
		pump_put_event(p, cpu, record, len);
}

static void pump_handle(struct source_perf *p, const struct item *it)
{
	const struct perf_cpu *c = &p->cpus[it->cpu];
	const struct sideband_buffer *b = it->is_sample ? &c->samples[it->slot] : &c->life;
	const void *record;
	int len = sideband_buffer_record(b, it->at, it->head, p->scratch, &record);

	if (len <= 0)
		return;
	if (it->is_sample)
		pump_handle_record(p, it->cpu, it->slot, record, (size_t)len);
	else
		pump_handle_life(p, it->cpu, record, (size_t)len);
}

/* --- all of them --- */

/* Pairs with the kernel's release of data_head: the records below it are whole. */
static uint64_t pump_head_of(const struct sideband_buffer *b)
{
	return b->page ? __atomic_load_n(&b->page->data_head, __ATOMIC_ACQUIRE) : 0;
}

/* Pairs with the kernel's read of data_tail before it overwrites: our reads have finished. */
static void pump_release(struct sideband_buffer *b, uint64_t at)
{
	if (b->page)
		__atomic_store_n(&b->page->data_tail, at, __ATOMIC_RELEASE);
}

static void pump_wake_once(struct source_perf *p)
{
	uint32_t limit = p->choice.defaults.wake_bytes;
	bool full = limit && ring_writer_unread(&p->ring) >= limit;
	uint64_t one = 1;

	if (full && !p->woken && write(p->wake_fd, &one, sizeof(one)) < 0)
		return;
	p->woken = full;
}

/* Ends of the handled records in the buffers of a CPU. */
struct ends {
	uint64_t samples[OTP_ORIGINS_MAX], life;
};

/* All heads before any record: the records that a sample depends on were written before the sample. */
static void pump_read_heads(const struct source_perf *p, struct ends *ends)
{
	for (uint32_t cpu = 0; cpu < p->nr; cpu++) {
		for_each_slot(&p->slots, slot)
			ends[cpu].samples[slot] = pump_head_of(&p->cpus[cpu].samples[slot]);
		ends[cpu].life = pump_head_of(&p->cpus[cpu].life);
	}
}

static void pump_collect_cpu(struct source_perf *p, uint32_t cpu, struct ends *ends, uint64_t until_ns)
{
	const struct perf_cpu *c = &p->cpus[cpu];
	struct item like = {.cpu = cpu, .head = ends->life};

	if (c->life.page)
		ends->life = pump_collect(p, &c->life, like, until_ns);
	for_each_slot(&p->slots, slot) {
		like = (struct item){.cpu = cpu, .head = ends->samples[slot], .slot = (uint8_t)slot, .is_sample = true};
		if (c->samples[slot].page)
			ends->samples[slot] = pump_collect(p, &c->samples[slot], like, until_ns);
	}
}

static void pump_release_cpu(struct source_perf *p, uint32_t cpu, const struct ends *ends)
{
	for_each_slot(&p->slots, slot)
		pump_release(&p->cpus[cpu].samples[slot], ends->samples[slot]);
	pump_release(&p->cpus[cpu].life, ends->life);
}

void perf_pump_until(struct source_perf *p, uint64_t until_ns)
{
	_cleanup_(freep) struct ends *ends = calloc(p->nr, sizeof(*ends));
	const struct item *items;
	size_t nr;

	if (!ends)
		return; /* samples that do not fit the buffers meanwhile are counted by the kernel */
	buf_reset(&p->items);
	p->items.failed = false;
	pump_read_heads(p, ends);
	for (uint32_t cpu = 0; cpu < p->nr; cpu++)
		pump_collect_cpu(p, cpu, &ends[cpu], until_ns);
	nr = p->items.len / sizeof(*items);
	if (nr)
		qsort(p->items.data, nr, sizeof(*items), pump_compare);
	items = (const struct item *)(const void *)p->items.data;
	for (size_t i = 0; i < nr; i++)
		pump_handle(p, &items[i]);
	for (uint32_t cpu = 0; cpu < p->nr; cpu++)
		pump_release_cpu(p, cpu, &ends[cpu]);
	perf_tasks_tick(&p->tasks, clock_now_ns());
	pump_wake_once(p);
}
