// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every section writer appends its section at `at` and returns the offset of
 * the next one. All payloads are multiples of 8. The user stack is last, as
 * the only section whose length is not known before it is written.
 */
#include "kmod/sample.h"

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "kmod/compat/compat.h"
#include "kmod/kstack.h"
#include "kmod/regs.h"
#include "kmod/session.h"
#include "kmod/uapi/otprof_copy.h"
#include "kmod/ustack.h"
#include "kmod/walk.h"

#define HAS_NO_USER      (OTP_MODE_KTHREAD | OTP_MODE_NO_USER | OTP_MODE_EXITING)
#define SECTION          ((u32)sizeof(struct otp_section))
#define REGS_BYTES       ((u32)(sizeof(struct otp_regs) + OTPROF_REGS * sizeof(u64)))

/*
 * Kernel threads, worker threads of a process (io_uring, vhost) and tasks
 * without memory have no user registers and no user stack. During an exec the
 * registers are the old program's and the memory may be the new one's, so a
 * sample of them would be wrong for both.
 */
static u32 sample_mode(struct pt_regs *regs)
{
	u32 mode = user_mode(regs) ? 0 : OTP_MODE_KERNEL, flags = READ_ONCE(current->flags);

	if (flags & PF_KTHREAD)
		return mode | OTP_MODE_KTHREAD;
	if (flags & (PF_IO_WORKER | PF_USER_WORKER))
		return mode | OTP_MODE_NO_USER;
	if (!READ_ONCE(current->mm))
		return mode | OTP_MODE_EXITING;
	if (mode && otprof_compat_in_exec(current))
		return mode | OTP_MODE_NO_USER;
	return mode;
}

/*
 * The interrupted user registers, or those saved on entry to the kernel. Between
 * exec and the first instruction they are all zero, which means none.
 */
static void sample_choose_user(struct otprof_sample *s)
{
	bool saved = s->mode & OTP_MODE_KERNEL;
	const struct pt_regs *from = saved ? task_pt_regs(current) : s->regs;

	s->user = NULL;
	if (s->mode & HAS_NO_USER)
		return;
	if (!otprof_regs_pc(from) && !otprof_regs_sp(from)) {
		s->mode |= OTP_MODE_NO_USER;
		return;
	}
	if (otprof_regs_compat(from))
		s->mode |= OTP_MODE_COMPAT;
	s->user = from;
	s->user_valid = otprof_regs_valid(from, saved);
	s->sp = s->user_valid >> OTPROF_REG_SP & 1 ? otprof_regs_sp(from) : 0;
}

/* Cuts the copy and its base to the bound on bytes per second. */
static void sample_share_budget(struct otprof_sample *s, u64 *want)
{
	struct otprof_cpu *c = s->c;

	if (!otp_budget_applies(*want, s->base_more))
		return;
	c->budget_left = otp_budget_fill(c->budget_left, c->time_ns - c->budget_ns, s->d->stack_budget);
	c->budget_ns = c->time_ns;
	if (otp_budget_share(c->budget_left, want, &s->base_more))
		s->mode |= OTP_MODE_THROTTLE;
}

/* vfork and posix_spawn: the parent waits, and its memory is the child's until the child's exec. */
static bool sample_is_in_parents_memory(const struct otprof_sample *s)
{
	return s->who.parent && READ_ONCE(s->who.parent->mm) == current->mm;
}

/*
 * The known end of a stack: for the first thread, where the kernel placed the
 * program's arguments; for others, the thread's own data, which C libraries
 * place at the top of the stack's mapping. 0: unknown, as for a process in its
 * parent's memory: the arguments are the parent's, and so may be the stack.
 */
static u64 sample_stack_end(const struct otprof_sample *s)
{
	if (s->who.tid != s->who.pid)
		return otp_copy_thread_end(OTPROF_ARCH, s->tls_base, otprof_ustack_word(s->tls_base));
	return sample_is_in_parents_memory(s) ? 0 : READ_ONCE(current->mm->start_stack);
}

