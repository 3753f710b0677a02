// SPDX-License-Identifier: Apache-2.0
#include "daemon/status.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "unwind/unwind.h"

/* One JSON writer: a comma before everything that is not the first of its object. */
struct json {
	struct buf *to;
	bool first;
};

static void sep(struct json *j)
{
	if (!j->first)
		buf_add_str(j->to, ",");
	j->first = false;
}

static void string(struct json *j, const char *s)
{
	buf_add_str(j->to, "\"");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			buf_printf(j->to, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			/* A worker's name for something may be no UTF-8: bytes become code points. */
			buf_printf(j->to, "\\u%04x", c);
		else
			buf_add(j->to, s, 1);
	}
	buf_add_str(j->to, "\"");
}

static void key(struct json *j, const char *name)
{
	sep(j);
	string(j, name);
	buf_add_str(j->to, ":");
}

static void open_object(struct json *j, const char *name)
{
	if (name)
		key(j, name);
	else
		sep(j);
	buf_add_str(j->to, "{");
	j->first = true;
}

static void close_object(struct json *j)
{
	buf_add_str(j->to, "}");
	j->first = false;
}

static void number(struct json *j, const char *name, uint64_t n)
{
	key(j, name);
	buf_printf(j->to, "%" PRIu64, n);
}

static void text(struct json *j, const char *name, const char *s)
{
	key(j, name);
	string(j, s);
}

static void boolean(struct json *j, const char *name, bool b)
{
	key(j, name);
	buf_add_str(j->to, b ? "true" : "false");
}

uint64_t status_missed(const struct status *s)
{
	uint64_t came = s->ledger.ticks, idle_came = s->ledger.skip[OTP_SKIP_IDLE];

	if (s->idle_ticks > idle_came)
		came += s->idle_ticks - idle_came;
	return MAX(s->missed_before, s->expected_ticks > came ? s->expected_ticks - came : 0);
}

static void losses(struct json *j, const uint64_t lost[OTP_LOSS_MAX])
{
	open_object(j, "lost");
	for (uint32_t r = 0; ledger_loss_name(r); r++)
		number(j, ledger_loss_name(r), lost[r]);
	close_object(j);
}

const char *status_destination(const struct status *s, uint32_t i)
{
	const char *name = s->ledger.net.dest[i].name;

	if (*name)
		return name;
	return i < s->config->nr_exporters ? s->config->exporters[i].name : "?";
}

static void destination(struct json *j, const struct status *s, uint32_t i)
{
	const struct ledger_sum_destination *d = &s->ledger.dest[i];
	const struct ledger_destination *own = &s->ledger.net.dest[i];

	open_object(j, status_destination(s, i));
	boolean(j, "balanced", d->balanced);
	number(j, "earlier", d->earlier);
	number(j, "exported", d->exported);
	number(j, "unconfirmed", d->unconfirmed);
	number(j, "in_flight", d->in_flight);
	number(j, "requests", own->requests);
	number(j, "bytes", own->bytes);
	number(j, "retries", own->retries);
	text(j, "last_error", own->last_error);
	losses(j, d->lost);
	close_object(j);
}

static void ledger(struct json *j, const struct status *s)
{
	const struct ledger_sum *l = &s->ledger;

	open_object(j, "ledger");
	boolean(j, "balanced", l->balanced);
	boolean(j, "stable", l->stable);
	number(j, "taken", l->taken);
	number(j, "missed", status_missed(s));
	number(j, "in_flight", l->in_flight);
	open_object(j, "exported");
	for (uint32_t i = 0; i < l->destinations; i++)
		number(j, status_destination(s, i), l->dest[i].exported);
	close_object(j);
	open_object(j, "unconfirmed");
	for (uint32_t i = 0; i < l->destinations; i++)
		number(j, status_destination(s, i), l->dest[i].unconfirmed);
	close_object(j);
	losses(j, l->lost);
	open_object(j, "destinations");
	for (uint32_t i = 0; i < l->destinations; i++)
		destination(j, s, i);
	close_object(j);
	open_object(j, "places");
	number(j, "ring", l->on_ring);
	number(j, "engine", l->engine.held);
	number(j, "between", l->between);
	close_object(j);
	close_object(j);
}

static void sampler(struct json *j, const struct status *s)
{
	open_object(j, "sampler");
	text(j, "mode", s->mode);
	text(j, "why", s->why);
	number(j, "frequency_hz", s->config->frequency_hz);
	number(j, "rate_hz", s->rate_hz);
	number(j, "cpus", s->cpus_sampled);
	number(j, "ring_bytes", s->ring_bytes);
	number(j, "ring_used", s->ring_used);
	number(j, "ring_peak", s->ledger.engine.ring_peak_bytes);
	number(j, "sideband_records", s->ledger.engine.sideband_records);
	number(j, "sideband_lost", s->ledger.engine.sideband_lost);
	number(j, "expected_ticks", s->expected_ticks);
	number(j, "idle_ticks", s->idle_ticks);
	number(j, "ticks", s->ledger.ticks);
	number(j, "put_bytes", s->ledger.put_bytes);
	number(j, "chunks_lost", s->ledger.chunks_lost);
	number(j, "short_stacks", s->ledger.short_stacks);
	close_object(j);
}

static void skipped(struct json *j, const struct status *s)
{
	open_object(j, "skipped");
	for (uint32_t r = 0; ledger_skip_name(r); r++)
		number(j, ledger_skip_name(r), s->ledger.skip[r]);
	close_object(j);
}

