/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring of records, in the layout of kmod/uapi/otprof.h.
 *
 * Who calls it: the capture path of every CPU and the writer of process life
 * (reserve, commit, put), the device and its views (avail).
 * Contexts: a writer runs with interrupts off, or in an NMI; it takes no lock,
 * never waits for another CPU, and retries a bounded number of times. A context
 * that can interrupt a writer has a slot of its own: one reservation at a time
 * per slot.
 * Memory: owned and zeroed by the caller of init, borrowed by the ring.
 * Failure: -ENOSPC; nothing changed.
 * Pure: also builds in userspace, where threads stand for CPUs.
 */
#ifndef OTPROF_RING_H
#define OTPROF_RING_H

#ifdef __KERNEL__
#include <linux/cache.h>
#include <linux/types.h>
#else
#include "tests/kmod/kernel.h"
#endif

#include "kmod/uapi/otprof.h"

/* Value of a slot without a reservation under way. */
#define OTPROF_RING_IDLE (~0ULL)

/*
 * Positions are free-running; every one of them only ever rises:
 *
 *	consumer <= safe <= every reservation under way < head
 *
 * All records below safe are committed, so the reader may see them; only bytes
 * below consumer may be overwritten. consumer is written by the reader and not
 * trusted: the first inequality is checked at each use. The others always hold.
 */
struct otprof_ring {
	u64 head ____cacheline_aligned_in_smp; /* next free byte */
	u64 safe ____cacheline_aligned_in_smp;
	u64 size;               /* bytes of data, a power of two */
	u8 *data;               /* mapped twice in a row */
	const u64 *consumer;    /* on the reader's page: not trusted */
	u64 *producer;          /* the reader's copy of safe */
	u64 *pending;           /* by slot: a lower bound of its reservation's position */
	unsigned int nr;        /* slots */
};

void otprof_ring_init(struct otprof_ring *r, u8 *data, u64 size, const u64 *consumer, u64 *producer,
		      u64 *pending, unsigned int nr);

/* Reserved bytes of the ring: one writer's until it commits them. */
struct otprof_room {
	void *at;
	u64 pos;
	u32 len;
};

/* Reserves room for a record of len bytes; the slot is in use until commit. */
int otprof_ring_reserve(struct otprof_ring *r, unsigned int slot, u32 len, struct otprof_room *ret);
/* Commits a record of len bytes, at most those reserved; the reader skips the rest. */
void otprof_ring_commit(struct otprof_ring *r, unsigned int slot, const struct otprof_room *room, u32 len);
/* Reserves, copies rec, commits. */
int otprof_ring_put(struct otprof_ring *r, unsigned int slot, const void *rec, u32 len);

/* Unread bytes; the whole ring's where the reader's position is not valid. */
u64 otprof_ring_avail(const struct otprof_ring *r);

#endif
