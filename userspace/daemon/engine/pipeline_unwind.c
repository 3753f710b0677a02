// SPDX-License-Identifier: Apache-2.0
/*
 * The user stack of one sample: the unwinder's input, the reasons to wait,
 * and samples without a stack.
 */
#include <errno.h>

#include "base/clock.h"
#include "daemon/engine/pipeline_state.h"

/* A pc that no mapping covers so soon after an exec belongs to the old program. */
#define EXEC_SETTLE_NS (100 * NSEC_PER_MSEC)
/* A first thread's stack is never larger than this. */
#define FIRST_STACK_MAX (1ULL << 30)

static void pipeline_unwind_input(struct pipeline *p, const struct attempt *a, struct unwind_input *in)
{
	const struct sample *s = a->s;
	const struct process *proc = attempt_process(a);

	*in = (struct unwind_input){
		.arch = s->head.arch,
		.space = a->space,
		.valid = s->valid,
		.reg = s->reg,
		.stack_addr = s->stack_addr,
		.stack = s->stack,
		.stack_len = s->stack_len,
		.stack_end = s->head.stack_end,
		.base_addr = s->base_addr,
		.base = s->base,
		.base_len = s->base_len,
		.gates = p->gates,
		.nr_gates = runtimes_gates(p->runtimes, proc, p->gates),
		.chunk_lost = s->chunk_lost,
		/* A copy that was cut by the bound on bytes does not end where memory ends. */
		.short_read = s->head.mode & OTP_MODE_SHORT && !(s->head.mode & OTP_MODE_THROTTLE),
		.holes = s->head.mode & OTP_MODE_HOLES,
	};
}

/* The tick fell inside execve: registers of the old program, mappings of the new. */
static bool pipeline_inside_exec(const struct attempt *a)
{
	const struct process *p = a->proc;

	return a->s->head.mode & OTP_MODE_KERNEL && p && p->exec_time_ns &&
	       a->s->head.time_ns < p->exec_time_ns + EXEC_SETTLE_NS;
}

/*
 * The tick fell earlier inside execve: the old program's memory is gone. Its stack cannot be read, and the new one,
 * if it exists yet, is elsewhere.
 */
static bool pipeline_stack_is_lost(const struct sample *s)
{
	uint64_t end = s->head.stack_end;

	return s->head.mode & OTP_MODE_KERNEL && s->head.tid == s->head.pid && !s->stack_len &&
	       (end <= s->stack_addr || end - s->stack_addr > FIRST_STACK_MAX);
}

enum progress { GO_ON, WAIT, GIVE_UP };

/* Requests the file behind a mapping; it may be there at once (a replay, a file that another process maps). */
static enum progress pipeline_want_file(struct pipeline *p, struct attempt *a, const struct mapping *m)
{
	if (a->proc && table_want_file(p->table, a->proc, m))
		return WAIT;
	/* The process is gone, but the file may have been requested, perhaps for another process. */
	if (m->file->state == MAPPED_OPENING)
		return WAIT;
	return m->file->state == MAPPED_READY || m->file->state == MAPPED_FAILED ? GO_ON : GIVE_UP;
}

/*
 * No mapping covers the pc: requests the process' mappings again; a replay answers within the call. Parked samples are
 * tried again whenever something was answered, which need not be this request.
 */
static enum progress pipeline_want_maps(struct pipeline *p, struct attempt *a)
{
	if (a->wants_maps && a->proc && a->proc->maps_pending)
		return WAIT;
	if (a->wants_maps || !a->proc || !table_uncovered(p->table, a->proc, p->stack.fail_pc, a->s->head.time_ns))
		return GIVE_UP;
	a->wants_maps = true;
	if (a->proc->maps_pending)
		return WAIT;
	attempt_set_space(a, a->proc->space);
	return GO_ON;
}

