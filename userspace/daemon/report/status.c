// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/status.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/report/json.h"
#include "daemon/report/quality.h"
#include "unwind/unwind.h"
#include "runtime/runtime.h"

uint64_t status_missed(const struct status *s)
{
	uint64_t came = s->ledger.origin[0].ticks, idle_came = s->ledger.origin[0].skip[OTP_SKIP_IDLE];

	if (s->idle_ticks > idle_came)
		came += s->idle_ticks - idle_came;
	return MAX(s->missed_before, s->expected_ticks > came ? s->expected_ticks - came : 0);
}

static void status_write_losses(struct json *j, const uint64_t lost[OTP_LOSS_MAX])
{
	json_open(j, "lost");
	for (uint32_t r = 0; ledger_loss_name(r); r++)
		json_number(j, ledger_loss_name(r), lost[r]);
	json_close(j);
}

static void status_write_skips(struct json *j, const uint64_t skip[OTP_SKIP_MAX])
{
	json_open(j, "skipped");
	for (uint32_t r = 0; ledger_skip_name(r); r++)
		json_number(j, ledger_skip_name(r), skip[r]);
	json_close(j);
}

const char *status_destination(const struct status *s, uint32_t i)
{
	const char *name = s->ledger.net.dest[i].name;

	if (*name)
		return name;
	return i < s->config->nr_exporters ? s->config->exporters[i].name : "?";
}

/* Opens an object, which the caller closes: the equation of a destination, for one origin or for all. */
static void status_open_destination(struct json *j, const struct status *s, const struct ledger_sum_origin *l,
				    uint32_t i)
{
	const struct ledger_sum_destination *d = &l->dest[i];

	json_open(j, status_destination(s, i));
	json_bool(j, "balanced", d->balanced);
	json_number(j, "earlier", d->earlier);
	json_number(j, "exported", d->exported);
	json_number(j, "unconfirmed", d->unconfirmed);
	json_number(j, "in_flight", d->in_flight);
	json_number(j, "spooled", d->spooled);
	json_number(j, "restored", d->restored);
	json_number(j, "repeated", d->repeated);
	status_write_losses(j, d->lost);
}

static void status_write_destination(struct json *j, const struct status *s, const struct ledger_sum_origin *l,
				     uint32_t i)
{
	const struct ledger_destination *own = &s->ledger.net.dest[i];

	status_open_destination(j, s, l, i);
	json_number(j, "requests", own->requests);
	json_number(j, "bytes", own->bytes);
	json_number(j, "retries", own->retries);
	json_text(j, "compression", own->coding < EXPORT_CODING_NR ? export_coding_names[own->coding] : "");
	json_bool(j, "zstd_refused", own->zstd_refused);
	json_open(j, "spool");
	json_number(j, "requests", own->spool_requests);
	json_number(j, "bytes", own->spool_bytes);
	json_number(j, "torn", own->spool_torn);
	json_close(j);
	json_text(j, "last_error", own->last_error);
	json_close(j);
}

/* The equation of one origin, or of all. */
static void status_write_equation(struct json *j, const struct status *s, const struct ledger_sum_origin *l)
{
	json_bool(j, "balanced", l->balanced);
	json_number(j, "taken", l->taken);
	json_number(j, "in_flight", l->in_flight);
	json_open(j, "exported");
	for (uint32_t i = 0; i < s->ledger.destinations; i++)
		json_number(j, status_destination(s, i), l->dest[i].exported);
	json_close(j);
	json_open(j, "unconfirmed");
	for (uint32_t i = 0; i < s->ledger.destinations; i++)
		json_number(j, status_destination(s, i), l->dest[i].unconfirmed);
	json_close(j);
	status_write_losses(j, l->lost);
}

