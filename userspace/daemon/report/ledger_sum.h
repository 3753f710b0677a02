/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole equation of the ledger at one moment, for each origin and for all
 * together: the sampler's counters, what lies on the ring, and the pages of
 * both workers.
 *
 * Called by the monitor, at any time. The four sources are read one after the
 * other while samples move between them: samples that arrived after the
 * counters were read are recognised by their number and left out, and all are
 * read again until the equation holds, or until two readings in a row agree
 * that it does not. Workers write the pages and may be hostile, so no number in
 * them is trusted to be in range.
 */
#ifndef OTP_DAEMON_REPORT_LEDGER_SUM_H
#define OTP_DAEMON_REPORT_LEDGER_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ledger.h"
#include "base/origin.h"
#include "kmod/uapi/otprof.h"
#include "ring/ring.h"

struct ledger_view { /* all borrowed */
	const void *counters; /* struct otp_cpu_counters, counters_stride apart: those of slot 0 by CPU, of slot 1, ... */
	size_t counters_stride;
	uint32_t cpus;
	const struct origins *origins;
	const struct ring *ring;
	const struct ledger_engine_page *engine;
	const struct ledger_net_page *net;
};

/* Of a CPU and a slot; borrowed from the view. */
static inline const struct otp_cpu_counters *ledger_view_counters(const struct ledger_view *v, uint32_t slot, uint32_t cpu)
{
	return (const void *)((const char *)v->counters + ((size_t)slot * v->cpus + cpu) * v->counters_stride);
}

struct ledger_sum_destination {
	uint64_t earlier; /* samples that net had received before the destination existed */
	uint64_t exported, unconfirmed;
	uint64_t in_flight; /* on the ring, in the engine, between the workers, in this queue, or on disk */
	uint64_t spooled;  /* the part of in_flight that is on disk */
	uint64_t restored; /* found on disk, of an earlier run; or lost before, and found after all */
	uint64_t repeated; /* the part of exported that may have arrived more than once */
	uint64_t lost[OTP_LOSS_MAX]; /* before net, and the destination's own */
	bool balanced;
};

/* The equation of one origin, or the sum of all. Counts are samples. */
struct ledger_sum_origin {
	bool balanced; /* for every destination */
	uint64_t ticks, taken, put, chunks, chunks_lost, short_stacks, put_bytes;
	uint64_t value; /* sum of the samples' values; 0 for the CPU clock, whose samples are one each */
	uint64_t skip[OTP_SKIP_MAX];
	uint64_t sampler_lost[OTP_LOSS_MAX];
	uint64_t on_ring, held;
	uint64_t between;   /* handed over by the engine, not yet received by net */
	uint64_t in_flight; /* at the destination with the most */
	uint64_t lost[OTP_LOSS_MAX]; /* before net; with one destination, its own too */
	struct ledger_sum_destination dest[LEDGER_DESTINATIONS_MAX];
};

struct ledger_sum {
	bool stable; /* all figures are of one moment */
	uint32_t slots, destinations;
	struct ledger_sum_origin all;
	struct ledger_sum_origin origin[OTP_ORIGINS_MAX]; /* by slot */
	struct ledger_engine engine;
	struct ledger_net net;
};

/* destinations: the configured number, which holds until net's page has one. */
void ledger_sum_read(const struct ledger_view *v, uint32_t destinations, struct ledger_sum *ret);

/* Copies one page's state, with every text terminated and every number of entries in range. */
void ledger_look_engine(const struct ledger_engine_page *page, struct ledger_engine *ret);
void ledger_look_net(const struct ledger_net_page *page, struct ledger_net *ret);

/* Samples on the ring from pos to the end. */
void ledger_count_ring(const struct ring *ring, uint64_t pos, const struct origins *origins, struct ledger_counts *ret);

/* CPUs with ticks or events of any origin. */
uint32_t ledger_count_cpus(const struct ledger_view *v);

const char *ledger_loss_name(uint32_t reason); /* NULL beyond the list */
const char *ledger_skip_name(uint32_t reason);

#endif
