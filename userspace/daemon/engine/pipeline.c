// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/engine/capture.h"
#include "daemon/engine/explain.h"
#include "daemon/engine/pipeline_state.h"
#include "daemon/report/quality.h"
#include "process/binary.h"

/* The longest that a sample waits for a file or a name. */
#define PARK_DEADLINE_NS (4 * NSEC_PER_SEC)

_Static_assert(UNWIND_END_NR <= LEDGER_ENDS_MAX, "every end of a stack has a counter");
_Static_assert(UNWIND_END_NR <= PROCESS_ENDS_MAX, "also in a process");

/* Without memory only the figures of this process are missing. */
static void pipeline_count_of_process(struct process *proc, const struct unwind_stack *stack)
{
	if (!proc->stacks)
		proc->stacks = calloc(1, sizeof(*proc->stacks));
	if (!proc->stacks)
		return;
	proc->stacks->by_end[stack->end]++;
	for (int i = 0; i < FRAME_GUESS_NR; i++)
		proc->stacks->guessed[i] += stack->guessed[i];
}

/* Not a walk of frames: goroutines without labels would count as walks that failed. */
static bool pipeline_is_context(struct pipeline *p, const struct attempt *a, uint32_t plan)
{
	return runtimes_is_context(p->runtimes, attempt_process(a), a->s, plan);
}

static void pipeline_count_stack(struct pipeline *p, const struct attempt *a)
{
	struct ledger_engine *l = p->ledger;

	if (!has_user_side(a->s))
		return;
	l->stacks++;
	if (attempt_process(a))
		pipeline_count_of_process(a->proc, &p->stack);
	l->stacks_of_heap += p->stack.heap_followed;
	l->stacks_without_heap += p->stack.heap_left_out;
	for (uint32_t i = 0; i < OTP_WALK_PLANS; i++)
		if (a->s->walks[i] && a->s->walks[i]->end < OTP_WALK_END_NR && !pipeline_is_context(p, a, i))
			l->walked[a->s->walks[i]->end]++;
	if (unwind_end_is_root(p->stack.end))
		l->stacks_root++;
	else
		l->cut[p->stack.end]++;
}

/* Requests the symbols that its files lack; of all its files, so that they arrive together. */
static bool pipeline_waits_for_names(struct pipeline *p, const struct attempt *a)
{
	const struct symbol_asker asker = {.pid = a->s->head.pid, .pid_start_ns = a->s->head.start_ns,
					   .cgroup_id = a->s->head.cgroup_id, .now_ns = p->now_ns};
	bool wait = false;

	for (uint32_t i = 0; i < p->stack.count; i++) {
		const struct mapping *m = p->stack.frames[i].map;

		if (m && m->file->state == MAPPED_READY && m->file->binary)
			wait |= symbol_want(p->symbols, m->file->binary, &asker);
	}
	return wait;
}

static int pipeline_count_sample(struct pipeline *p, const struct attempt *a)
{
	const struct sample *s = a->s;
	struct profile_sample ps = {
		.workload = a->workload,
		.slot = s->slot,
		.value = s->value,
		.pid = s->head.pid,
		.tid = s->head.tid,
		.cpu = s->head.cpu,
		.comm = s->head.comm,
		.exe = a->exe,
		.frames = p->whole.frames,
	};
	int r;

	runtimes_context(p->runtimes, has_user_side(s) ? attempt_process(a) : NULL, s, &p->stack, &p->context);
	ps.labels = p->context.labels;
	pipeline_stack(p, a);
	ps.nr_frames = p->whole.count;
	r = profile_add(pipeline_waits_for_names(p, a) ? p->late : p->profile, &ps);
	pipeline_stack_done(p);
	if (r < 0) {
		p->ledger->held.of[s->slot]--;
		p->ledger->lost[OTP_LOSS_NO_MEMORY].of[s->slot]++;
	}
	return r;
}