static void status_write_origin(struct json *j, const struct status *s, uint32_t slot)
{
	const struct ledger_sum_origin *l = &s->ledger.origin[slot];
	uint8_t id = s->view->origins->slot[slot].origin;

	json_open(j, origin_name(id));
	json_text(j, "type", origin_types(id)->type);
	status_write_equation(j, s, l);
	json_number(j, "ticks", l->ticks);
	json_number(j, "value", id == OTP_ORIGIN_CPU_CLOCK ? l->taken : l->value);
	json_open(j, "destinations");
	for (uint32_t i = 0; i < s->ledger.destinations; i++) {
		status_open_destination(j, s, l, i);
		json_close(j);
	}
	json_close(j);
	status_write_skips(j, l->skip);
	json_close(j);
}

static void status_write_ledger(struct json *j, const struct status *s)
{
	const struct ledger_sum_origin *l = &s->ledger.all;

	json_open(j, "ledger");
	status_write_equation(j, s, l);
	json_bool(j, "stable", s->ledger.stable);
	json_number(j, "missed", status_missed(s));
	json_open(j, "destinations");
	for (uint32_t i = 0; i < s->ledger.destinations; i++)
		status_write_destination(j, s, l, i);
	json_close(j);
	json_open(j, "places");
	json_number(j, "ring", l->on_ring);
	json_number(j, "engine", l->held);
	json_number(j, "between", l->between);
	json_close(j);
	json_open(j, "origins");
	for (uint32_t slot = 0; slot < s->ledger.slots; slot++)
		if (s->view->origins->slot[slot].sampled)
			status_write_origin(j, s, slot);
	json_close(j);
	json_close(j);
}

static void status_write_sampler(struct json *j, const struct status *s)
{
	json_open(j, "sampler");
	json_text(j, "mode", s->mode);
	json_text(j, "why", s->why);
	json_bool(j, "sampling", s->sampling);
	json_number(j, "frequency_hz", s->config->frequency_hz);
	json_number(j, "rate_hz", s->rate_hz);
	json_number(j, "cpus", s->cpus_sampled);
	json_number(j, "ring_bytes", s->ring_bytes);
	json_number(j, "ring_used", s->ring_used);
	json_number(j, "ring_peak", s->ledger.engine.ring_peak_bytes);
	json_number(j, "sideband_records", s->ledger.engine.sideband_records);
	json_number(j, "sideband_lost", s->ledger.engine.sideband_lost);
	json_number(j, "expected_ticks", s->expected_ticks);
	json_number(j, "idle_ticks", s->idle_ticks);
	json_number(j, "ticks", s->ledger.all.ticks);
	json_number(j, "put_bytes", s->ledger.all.put_bytes);
	json_number(j, "chunks_lost", s->ledger.all.chunks_lost);
	json_number(j, "short_stacks", s->ledger.all.short_stacks);
	json_close(j);
}

void status_selection(struct json *j, const struct selection_shown *s)
{
	bool on = s && s->since_ns;

	json_open(j, "selection");
	json_bool(j, "on", on);
	if (on) {
		json_text(j, "targets", s->what.targets);
		json_number(j, "frequency_hz", s->what.hz);
		json_number(j, "stack_bytes", s->what.stack_bytes);
		json_number(j, "since_ms", s->since_ns / NSEC_PER_MSEC);
		json_number(j, "until_ms", s->until_ns / NSEC_PER_MSEC);
		json_text(j, "by", s->by);
	}
	json_close(j);
}

static void status_write_hub(struct json *j, const struct status_hub *h)
{
	json_open(j, "hub");
	json_bool(j, "on", h->on);
	if (h->on) {
		json_bool(j, "ready", h->ready);
		json_text(j, "listen", h->listen);
		json_text(j, "error", h->why ? h->why : "");
	}
	json_close(j);
}

static void status_write_cuts(struct json *j, const uint64_t cut[LEDGER_ENDS_MAX])
{
	json_open(j, "cut");
	for (uint32_t end = 0; end < UNWIND_END_NR; end++)
		if (cut[end])
			json_number(j, unwind_end_name(end), cut[end]);
	json_close(j);
}

