// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/rate.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"

#define ANSWER_NS (3 * NSEC_PER_SEC)
#define RETRY_NS  NSEC_PER_SEC

static uint32_t rate_target(const struct rate *r)
{
	return r->limit_hz && r->limit_hz < r->wanted_hz ? r->limit_hz : r->wanted_hz;
}

/* Whether a new engine would read samples of the old rate first. */
static bool rate_is_open(const struct monitor *m)
{
	struct ledger_engine e;

	if (m->rate.acked == m->rate.last.id)
		return false;
	ledger_look_engine(m->books.engine, &e);
	return e.ring_pos < m->rate.last.pos;
}

const struct origins *rate_ring_origins(const struct monitor *m)
{
	return rate_is_open(m) ? &m->rate.origins_before : &m->sampler.layout.origins;
}

const struct ipc_rate *rate_pending(const struct monitor *m)
{
	return rate_is_open(m) ? &m->rate.last : NULL;
}

static int rate_set(struct monitor *m, uint32_t hz)
{
	int err = m->sampler.source->ops->set_rate(m->sampler.source, hz, m->rate.wanted_hz);

	if (err)
		return err;
	m->rate.hz = hz;
	m->sampler.source->ops->layout(m->sampler.source, &m->sampler.layout);
	return 0;
}

static void rate_resume(struct monitor *m)
{
	int err;

	m->rate.closing = false;
	if (m->phase != PHASE_RUN)
		return; /* the monitor is stopping */
	err = m->sampler.source->ops->start(m->sampler.source);
	m->sampler.next_vary_ns = 0; /* a stretch is as many ticks at any rate */
	if (!err) {
		monitor_notify_status(m);
		return;
	}
	log_error("sampling cannot continue at %u Hz: %s", m->rate.hz, strerror(-err));
	m->exit_status = 1;
	m->phase = PHASE_OVER;
}

/* The sampler is stopped: the present end of the ring is the end of the old rate. */
static int rate_send(struct monitor *m, uint64_t now)
{
	m->rate.last = (struct ipc_rate){.pos = ring_producer(&m->sampler.ring), .origins = m->sampler.layout.origins,
					 .id = m->rate.last.id + 1};
	m->rate.closing = true;
	m->rate.deadline_ns = now + ANSWER_NS;
	return worker_send(&m->workers.engine, IPC_RATE, 0, &m->rate.last, sizeof(m->rate.last), -1);
}

static int rate_begin(struct monitor *m, uint64_t now)
{
	struct origins before = m->sampler.layout.origins;
	uint32_t hz = m->rate.hz;
	int err = m->sampler.source->ops->stop(m->sampler.source);

	if (err)
		return err;
	err = rate_set(m, rate_target(&m->rate));
	if (err) {
		rate_resume(m);
		return err;
	}
	m->rate.origins_before = before;
	log_tagged(&(struct log_tag){.event = LOG_EVENT_RATE}, LOG_LEVEL_INFO, "sampling at %u Hz instead of %u", m->rate.hz, hz);
	/* An engine that cannot receive this is dying: the next one is sent the rate at its start. */
	if (rate_send(m, now))
		rate_resume(m);
	return 0;
}

void rate_run(struct monitor *m, uint64_t now)
{
	struct rate *r = &m->rate;

	if (r->closing && (now >= r->deadline_ns || !m->workers.engine.pid)) {
		if (m->workers.engine.pid)
			log_warn("the engine did not close its profile in time: sampling continues at %u Hz", r->hz);
		rate_resume(m);
	}
	if (r->closing || !m->sampler.sampling || !m->sampler.source->ops->set_rate || m->phase != PHASE_RUN ||
	    rate_target(r) == r->hz || now < r->retry_ns)
		return;
	/* One change at a time: the samples on the ring have one period before its position and one after. */
	if (!m->workers.engine.ready || rate_is_open(m))
		return;
	r->retry_ns = now + RETRY_NS;
	if (rate_begin(m, now))
		log_warn("the rate stays at %u Hz: the sampler rejects %u", r->hz, rate_target(r));
}

void rate_acked(struct monitor *m, const struct ipc_message *msg)
{
	uint64_t id;

	if (!ipc_fits(msg, sizeof(id), 0))
		return;
	memcpy(&id, msg->data, sizeof(id));
	if (id != m->rate.last.id)
		return;
	m->rate.acked = id;
	if (m->rate.closing)
		rate_resume(m);
}

static int rate_apply(struct monitor *m)
{
	if (!m->sampler.source->ops->set_rate)
		return rate_target(&m->rate) == m->rate.hz ? 0 : -EOPNOTSUPP;
	if (!m->sampler.sampling)
		return rate_target(&m->rate) == m->rate.hz ? 0 : rate_set(m, rate_target(&m->rate));
	rate_run(m, clock_now_ns());
	return 0;
}

int rate_change(struct monitor *m, uint32_t hz)
{
	if (hz < SOURCE_HZ_MIN || hz > SOURCE_HZ_MAX)
		return -ERANGE;
	m->rate.wanted_hz = hz;
	return rate_apply(m);
}

int rate_limit(struct monitor *m, uint32_t hz)
{
	m->rate.limit_hz = hz;
	return rate_apply(m);
}
