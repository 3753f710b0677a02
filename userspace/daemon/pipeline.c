// SPDX-License-Identifier: Apache-2.0
#include "daemon/pipeline.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/adapt.h"
#include "daemon/capture.h"
#include "daemon/explain.h"
#include "daemon/hints.h"
#include "daemon/jit.h"
#include "daemon/park.h"
#include "daemon/quality.h"
#include "daemon/resource.h"
#include "process/binary.h"
#include "profile/profile.h"
#include "unwind/unwind.h"

/* A file or a name that does not come within this long will not come. */
#define PARK_DEADLINE_NS (4 * NSEC_PER_SEC)
/* A pc that no mapping covers so soon after an exec is the old program's. */
#define EXEC_SETTLE_NS (100 * NSEC_PER_MSEC)
/* So far from its end no first thread's stack grows. */
#define FIRST_STACK_MAX (1ULL << 30)

struct pipeline {
	const struct config *config;
	const struct pipeline_ops *ops;
	void *ctx;
	struct ledger_engine *ledger;
	struct capture *capture;
	struct process_table *table;
	struct unwinder *unwinder;
	struct symbolizer *symbols;
	struct kernel_symbols *kernel;
	struct profile_builder *profile;
	struct jit jit;
	struct profile_builder *late; /* samples whose names are still to come; of this rate */
	bool ending;
	uint64_t now_ns; /* of the batch or turn at hand */
	struct resource_set resource;
	struct park park;
	struct adapt_limits adapt;
	uint32_t stack_limit; /* the guard's, beside the configuration's */
	struct hints hints;
	uint32_t plan_gen;
	bool settled; /* something that samples wait for has come */
	struct unwind_stack stack; /* of the sample at hand; large */
};

/* What one attempt at a sample works with: the live process, or what a parked sample kept. */
struct attempt {
	const struct sample *s;
	struct process *proc; /* NULL: gone */
	struct space *space;
	struct workload *workload;
	struct str *exe;
	bool final;
	bool wants_maps; /* its mappings were asked for: not a second time */
	struct jit_process *jit; /* of code without a file, NULL: none */
};

static void on_file_settled(void *ctx, struct mapped_file *f)
{
	((struct pipeline *)ctx)->settled = true;
}

static void on_process_settled(void *ctx, struct process *proc)
{
	((struct pipeline *)ctx)->settled = true;
}

static bool has_user_side(const struct sample *s)
{
	return s->reg && !(s->head.mode & SAMPLE_NO_USER_SIDE);
}

static void empty_stack(struct unwind_stack *out, enum unwind_end end)
{
	out->count = 0;
	out->end = end;
	out->stack_used = 0;
	out->fail_pc = out->fail_addr = 0;
}

static void unwind_input(const struct attempt *a, struct unwind_input *in)
{
	const struct sample *s = a->s;

	*in = (struct unwind_input){
		.arch = s->head.arch,
		.space = a->space,
		.valid = s->valid,
		.reg = s->reg,
		.stack_addr = s->stack_addr,
		.stack = s->stack,
		.stack_len = s->stack_len,
		.base_addr = s->base_addr,
		.base = s->base,
		.base_len = s->base_len,
		.chunk_lost = s->chunk_lost,
		/* A copy that the bound on bytes cut short is not the end of memory. */
		.short_read = s->head.mode & OTP_MODE_SHORT && !(s->head.mode & OTP_MODE_THROTTLE),
		.holes = s->head.mode & OTP_MODE_HOLES,
	};
}

/* The tick fell inside execve: registers of the old program, mappings of the new. */
static bool inside_exec(const struct attempt *a)
{
	const struct process *p = a->proc;

	return a->s->head.mode & OTP_MODE_KERNEL && p && p->exec_time_ns &&
	       a->s->head.time_ns < p->exec_time_ns + EXEC_SETTLE_NS;
}

/*
 * Earlier inside execve: the old program's memory is gone. Nothing of the stack
 * can be read, and the new one, if there is one yet, lies elsewhere.
 */