static void status_write_named_by(struct json *j, const uint64_t by[LEDGER_SOURCES_MAX])
{
	json_open(j, "named_by");
	for (uint32_t i = 0; name_source_name(i); i++)
		json_number(j, name_source_name(i), by[i]);
	json_close(j);
}

/* Frames of code, without markers. */
static void status_write_kinds(struct json *j, const uint64_t by[LEDGER_KINDS_MAX])
{
	json_open(j, "kinds");
	for (uint32_t i = 0; i < KIND_NR; i++)
		if (by[i] && frame_kind_type(i))
			json_number(j, frame_kind_type(i), by[i]);
	json_close(j);
}

static void status_write_guessed(struct json *j, const uint64_t by[LEDGER_GUESSES_MAX])
{
	json_open(j, "guessed");
	for (uint32_t i = FRAME_SURE + 1; i < FRAME_GUESS_NR; i++)
		json_number(j, frame_guess_name(i), by[i]);
	json_close(j);
}

void status_quality(struct json *j, const struct ledger_workload *w)
{
	uint64_t named = 0;

	for (uint32_t i = 0; name_source_name(i); i++)
		named += name_source_is_name(i) ? w->quality.by[i] : 0;
	json_open(j, NULL);
	json_text_max(j, "service", w->service, sizeof(w->service));
	json_text_max(j, "executable", w->executable, sizeof(w->executable));
	json_number(j, "stacks", w->quality.stacks);
	json_number(j, "complete", w->quality.stacks_root);
	status_write_cuts(j, w->quality.cut);
	json_number(j, "frames", w->quality.frames);
	json_number(j, "frames_named", named);
	status_write_named_by(j, w->quality.by);
	status_write_kinds(j, w->quality.kinds);
	status_write_guessed(j, w->quality.guessed);
	json_close(j);
}

/* Indexes of the used entries, the busiest first. */
uint32_t status_workloads(const struct ledger_engine *e, uint8_t order[LEDGER_WORKLOADS_MAX])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < LEDGER_WORKLOADS_MAX; i++) {
		uint32_t at = n;

		if (!e->workloads[i].service[0])
			continue;
		for (; at && e->workloads[order[at - 1]].recent < e->workloads[i].recent; at--)
			order[at] = order[at - 1];
		order[at] = (uint8_t)i;
		n++;
	}
	return n;
}

static void status_write_workloads(struct json *j, const struct ledger_engine *e)
{
	uint8_t order[LEDGER_WORKLOADS_MAX];
	uint32_t n = status_workloads(e, order);

	json_open_list(j, "workloads");
	for (uint32_t i = 0; i < n; i++)
		status_quality(j, &e->workloads[order[i]]);
	json_close_list(j);
}

static void status_write_decoders(struct json *j, const struct ledger_engine *e)
{
	json_open(j, "decoders");
	json_number(j, "live", e->decoders_live);
	json_number(j, "waiting", e->decoders_waiting);
	json_number(j, "started", e->decoders_started);
	json_number(j, "late", e->decoders_late);
	json_number(j, "died", e->decoders_died);
	json_number(j, "functions", e->functions_decoded);
	json_number(j, "functions_failed", e->functions_failed);
	json_open(j, "line_files");
	for (uint32_t i = RUNTIME_LINES_NOT_SOUGHT + 1; i < RUNTIME_LINE_FILES_NR; i++)
		json_number(j, runtime_line_file_name(i), e->line_files[i]);
	json_close(j);
	json_close(j);
}

