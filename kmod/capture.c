// SPDX-License-Identifier: GPL-2.0-only
/*
 * A record is written where it stays: its room in the ring is reserved when
 * its length is known but for the user stack, which may turn out shorter. So
 * stack bytes are copied once, and a reservation holds up the reader for no
 * longer than that copy takes.
 */
#include "kmod/capture.h"

#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "kmod/choose.h"
#include "kmod/compat/compat.h"
#include "kmod/sample.h"
#include "kmod/session.h"

#define CHUNKS_MAX ((OTP_STACK_LIMIT + OTP_BASE_LIMIT) / OTP_CHUNK_STACK)

/* Read by others while it is counted. */
#define count(counter, n) WRITE_ONCE(counter, (counter) + (n))

static void skip(struct otp_cpu_counters *n, enum otp_skip_reason reason)
{
	count(n->ticks, 1);
	count(n->skip[reason], 1);
}

/*
 * The loss record is written before the next sample; if it does not fit, that
 * sample is lost as well. Readers rely on this order.
 */
static bool put_loss(struct otprof_cpu *c)
{
	struct otp_loss loss = {
		.rec = { .type = OTP_REC_LOSS, .len = sizeof(loss) },
		.time_ns = c->time_ns,
		.cpu = c->cpu,
		.reason = OTP_LOSS_RING_FULL,
		.samples = c->loss_samples,
		.first_seq = c->loss_first_seq,
	};

	if (otprof_ring_put(&c->session->ring, c->cpu, &loss, sizeof(loss)))
		return false;
	c->loss_samples = 0;
	return true;
}

static void lose(struct otprof_cpu *c)
{
	struct otp_cpu_counters *n = c->counters;

	count(n->ticks, 1);
	count(n->taken, 1);
	count(n->lost[OTP_LOSS_RING_FULL], 1);
	if (!c->loss_samples)
		c->loss_first_seq = c->seq;
	c->loss_samples++;
}

/* The sample itself has arrived: what fails here only cuts it. */
static bool put_chunk(struct otprof_sample *s, struct otprof_chunk *chunk)
{
	struct otprof_ring *ring = &s->c->session->ring;
	struct otp_cpu_counters *n = s->c->counters;
	struct otprof_room room;
	u32 got;

	if (otprof_ring_reserve(ring, s->c->cpu, sizeof(struct otp_chunk) + chunk->want, &room)) {
		count(n->chunks_lost, 1);
		return false;
	}
	got = otprof_chunk_write(s, chunk, room.at);
	otprof_ring_commit(ring, s->c->cpu, &room, sizeof(struct otp_chunk) + got);
	count(n->chunks, 1);
	count(n->put_bytes, sizeof(struct otp_chunk) + got);
	if (chunk->flags & OTP_CHUNK_SHORT)
		count(n->short_stacks, 1);
	return true;
}

/* The rest of a deep stack, then its base. */
static void put_chunks(struct otprof_sample *s)
{
	struct otprof_chunk chunk;

	for (chunk.index = 0; chunk.index < CHUNKS_MAX && otprof_chunk_measure(s, &chunk); chunk.index++)
		if (!put_chunk(s, &chunk))
			return;
}

/*
 * The three counts of a sample change side by side, put before the record is
 * visible: a reader of the ring never knows more samples than were put.
 */
static void put(struct otprof_sample *s, const struct otprof_room *room)
{
	struct otp_cpu_counters *n = s->c->counters;
	u32 len = otprof_sample_write(s, room->at);

	count(n->ticks, 1);
	count(n->taken, 1);
	count(n->put, 1);
	otprof_ring_commit(&s->c->session->ring, s->c->cpu, room, len);
	count(n->put_bytes, len);
	if (s->mode & OTP_MODE_SHORT)
		count(n->short_stacks, 1);
	if (s->mode & OTP_MODE_CHUNKED)
		put_chunks(s);
}

/* A program's interpreter is walked only after the reader met it. */
static bool is_young(const struct otprof_sample *s)
{
	u64 age = s->c->time_ns - s->who.start_ns;

	return s->who.pid && !s->choice.plan_gen && !(s->mode & OTP_MODE_KTHREAD) && age >= OTP_YOUNG_FROM_NS &&
	       age < OTP_YOUNG_TO_NS;
}

static bool take(struct otprof_sample *s)
{
	struct otprof_cpu *c = s->c;
	struct otprof_room room;
	u32 bytes;

	otprof_choose_subject(&s->who);
	if (!otprof_choose(c->session, s->d, &s->who, &s->choice)) {
		skip(c->counters, OTP_SKIP_NOT_SELECTED);
		return false;
	}
	c->time_ns = otprof_compat_boot_ns();
	c->seq = c->counters->taken + 1;
	bytes = otprof_sample_measure(s);
	if ((c->loss_samples && !put_loss(c)) || otprof_ring_reserve(&c->session->ring, c->cpu, bytes, &room))
		lose(c);
	else
		put(s, &room);
	otprof_session_notice(c->session, s->d->wake_bytes);
	if (s->d->wake_bytes && is_young(s))
		otprof_session_notice_young(c->session, c->time_ns);
	return true;
}

/*
 * Whether an idle CPU ran a softirq, or an interrupt that lets others
 * interrupt it, rather than the idle loop. The tick itself, by a timer or an
 * NMI, counts as one interrupt. On PREEMPT_RT softirqs run in threads.
 */
static bool idle_is_interrupted(void)
{
	return preempt_count() & SOFTIRQ_OFFSET || hardirq_count() > HARDIRQ_OFFSET;
}

bool otprof_capture_tick(struct otprof_cpu *c, struct pt_regs *regs)
{
	struct otprof_sample s;
	bool taken;

	if (!regs || (!current->pid && !idle_is_interrupted())) {
		skip(c->counters, OTP_SKIP_IDLE);
		return false;
	}
	rcu_read_lock();
	s.c = c;
	s.regs = regs;
	s.d = &rcu_dereference(c->session->defaults)->d;
	taken = take(&s);
	rcu_read_unlock();
	return taken;
}

void otprof_capture_rest(struct otprof_cpu *c)
{
	skip(c->counters, OTP_SKIP_RESTING);
}

void otprof_capture_timed(struct otprof_cpu *c, u64 ns)
{
	struct otp_cpu_counters *n = c->counters;

	count(n->timed_runs, 1);
	count(n->timed_ns, ns);
	if (ns > n->longest_ns)
		WRITE_ONCE(n->longest_ns, ns);
}