/* The name that selects a hint: the first thread's. */
struct name { char comm[OTP_COMM_LEN]; };

static struct name pipeline_name_of(const struct attempt *a)
{
	struct name n = {0};

	if (a->comm)
		memcpy(n.comm, a->comm->s, MIN(a->comm->len, OTP_COMM_LEN - 1));
	else
		memcpy(n.comm, a->s->head.comm, OTP_COMM_LEN - 1);
	return n;
}

/* Walks that became known since the last plan, which has to say that there are any. */
static bool pipeline_learn_walks(struct pipeline *p, struct process *proc)
{
	struct otp_walks walks;

	if (!p->ops->walk || !runtimes_walks(p->runtimes, proc, &walks))
		return false;
	proc->walks = walks.generation;
	p->ops->walk(p->ctx, proc->pid, &walks);
	return true;
}

static void pipeline_send_plan(struct pipeline *p, struct process *proc)
{
	struct otp_plan plan = {
		.generation = ++p->plan_gen,
		.stack_bytes = proc->stack_bytes,
		.base_units = (uint8_t)(proc->base_bytes / OTP_BASE_UNIT),
		.start_ns = proc->start_ns,
		.exec_id = proc->exec_id,
		.flags = proc->walks ? OTP_PLAN_WALK : 0,
	};

	if (!plan.generation)
		plan.generation = p->plan_gen = 1;
	proc->plan_gen = plan.generation;
	p->ops->plan(p->ctx, proc->pid, &plan);
}

/* Until its first sample is counted there are no sizes for a plan: that sample sends it. */
void pipeline_send_walks(struct pipeline *p, uint32_t pid)
{
	struct process *proc = table_peek(p->table, pid);

	if (proc && proc->stack_bytes && pipeline_learn_walks(p, proc))
		pipeline_send_plan(p, proc);
}

/* The base that a sample was copied with where its process has no plan. */
static uint32_t pipeline_base_given(const struct pipeline *p, const struct attempt *a, const struct name *name)
{
	return adapt_base_given(a->s, table_peek(p->table, a->s->head.ppid),
				hints_given(&p->hints, name->comm).base_bytes);
}

/* Updates the sizes of this process' copies. true: they grew, to *ret. */
static bool pipeline_learn_process(struct pipeline *p, const struct attempt *a, const struct name *name,
				   struct otp_hint *ret)
{
	const struct otp_hint given = hints_given(&p->hints, name->comm);
	bool walks;

	if (a->s->head.mode & OTP_MODE_INHERITED && runtimes_wait(p->runtimes, a->proc))
		return false;
	if (!a->proc->plan_gen)
		a->proc->base_bytes = pipeline_base_given(p, a, name);
	walks = pipeline_learn_walks(p, a->proc);
	if (!adapt_observe(a->proc, &p->adapt, a->s, &p->stack)) {
		if (walks)
			pipeline_send_plan(p, a->proc);
		return false;
	}
	if (a->s->head.mode & OTP_MODE_BOUNDED && !a->proc->stack_shrunk)
		adapt_at_least(a->proc, &p->adapt, &given);
	pipeline_send_plan(p, a->proc);
	*ret = (struct otp_hint){.stack_bytes = a->proc->stack_bytes, .base_bytes = a->proc->base_bytes};
	return !a->proc->stack_shrunk;
}

/* The process is gone or runs another program, but the next one of its name will need as much. */
static bool pipeline_learn_name(struct pipeline *p, const struct attempt *a, const struct name *name,
				struct otp_hint *ret)
{
	ret->stack_bytes = MAX(a->s->head.stack_bytes, ADAPT_MIN_BYTES);
	ret->base_bytes = pipeline_base_given(p, a, name);
	return adapt_deepen(ret, &p->adapt, a->s, &p->stack);
}

