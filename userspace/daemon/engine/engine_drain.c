// SPDX-License-Identifier: Apache-2.0
/*
 * Drains: which records of ring and side-band a drain takes, and which of
 * them are then released.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "daemon/engine/engine_state.h"

/*
 * A predecessor died inside a batch: the records that it had read are lost. They must not be tried again, or one bad
 * sample would kill every later engine.
 */
void engine_skip_fatal_batch(struct engine *e)
{
	uint64_t pos = ring_consumer(&e->ring), end = e->ledger.batch_end;
	const struct otp_rec *rec;
	uint32_t slot;

	if (end <= pos || end > ring_producer(&e->ring))
		return;
	while (ring_next(&e->ring, &pos, end, &rec) > 0) {
		if (rec->type != OTP_REC_SAMPLE)
			continue;
		slot = origins_slot_of(&e->origins, rec);
		e->ledger.read.of[slot]++;
		e->ledger.lost[OTP_LOSS_ENGINE_DIED].of[slot]++;
	}
	/* Not its word but the end of a record: it may have been taken over before it died. */
	e->ledger.ring_pos = pos;
	e->ledger.batch_end = 0;
	ring_release(&e->ring, pos);
	engine_publish(e);
}

/* Collects records up to end; returns where the batch ends. */
static uint64_t drain_collect(struct engine *e, uint64_t end)
{
	uint64_t pos = ring_consumer(&e->ring), before = pos;
	const struct otp_rec *rec;
	int r;

	e->bad = 0;
	while ((r = ring_next(&e->ring, &pos, end, &rec)) > 0) {
		r = batch_add_ring(&e->batch, rec);
		if (r == -ENOMEM)
			return before;
		e->bad += r == -EBADMSG && rec->type == OTP_REC_SAMPLE;
		before = pos;
	}
	return r == -EBADMSG ? end : pos;
}

/* A sample whose last chunks have not arrived ends the batch before it, once. */
static uint64_t drain_settle_chunks(struct engine *e, uint64_t end)
{
	const struct otp_rec *head = batch_incomplete(&e->batch);
	uint64_t start = ring_consumer(&e->ring), at;

	if (!head || head == e->waited_for) {
		e->waited_for = NULL;
		return end;
	}
	e->waited_for = head;
	at = (uint64_t)((const uint8_t *)head - e->ring.data) - OTP_RING_HDR;
	at = start + ((at - start) & (e->ring.size - 1));
	batch_reset(&e->batch);
	return drain_collect(e, at);
}

static void drain_on_sideband(void *ctx, const void *record, size_t len)
{
	batch_add_sideband(&((struct engine *)ctx)->batch, record, len);
}

/*
 * The next drain is earlier while the ring fills, or after many records: stacks of a new program are cut until its
 * first sample was unwound.
 */
static void drain_set_pace(struct engine *e, uint64_t used, size_t items)
{
	e->ledger.ring_peak_bytes = MAX(e->ledger.ring_peak_bytes, used);
	if (used > e->ring.size / 8 || items > DRAIN_ITEMS)
		e->drain_every_ns = MAX(e->drain_every_ns / 2, DRAIN_FAST_NS);
	else if (used < e->ring.size / 32 && items < DRAIN_ITEMS / 3)
		e->drain_every_ns = MIN(e->drain_every_ns * 2, e->drain_slow_ns);
}

/* The end of what may be drained now: samples after a change of rate wait until the profile before it is closed. */
static uint64_t drain_end(const struct engine *e)
{
	uint64_t end = ring_producer(&e->ring);

	return e->rate.origins.count ? MIN(end, MAX(e->rate.pos, ring_consumer(&e->ring))) : end;
}

/*
 * The monitor frees what is read in its turns, at least once a second: enough at ordinary rates. It is woken where so
 * much waits to be freed that the sampler could run out of room.
 */
static void drain_wake_monitor(const struct engine *e)
{
	if (ring_kept(&e->ring) > e->ring.size / 8)
		ipc_send(e->sock, IPC_RELEASED, 0, NULL, 0, NULL, 0);
}

/* The ring first, then all of the side-band: then every sample's mappings are known. */
void engine_drain(struct engine *e)
{
	uint64_t end = drain_end(e), now = clock_now_ns(), used = end - ring_consumer(&e->ring);

	batch_reset(&e->batch);
	end = drain_settle_chunks(e, drain_collect(e, end));
	sideband_reader_drain(e->sideband, drain_on_sideband, e);
	drain_set_pace(e, used, batch_count(&e->batch));
	if (!batch_count(&e->batch) && end == ring_consumer(&e->ring))
		return;
	e->ledger.batch_end = end;
	engine_publish(e);
	if (e->capture)
		capture_batch(e->capture, now);
	batch_sort(&e->batch);
	pipeline_batch(e->pipeline, &e->batch, now);
	if (pipeline_is_expecting(e->pipeline, now))
		e->drain_every_ns = DRAIN_FAST_NS;
	engine_send_lives(e);
	/* Only now: samples count as on the ring until they are released. */
	e->ledger.read.of[0] += e->bad;
	e->ledger.lost[OTP_LOSS_BAD_RECORD].of[0] += e->bad;
	e->ledger.ring_pos = end;
	e->ledger.batch_end = 0;
	ring_release(&e->ring, end);
	engine_publish(e);
	drain_wake_monitor(e);
}