static void quality(struct json *j, const struct status *s)
{
	const struct ledger_engine *e = &s->ledger.engine;

	open_object(j, "quality");
	number(j, "stacks", e->stacks);
	number(j, "complete", e->stacks_root);
	open_object(j, "cut");
	for (uint32_t end = 0; end < ARRAY_SIZE(e->cut); end++) {
		const char *name = end < UNWIND_END_NR ? unwind_end_name(end) : NULL;

		if (name && e->cut[end])
			number(j, name, e->cut[end]);
	}
	close_object(j);
	number(j, "frames", e->frames);
	number(j, "frames_named", e->frames_named);
	number(j, "parked", e->parked);
	close_object(j);
}

static void cost(struct json *j, const struct status *s)
{
	open_object(j, "cost");
	number(j, "kernel_ns", s->cost.kernel_ns);
	number(j, "kernel_runs", s->cost.kernel_runs);
	number(j, "kernel_longest_ns", s->cost.kernel_longest_ns);
	number(j, "stats_ns", s->cost.stats_ns);
	number(j, "stats_runs", s->cost.stats_runs);
	number(j, "monitor_cpu_ns", s->cost.monitor_cpu_ns);
	number(j, "opener_cpu_ns", s->cost.opener_cpu_ns);
	number(j, "engine_cpu_ns", s->cost.engine_cpu_ns);
	number(j, "net_cpu_ns", s->cost.net_cpu_ns);
	number(j, "memory_bytes", s->cost.memory_bytes);
	close_object(j);
}

static void ladder(struct json *j, const struct guard *g, enum guard_cause cause)
{
	const struct guard_ladder *l = &g->ladder[cause];

	open_object(j, guard_cause_name(cause));
	number(j, "level", l->level);
	for (int down = 1; down >= 0; down--) {
		open_object(j, down ? "lowered" : "raised");
		for (int step = 0; step < GUARD_STEPS; step++)
			number(j, guard_step_name(step), (down ? l->lowered : l->raises)[step]);
		close_object(j);
	}
	close_object(j);
}

static void guard(struct json *j, const struct status *s)
{
	const struct status_guard *g = &s->guard;

	if (!g->state)
		return;
	open_object(j, "guard");
	number(j, "cpu_limit_permyriad", g->state->limits.cpu_permyriad);
	number(j, "cpu_permyriad", g->state->cpu_share);
	number(j, "memory_limit_bytes", g->memory_limit);
	number(j, "memory_bytes", g->memory_bytes);
	number(j, "cache_shift", g->orders.cache_shift);
	number(j, "stack_shift", g->orders.stack_shift);
	for (int cause = 0; cause < GUARD_CAUSES; cause++)
		ladder(j, g->state, cause);
	close_object(j);
}

static void workers(struct json *j, const struct status *s)
{
	open_object(j, "workers");
	for (size_t i = 0; i < ARRAY_SIZE(s->workers); i++) {
		open_object(j, s->workers[i].name);
		number(j, "pid", (uint64_t)s->workers[i].pid);
		number(j, "restarts", s->workers[i].restarts);
		close_object(j);
	}
	close_object(j);
	open_object(j, "questions");
	number(j, "asked", s->asks);
	number(j, "refused", s->asks_refused);
	number(j, "timed_out", s->asks_timed_out);
	close_object(j);
	open_object(j, "plans");
	number(j, "set", s->plans_set);
	number(j, "refused", s->plans_refused);
	close_object(j);
}

static void one_cpu(struct json *j, uint32_t i, const struct otp_cpu_counters *c)
{
	uint64_t lost = 0;

	for (int r = 0; r < OTP_LOSS_MAX; r++)
		lost += c->lost[r];
	open_object(j, NULL);
	number(j, "cpu", i);
	number(j, "ticks", c->ticks);
	number(j, "taken", c->taken);
	number(j, "put", c->put);
	number(j, "lost", lost);
	close_object(j);
}

/* CPUs that are possible but never ticked are left out. */
static void cpus(struct json *j, const struct status *s)
{
	key(j, "cpus");
	buf_add_str(j->to, "[");
	j->first = true;
	for (uint32_t i = 0; i < s->view->counters_nr; i++) {
		const struct otp_cpu_counters *c =
			(const void *)((const char *)s->view->counters + (size_t)i * s->view->counters_stride);

		if (c->ticks)
			one_cpu(j, i, c);
	}
	buf_add_str(j->to, "]");
	j->first = false;
}

void status_json(const struct status *s, struct buf *to)
{
	struct json j = {.to = to, .first = true};
	const struct ledger_engine *e = &s->ledger.engine;

	open_object(&j, NULL);
	text(&j, "version", OTPROF_VERSION);
	number(&j, "pid", (uint64_t)s->pid);
	number(&j, "uptime_s", s->uptime_ns / NSEC_PER_SEC);
	sampler(&j, s);
	ledger(&j, s);
	skipped(&j, s);
	quality(&j, s);
	cost(&j, s);
	guard(&j, s);
	number(&j, "processes", e->processes);
	number(&j, "intervals", e->intervals);
	open_object(&j, "top");
	text(&j, "name", e->top_name);
	number(&j, "self", e->top_samples);
	number(&j, "total", e->top_total);
	close_object(&j);
	workers(&j, s);
	cpus(&j, s);
	close_object(&j);
	buf_add_str(to, "\n");
}
