// SPDX-License-Identifier: GPL-2.0-only
/*
 * A record is made in this CPU's scratch area, and only then put into the ring:
 * its length is known only at the end, and a reservation holds up the reader.
 *
 * Every section writer takes the offset at which it may begin, appends its
 * section and returns where the next one begins. All payloads are multiples of
 * 8. The user stack comes last, as the only one without a small bound; the
 * interpreter walks and the trace context have their place before it, after
 * the frame pointer walk.
 */
#include "kmod/capture.h"

#include <linux/irq_work.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "kmod/choose.h"
#include "kmod/compat/compat.h"
#include "kmod/kstack.h"
#include "kmod/regs.h"
#include "kmod/session.h"
#include "kmod/ustack.h"

#define BUDGET_WINDOW_NS 100000000ULL
#define FPWALK_STACK     512
#define CHUNKS_MAX       (OTP_STACK_LIMIT / OTP_CHUNK_STACK)
#define HAS_NO_USER      (OTP_MODE_KTHREAD | OTP_MODE_NO_USER | OTP_MODE_EXITING)
#define SECTION          ((u32)sizeof(struct otp_section))

/* Head, registers, kernel stack and walk, each with its section, leave room for the first of the user stack. */
_Static_assert(sizeof(struct otp_sample) + 4 * sizeof(struct otp_section) + sizeof(struct otp_regs) +
		       OTP_REGS_MAX * 8 + OTP_KSTACK_MAX * 8 + OTPROF_WALK_PAIRS * 16 + sizeof(struct otp_ustack) +
		       OTP_HEAD_STACK <= OTP_SCRATCH,
	       "a sample fits the scratch area");
_Static_assert(sizeof(struct otp_chunk) + OTP_CHUNK_STACK <= OTP_SCRATCH, "a chunk fits the scratch area");

/* Read by others while it is counted. */
#define count(counter, n) WRITE_ONCE(counter, (counter) + (n))

struct tick {
	struct otprof_cpu *c;
	struct pt_regs *regs;
	const struct otp_defaults *d;
	struct otprof_subject who;
	struct otprof_choice choice;
};

static struct otp_sample *head_of(const struct tick *t)
{
	return (struct otp_sample *)t->c->scratch;
}

static void *section_begin(const struct tick *t, u32 at, u16 type)
{
	struct otp_section *section = (struct otp_section *)(t->c->scratch + at);

	section->type = type;
	section->flags = 0;
	head_of(t)->nr_sections++;
	return section + 1;
}

static u32 section_end(const struct tick *t, u32 at, u32 len)
{
	((struct otp_section *)(t->c->scratch + at))->len = len;
	return at + SECTION + len;
}

static u32 task_mode(const struct tick *t)
{
	u32 mode = user_mode(t->regs) ? 0 : OTP_MODE_KERNEL;

	if (current->flags & PF_KTHREAD)
		return mode | OTP_MODE_KTHREAD;
	if (current->flags & (PF_IO_WORKER | PF_USER_WORKER))
		return mode | OTP_MODE_NO_USER;
	if (!current->mm)
		return mode | OTP_MODE_EXITING;
	return mode;
}

static void put_head(const struct tick *t)
{
	struct otp_sample *s = head_of(t);
	u32 mode = task_mode(t);

	memset(s, 0, sizeof(*s));
	s->rec.type = OTP_REC_SAMPLE;
	s->time_ns = t->c->time_ns;
	s->seq = t->c->seq;
	s->cpu = t->c->cpu;
	s->pid = t->who.pid;
	s->tid = t->who.tid;
	s->plan_gen = t->choice.plan_gen;
	s->start_ns = t->who.start_ns;
	s->exec_id = t->who.exec_id;
	s->cgroup_id = t->who.cgroup_id;
	s->tls_base = mode & HAS_NO_USER ? 0 : otprof_compat_tls_base();
	memcpy(s->comm, t->who.comm, sizeof(s->comm));
	s->mode = mode | t->choice.mode;
	s->stack_bytes = t->choice.stack_bytes;
	s->ppid = t->who.ppid;
	s->arch = OTPROF_ARCH;
}

/*
 * Registers as the tick found them, or as they were saved on entry to the
 * kernel. Between exec and its first instruction there are none: zeroes.
 */