static bool has_lost_its_stack(const struct sample *s)
{
	uint64_t end = s->head.stack_end;

	return s->head.mode & OTP_MODE_KERNEL && s->head.tid == s->head.pid && !s->stack_len &&
	       (end <= s->stack_addr || end - s->stack_addr > FIRST_STACK_MAX);
}

enum progress { GO_ON, WAIT, GIVE_UP };

/* The file behind a mapping; it may be settled at once (a replay, a file that others opened). */
static enum progress want_file(struct pipeline *p, struct attempt *a, const struct mapping *m)
{
	if (a->proc && table_want_file(p->table, a->proc, m))
		return WAIT;
	/* Its process is gone, but the file was asked for, perhaps by another. */
	if (m->file->state == MAPPED_OPENING)
		return WAIT;
	return m->file->state == MAPPED_READY || m->file->state == MAPPED_FAILED ? GO_ON : GIVE_UP;
}

/* A pc that no mapping covers: the process' mappings are read again, in a replay within the call. */
static enum progress want_maps(struct pipeline *p, struct attempt *a)
{
	if (a->wants_maps || !a->proc || !table_uncovered(p->table, a->proc, p->stack.fail_pc, a->s->head.time_ns))
		return GIVE_UP;
	a->wants_maps = true;
	if (a->proc->maps_pending)
		return WAIT;
	a->space = a->proc->space;
	return GO_ON;
}

/*
 * 32-bit code is not unwound, but where it was interrupted is known. Its vDSO
 * is another than the one whose names we have.
 */
static int compat_leaf(struct pipeline *p, struct attempt *a)
{
	unsigned pc = a->s->head.arch == OTP_ARCH_ARM64 ? 32 : 16;
	const struct mapping *m;

	empty_stack(&p->stack, UNWIND_COMPAT);
	if (!a->s->reg || !(a->s->valid >> pc & 1))
		return 0;
	m = space_find(a->space, a->s->reg[pc]);
	if (!m || m->file->kind == MAPPED_VDSO)
		return 0;
	if (!a->final && want_file(p, a, m) == WAIT)
		return -EAGAIN;
	p->stack.frames[p->stack.count++] = (struct frame){.pc = a->s->reg[pc], .map = m};
	return 0;
}

/*
 * The side-band says nothing of munmap and mremap: where the tables of a file
 * do not fit its code, another file may lie there by now.
 */
static bool is_doubtful(const struct unwind_stack *s)
{
	const struct mapping *m = s->count ? s->frames[s->count - 1].map : NULL;

	return (s->end == UNWIND_NO_RULE || s->end == UNWIND_BAD_CFI || s->end == UNWIND_LOOP) && m &&
	       m->file->state == MAPPED_READY;
}

static int unwind_once(struct pipeline *p, struct attempt *a)
{
	const struct mapping *wait = NULL;
	struct unwind_input in;
	enum progress next;

	unwind_input(a, &in);
	while (unwind_user(p->unwinder, &in, a->final, &p->stack, &wait) == -EAGAIN) {
		if (!wait && inside_exec(a)) {
			empty_stack(&p->stack, UNWIND_EXEC);
			return 0;
		}
		next = wait ? want_file(p, a, wait) : want_maps(p, a);
		if (next == WAIT)
			return -EAGAIN;
		a->final |= next == GIVE_UP;
		in.space = a->space;
	}
	return 0;
}

/* 0, or -EAGAIN: the sample should wait. */
static int unwind_sample(struct pipeline *p, struct attempt *a)
{
	enum progress next;

	if (a->s->head.mode & OTP_MODE_COMPAT)
		return compat_leaf(p, a);
	if (!has_user_side(a->s)) {
		empty_stack(&p->stack, UNWIND_NO_USER);
		return 0;
	}
	if (has_lost_its_stack(a->s)) {
		empty_stack(&p->stack, UNWIND_EXEC);
		return 0;
	}
	if (unwind_once(p, a) < 0)
		return -EAGAIN;
	if (a->final || !is_doubtful(&p->stack))
		return 0;
	next = want_maps(p, a);
	if (next == WAIT)
		return -EAGAIN;
	return next == GO_ON ? unwind_once(p, a) : 0;
}