static void status_write_interpreted(struct json *j, const struct ledger_engine *e)
{
	json_open(j, "interpreted");
	json_number(j, "runtimes", e->runtimes_attached);
	json_number(j, "runtimes_refused", e->runtimes_refused);
	json_open(j, "walks");
	for (uint32_t i = 0; i < OTP_WALK_END_NR; i++)
		json_number(j, runtime_walk_end_name(i), e->walked[i]);
	json_close(j);
	json_number(j, "misfits", e->walks_misfit);
	json_number(j, "frames", e->walk_frames);
	json_number(j, "frames_unknown", e->walk_frames_unknown);
	json_number(j, "loop_leaves", e->loop_leaves);
	json_number(j, "of_heap", e->stacks_of_heap);
	json_number(j, "without_heap", e->stacks_without_heap);
	json_number(j, "labels_left", e->labels_left);
	status_write_decoders(j, e);
	json_close(j);
}

static void status_write_quality(struct json *j, const struct status *s)
{
	const struct ledger_engine *e = &s->ledger.engine;

	json_open(j, "quality");
	json_number(j, "stacks", e->stacks);
	json_number(j, "complete", e->stacks_root);
	status_write_cuts(j, e->cut);
	json_number(j, "frames", e->frames);
	json_number(j, "frames_named", e->frames_named);
	status_write_named_by(j, e->named_by);
	status_write_kinds(j, e->kinds);
	status_write_guessed(j, e->guessed);
	status_write_interpreted(j, e);
	json_number(j, "parked", e->parked);
	status_write_workloads(j, e);
	json_close(j);
}

static void status_write_cost(struct json *j, const struct status *s)
{
	json_open(j, "cost");
	json_number(j, "kernel_ns", s->cost.kernel_ns);
	json_number(j, "kernel_runs", s->cost.kernel_runs);
	json_number(j, "kernel_longest_ns", s->cost.kernel_longest_ns);
	json_number(j, "kernel_limit_ns", s->cost.kernel_limit_ns);
	json_number(j, "kernel_limit_bytes", s->cost.kernel_limit_bytes);
	json_number(j, "stats_ns", s->cost.stats_ns);
	json_number(j, "stats_runs", s->cost.stats_runs);
	json_number(j, "monitor_cpu_ns", s->cost.monitor_cpu_ns);
	json_number(j, "opener_cpu_ns", s->cost.opener_cpu_ns);
	json_number(j, "files_cpu_ns", s->cost.files_cpu_ns);
	json_number(j, "engine_cpu_ns", s->cost.engine_cpu_ns);
	json_number(j, "net_cpu_ns", s->cost.net_cpu_ns);
	json_number(j, "hub_cpu_ns", s->cost.hub_cpu_ns);
	json_number(j, "memory_bytes", s->cost.memory_bytes);
	json_close(j);
}

static void status_write_ladder(struct json *j, const struct guard *g, enum guard_cause cause)
{
	const struct guard_ladder *l = &g->ladder[cause];

	json_open(j, guard_cause_name(cause));
	json_number(j, "level", l->level);
	for (int down = 1; down >= 0; down--) {
		json_open(j, down ? "lowered" : "raised");
		for (int step = 0; step < GUARD_STEPS; step++)
			json_number(j, guard_step_name(step), (down ? l->lowered : l->raises)[step]);
		json_close(j);
	}
	json_close(j);
}

static void status_write_guard(struct json *j, const struct status *s)
{
	const struct status_guard *g = &s->guard;

	if (!g->state)
		return;
	json_open(j, "guard");
	json_number(j, "cpu_limit_permyriad", g->state->limits.cpu_permyriad);
	json_number(j, "cpu_permyriad", g->state->cpu.share);
	json_number(j, "files_permyriad", g->state->cpu.files_share);
	json_number(j, "credit_ns", (uint64_t)MAX(g->state->cpu.credit_ns, 0));
	json_number(j, "memory_limit_bytes", g->memory_limit);
	json_number(j, "memory_bytes", g->memory_bytes);
	json_number(j, "cache_shift", g->orders.cache_shift);
	json_number(j, "stack_shift", g->orders.stack_shift);
	for (int cause = 0; cause < GUARD_CAUSES; cause++)
		status_write_ladder(j, g->state, cause);
	json_close(j);
}