static u32 put_regs(const struct tick *t, u32 at, struct otp_regs **ret)
{
	bool kernel = head_of(t)->mode & OTP_MODE_KERNEL;
	const struct pt_regs *from = kernel ? task_pt_regs(current) : t->regs;
	struct otp_regs *to = (struct otp_regs *)(t->c->scratch + at + SECTION);
	u32 i;

	otprof_regs_copy(to->reg, from);
	if (!to->reg[OTPROF_REG_PC] && !to->reg[OTPROF_REG_SP]) {
		head_of(t)->mode |= OTP_MODE_NO_USER;
		return at;
	}
	to->valid = kernel ? otprof_regs_saved(from) : (1ULL << OTPROF_REGS) - 1;
	if (otprof_regs_compat(from)) {
		head_of(t)->mode |= OTP_MODE_COMPAT;
		to->valid &= OTPROF_VALID_32;
	}
	for (i = 0; i < OTPROF_REGS; i++)
		if (!(to->valid >> i & 1))
			to->reg[i] = 0;
	*ret = to;
	section_begin(t, at, OTP_SEC_REGS);
	return section_end(t, at, sizeof(*to) + OTPROF_REGS * sizeof(u64));
}

static u32 put_kstack(const struct tick *t, u32 at)
{
	u64 *to = section_begin(t, at, OTP_SEC_KSTACK);

	return section_end(t, at, otprof_kstack(to, OTP_KSTACK_MAX, t->regs) * sizeof(u64));
}

static u32 put_fpwalk(const struct tick *t, u32 at, u64 fp)
{
	u64 *to = section_begin(t, at, OTP_SEC_FPWALK);

	return section_end(t, at, otprof_ustack_walk(to, fp));
}

/* What the bound on bytes per second leaves of a wish above the default. */
static u64 within_budget(struct otprof_cpu *c, u64 want, u32 budget)
{
	u64 room;

	if (want <= OTP_STACK_DEFAULT)
		return want;
	if (c->time_ns - c->budget_start_ns >= BUDGET_WINDOW_NS) {
		c->budget_start_ns = c->time_ns;
		c->budget_used = 0;
	}
	room = c->budget_used < budget ? budget - c->budget_used : 0;
	if (want - OTP_STACK_DEFAULT > room)
		want = OTP_STACK_DEFAULT + (room & ~7ULL);
	return want;
}

static u64 stack_wish(const struct otprof_choice *choice)
{
	u64 want = choice->capture == OTP_CAPTURE_FPWALK ? FPWALK_STACK : choice->stack_bytes;

	return (min_t(u64, want, OTP_STACK_LIMIT) + 7) & ~7ULL;
}

/* Copies the first part and leaves in c what is wanted beyond it. */
static u32 put_ustack(const struct tick *t, u32 at, u64 sp)
{
	struct otprof_cpu *c = t->c;
	struct otp_ustack *to = section_begin(t, at, OTP_SEC_USTACK);
	u64 wish = stack_wish(&t->choice), want = within_budget(c, wish, t->d->stack_budget);
	u32 first = min_t(u64, want, OTP_HEAD_STACK), got;

	to->addr = (sp - OTP_RED_ZONE) & ~7ULL;
	got = otprof_ustack_copy(to + 1, first, to->addr);
	/* The mapping may begin between the red zone's end and the stack pointer. */
	if (!got && ((to->addr ^ sp) & PAGE_MASK)) {
		to->addr = sp & PAGE_MASK;
		got = otprof_ustack_copy(to + 1, first, to->addr);
	}
	if (want < wish)
		head_of(t)->mode |= OTP_MODE_THROTTLE;
	if (got < first) {
		head_of(t)->mode |= OTP_MODE_SHORT;
	} else if (want > first) {
		head_of(t)->mode |= OTP_MODE_CHUNKED;
		c->stack_left = want - first;
		c->stack_next = to->addr + first;
	}
	if (got > OTP_STACK_DEFAULT)
		c->budget_used += got - OTP_STACK_DEFAULT;
	return section_end(t, at, sizeof(*to) + got);
}

static void fill(const struct tick *t)
{
	struct otp_regs *regs = NULL;
	u32 at = sizeof(struct otp_sample);

	t->c->stack_left = 0;
	put_head(t);
	if (!(head_of(t)->mode & HAS_NO_USER))
		at = put_regs(t, at, &regs);
	if (head_of(t)->mode & OTP_MODE_KERNEL)
		at = put_kstack(t, at);
	if (regs && t->choice.capture == OTP_CAPTURE_FPWALK)
		at = put_fpwalk(t, at, regs->reg[OTPROF_REG_FP]);
	if (regs)
		at = put_ustack(t, at, regs->reg[OTPROF_REG_SP]);
	head_of(t)->rec.len = at;
}

static int put(struct otprof_cpu *c, const void *rec, u32 len)
{
	return otprof_ring_put(&c->session->ring, c->cpu, rec, len);
}

/* One wake-up since the reader last caught up. Two CPUs may both send it: harmless. */
static void wake(struct otprof_session *s, const struct otp_defaults *d)
{
	if (!d->wake_bytes || otprof_ring_avail(&s->ring) < d->wake_bytes) {
		if (READ_ONCE(s->woken))
			WRITE_ONCE(s->woken, 0);
	} else if (!READ_ONCE(s->woken)) {
		WRITE_ONCE(s->woken, 1);
		irq_work_queue(&s->wake);
	}
}

