/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer of the shared ring (kmod/uapi/otprof.h) for a sampler that lives in
 * userspace: one producer, one thread, records whole or not at all.
 *
 * Called by the perf source in the monitor. The reader is the engine, which
 * may lie: the only thing of its that is read is the consumer position, and
 * that is believed only as far as it moves between its last good value and
 * the writer's own, private head.
 * The reader gets two descriptors: the consumer page, which it may write, and
 * producer page and data, which no mapping of its descriptor can change.
 * Cost: no system call, no copy of its own.
 */
#ifndef OTP_RING_WRITER_H
#define OTP_RING_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmod/uapi/otprof.h"

struct ring_writer {
	const unsigned long *consumer; /* mapped; the reader's */
	unsigned long *producer;
	uint8_t *data; /* mapped twice in a row */
	size_t size;
	size_t page;
	uint64_t head; /* ours: what the producer page says was copied from here */
	uint64_t tail; /* last consumer position that could be true */
	int consumer_fd; /* owned: a page, to be mapped writable */
	int ring_fd;	 /* owned, read-only: producer page, then data, each once */
};

/* size: a power of two of at least a page. -EINVAL, -ENOMEM or what memfds say. */
int ring_writer_open(struct ring_writer *w, size_t size);
void ring_writer_close(struct ring_writer *w); /* zeroed is closed */

/* Room for a record of at most len bytes, 8-aligned and in one piece; NULL: none now. */
void *ring_writer_reserve(struct ring_writer *w, uint32_t len);
/* Makes what was reserved visible; len may be less than was asked for. Nothing is visible without it. */
void ring_writer_commit(struct ring_writer *w, uint32_t len);
/* Bytes that nobody has read yet. */
uint64_t ring_writer_unread(struct ring_writer *w);

#endif
