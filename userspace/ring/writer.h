/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer of the shared ring (kmod/uapi/otprof.h) for a sampler that lives in
 * userspace: one producer, one thread, records whole or not at all.
 *
 * Called by the perf source in the monitor. A consumer position is accepted only
 * between its last valid value and the writer's own, private head.
 * The reader, which may be hostile, gets a read-only descriptor; the monitor moves
 * the consumer position for it (ring/ring.h).
 * Cost: no system call, no copy of its own.
 */
#ifndef OTP_RING_WRITER_H
#define OTP_RING_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmod/uapi/otprof.h"

struct ring_writer {
	const unsigned long *consumer; /* mapped */
	unsigned long *producer;
	uint8_t *data; /* mapped twice in a row */
	size_t size;
	size_t page;
	uint64_t head; /* private; copied to the producer page */
	uint64_t tail; /* last valid consumer position */
	int consumer_fd; /* owned: the file, writable; its first page is the consumer's */
	int ring_fd;	 /* owned, read-only: the same file: consumer page, producer page, data, each once */
};

/* size: a power of two of at least a page. -EINVAL, -ENOMEM, or an error of memfd_create. */
int ring_writer_open(struct ring_writer *w, size_t size);
void ring_writer_close(struct ring_writer *w); /* zeroed is closed */

/* Room for a record of at most len bytes, 8-aligned and in one piece; NULL: none now. */
void *ring_writer_reserve(struct ring_writer *w, uint32_t len);
/* Makes the reserved record visible to the reader; len may be less than was reserved. */
void ring_writer_commit(struct ring_writer *w, uint32_t len);
/* Bytes that the reader has not released yet. */
uint64_t ring_writer_unread(struct ring_writer *w);

#endif