_Static_assert(UNWIND_END_NR <= LEDGER_ENDS_MAX, "every end of a stack has a counter");
_Static_assert(UNWIND_END_NR <= PROCESS_ENDS_MAX, "also in a process");

static bool same_exec(const struct process *proc, const struct sample *s)
{
	return proc->start_ns == s->head.start_ns && proc->exec_id == s->head.exec_id;
}

/* Without memory its own figures are absent, no more. */
static void count_of_process(struct process *proc, enum unwind_end end)
{
	if (!proc->stacks)
		proc->stacks = calloc(1, sizeof(*proc->stacks));
	if (proc->stacks)
		proc->stacks->by_end[end]++;
}

static void count_stack(struct pipeline *p, const struct attempt *a)
{
	struct ledger_engine *l = p->ledger;

	if (!has_user_side(a->s))
		return;
	l->stacks++;
	if (a->proc && same_exec(a->proc, a->s))
		count_of_process(a->proc, p->stack.end);
	if (unwind_end_is_root(p->stack.end))
		l->stacks_root++;
	else
		l->cut[p->stack.end]++;
}

/* Asks for what is missing of its files' names; all of them, that they come together. */
static bool waits_for_names(struct pipeline *p, const struct attempt *a)
{
	const struct symbol_asker asker = {.pid = a->s->head.pid, .now_ns = p->now_ns};
	bool wait = false;

	for (uint32_t i = 0; i < p->stack.count; i++) {
		const struct mapping *m = p->stack.frames[i].map;

		if (m && m->file->state == MAPPED_READY && m->file->binary)
			wait |= symbol_want(p->symbols, m->file->binary, &asker);
	}
	return wait;
}

static int count_sample(struct pipeline *p, const struct attempt *a)
{
	const struct sample *s = a->s;
	struct profile_sample ps = {
		.workload = a->workload,
		.pid = s->head.pid,
		.tid = s->head.tid,
		.cpu = s->head.cpu,
		.comm = s->head.comm,
		.exe = a->exe,
		.kernel = s->kernel,
		.nr_kernel = s->nr_kernel,
		.jit = a->jit ? jit_name : NULL,
		.jit_ctx = a->jit,
		.user = has_user_side(s) || s->head.mode & OTP_MODE_COMPAT ? &p->stack : NULL,
	};
	int r = profile_add(waits_for_names(p, a) ? p->late : p->profile, &ps);

	if (r < 0) {
		p->ledger->held--;
		p->ledger->lost[OTP_LOSS_NO_MEMORY]++;
	}
	return r;
}

/* The name that hints go by: the first thread's. */
struct name { char comm[OTP_COMM_LEN]; };

static struct name name_of(const struct attempt *a)
{
	struct name n = {0};

	if (a->proc->comm)
		memcpy(n.comm, a->proc->comm->s, MIN(a->proc->comm->len, OTP_COMM_LEN - 1));
	else
		memcpy(n.comm, a->s->head.comm, OTP_COMM_LEN - 1);
	return n;
}

static void send_plan(struct pipeline *p, const struct attempt *a)
{
	struct name name = name_of(a);
	struct otp_plan plan = {
		.generation = ++p->plan_gen,
		.stack_bytes = a->proc->stack_bytes,
		.base_units = (uint8_t)(a->proc->base_bytes / OTP_BASE_UNIT),
		.start_ns = a->s->head.start_ns,
		.exec_id = a->s->head.exec_id,
	};

	if (!plan.generation)
		plan.generation = p->plan_gen = 1;
	a->proc->plan_gen = plan.generation;
	p->ops->plan(p->ctx, a->s->head.pid, &plan);
	hints_grown(&p->hints, name.comm,
		    &(struct otp_hint){.stack_bytes = a->proc->stack_bytes, .base_bytes = a->proc->base_bytes},
		    a->s->head.time_ns);
}

/* How deep this process, and programs of its name, are to be copied from now on. */
static void learn(struct pipeline *p, const struct attempt *a)
{
	if (!a->proc || !has_user_side(a->s) || !same_exec(a->proc, a->s))
		return;
	if (adapt_observe(a->proc, &p->adapt, a->s, &p->stack))
		send_plan(p, a);
	if (unwind_end_is_root(p->stack.end))
		hints_used(&p->hints, name_of(a).comm, p->stack.stack_used, a->s->head.time_ns);
}