/* Updates the sizes of copies of this process, and of programs of its name. */
static void pipeline_learn(struct pipeline *p, const struct attempt *a)
{
	const struct otp_hint used = {.stack_bytes = p->stack.stack_used, .base_bytes = p->stack.base_used};
	bool lives = attempt_process(a);
	struct name name = pipeline_name_of(a);
	struct otp_hint grown;

	if (!has_user_side(a->s))
		return;
	if (lives ? pipeline_learn_process(p, a, &name, &grown) : pipeline_learn_name(p, a, &name, &grown)) {
		if (a->s->head.mode & OTP_MODE_BOUNDED)
			hints_met(&p->hints, name.comm, a->s->head.time_ns);
		hints_grown(&p->hints, name.comm, &grown, a->s->head.time_ns);
	}
	if (unwind_end_is_root(p->stack.end))
		hints_used(&p->hints, name.comm, &used, a->s->head.time_ns);
}

/* Generated code: a perf map or jitdump may name it. false: the answer has not arrived. */
static bool pipeline_find_jit(struct pipeline *p, struct attempt *a)
{
	bool wait = false;

	a->jit = NULL;
	for (uint32_t i = 0; a->proc && i < p->stack.count; i++) {
		const struct mapping *m = p->stack.frames[i].map;

		if (!m || m->file->kind != MAPPED_ANON)
			continue;
		a->jit = jit_get(&p->jit, a->proc, p->now_ns, &wait);
		break;
	}
	return !wait || a->final;
}

/* Frames of interpreters, and whose process runs one. -EAGAIN: their functions are being decoded. */
static int pipeline_find_interpreted(struct pipeline *p, const struct attempt *a)
{
	const struct process *proc = attempt_process(a);

	if (proc && has_user_side(a->s))
		runtimes_meet(p->runtimes, proc, &p->stack, p->now_ns);
	return runtimes_frames(p->runtimes, proc, a->s, &p->stack, a->final, &p->interpreted);
}

static void pipeline_capture(struct pipeline *p, const struct attempt *a)
{
	struct capture_kept kept = {0};

	kept.words = runtimes_loaded(p->runtimes, &kept.nr, &kept.regs);
	capture_sample(p->capture, a->s, a->space, p->kernel, &kept);
}

/* 0: the sample is counted. -EAGAIN: it should wait. */
static int pipeline_attempt(struct pipeline *p, struct attempt *a)
{
	if (pipeline_unwind(p, a) < 0)
		return -EAGAIN;
	if (a->proc && a->proc->identity_pending && !a->final)
		return -EAGAIN;
	if (!pipeline_find_jit(p, a))
		return -EAGAIN;
	if (pipeline_find_interpreted(p, a) < 0)
		return -EAGAIN;
	if (runtimes_stack(p->runtimes, &p->stack, a->final) < 0)
		return -EAGAIN;
	if (has_user_side(a->s) && runtimes_want_context(p->runtimes, attempt_process(a), a->s, a->final) < 0)
		return -EAGAIN;
	if (p->capture)
		pipeline_capture(p, a);
	pipeline_count_stack(p, a);
	if (pipeline_count_sample(p, a) == 0)
		pipeline_learn(p, a);
	return 0;
}

static void pipeline_take_sample(struct pipeline *p, const struct sample *s, uint64_t now_ns)
{
	struct process *proc = table_find(p->table, &s->head);
	_cleanup_(attempt_done) struct attempt a = {.s = s, .proc = proc};

	p->ledger->read.of[s->slot]++;
	if (!proc) {
		p->ledger->lost[OTP_LOSS_NO_MEMORY].of[s->slot]++;
		return;
	}
	p->ledger->held.of[s->slot]++;
	attempt_set_space(&a, proc->space);
	a.workload = proc->workload;
	a.exe = proc->exe;
	a.comm = proc->comm;
	if (pipeline_attempt(p, &a) == 0)
		return;
	if (park_add(&p->park, s, proc, now_ns + PARK_DEADLINE_NS, a.wants_maps) == 0)
		return;
	a.final = true;
	pipeline_attempt(p, &a);
}