/* 32-bit code is not unwound, but its pc is known. Its vDSO is not the one whose symbols we have. */
static int pipeline_compat_leaf(struct pipeline *p, struct attempt *a)
{
	unsigned pc = a->s->head.arch == OTP_ARCH_ARM64 ? 32 : 16;
	const struct mapping *m;

	unwind_stack_clear(&p->stack, UNWIND_COMPAT);
	if (!a->s->reg || !(a->s->valid >> pc & 1))
		return 0;
	m = space_find(a->space, a->s->reg[pc]);
	if (!m || m->file->kind == MAPPED_VDSO)
		return 0;
	if (!a->final && pipeline_want_file(p, a, m) == WAIT)
		return -EAGAIN;
	p->stack.frames[p->stack.count++] = (struct frame){.kind = KIND_NATIVE, .pc = a->s->reg[pc], .map = m};
	return 0;
}

/*
 * The side-band does not report munmap and mremap: where a file's tables do not fit the code, another file may be
 * mapped there by now.
 */
static bool pipeline_stack_is_doubtful(const struct unwind_stack *s)
{
	const struct mapping *m = s->count ? s->frames[s->count - 1].map : NULL;

	return (s->end == UNWIND_NO_RULE || s->end == UNWIND_BAD_CFI || s->end == UNWIND_LOOP) && m &&
	       m->file->state == MAPPED_READY;
}

static int pipeline_unwind_once(struct pipeline *p, struct attempt *a)
{
	const struct mapping *wait = NULL;
	struct unwind_frozen frozen;
	struct unwind_other other;
	struct unwind_input in;
	enum progress next;

	pipeline_unwind_input(p, a, &in);
	if (runtimes_other_stack(p->runtimes, attempt_process(a), a->s, &other))
		in.other = &other;
	if (runtimes_frozen(p->runtimes, attempt_process(a), a->s, &frozen))
		in.frozen = &frozen;
	in.code = runtimes_begin_stack(p->runtimes, attempt_process(a), a->s, p->now_ns);
	while (unwind_user(p->unwinder, &in, a->final, &p->stack, &wait) == -EAGAIN) {
		if (!wait && pipeline_inside_exec(a)) {
			unwind_stack_clear(&p->stack, UNWIND_EXEC);
			return 0;
		}
		if (!wait && p->stack.code_pending)
			return -EAGAIN;
		next = wait ? pipeline_want_file(p, a, wait) : pipeline_want_maps(p, a);
		if (next == WAIT)
			return -EAGAIN;
		a->final |= next == GIVE_UP;
		in.space = a->space;
	}
	return 0;
}

/* A stack that ended because a file was missing, or was the wrong one: that may have changed. GIVE_UP: it has not. */
static enum progress pipeline_want_more(struct pipeline *p, struct attempt *a)
{
	const struct unwind_stack *s = &p->stack;
	const struct mapping *m = s->count ? s->frames[s->count - 1].map : NULL;
	enum progress next;

	if (pipeline_stack_is_doubtful(s))
		return pipeline_want_maps(p, a);
	if (s->end != UNWIND_NO_FILE || !m || m->file->state != MAPPED_FAILED)
		return GIVE_UP;
	next = pipeline_want_file(p, a, m);
	return next == GO_ON && m->file->state == MAPPED_FAILED ? GIVE_UP : next;
}

int pipeline_unwind(struct pipeline *p, struct attempt *a)
{
	enum progress next;

	/* Until it is unwound, no frame of this stack is a runtime's. */
	runtimes_begin_stack(p->runtimes, NULL, a->s, p->now_ns);
	if (a->s->head.mode & OTP_MODE_COMPAT)
		return pipeline_compat_leaf(p, a);
	if (!has_user_side(a->s)) {
		unwind_stack_clear(&p->stack, UNWIND_NO_USER);
		return 0;
	}
	if (pipeline_stack_is_lost(a->s)) {
		unwind_stack_clear(&p->stack, UNWIND_EXEC);
		return 0;
	}
	if (pipeline_unwind_once(p, a) < 0)
		return -EAGAIN;
	if (a->final)
		return 0;
	next = pipeline_want_more(p, a);
	if (next == WAIT)
		return -EAGAIN;
	return next == GO_ON ? pipeline_unwind_once(p, a) : 0;
}