static void status_write_debuginfod(struct json *j, const struct status *s)
{
	const struct status_debuginfod *d = &s->debuginfod;

	json_open(j, "debuginfod");
	json_bool(j, "on", d->on);
	json_bool(j, "paused", d->paused);
	json_number(j, "waiting", d->waiting);
	json_number(j, "fetched", d->fetched);
	json_number(j, "bytes", d->bytes);
	json_open(j, "failed");
	for (uint32_t i = FETCH_FETCHED + 1; i < FETCH_STATE_NR; i++)
		json_number(j, fetch_state_name(i), d->failed[i]);
	json_close(j);
	json_number(j, "dropped", d->dropped);
	json_number(j, "requests", d->requests);
	json_number(j, "cached_bytes", d->cached_bytes);
	json_text(j, "last_error", d->last_error ? d->last_error : "");
	json_close(j);
}

static void status_write_workers(struct json *j, const struct status *s)
{
	json_open(j, "workers");
	for (size_t i = 0; i < ARRAY_SIZE(s->workers) && s->workers[i].name; i++) {
		json_open(j, s->workers[i].name);
		json_number(j, "pid", (uint64_t)s->workers[i].pid);
		json_number(j, "restarts", s->workers[i].restarts);
		json_close(j);
	}
	json_close(j);
	json_open(j, "questions");
	json_number(j, "asked", s->asks);
	json_number(j, "refused", s->asks_refused);
	json_number(j, "timed_out", s->asks_timed_out);
	json_close(j);
	json_open(j, "plans");
	json_number(j, "set", s->plans_set);
	json_number(j, "refused", s->plans_refused);
	json_close(j);
}

/* All origins together. */
static void status_write_one_cpu(struct json *j, const struct ledger_view *v, uint32_t cpu)
{
	uint64_t ticks = 0, taken = 0, put = 0;

	for (uint32_t slot = 0; slot < v->origins->count; slot++) {
		const struct otp_cpu_counters *c = ledger_view_counters(v, slot, cpu);

		ticks += c->ticks;
		taken += c->taken;
		put += c->put;
	}
	if (!ticks)
		return; /* a possible CPU that was never online */
	json_open(j, NULL);
	json_number(j, "cpu", cpu);
	json_number(j, "ticks", ticks);
	json_number(j, "taken", taken);
	json_number(j, "put", put);
	json_number(j, "lost", taken - put);
	json_close(j);
}

static void status_write_cpus(struct json *j, const struct status *s)
{
	json_open_list(j, "cpus");
	for (uint32_t cpu = 0; cpu < s->view->cpus; cpu++)
		status_write_one_cpu(j, s->view, cpu);
	json_close_list(j);
}

void status_json(const struct status *s, struct buf *to)
{
	struct json j = {.to = to};
	const struct ledger_engine *e = &s->ledger.engine;

	json_open(&j, NULL);
	json_text(&j, "version", OTPROF_VERSION);
	json_number(&j, "pid", (uint64_t)s->pid);
	json_number(&j, "uptime_s", s->uptime_ns / NSEC_PER_SEC);
	status_write_sampler(&j, s);
	status_selection(&j, s->selection);
	status_write_hub(&j, &s->hub);
	status_write_ledger(&j, s);
	status_write_skips(&j, s->ledger.all.skip);
	status_write_quality(&j, s);
	status_write_cost(&j, s);
	status_write_guard(&j, s);
	status_write_debuginfod(&j, s);
	json_number(&j, "processes", e->processes);
	json_number(&j, "intervals", e->intervals);
	json_open(&j, "top");
	json_text(&j, "name", e->top_name);
	json_number(&j, "self", e->top_samples);
	json_number(&j, "total", e->top_total);
	json_close(&j);
	status_write_workers(&j, s);
	status_write_cpus(&j, s);
	json_close(&j);
	buf_add_str(to, "\n");
}
