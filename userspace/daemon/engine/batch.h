/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One drain of the ring and of the side-band, merged into time order: the
 * events of a process precede the samples that they explain.
 *
 * Called by the engine and by replay, one thread. Ring records are borrowed
 * until the ring is released; side-band records are copied. Memory is reused
 * from batch to batch.
 * Bounds: BATCH_SIDEBAND_MAX bytes of side-band a batch; records beyond that
 * count as lost, and the process table scans again.
 */
#ifndef OTP_DAEMON_ENGINE_BATCH_H
#define OTP_DAEMON_ENGINE_BATCH_H

#include "base/buf.h"
#include "base/hash.h"
#include "daemon/engine/sample.h"
#include "process/events.h"

#define BATCH_SIDEBAND_MAX (32u << 20)

struct batch {
	struct buf items;    /* struct batch_item */
	struct buf chunks;   /* struct batch_chunk */
	struct buf sideband; /* copied records, 8-byte aligned */
	struct map open;     /* cpu -> item whose last chunk has not arrived */
	struct buf base;     /* of the current sample: the outermost bytes, below the stack's end */
	struct buf stack;    /* of the current sample: its chunks joined */
	uint64_t sideband_lost;
	uint64_t bad;
};

enum batch_kind { BATCH_EVENT, BATCH_SAMPLE };

struct batch_item {
	uint64_t time_ns;
	uint64_t order;   /* of arrival: keeps the sort stable */
	uint8_t kind;     /* enum batch_kind */
	bool chunk_lost;
	uint32_t chunk;   /* first, index + 1; 0: none */
	uint32_t last_chunk;
	uint32_t size;    /* EVENT: bytes */
	uint64_t at;      /* EVENT: offset in sideband; SAMPLE: address of the record */
};

void batch_init(struct batch *b); /* all zeroes are valid, too, but leave stack bytes in core dumps */
void batch_done(struct batch *b);
void batch_reset(struct batch *b);
/* 0, -EBADMSG (counted in bad), -ENOMEM. */
int batch_add_ring(struct batch *b, const struct otp_rec *rec);
void batch_add_sideband(struct batch *b, const void *record, size_t len);
/*
 * Address of the earliest record whose chunks are incomplete, NULL if there
 * is none. The batch should end before it, unless the last one already did.
 */
const struct otp_rec *batch_incomplete(const struct batch *b);
void batch_sort(struct batch *b);

static inline size_t batch_count(const struct batch *b)
{
	return b->items.len / sizeof(struct batch_item);
}

static inline const struct batch_item *batch_item(const struct batch *b, size_t i)
{
	return (const struct batch_item *)b->items.data + i;
}

/* The ring's record of a sample. */
static inline const struct otp_rec *batch_record(const struct batch_item *it)
{
	return (const struct otp_rec *)(uintptr_t)it->at;
}

/* -EBADMSG where the record is inconsistent. The view is valid until the next call or reset. */
int batch_sample(struct batch *b, const struct batch_item *it, struct sample *ret);
int batch_event(const struct batch *b, const struct batch_item *it, struct proc_event *ret);
/* The record's bytes, borrowed until the reset. */
const void *batch_event_bytes(const struct batch *b, const struct batch_item *it);

#endif