/* Generated code: whoever made it may say what it is. False: the answer is on its way. */
static bool find_jit(struct pipeline *p, struct attempt *a)
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

/* 0: the sample has found its place. -EAGAIN: it should wait. */
static int attempt(struct pipeline *p, struct attempt *a)
{
	if (unwind_sample(p, a) < 0)
		return -EAGAIN;
	if (a->proc && a->proc->identity_pending && !a->final)
		return -EAGAIN;
	if (!find_jit(p, a))
		return -EAGAIN;
	if (p->capture)
		capture_sample(p->capture, a->s, a->space, p->kernel);
	count_stack(p, a);
	if (count_sample(p, a) == 0)
		learn(p, a);
	return 0;
}

static void take_sample(struct pipeline *p, const struct sample *s, uint64_t now_ns)
{
	struct process *proc = table_find(p->table, &s->head);
	struct attempt a = {.s = s, .proc = proc};

	p->ledger->read++;
	if (!proc) {
		p->ledger->lost[OTP_LOSS_NO_MEMORY]++;
		return;
	}
	p->ledger->held++;
	a.space = proc->space;
	a.workload = proc->workload;
	a.exe = proc->exe;
	if (attempt(p, &a) == 0)
		return;
	if (park_add(&p->park, s, proc, now_ns + PARK_DEADLINE_NS, a.wants_maps) == 0)
		return;
	a.final = true;
	attempt(p, &a);
}

/* Of processes, not of their threads. */
static void tell_life(struct pipeline *p, const struct proc_event *ev)
{
	if (!p->ops->life)
		return;
	if (ev->type == PROC_EXEC || (ev->type == PROC_EXIT && ev->pid == ev->tid))
		p->ops->life(p->ctx, ev->pid, 0);
	else if (ev->type == PROC_FORK && ev->pid != ev->ppid)
		p->ops->life(p->ctx, ev->pid, ev->ppid);
}

static void apply_event(struct pipeline *p, struct batch *b, const struct batch_item *it)
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
	tell_life(p, &ev);
}

static void report_batch_losses(struct pipeline *p, const struct batch *b, uint64_t now_ns)
{
	struct proc_event ev = {.type = PROC_LOST, .time_ns = now_ns, .lost = b->sideband_lost};

	if (!b->sideband_lost)
		return;
	p->ledger->sideband_lost += b->sideband_lost;
	table_apply(p->table, &ev);
}

void pipeline_batch(struct pipeline *p, struct batch *b, uint64_t now_ns)
{
	struct sample s;

	p->now_ns = now_ns;
	for (size_t i = 0; i < batch_count(b); i++) {
		const struct batch_item *it = batch_item(b, i);

		if (it->kind == BATCH_EVENT) {
			apply_event(p, b, it);
		} else if (batch_sample(b, it, &s) == 0) {
			take_sample(p, &s, now_ns);
		} else {
			p->ledger->read++;
			p->ledger->lost[OTP_LOSS_BAD_RECORD]++;
		}
	}
	report_batch_losses(p, b, now_ns);
}

/* What is known of the process by now, or what was known when the sample came. */
static void parked_attempt(struct pipeline *p, struct parked *e, struct attempt *a)
{
	struct process *proc = table_peek(p->table, e->sample.head.pid);

	/* The pid's present owner may be another one, whose start no sample has told yet. */
	if (proc && proc->start_ns != e->sample.head.start_ns)
		proc = NULL;
	*a = (struct attempt){.s = &e->sample, .proc = proc, .space = e->space,
			      .workload = e->workload, .exe = e->exe, .wants_maps = e->wants_maps};
	/* An exec since then gave it another identity and other mappings. */
	if (!proc || !same_exec(proc, &e->sample))
		return;
	a->workload = proc->workload;
	a->exe = proc->exe;
	if (e->wants_maps)
		a->space = proc->space;
}

