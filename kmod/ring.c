// SPDX-License-Identifier: GPL-2.0-only
/*
 * How several CPUs write one ring without a lock.
 *
 * A writer first announces in its slot the position that it is going to take,
 * then takes it by moving head with a compare-and-exchange from just that
 * position. So whoever reads head, and then all slots, finds each reservation
 * below that head either announced or over: the least of them is a position
 * below which everything is committed. That is safe. It is what the reader is
 * shown, and the reader can only give back what he was shown; hence no record
 * that is not committed is ever overwritten, whatever he writes to his page.
 *
 * A writer that is done clears its slot and then computes safe. Of two that
 * finish at the same time, at least one sees both slots cleared (the exchange
 * is a full barrier between clearing and looking): no record stays unseen.
 */
#include "kmod/ring.h"

#ifdef __KERNEL__
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/string.h>
#endif

/*
 * Each failed try is a reservation that another CPU has made. More of them in
 * one tick than this means a machine that cannot follow anyway.
 */
#define TRIES 256

static u64 bytes_of(u32 len)
{
	return ((u64)len + OTP_RING_HDR + 7) & ~7ULL;
}

static struct otp_ring_hdr *header_at(const struct otprof_ring *r, u64 pos)
{
	return (struct otp_ring_hdr *)(r->data + (pos & (r->size - 1)));
}

/* Raises *at to value; release, for those who acquire what they find there. */
static void raise(u64 *at, u64 value)
{
	u64 now = READ_ONCE(*at);

	while (now < value) {
		u64 was = cmpxchg(at, now, value);

		if (was == now)
			return;
		now = was;
	}
}

/* The acquires pair with the commits: what lies below the result is written. */
static u64 committed(const struct otprof_ring *r)
{
	u64 least = smp_load_acquire(&r->head); /* before the slots: what is behind them is announced */
	unsigned int i;

	for (i = 0; i < r->nr; i++) {
		u64 pos = smp_load_acquire(&r->pending[i]); /* pairs with its commit */

		if (pos < least)
			least = pos;
	}
	return least;
}

/*
 * Ends the slot's reservation, or its attempt, which may have held back what
 * others wanted to show. The private copy comes first: a reader who answers to
 * what he was shown must find it there.
 */
static void leave(struct otprof_ring *r, unsigned int slot)
{
	u64 least;

	xchg(&r->pending[slot], OTPROF_RING_IDLE);
	least = committed(r);
	raise(&r->safe, least);
	raise(r->producer, least);
}

/*
 * Where the reader says that he is, if it can be: not beyond what he has seen,
 * not more than a whole ring behind. Read before safe, so that an honest
 * position is never beyond it; acquire, because his reads are over before we
 * overwrite.
 */
static bool reader_at(const struct otprof_ring *r, u64 *ret)
{
	u64 at = smp_load_acquire(r->consumer); /* his reads are over */
	u64 safe = smp_load_acquire(&r->safe); /* pairs with raise: not older than what he saw */

	if (at > safe || safe - at > r->size)
		return false;
	*ret = at;
	return true;
}

/* A head that the reader has passed is an old one: the exchange will say so. */
static bool has_room(const struct otprof_ring *r, u64 head, u64 bytes)
{
	u64 reader;

	return reader_at(r, &reader) && (reader > head || head + bytes - reader <= r->size);
}

static bool take(struct otprof_ring *r, unsigned int slot, u64 bytes, u64 *ret_pos)
{
	u64 head = READ_ONCE(r->head);
	int i;

	for (i = 0; i < TRIES && has_room(r, head, bytes); i++) {
		u64 was;

		/* Release: a slot that goes from one reservation to the next commits the first. */
		smp_store_release(&r->pending[slot], head);
		was = cmpxchg(&r->head, head, head + bytes);
		if (was == head) {
			*ret_pos = head;
			return true;
		}
		head = was;
	}
	return false;
}

void otprof_ring_init(struct otprof_ring *r, u8 *data, u64 size, const u64 *consumer, u64 *producer,
		      u64 *pending, unsigned int nr)
{
	unsigned int i;

	r->head = 0;
	r->safe = 0;
	r->size = size;
	r->data = data;
	r->consumer = consumer;
	r->producer = producer;
	r->pending = pending;
	r->nr = nr;
	for (i = 0; i < nr; i++)
		pending[i] = OTPROF_RING_IDLE;
}

int otprof_ring_reserve(struct otprof_ring *r, unsigned int slot, u32 len, struct otprof_room *ret)
{
	u64 bytes = bytes_of(len);

	if (slot >= r->nr || bytes > r->size)
		return -ENOSPC;
	if (!take(r, slot, bytes, &ret->pos)) {
		leave(r, slot);
		return -ENOSPC;
	}
	ret->at = header_at(r, ret->pos) + 1;
	ret->len = len;
	return 0;
}

/*
 * Nobody is shown a record before its commit, so the busy bit of the layout is
 * never seen. What was reserved stays reserved: a head that went back would
 * fall below a position that somebody has already taken for safe. So what is
 * left over, always a multiple of 8, becomes a discarded record.
 */
void otprof_ring_commit(struct otprof_ring *r, unsigned int slot, const struct otprof_room *room, u32 len)
{
	struct otp_ring_hdr *hdr = header_at(r, room->pos);
	u64 used = bytes_of(len), over = bytes_of(room->len) - used;

	hdr->len = len;
	hdr->owner = 0;
	if (over) {
		hdr = header_at(r, room->pos + used);
		hdr->len = (u32)(over - OTP_RING_HDR) | OTP_RING_DISCARD;
		hdr->owner = 0;
	}
	leave(r, slot);
}

int otprof_ring_put(struct otprof_ring *r, unsigned int slot, const void *rec, u32 len)
{
	struct otprof_room room;
	int err = otprof_ring_reserve(r, slot, len, &room);

	if (err)
		return err;
	memcpy(room.at, rec, len);
	memset((u8 *)room.at + len, 0, bytes_of(len) - OTP_RING_HDR - len);
	otprof_ring_commit(r, slot, &room, len);
	return 0;
}

u64 otprof_ring_avail(const struct otprof_ring *r)
{
	u64 reader;

	if (!reader_at(r, &reader))
		return READ_ONCE(r->size);
	return smp_load_acquire(&r->safe) - reader; /* pairs with raise */
}
