// SPDX-License-Identifier: Apache-2.0
/* Prometheus' text exposition format, version 0.0.4. Destinations are labels; names of ours need no escaping, those of workloads do. */
#include "daemon/report/status.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/report/quality.h"
#include "unwind/unwind.h"
#include "runtime/runtime.h"

static void prom_family(struct buf *to, const char *name, const char *type, const char *help)
{
	buf_printf(to, "# HELP otprof_%s %s\n# TYPE otprof_%s %s\n", name, help, name, type);
}

static void prom_one(struct buf *to, const char *name, const char *type, const char *help, uint64_t value)
{
	prom_family(to, name, type, help);
	buf_printf(to, "otprof_%s %" PRIu64 "\n", name, value);
}

static void prom_labelled(struct buf *to, const char *name, const char *label, const char *is, uint64_t value)
{
	buf_printf(to, "otprof_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, is, value);
}

/* Metrics are in seconds and in parts of one; figures here are in whole numbers of a smaller unit. */
static void prom_decimal(struct buf *to, uint64_t n, uint64_t unit, int digits)
{
	buf_printf(to, "%" PRIu64 ".%0*" PRIu64 "\n", n / unit, digits, n % unit);
}

static void prom_seconds(struct buf *to, const char *process, uint64_t ns)
{
	buf_printf(to, "otprof_cpu_seconds_total{process=\"%s\"} ", process);
	prom_decimal(to, ns, NSEC_PER_SEC, 9);
}

static void prom_one_seconds(struct buf *to, const char *name, const char *type, const char *help, uint64_t ns)
{
	prom_family(to, name, type, help);
	buf_printf(to, "otprof_%s ", name);
	prom_decimal(to, ns, NSEC_PER_SEC, 9);
}

static void prom_one_ratio(struct buf *to, const char *name, const char *help, uint64_t permyriad)
{
	prom_family(to, name, "gauge", help);
	buf_printf(to, "otprof_%s ", name);
	prom_decimal(to, permyriad, 10000, 4);
}

static const char *prom_origin(const struct status *s, uint32_t slot)
{
	return origin_name(s->view->origins->slot[slot].origin);
}

/* The figures of each origin. */
#define for_each_origin(s, slot)                                                   \
	for (uint32_t slot = 0; slot < (s)->ledger.slots; slot++)                  \
		if ((s)->view->origins->slot[slot].sampled)

/* A count of samples, by destination and origin; at: of the field in struct ledger_sum_destination. */
static void prom_by_destination(const struct status *s, struct buf *to, const char *name, const char *type,
				const char *help, size_t at)
{
	prom_family(to, name, type, help);
	for (uint32_t i = 0; i < s->ledger.destinations; i++)
		for_each_origin(s, slot)
		{
			const void *d = &s->ledger.origin[slot].dest[i];

			buf_printf(to, "otprof_%s{destination=\"%s\",origin=\"%s\"} %" PRIu64 "\n", name, status_destination(s, i),
				   prom_origin(s, slot), *(const uint64_t *)((const char *)d + at));
		}
}

static void prom_lost(const struct status *s, struct buf *to)
{
	prom_family(to, "samples_lost_total", "counter", "Samples lost, by destination, origin and reason.");
	for (uint32_t i = 0; i < s->ledger.destinations; i++)
		for_each_origin(s, slot)
			for (uint32_t r = 0; ledger_loss_name(r); r++)
				buf_printf(to,
					   "otprof_samples_lost_total{destination=\"%s\",origin=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
					   status_destination(s, i), prom_origin(s, slot), ledger_loss_name(r),
					   s->ledger.origin[slot].dest[i].lost[r]);
}

static void prom_taken(const struct status *s, struct buf *to)
{
	prom_family(to, "samples_taken_total", "counter", "Samples that the sampler took, by origin.");
	for_each_origin(s, slot)
		prom_labelled(to, "samples_taken_total", "origin", prom_origin(s, slot), s->ledger.origin[slot].taken);
	prom_family(to, "events_total", "counter", "Events that the samples taken stand for, by origin.");
	for_each_origin(s, slot)
		if (slot)
			prom_labelled(to, "events_total", "origin", prom_origin(s, slot), s->ledger.origin[slot].value);
	prom_family(to, "ticks_skipped_total", "counter", "Ticks and events that are no sample, by rule.");
	for_each_origin(s, slot)
		for (uint32_t r = 0; ledger_skip_name(r); r++)
			buf_printf(to, "otprof_ticks_skipped_total{origin=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
				   prom_origin(s, slot), ledger_skip_name(r), s->ledger.origin[slot].skip[r]);
}

/* Net's figures of each destination; at: of the field in struct ledger_destination. */
static void prom_of_net(const struct status *s, struct buf *to, const char *name, const char *type, const char *help,
			size_t at)
{
	prom_family(to, name, type, help);
	for (uint32_t i = 0; i < s->ledger.destinations; i++)
		prom_labelled(to, name, "destination", status_destination(s, i),
			      *(const uint64_t *)((const char *)&s->ledger.net.dest[i] + at));
}

static void prom_equation(const struct status *s, struct buf *to)
{
	prom_taken(s, to);
	prom_one(to, "ticks_missed_total", "counter", "Ticks of busy CPUs that did not happen.", status_missed(s));
	prom_one(to, "ledger_balanced", "gauge", "1 if every sample is accounted for.", s->ledger.all.balanced);
#define SAMPLES(field) offsetof(struct ledger_sum_destination, field)
	prom_by_destination(s, to, "samples_earlier_total", "counter",
			    "Samples that net had received before the destination existed.", SAMPLES(earlier));
	prom_by_destination(s, to, "samples_exported_total", "counter", "Samples that the destination accepted.",
			    SAMPLES(exported));
	prom_by_destination(s, to, "samples_unconfirmed_total", "counter", "Samples whose delivery is unknown.",
			    SAMPLES(unconfirmed));
	prom_by_destination(s, to, "samples_in_flight", "gauge", "Samples in flight.", SAMPLES(in_flight));
	prom_by_destination(s, to, "samples_spooled", "gauge", "Samples in flight that are on disk.", SAMPLES(spooled));
	prom_by_destination(s, to, "samples_restored_total", "counter",
			    "Samples found on disk that no earlier count includes as in flight.", SAMPLES(restored));
	prom_by_destination(s, to, "samples_repeated_total", "counter",
			    "Samples exported that an earlier try may have delivered, too.", SAMPLES(repeated));
#undef SAMPLES
	prom_lost(s, to);
	prom_of_net(s, to, "requests_total", "counter", "Requests that the destination accepted.",
		    offsetof(struct ledger_destination, requests));
	prom_of_net(s, to, "bytes_total", "counter", "Bytes that the destination accepted.",
		    offsetof(struct ledger_destination, bytes));
	prom_of_net(s, to, "retries_total", "counter", "Retries of requests.",
		    offsetof(struct ledger_destination, retries));
	prom_of_net(s, to, "spool_requests", "gauge", "Requests on disk.",
		    offsetof(struct ledger_destination, spool_requests));
	prom_of_net(s, to, "spool_bytes", "gauge", "Bytes on disk.", offsetof(struct ledger_destination, spool_bytes));
	prom_of_net(s, to, "spool_torn_total", "counter", "Requests on disk that could not be read.",
		    offsetof(struct ledger_destination, spool_torn));
}

/* A label of a workload: three characters are escaped, and any that is no plain text is replaced. */
static void prom_label(struct buf *to, const char *name, const char *value, size_t max)
{
	buf_printf(to, "%s=\"", name);
	for (; max && *value; value++, max--) {
		if (*value == '"' || *value == '\\')
			buf_add_str(to, "\\");
		buf_add(to, *value >= 0x20 && *value < 0x7f ? value : "?", 1);
	}
	buf_add_str(to, "\"");
}

static void prom_of_workload(struct buf *to, const char *name, const struct ledger_workload *w, const char *more,
			     const char *is, uint64_t value)
{
	buf_printf(to, "otprof_%s{", name);
	prom_label(to, "service", w->service, sizeof(w->service));
	buf_add_str(to, ",");
	prom_label(to, "executable", w->executable, sizeof(w->executable));
	if (more)
		buf_printf(to, ",%s=\"%s\"", more, is);
	buf_printf(to, "} %" PRIu64 "\n", value);
}

/* The lines of a family must be adjacent, so each family has its own loop over workloads. */
static void prom_workloads(const struct status *s, struct buf *to)
{
	const struct ledger_engine *e = &s->ledger.engine;
	uint8_t order[LEDGER_WORKLOADS_MAX];
	uint32_t n = status_workloads(e, order);

	prom_family(to, "workload_stacks_total", "counter", "Stacks of the busiest workloads, by how they end.");
	for (uint32_t i = 0; i < n; i++) {
		const struct ledger_workload *w = &e->workloads[order[i]];

		prom_of_workload(to, "workload_stacks_total", w, "end", "root", w->quality.stacks_root);
		for (uint32_t end = 0; end < UNWIND_END_NR; end++)
			if (w->quality.cut[end])
				prom_of_workload(to, "workload_stacks_total", w, "end", unwind_end_name(end),
						 w->quality.cut[end]);
	}
	prom_family(to, "workload_frames_total", "counter",
		    "Frames of the busiest workloads, by the source of their names.");
	for (uint32_t i = 0; i < n; i++) {
		const struct ledger_workload *w = &e->workloads[order[i]];

		for (uint32_t k = 0; name_source_name(k); k++)
			if (w->quality.by[k])
				prom_of_workload(to, "workload_frames_total", w, "source", name_source_name(k),
						 w->quality.by[k]);
	}
	prom_family(to, "workload_frames_guessed_total", "counter", "Guessed frames of the busiest workloads.");
	for (uint32_t i = 0; i < n; i++) {
		const struct ledger_workload *w = &e->workloads[order[i]];

		for (uint32_t k = FRAME_SURE + 1; k < FRAME_GUESS_NR; k++)
			if (w->quality.guessed[k])
				prom_of_workload(to, "workload_frames_guessed_total", w, "guess", frame_guess_name(k),
						 w->quality.guessed[k]);
	}
}

static void prom_decoders(const struct ledger_engine *e, struct buf *to)
{
	prom_one(to, "decoders", "gauge", "Processes that read the memory of interpreters now.", e->decoders_live);
	prom_one(to, "decoders_waiting", "gauge", "Interpreters whose memory is to be read, and that wait.", e->decoders_waiting);
	prom_one(to, "decoders_started_total", "counter", "Processes that read the memory of an interpreter.",
		 e->decoders_started);
	prom_one(to, "decoders_late_total", "counter", "Those that did not answer in time.", e->decoders_late);
	prom_one(to, "decoders_died_total", "counter", "Those that ended in a question.", e->decoders_died);
	prom_one(to, "functions_decoded_total", "counter", "Functions of interpreters that were read.", e->functions_decoded);
	prom_one(to, "functions_failed_total", "counter", "Those that could not be read, or were gone.", e->functions_failed);
	prom_family(to, "line_files_total", "counter", "Files beside programs that have lines, by result.");
	for (uint32_t i = RUNTIME_LINES_NOT_SOUGHT + 1; i < RUNTIME_LINE_FILES_NR; i++)
		prom_labelled(to, "line_files_total", "result", runtime_line_file_name(i), e->line_files[i]);
}

static void prom_interpreted(const struct ledger_engine *e, struct buf *to)
{
	prom_one(to, "runtimes_total", "counter", "Runtimes of processes whose frames are walked.", e->runtimes_attached);
	prom_one(to, "runtimes_refused_total", "counter", "Runtimes of processes that stay native: unknown versions, or unreadable.",
		 e->runtimes_refused);
	prom_family(to, "walks_total", "counter", "Stacks with interpreters' frames, by how their walk ended.");
	for (uint32_t i = 0; i < OTP_WALK_END_NR; i++)
		prom_labelled(to, "walks_total", "end", runtime_walk_end_name(i), e->walked[i]);
	prom_one(to, "walks_misfit_total", "counter", "Stacks whose native and interpreted frames do not fit.", e->walks_misfit);
	prom_one(to, "walk_frames_total", "counter", "Frames of interpreters.", e->walk_frames);
	prom_one(to, "walk_frames_unknown_total", "counter", "Those whose function could not be read.", e->walk_frames_unknown);
	prom_one(to, "walk_loop_leaves_total", "counter", "Stacks whose innermost native frame is an interpreter's loop.",
		 e->loop_leaves);
	prom_one(to, "stacks_of_heap_total", "counter", "Stacks with callers in the heap, as virtual threads of Java have them.",
		 e->stacks_of_heap);
	prom_one(to, "stacks_without_heap_total", "counter", "Stacks that show a mark in place of their callers in the heap.",
		 e->stacks_without_heap);
	prom_one(to, "walk_labels_left_total", "counter",
		 "Labels of samples that are no attribute: too long, or of a key with too many values.", e->labels_left);
	prom_decoders(e, to);
}

static void prom_quality(const struct status *s, struct buf *to)
{
	const struct ledger_engine *e = &s->ledger.engine;

	prom_one(to, "stacks_total", "counter", "Stacks unwound.", e->stacks);
	prom_one(to, "stacks_complete_total", "counter", "Stacks that end at a true root.", e->stacks_root);
	prom_family(to, "stacks_cut_total", "counter", "Stacks that are cut, by reason.");
	for (uint32_t end = 0; end < UNWIND_END_NR && end < ARRAY_SIZE(e->cut); end++)
		if (e->cut[end])
			prom_labelled(to, "stacks_cut_total", "reason", unwind_end_name(end), e->cut[end]);
	prom_one(to, "frames_total", "counter", "Frames named or not.", e->frames);
	prom_one(to, "frames_named_total", "counter", "Frames with a function's name.", e->frames_named);
	prom_family(to, "frames_by_source_total", "counter", "Frames, by the source of their names.");
	for (uint32_t i = 0; name_source_name(i); i++)
		prom_labelled(to, "frames_by_source_total", "source", name_source_name(i), e->named_by[i]);
	prom_family(to, "frames_by_kind_total", "counter", "Frames, by profile.frame.type.");
	for (uint32_t i = 0; i < KIND_NR; i++)
		if (frame_kind_type(i))
			prom_labelled(to, "frames_by_kind_total", "kind", frame_kind_type(i), e->kinds[i]);
	prom_family(to, "frames_guessed_total", "counter", "Frames found without an unwind table, by method.");
	for (uint32_t i = FRAME_SURE + 1; i < FRAME_GUESS_NR; i++)
		prom_labelled(to, "frames_guessed_total", "guess", frame_guess_name(i), e->guessed[i]);
	prom_interpreted(e, to);
	prom_workloads(s, to);
	prom_one(to, "processes", "gauge", "Processes in the table.", e->processes);
}

static void prom_cost(const struct status *s, struct buf *to)
{
	prom_family(to, "cpu_seconds_total", "counter", "CPU time of otprof itself.");
	prom_seconds(to, "monitor", s->cost.monitor_cpu_ns);
	prom_seconds(to, "opener", s->cost.opener_cpu_ns);
	prom_seconds(to, "engine", s->cost.engine_cpu_ns);
	prom_seconds(to, "net", s->cost.net_cpu_ns);
	prom_seconds(to, "hub", s->cost.hub_cpu_ns);
	prom_seconds(to, "kernel", s->cost.kernel_ns);
	prom_one_seconds(to, "files_cpu_seconds_total", "counter",
			 "The part of otprof_cpu_seconds_total that reads programs and their debug files.", s->cost.files_cpu_ns);
	prom_one_seconds(to, "tick_copy_limit_seconds", "gauge",
			 "The time that a tick may take to copy an unknown program's stack.", s->cost.kernel_limit_ns);
	prom_one(to, "tick_copy_limit_bytes", "gauge",
		 "The most bytes that a tick copies of an unknown program's stack; 0: no bound.",
		 s->cost.kernel_limit_bytes);
	prom_one(to, "memory_bytes", "gauge", "Memory of otprof itself, kernel buffers included.",
		 s->cost.memory_bytes);
	prom_family(to, "worker_restarts_total", "counter", "Restarts of a worker.");
	for (size_t i = 0; i < ARRAY_SIZE(s->workers) && s->workers[i].name; i++)
		prom_labelled(to, "worker_restarts_total", "worker", s->workers[i].name, s->workers[i].restarts);
	prom_one(to, "ring_peak_bytes", "gauge", "Largest unread part of the ring.", s->ledger.engine.ring_peak_bytes);
	prom_one(to, "sideband_lost_total", "counter", "Side-band records lost.", s->ledger.engine.sideband_lost);
}

/* Of one CPU; without a limit there is nothing to compare them with. */
static void prom_guard_cpu(const struct guard *g, struct buf *to)
{
	if (!g->limits.cpu_permyriad)
		return;
	prom_one_ratio(to, "guard_cpu_limit_ratio", "The limit of CPU time, in CPUs.", g->limits.cpu_permyriad);
	prom_one_ratio(to, "guard_cpu_ratio", "CPU time that counts against the limit, in CPUs.", g->cpu.share);
	prom_one_ratio(to, "guard_files_ratio", "CPU time paid from the credit for reading files, in CPUs.",
		       g->cpu.files_share);
	prom_one_seconds(to, "guard_credit_seconds", "gauge", "CPU time left in the credit for reading files.",
			 (uint64_t)MAX(g->cpu.credit_ns, 0));
}

static void prom_guard(const struct status *s, struct buf *to)
{
	const struct guard *g = s->guard.state;

	prom_one(to, "sampling_rate_hertz", "gauge", "Samples a second and CPU at present.", s->rate_hz);
	prom_one(to, "selection_active", "gauge", "1 while otprof select narrows what is sampled, or sets rate or depth.",
		 s->selection && s->selection->since_ns);
	if (!g)
		return;
	prom_guard_cpu(g, to);
	prom_family(to, "guard_level", "gauge", "Steps of quality given up, by cause.");
	for (int cause = 0; cause < GUARD_CAUSES; cause++)
		prom_labelled(to, "guard_level", "cause", guard_cause_name(cause), g->ladder[cause].level);
	prom_family(to, "guard_steps_total", "counter", "Changes by the guard against overload.");
	for (int i = 0; i < GUARD_CAUSES * GUARD_STEPS * 2; i++) {
		const struct guard_ladder *l = &g->ladder[i / 2 / GUARD_STEPS];
		int step = i / 2 % GUARD_STEPS;

		buf_printf(to, "otprof_guard_steps_total{cause=\"%s\",step=\"%s\",direction=\"%s\"} %" PRIu64 "\n",
			   guard_cause_name(i / 2 / GUARD_STEPS), guard_step_name(step), i % 2 ? "up" : "down",
			   (i % 2 ? l->raises : l->lowered)[step]);
	}
}

static void prom_debuginfod(const struct status *s, struct buf *to)
{
	const struct status_debuginfod *d = &s->debuginfod;

	if (!d->on)
		return;
	prom_one(to, "debuginfod_fetched_total", "counter", "Debug files fetched from debuginfod servers.",
		 d->fetched);
	prom_family(to, "debuginfod_failed_total", "counter", "Debug files that could not be fetched, by reason.");
	for (uint32_t i = FETCH_FETCHED + 1; i < FETCH_STATE_NR; i++)
		prom_labelled(to, "debuginfod_failed_total", "reason", fetch_state_name(i), d->failed[i]);
	prom_one(to, "debuginfod_requests_total", "counter", "Requests to debuginfod servers.", d->requests);
	prom_one(to, "debuginfod_waiting", "gauge", "Debug files to be requested.", d->waiting);
	prom_one(to, "debuginfod_cached_bytes", "gauge", "Debug files cached on disk.", d->cached_bytes);
}

static void prom_start(const struct status *s, struct buf *to)
{
	prom_one_seconds(to, "start_time_seconds", "gauge", "When otprof was started, in Unix time.",
			 s->start_unix_ns);
}

void status_prometheus(const struct status *s, struct buf *to)
{
	prom_start(s, to);
	prom_equation(s, to);
	prom_quality(s, to);
	prom_cost(s, to);
	prom_guard(s, to);
	prom_debuginfod(s, to);
}