void pipeline_retry(struct pipeline *p, uint64_t now_ns, bool all)
{
	struct parked **slot = &p->park.first;
	struct attempt a;

	p->now_ns = now_ns;
	p->ending = all;
	p->settled = false;
	while (*slot) {
		parked_attempt(p, *slot, &a);
		a.final = all || now_ns >= (*slot)->deadline_ns;
		if (attempt(p, &a) == 0) {
			park_remove(&p->park, slot);
			continue;
		}
		(*slot)->wants_maps = a.wants_maps;
		slot = &(*slot)->next;
	}
}

size_t pipeline_parked(const struct pipeline *p)
{
	return p->park.count;
}

static int on_request(void *ctx, const void *request, size_t len, uint64_t samples)
{
	struct pipeline *p = ctx;

	return p->ops->request(p->ctx, request, len, samples);
}

static void book_lost(struct pipeline *p, uint64_t lost)
{
	p->ledger->held -= lost;
	p->ledger->lost[OTP_LOSS_ENCODE] += lost;
}

/*
 * The names that were waited for are there, or will not come: the samples go
 * with the interval that ends now, as those do whose files came late.
 */
void pipeline_end_wait(struct pipeline *p)
{
	uint64_t lost = profile_merge(p->profile, p->late);

	p->ledger->held -= lost;
	p->ledger->lost[OTP_LOSS_NO_MEMORY] += lost;
}

void pipeline_flush(struct pipeline *p, uint64_t start_unix_ns, uint64_t end_unix_ns)
{
	struct profile_top top;
	uint64_t lost = 0;

	if (p->ending || !symbol_waits(p->symbols, p->now_ns))
		pipeline_end_wait(p);
	profile_encode(p->profile, start_unix_ns, end_unix_ns, on_request, p, &lost);
	book_lost(p, lost);
	p->ledger->intervals++;
	quality_age(p->ledger);
	profile_top(p->profile, &top);
	snprintf(p->ledger->top_name, sizeof(p->ledger->top_name), "%s", top.name);
	p->ledger->top_samples = top.samples;
	p->ledger->top_total = top.total;
}

void pipeline_set_period(struct pipeline *p, uint64_t period_ns)
{
	profile_set_period(p->profile, period_ns);
	profile_set_period(p->late, period_ns);
}

/* File pages, symbol tables and names, in the proportion that they have by default: 1 to 3 to 3. */
void pipeline_limit(struct pipeline *p, size_t cache_bytes, uint32_t stack_max_bytes)
{
	binary_cache_limit(cache_bytes / 7);
	symbolizer_limit(p->symbols, cache_bytes / 7 * 3, cache_bytes / 7 * 3);
	p->stack_limit = stack_max_bytes;
	p->adapt.max_bytes = MIN(p->config->stack_max_bytes, stack_max_bytes);
	malloc_trim(0);
}

void pipeline_turn(struct pipeline *p, uint64_t now_ns)
{
	table_tick(p->table, now_ns);
	if (p->settled && p->park.first)
		pipeline_retry(p, now_ns, false);
}

void pipeline_explain(struct pipeline *p, uint32_t pid, struct buf *to)
{
	struct explain x = {.config = p->config, .ledger = p->ledger, .symbols = p->symbols, .jit = &p->jit,
			    .process = table_peek(p->table, pid), .pid = pid};

	explain_json(&x, to);
}

void pipeline_debuginfod(struct pipeline *p, const uint8_t *htlhash, uint32_t state, bool again)
{
	symbol_told(p->symbols, htlhash, state, again);
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
	profile_set_kernel(p->profile, k);
	profile_set_kernel(p->late, k);
}

bool pipeline_kernel_unsure(const struct pipeline *p)
{
	return p->kernel && kernel_symbols_unsure(p->kernel);
}

static void on_index_settled(void *ctx)
{
	((struct pipeline *)ctx)->settled = true;
}

/* An interval of waiting and what is left of the one it begins in: two at most. */
static int make_symbols(struct pipeline *p, struct host *host)
{
	const struct config *c = p->config;
	struct symbol_limits limits = {
		.function_start = unwind_function_start,
		.host = c->symbols_cache_bytes ? host : NULL,
		.inlines = c->symbols_inline,
		.lines = c->symbols_lines,
		.show_clones = c->symbols_show_clones,
		.wait_ns = c->interval_ns,
		.index_settled = on_index_settled,
		.ctx = p,
	};

	return symbolizer_new(&limits, &p->symbols);
}

