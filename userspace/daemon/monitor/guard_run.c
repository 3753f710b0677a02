// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/guard_run.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/limits/cgmem.h"
#include "daemon/monitor/cost.h"
#include "daemon/monitor/monitor.h"
#include "daemon/monitor/notify.h"

#define MIB	      (1024.0 * 1024.0)
#define CACHES_BYTES  (28u << 20) /* the most bytes of the engine's caches without a limit */
#define CACHES_PART   4		  /* of a limit: the rest is code, ring, maps and profile */
#define TIGHT_PERCENT 75

/* Converts thousandths of a percent of all CPUs to hundredths of a percent of one. */
static uint64_t guard_run_cpu_limit(const struct config *c)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return (uint64_t)c->cpu_percent_milli * (uint64_t)MAX(cpus, 1) / 10;
}

void guard_run_config(struct monitor *m)
{
	guard_limits(&m->guard.state, &(struct guard_limits){.cpu_permyriad = guard_run_cpu_limit(m->config),
							     .hz = m->config->frequency_hz,
							     .fixed_rate = m->sampler.layout.fixed_rate});
	guard_orders(&m->guard.state, &m->guard.orders);
	m->rate.limit_hz = m->guard.orders.hz;
}

uint64_t guard_memory_limit(const struct config *c)
{
	uint64_t own = c->memory_limit_bytes;
	struct cgmem group;

	if (!cgmem_read("", &group) || !group.limit)
		return own;
	return own ? MIN(own, group.limit) : group.limit;
}

/*
 * Takes the pair that is nearer to its limit: our processes and the configuration, or the control group and its own
 * limit.
 */
static void guard_run_measure_memory(struct monitor *m)
{
	uint64_t own = m->config->memory_limit_bytes;
	struct guard_run *g = &m->guard;
	struct cgmem group;

	g->memory_limit = own;
	if (own)
		cost_memory(&m->cost, &m->workers, &m->sampler, m->cost.figures.memory_bytes > own / 100 * TIGHT_PERCENT);
	g->memory_bytes = own ? m->cost.figures.memory_bytes : 0;
	if (!cgmem_read("", &group) || !group.limit)
		return;
	if (own && (double)g->memory_bytes / (double)own >= (double)group.used / (double)group.limit)
		return;
	g->memory_bytes = group.used;
	g->memory_limit = group.limit;
}

/* Carrying out. */

int guard_set_defaults(struct monitor *m)
{
	struct otp_defaults d = m->sampler.defaults;
	uint32_t shift = m->guard.orders.stack_shift;

	d.stack_budget = shift >= GUARD_STACK_NONE ? 0 : d.stack_budget >> shift;
	return m->sampler.source->ops->set_defaults(m->sampler.source, &d);
}

static uint64_t guard_run_cache_bytes(const struct guard_run *g)
{
	uint64_t bytes = CACHES_BYTES;

	if (g->memory_limit)
		bytes = MIN(bytes, g->memory_limit / CACHES_PART);
	return bytes >> g->orders.cache_shift;
}

/* Sends the limits when they change, and to every new engine. */
static void guard_run_send_limits(struct monitor *m)
{
	struct guard_run *g = &m->guard;
	struct ipc_limits l = {.cache_bytes = guard_run_cache_bytes(g), .stack_max_bytes = OTP_STACK_LIMIT};

	if (!m->workers.engine.ready || (l.cache_bytes == g->cache_bytes && g->engine_pid == (uint32_t)m->workers.engine.pid))
		return;
	if (g->orders.stack_shift >= GUARD_STACK_NONE)
		l.stack_max_bytes = OTP_STACK_FLOOR;
	if (worker_send(&m->workers.engine, IPC_LIMITS, 0, &l, sizeof(l), -1))
		return; /* the next run retries */
	g->cache_bytes = l.cache_bytes;
	g->engine_pid = (uint32_t)m->workers.engine.pid;
}

void guard_engine_ready(struct monitor *m)
{
	guard_run_send_limits(m);
}

static void guard_run_orders_text(const struct guard_orders *o, uint32_t wanted_hz, char *to, size_t size)
{
	int n = snprintf(to, size, "%u of %u Hz", o->hz, wanted_hz);

	if (o->stack_shift)
		n += snprintf(to + n, size - (size_t)n, ", stacks of %s", o->stack_shift < GUARD_STACK_NONE ? "less" : "4 KiB at most");
	if (o->cache_shift)
		snprintf(to + n, size - (size_t)n, ", caches 1/%u", 1u << o->cache_shift);
}

static void guard_run_log(const struct monitor *m, const struct guard_change *c)
{
	const struct log_tag tag = {.event = c->lowered ? LOG_EVENT_GUARD_LOWERED : LOG_EVENT_GUARD_RAISED};
	enum log_level level = c->lowered ? LOG_LEVEL_WARN : LOG_LEVEL_NOTICE;
	char holds[128];

	guard_run_orders_text(&m->guard.orders, m->config->frequency_hz, holds, sizeof(holds));
	if (c->cause == GUARD_CPU)
		log_tagged(&tag, level, "overload guard: %.2f %% of one CPU used, %.2f %% allowed: %s%s", (double)c->used / 100,
			 (double)c->limit / 100, holds, c->at_end && c->lowered ? "; nothing is left to give up" : "");
	else
		log_tagged(&tag, level, "overload guard: %.1f MiB of memory used, %.1f MiB allowed: %s%s", (double)c->used / MIB,
			 (double)c->limit / MIB, holds, c->at_end && c->lowered ? "; nothing is left to give up" : "");
}

static void guard_run_carry_out(struct monitor *m, const struct guard_change *c)
{
	struct guard_orders before = m->guard.orders;

	guard_orders(&m->guard.state, &m->guard.orders);
	guard_run_log(m, c);
	monitor_notify_status(m);
	if (before.stack_shift != m->guard.orders.stack_shift) {
		m->guard.cache_bytes = 0; /* sent again, with the stack's size */
		if (guard_set_defaults(m))
			log_warn("overload guard: the sampler rejects other stack sizes");
	}
	if (before.hz != m->guard.orders.hz && rate_limit(m, m->guard.orders.hz))
		log_warn("overload guard: sampler %s cannot change its rate", m->sampler.source->ops->name);
}

void guard_run(struct monitor *m, uint64_t now)
{
	struct guard_look look = {.now_ns = now};
	struct guard_change change;

	if (!m->sampler.sampling || m->phase != PHASE_RUN || m->config->mode == SAMPLER_NONE)
		return;
	cost_cpu(&m->cost, &m->workers, &m->sampler);
	guard_run_measure_memory(m);
	/* While a change of the rate closes the profile, no rate is in force. */
	look.hz = m->rate.closing ? 0 : m->rate.hz;
	look.cpu_ns = cost_cpu_ns(&m->cost);
	look.files_ns = cost_files_ns(&m->cost);
	look.samples = cost_samples(&m->sampler);
	look.memory_bytes = m->guard.memory_bytes;
	look.memory_limit = m->guard.memory_limit;
	if (guard_look(&m->guard.state, &look, &change))
		guard_run_carry_out(m, &change);
	guard_run_send_limits(m);
}

void guard_status(const struct monitor *m, struct status_guard *ret)
{
	*ret = (struct status_guard){.state = &m->guard.state, .orders = m->guard.orders,
				     .memory_bytes = m->guard.memory_bytes, .memory_limit = m->guard.memory_limit};
}
