/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole equation of the ledger at one moment: the sampler's counters, what
 * lies on the ring, and the pages of both workers.
 *
 * Called by the monitor, at any time. Four sources are read one after the
 * other while samples move between them: what came since the counters were
 * read is told by its number and passed over, and a look is taken again until
 * the equation holds for it, or two of them agree that it does not. The pages
 * belong to workers that may lie, so nothing in them is trusted to be in range.
 */
#ifndef OTP_DAEMON_REPORT_LEDGER_SUM_H
#define OTP_DAEMON_REPORT_LEDGER_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ledger.h"
#include "kmod/uapi/otprof.h"
#include "ring/ring.h"

struct ledger_view { /* all borrowed */
	const void *counters; /* counters_nr of struct otp_cpu_counters, counters_stride apart */
	size_t counters_stride;
	uint32_t counters_nr;
	const struct ring *ring;
	const struct ledger_engine_page *engine;
	const struct ledger_net_page *net;
};

struct ledger_sum_destination {
	uint64_t earlier; /* what was over before it was there */
	uint64_t exported, unconfirmed;
	uint64_t in_flight; /* ring, engine, between, queue: all on the way to this one */
	uint64_t lost[OTP_LOSS_MAX]; /* common ones and its own */
	bool balanced;
};

struct ledger_sum {
	bool stable;   /* a whole look, not one that samples moved under */
	bool balanced; /* for every destination */
	uint64_t ticks, taken, put, chunks, chunks_lost, short_stacks, put_bytes;
	uint64_t skip[OTP_SKIP_MAX];
	uint64_t sampler_lost[OTP_LOSS_MAX];
	uint64_t on_ring;
	uint64_t between;   /* handed by the engine, not taken by net */
	uint64_t in_flight; /* of the destination that has most */
	uint64_t lost[OTP_LOSS_MAX]; /* common; with one destination, its own too */
	struct ledger_engine engine;
	struct ledger_net net;
	struct ledger_sum_destination dest[LEDGER_DESTINATIONS_MAX];
	uint32_t destinations;
};

/* destinations: as configured, where no page has told them yet. */
void ledger_sum_read(const struct ledger_view *v, uint32_t destinations, struct ledger_sum *ret);

/* One page's state, however its owner behaves. */
void ledger_look_engine(const struct ledger_engine_page *page, struct ledger_engine *ret);
void ledger_look_net(const struct ledger_net_page *page, struct ledger_net *ret);

/* Samples on the ring from pos to the end. */
uint64_t ledger_count_ring(const struct ring *ring, uint64_t pos);

const char *ledger_loss_name(uint32_t reason); /* NULL beyond the list */
const char *ledger_skip_name(uint32_t reason);

#endif