/* Plans the copy and the chunks that continue it. */
static void sample_measure_stack(struct otprof_sample *s)
{
	struct otprof_choice *choice = &s->choice;
	struct otp_copy copy;
	u64 want;

	s->stack_addr = (s->sp - OTP_RED_ZONE) & ~7ULL;
	s->stack_end = sample_stack_end(s);
	otp_copy_plan(&copy, s->stack_addr, s->stack_end, choice->stack_bytes, choice->base_bytes, choice->tick_bytes);
	want = copy.want;
	s->base_more = copy.base;
	s->mode |= copy.mode;
	if (copy.mode & OTP_MODE_BOUNDED)
		choice->stack_bytes = want;
	sample_share_budget(s, &want);
	s->base_next = (s->stack_end & ~7ULL) - s->base_more;
	if (s->base_more)
		s->mode |= OTP_MODE_CHUNKED;
	s->stack_known = otp_copy_below_end(s->stack_addr + want, s->stack_end);
	s->stack_bytes = min_t(u64, want, OTP_HEAD_STACK);
	s->stack_more = want - s->stack_bytes;
}

static void sample_walk(struct otprof_sample *s)
{
	struct otprof_walking *w = s->c->walking;
	const struct otp_walks_ready *walks;

	if (!w || s->mode & OTP_MODE_COMPAT)
		return;
	walks = otprof_choose_walks(s->c->session, &s->who, &s->choice);
	if (!walks)
		return;
	otprof_walk(w, walks, s->tls_base, s->sp, s->user, s->user_valid);
	s->walk_bytes = w->bytes;
}

static u32 sample_measure_user(struct otprof_sample *s)
{
	s->tls_base = otprof_compat_tls_base();
	sample_measure_stack(s);
	sample_walk(s);
	return s->walk_bytes + SECTION + REGS_BYTES + SECTION + sizeof(struct otp_ustack) + s->stack_bytes;
}

u32 otprof_sample_measure(struct otprof_sample *s)
{
	u32 bytes = sizeof(struct otp_sample);

	s->mode = sample_mode(s->regs);
	sample_choose_user(s);
	if (s->mode & OTP_MODE_KERNEL) {
		s->kstack_bytes = otprof_kstack(s->c->kstack, OTP_KSTACK_MAX, s->regs) * sizeof(u64);
		bytes += SECTION + s->kstack_bytes;
	}
	s->tls_base = s->stack_end = s->stack_more = s->base_more = 0;
	s->walk_bytes = 0;
	if (s->user)
		bytes += sample_measure_user(s);
	return bytes;
}

static void sample_put_head(const struct otprof_sample *s, struct otp_sample *head)
{
	head->rec.type = OTP_REC_SAMPLE;
	head->rec.flags = 0;
	head->time_ns = s->c->time_ns;
	head->seq = s->c->seq;
	head->cpu = s->c->cpu;
	head->pid = s->who.pid;
	head->tid = s->who.tid;
	head->plan_gen = s->choice.plan_gen;
	head->start_ns = s->who.start_ns;
	head->exec_id = s->who.exec_id;
	head->cgroup_id = s->who.cgroup_id;
	head->tls_base = s->tls_base;
	memcpy(head->comm, s->who.comm, sizeof(head->comm));
	head->stack_bytes = s->choice.stack_bytes;
	head->ppid = s->who.ppid;
	head->arch = OTPROF_ARCH;
	head->origin = OTP_ORIGIN_CPU_CLOCK;
	head->nr_sections = 0;
	head->stack_end = s->stack_end;
}

static void *section_begin(struct otp_sample *head, u32 at, u16 type, u32 len)
{
	struct otp_section *section = (struct otp_section *)((u8 *)head + at);

	section->type = type;
	section->flags = 0;
	section->len = len;
	head->nr_sections++;
	return section + 1;
}

static u32 sample_put_regs(const struct otprof_sample *s, struct otp_sample *head, u32 at)
{
	struct otp_regs *to = section_begin(head, at, OTP_SEC_REGS, REGS_BYTES);

	to->valid = s->user_valid;
	otprof_regs_copy_valid(to->reg, s->user, s->user_valid);
	return at + SECTION + REGS_BYTES;
}

static u32 sample_put_kstack(const struct otprof_sample *s, struct otp_sample *head, u32 at)
{
	memcpy(section_begin(head, at, OTP_SEC_KSTACK, s->kstack_bytes), s->c->kstack, s->kstack_bytes);
	return at + SECTION + s->kstack_bytes;
}