/* Only of processes, not of their threads. */
static void pipeline_report_life(struct pipeline *p, const struct proc_event *ev)
{
	if (!p->ops->life)
		return;
	if (ev->type == PROC_EXEC || (ev->type == PROC_EXIT && ev->pid == ev->tid))
		p->ops->life(p->ctx, ev->pid, 0);
	else if (ev->type == PROC_FORK && ev->pid != ev->ppid)
		p->ops->life(p->ctx, ev->pid, ev->ppid);
}

static void pipeline_apply_event(struct pipeline *p, struct batch *b, const struct batch_item *it)
{
	struct proc_event ev;

	if (batch_event(b, it, &ev) < 0)
		return;
	p->ledger->sideband_records++;
	if (ev.type == PROC_LOST)
		p->ledger->sideband_lost += ev.lost;
	if (p->capture)
		capture_event(p->capture, batch_event_bytes(b, it), it->size);
	table_apply(p->table, &ev);
	pipeline_report_life(p, &ev);
}

static void pipeline_report_batch_losses(struct pipeline *p, const struct batch *b, uint64_t now_ns)
{
	struct proc_event ev = {.type = PROC_LOST, .time_ns = now_ns, .lost = b->sideband_lost};

	if (!b->sideband_lost)
		return;
	p->ledger->sideband_lost += b->sideband_lost;
	table_apply(p->table, &ev);
}

/* A sample that is inconsistent, or whose origin the session does not sample, is lost. */
static void pipeline_take_record(struct pipeline *p, struct batch *b, const struct batch_item *it, uint64_t now_ns)
{
	struct sample s;
	int slot = -1;

	if (batch_sample(b, it, &s) == 0)
		slot = origins_slot(&p->counting.origins, s.head.origin);
	if (slot >= 0) {
		s.slot = (uint32_t)slot;
		pipeline_take_sample(p, &s, now_ns);
		return;
	}
	slot = (int)origins_slot_of(&p->counting.origins, batch_record(it));
	p->ledger->read.of[slot]++;
	p->ledger->lost[OTP_LOSS_BAD_RECORD].of[slot]++;
}

void pipeline_batch(struct pipeline *p, struct batch *b, uint64_t now_ns)
{

	p->now_ns = now_ns;
	for (size_t i = 0; i < batch_count(b); i++) {
		const struct batch_item *it = batch_item(b, i);

		if (it->kind == BATCH_EVENT)
			pipeline_apply_event(p, b, it);
		else
			pipeline_take_record(p, b, it, now_ns);
	}
	pipeline_report_batch_losses(p, b, now_ns);
}

/* The process' present data, or those of the time when the sample was parked. */
static void pipeline_parked_attempt(struct pipeline *p, struct parked *e, struct attempt *a)
{
	struct process *proc = table_peek(p->table, e->sample.head.pid);

	/* The pid may belong to another process by now, whose start is unknown until its first sample. */
	if (proc && proc->start_ns != e->sample.head.start_ns)
		proc = NULL;
	*a = (struct attempt){.s = &e->sample, .proc = proc, .space = space_ref(e->space),
			      .workload = e->workload, .exe = e->exe, .comm = e->comm, .wants_maps = e->wants_maps};
	/* An exec since then has changed its identity and its mappings. */
	if (!proc || !same_exec(proc, &e->sample))
		return;
	a->workload = proc->workload;
	a->exe = proc->exe;
	a->comm = proc->comm;
	if (e->wants_maps)
		attempt_set_space(a, proc->space);
}

/* 0: the sample is counted. -EAGAIN: it waits on. */
static int pipeline_retry_one(struct pipeline *p, struct parked *e, bool final)
{
	_cleanup_(attempt_done) struct attempt a = {0};
	int r;

	pipeline_parked_attempt(p, e, &a);
	a.final = final;
	r = pipeline_attempt(p, &a);
	e->wants_maps = a.wants_maps;
	return r;
}

