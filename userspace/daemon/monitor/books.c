// SPDX-License-Identifier: Apache-2.0
/*
 * What a dead worker held goes where the ledger says it went. Only called
 * while the worker whose page is changed does not run.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"

static void books_log(const struct ledger_counts *samples, const char *what)
{
	uint64_t n = ledger_counts_total(samples);

	if (n)
		log_warn("%llu samples %s", (unsigned long long)n, what);
}

/* Records that the engine counted but had not yet released stay counted once. */
static void repair_ring(struct monitor *m, struct ledger_engine *e)
{
	uint64_t consumer = ring_consumer(&m->sampler.ring), producer = ring_producer(&m->sampler.ring);

	if (e->ring_pos < consumer || e->ring_pos > producer)
		e->ring_pos = consumer; /* no engine of ours publishes that */
	else
		ring_release(&m->sampler.ring, e->ring_pos);
}

void books_engine_died(struct monitor *m)
{
	struct ledger_engine e;

	ledger_look_engine(m->engine_page, &e);
	repair_ring(m, &e);
	books_log(&e.held, "were lost with the engine");
	ledger_counts_add(&e.lost[OTP_LOSS_ENGINE_DIED], &e.held);
	e.held = (struct ledger_counts){0};
	e.parked = 0;
	ledger_publish(m->engine_page, &e);
}

void books_gap(struct monitor *m, enum otp_loss_reason reason)
{
	struct ledger_engine e;
	struct ledger_net n;
	struct ledger_counts gap;

	ledger_look_engine(m->engine_page, &e);
	ledger_look_net(m->net_page, &n);
	for (int slot = 0; slot < OTP_ORIGINS_MAX; slot++)
		gap.of[slot] = e.handed.of[slot] - MIN(n.received.of[slot], e.handed.of[slot]);
	books_log(&gap, "were lost between engine and net");
	ledger_counts_move(&e.handed, &e.lost[reason], &gap);
	ledger_publish(m->engine_page, &e);
}

void books_net_died(struct monitor *m, bool stopping)
{
	enum otp_loss_reason reason = stopping ? OTP_LOSS_SHUTDOWN : OTP_LOSS_NET_DIED;
	struct ledger_net n;

	ledger_look_net(m->net_page, &n);
	for (uint32_t i = 0; i < n.destinations; i++) {
		struct ledger_destination *d = &n.dest[i];

		books_log(&d->queued, "were lost with net");
		ledger_counts_add(&d->lost[reason], &d->queued);
		ledger_counts_add(&d->unconfirmed, &d->sending);
		d->queued = d->sending = (struct ledger_counts){0};
	}
	ledger_publish(m->net_page, &n);
}

/* At the very end, with no engine to read them. */
void books_ring_left(struct monitor *m)
{
	struct ledger_engine e;
	struct ledger_counts left;

	ledger_look_engine(m->engine_page, &e);
	ledger_count_ring(&m->sampler.ring, e.ring_pos, &m->sampler.layout.origins, &left);
	books_log(&left, "were still on the ring");
	ledger_counts_add(&e.read, &left);
	ledger_counts_add(&e.lost[OTP_LOSS_ENGINE_DIED], &left);
	e.ring_pos = ring_producer(&m->sampler.ring);
	e.batch_end = 0;
	ledger_publish(m->engine_page, &e);
}