static void on_quality(void *ctx, const struct workload *w, const struct str *exe, uint64_t samples,
		       const struct ledger_quality *q)
{
	quality_add(((struct pipeline *)ctx)->ledger, w, exe, samples, q);
}

static int make_profile(struct pipeline *p, uint64_t period_ns)
{
	struct profile_config cfg = {
		.limits.request_bytes = p->config->request_max_bytes,
		.attributes = p->config->sample_attributes,
		.period_ns = period_ns,
		.scope_version = OTPROF_VERSION,
		.symbols = p->symbols,
		.quality = on_quality,
		.ctx = p,
	};

	int r = profile_new(&cfg, &p->profile);

	return r < 0 ? r : profile_new(&cfg, &p->late);
}

static int make_table(struct pipeline *p, const struct pipeline_config *from)
{
	struct process_table_config cfg = {
		.limits.processes = p->config->processes_max,
		.host = from->host,
		.vdso = from->vdso,
		.resource = p->resource.attributes,
		.nr_resource = p->resource.count,
		.file_settled = on_file_settled,
		.process_settled = on_process_settled,
		.ctx = p,
	};

	return table_new(&cfg, &p->table);
}

int pipeline_new(const struct pipeline_config *cfg, struct pipeline **ret)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->config = cfg->config;
	p->ops = cfg->ops;
	p->ctx = cfg->ctx;
	p->ledger = cfg->ledger;
	p->capture = cfg->capture;
	p->stack_limit = UINT32_MAX;
	p->adapt = (struct adapt_limits){.start_bytes = p->config->stack_bytes, .max_bytes = p->config->stack_max_bytes};
	p->hints.tell = cfg->ops->hint;
	p->hints.ctx = cfg->ctx;
	p->hints.start_bytes = p->config->stack_bytes;
	park_init(&p->park);
	p->jit = (struct jit){.host = cfg->host, .settled = on_index_settled, .ctx = p};
	r = resource_set_new(&p->resource, p->config);
	if (r == 0)
		r = make_symbols(p, cfg->host);
	if (r == 0)
		r = unwinder_new(&(struct unwind_limits){0}, &p->unwinder);
	if (r == 0)
		r = make_profile(p, cfg->period_ns);
	if (r == 0)
		r = make_table(p, cfg);
	if (r < 0)
		pipeline_free(p);
	else
		*ret = p;
	return r;
}

static int renew_resource(struct pipeline *p)
{
	struct resource_set before = p->resource, now;
	int r = resource_set_new(&now, p->config);

	if (r < 0)
		return r;
	p->resource = now;
	r = table_set_resource(p->table, p->resource.attributes, p->resource.count);
	resource_set_done(&before);
	return r;
}

static void lower_hints(struct pipeline *p, uint32_t max)
{
	for (size_t i = 0; i < HINTS_MAX; i++) {
		struct hint *h = &p->hints.all[i];

		if (h->now.stack_bytes <= max)
			continue;
		h->now.stack_bytes = max;
		p->hints.tell(p->hints.ctx, h->comm, &h->now);
	}
}

int pipeline_reload(struct pipeline *p, const struct config *config)
{
	p->config = config;
	p->adapt.start_bytes = p->hints.start_bytes = config->stack_bytes;
	p->adapt.max_bytes = MIN(config->stack_max_bytes, p->stack_limit);
	lower_hints(p, p->adapt.max_bytes);
	profile_set_shape(p->profile, config->sample_attributes, config->request_max_bytes);
	return renew_resource(p);
}

struct pipeline *pipeline_free(struct pipeline *p)
{
	if (!p)
		return NULL;
	park_done(&p->park);
	jit_done(&p->jit);
	hints_done(&p->hints);
	profile_free(p->profile);
	profile_free(p->late);
	unwinder_free(p->unwinder);
	table_free(p->table);
	symbolizer_free(p->symbols);
	kernel_symbols_free(p->kernel);
	resource_set_done(&p->resource);
	free(p);
	return NULL;
}
