/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring that records go through, in the layout of kmod/uapi/otprof.h.
 *
 * Who calls it: the capture path of every CPU and the writer of events (reserve,
 * commit, put), the device (avail, poll).
 * Contexts: a writer runs with interrupts off, or in an NMI; it takes no lock,
 * never waits for another CPU, and tries a bounded number of times. What can
 * interrupt a writer has a slot of its own: one reservation at a time per slot.
 * Memory: borrowed from whoever called init, and zeroed by him before.
 * Failure: -ENOSPC, and nothing has changed.
 * Pure: builds in userspace too, where threads stand for CPUs.
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

/* A slot that holds this has no reservation under way. */
#define OTPROF_RING_IDLE (~0ULL)

/*
 * Positions are free-running; every one of them only ever rises:
 *
 *	consumer <= safe <= every reservation under way < head
 *
 * Nothing below safe is uncommitted, so what lies below it may be shown to the
 * reader, and only what the reader gave back below it may be overwritten. The
 * first inequality is the reader's word and is checked each time it is used;
 * the others hold by themselves.
 */
struct otprof_ring {
	u64 head ____cacheline_aligned_in_smp; /* next free byte */
	u64 safe ____cacheline_aligned_in_smp;
	u64 size;               /* bytes of data, a power of two */
	u8 *data;               /* mapped twice in a row */
	const u64 *consumer;    /* the reader's page: his word, not the truth */
	u64 *producer;          /* the reader sees this copy of safe */
	u64 *pending;           /* by slot: where its reservation is, at the latest */
	unsigned int nr;        /* slots */
};

void otprof_ring_init(struct otprof_ring *r, u8 *data, u64 size, const u64 *consumer, u64 *producer,
		      u64 *pending, unsigned int nr);

/* Bytes of the ring that are one writer's until he commits them. */
struct otprof_room {
	void *at;
	u64 pos;
	u32 len;
};

/* Room for a record of len bytes; the slot is taken until commit. */
int otprof_ring_reserve(struct otprof_ring *r, unsigned int slot, u32 len, struct otprof_room *ret);
/* A record of len bytes lies there, no more than were reserved: what is left over, the reader passes. */
void otprof_ring_commit(struct otprof_ring *r, unsigned int slot, const struct otprof_room *room, u32 len);
/* Both, and the copy between them. */
int otprof_ring_put(struct otprof_ring *r, unsigned int slot, const void *rec, u32 len);

/* Bytes that the reader has before him; all of them where his position is a lie. */
u64 otprof_ring_avail(const struct otprof_ring *r);

#endif