static void put_loss(struct otprof_cpu *c)
{
	struct otp_loss loss = {
		.rec = { .type = OTP_REC_LOSS, .len = sizeof(loss) },
		.time_ns = c->time_ns,
		.cpu = c->cpu,
		.reason = OTP_LOSS_RING_FULL,
		.samples = c->loss_samples,
		.first_seq = c->loss_first_seq,
	};

	if (!put(c, &loss, sizeof(loss)))
		c->loss_samples = 0;
}

/* Fills the scratch area with the next chunk. */
static struct otp_chunk *make_chunk(struct otprof_cpu *c, u32 index, u32 want)
{
	struct otp_chunk *chunk = (struct otp_chunk *)c->scratch;
	u32 got = otprof_ustack_copy(chunk + 1, want, c->stack_next);

	memset(chunk, 0, sizeof(*chunk));
	chunk->rec.type = OTP_REC_CHUNK;
	if (got < want)
		chunk->rec.flags = OTP_CHUNK_LAST | OTP_CHUNK_SHORT;
	else if (c->stack_left == got)
		chunk->rec.flags = OTP_CHUNK_LAST;
	chunk->rec.len = sizeof(*chunk) + got;
	chunk->seq = c->seq;
	chunk->cpu = c->cpu;
	chunk->index = index;
	chunk->addr = c->stack_next;
	chunk->len = got;
	return chunk;
}

/* The rest of a deep stack. The sample itself has arrived: what fails here only cuts it. */
static void put_chunks(struct otprof_cpu *c)
{
	struct otp_cpu_counters *n = c->counters;
	u32 i;

	for (i = 0; i < CHUNKS_MAX && c->stack_left; i++) {
		u32 want = min_t(u64, c->stack_left, OTP_CHUNK_STACK);
		const struct otp_chunk *chunk = make_chunk(c, i, want);
		u32 got = chunk->len;

		if (put(c, chunk, chunk->rec.len)) {
			count(n->chunks_lost, 1);
			return;
		}
		count(n->chunks, 1);
		count(n->put_bytes, chunk->rec.len);
		c->budget_used += got;
		if (got < want) {
			count(n->short_stacks, 1);
			return;
		}
		c->stack_left -= got;
		c->stack_next += got;
	}
}

static void lose(struct otp_cpu_counters *n, enum otp_loss_reason reason)
{
	count(n->ticks, 1);
	count(n->taken, 1);
	count(n->lost[reason], 1);
}

static void skip(struct otp_cpu_counters *n, enum otp_skip_reason reason)
{
	count(n->ticks, 1);
	count(n->skip[reason], 1);
}

static void lost_for_room(struct otprof_cpu *c)
{
	count(c->counters->put, -1);
	count(c->counters->lost[OTP_LOSS_RING_FULL], 1);
	if (!c->loss_samples)
		c->loss_first_seq = c->seq;
	c->loss_samples++;
}

/*
 * The three counts of a sample change side by side, put before the record is
 * visible: a reader of the ring never knows more samples than were put.
 */
static void put_sample(const struct tick *t)
{
	struct otprof_cpu *c = t->c;
	struct otp_cpu_counters *n = c->counters;
	u32 mode = head_of(t)->mode, len = head_of(t)->rec.len;

	if (c->loss_samples)
		put_loss(c);
	count(n->ticks, 1);
	count(n->taken, 1);
	count(n->put, 1);
	if (put(c, c->scratch, len)) {
		lost_for_room(c);
	} else {
		count(n->put_bytes, len);
		if (mode & OTP_MODE_SHORT)
			count(n->short_stacks, 1);
		if (mode & OTP_MODE_CHUNKED)
			put_chunks(c);
	}
	wake(c->session, t->d);
}

static void take(struct tick *t)
{
	struct otprof_cpu *c = t->c;

	otprof_choose_subject(&t->who);
	if (!otprof_choose(c->session, t->d, &t->who, &t->choice)) {
		skip(c->counters, OTP_SKIP_NOT_SELECTED);
		return;
	}
	if (!c->scratch) {
		lose(c->counters, OTP_LOSS_SCRATCH);
		return;
	}
	c->time_ns = otprof_compat_boot_ns();
	c->seq = c->counters->taken + 1;
	fill(t);
	put_sample(t);
}

void otprof_capture_tick(struct otprof_cpu *c, struct pt_regs *regs)
{
	const struct otprof_defaults *defaults;
	struct tick t;

	if (!regs || !current->pid) {
		skip(c->counters, OTP_SKIP_IDLE);
		return;
	}
	rcu_read_lock();
	defaults = rcu_dereference(c->session->defaults);
	t.c = c;
	t.regs = regs;
	t.d = &defaults->d;
	take(&t);
	rcu_read_unlock();
}