static u32 sample_put_walks(const struct otprof_sample *s, struct otp_sample *head, u32 at)
{
	memcpy((u8 *)head + at, s->c->walking->sections, s->walk_bytes);
	head->nr_sections += s->c->walking->nr;
	return at + s->walk_bytes;
}

/* Copies to `to`; returns the bytes of stack. If chunks follow, pages missing at the end are a hole too. */
static u32 sample_copy_stack(struct otprof_sample *s, void *to)
{
	bool holes = false;
	u32 got;

	/* The mapping may begin between the red zone's end and the stack pointer. */
	if (((s->stack_addr ^ s->sp) & PAGE_MASK) && !otprof_ustack_there(s->stack_addr))
		s->stack_addr = s->sp & PAGE_MASK;
	got = otprof_ustack_copy(to, s->stack_bytes, s->stack_addr, &holes);
	if (got && got < s->stack_bytes && s->stack_more && s->stack_known) {
		got = s->stack_bytes;
		holes = true;
	}
	if (holes)
		s->mode |= OTP_MODE_HOLES;
	return got;
}

static u32 sample_put_ustack(struct otprof_sample *s, struct otp_sample *head, u32 at)
{
	struct otp_ustack *to = section_begin(head, at, OTP_SEC_USTACK, 0);
	u32 got = sample_copy_stack(s, to + 1), bytes = sizeof(*to) + got;

	to->addr = s->stack_addr;
	if (got < s->stack_bytes) {
		s->mode |= OTP_MODE_SHORT;
		s->stack_more = 0;
	} else if (s->stack_more) {
		s->mode |= OTP_MODE_CHUNKED;
		s->stack_next = s->stack_addr + got;
	}
	if (got > OTP_STACK_FLOOR)
		s->c->budget_left = otp_budget_spend(s->c->budget_left, got - OTP_STACK_FLOOR);
	((struct otp_section *)to)[-1].len = bytes;
	return at + SECTION + bytes;
}

u32 otprof_sample_write(struct otprof_sample *s, void *to)
{
	struct otp_sample *head = to;
	u32 at = sizeof(*head);

	sample_put_head(s, head);
	if (s->user)
		at = sample_put_regs(s, head, at);
	if (s->mode & OTP_MODE_KERNEL)
		at = sample_put_kstack(s, head, at);
	if (s->walk_bytes)
		at = sample_put_walks(s, head, at);
	if (s->user)
		at = sample_put_ustack(s, head, at);
	head->mode = s->mode | s->choice.mode;
	head->rec.len = at;
	return at;
}

bool otprof_chunk_measure(const struct otprof_sample *s, struct otprof_chunk *ret)
{
	u64 more = s->stack_more ? s->stack_more : s->base_more;

	ret->want = min_t(u64, more, OTP_CHUNK_STACK);
	ret->flags = (s->stack_more ? 0 : OTP_CHUNK_BASE) |
		     (s->stack_more + s->base_more == ret->want ? OTP_CHUNK_LAST : 0);
	return more;
}

u32 otprof_chunk_write(struct otprof_sample *s, struct otprof_chunk *chunk, void *to)
{
	bool base = chunk->flags & OTP_CHUNK_BASE, holes = false;
	u64 *more = base ? &s->base_more : &s->stack_more, *next = base ? &s->base_next : &s->stack_next;
	struct otp_chunk *head = to;
	u64 got = otprof_ustack_copy(head + 1, chunk->want, *next, &holes);

	if (holes)
		chunk->flags |= OTP_CHUNK_HOLES;
	chunk->flags = otp_chunk_flags(chunk->flags, &got, chunk->want, *more, s->base_more, s->stack_known);
	head->rec.type = OTP_REC_CHUNK;
	head->rec.flags = chunk->flags;
	head->rec.len = sizeof(*head) + got;
	head->seq = s->c->seq;
	head->cpu = s->c->cpu;
	head->index = chunk->index;
	head->addr = *next;
	head->len = got;
	head->origin = OTP_ORIGIN_CPU_CLOCK;
	head->reserved = 0;
	*next += chunk->want;
	*more = got < chunk->want && !base ? 0 : *more - chunk->want;
	s->c->budget_left = otp_budget_spend(s->c->budget_left, got);
	return got;
}