void pipeline_retry(struct pipeline *p, uint64_t now_ns, bool all)
{
	struct parked **slot = &p->park.first;

	p->now_ns = now_ns;
	p->ending = all;
	p->settled = false;
	while (*slot) {
		if (pipeline_retry_one(p, *slot, all || now_ns >= (*slot)->deadline_ns) == 0)
			park_remove(&p->park, slot);
		else
			slot = &(*slot)->next;
	}
}

size_t pipeline_parked(const struct pipeline *p)
{
	return p->park.count;
}

bool pipeline_is_expecting(const struct pipeline *p, uint64_t now_ns)
{
	return runtimes_is_expecting(p->runtimes, now_ns);
}

static int pipeline_on_request(void *ctx, const void *request, size_t len, const struct ledger_counts *samples)
{
	struct pipeline *p = ctx;

	return p->ops->request(p->ctx, request, len, samples);
}

/*
 * The names have arrived, or will not: the waiting samples become part of the interval that ends now, like samples
 * whose files were late.
 */
void pipeline_end_wait(struct pipeline *p)
{
	struct ledger_counts lost;

	profile_merge(p->profile, p->late, &lost);
	ledger_counts_move(&p->ledger->held, &p->ledger->lost[OTP_LOSS_NO_MEMORY], &lost);
}

void pipeline_flush(struct pipeline *p, uint64_t start_unix_ns, uint64_t end_unix_ns)
{
	struct ledger_counts lost;
	struct profile_top top;

	if (p->ending || !symbol_waits(p->symbols, p->now_ns))
		pipeline_end_wait(p);
	profile_encode(p->profile, start_unix_ns, end_unix_ns, pipeline_on_request, p, &lost);
	ledger_counts_move(&p->ledger->held, &p->ledger->lost[OTP_LOSS_ENCODE], &lost);
	p->ledger->intervals++;
	quality_age(p->ledger);
	profile_top(p->profile, &top);
	snprintf(p->ledger->top_name, sizeof(p->ledger->top_name), "%s", top.name);
	p->ledger->top_samples = top.samples;
	p->ledger->top_total = top.total;
}

void pipeline_set_origins(struct pipeline *p, const struct origins *origins)
{
	p->counting.origins = *origins;
}

void pipeline_turn(struct pipeline *p, uint64_t now_ns)
{
	table_tick(p->table, now_ns);
	if (p->settled && p->park.first)
		pipeline_retry(p, now_ns, false);
}

void pipeline_explain(struct pipeline *p, uint32_t pid, struct buf *to)
{
	struct explain x = {.config = p->config, .ledger = p->ledger, .symbols = p->symbols, .jit = &p->jit, .runtimes = p->runtimes,
			    .process = table_peek(p->table, pid), .pid = pid};

	explain_json(&x, to);
}

void pipeline_debuginfod(struct pipeline *p, const uint8_t *htlhash, uint32_t state, bool again)
{
	symbol_set_fetch(p->symbols, htlhash, state, again);
}

void pipeline_tick(struct pipeline *p, uint64_t now_ns)
{
	struct process_stats stats;

	table_stats(p->table, &stats);
	p->ledger->processes = stats.processes;
	p->ledger->parked = p->park.count;
	p->ledger->cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int pipeline_scan(struct pipeline *p)
{
	return table_scan(p->table);
}

int pipeline_scan_some(struct pipeline *p)
{
	return table_scan_some(p->table);
}

void pipeline_kernel(struct pipeline *p, struct kernel_symbols *k)
{
	kernel_symbols_free(p->kernel);
	p->kernel = k;
	p->counting.kernel = k;
}

bool pipeline_kernel_unsure(const struct pipeline *p)
{
	return p->kernel && kernel_symbols_unsure(p->kernel);
}

