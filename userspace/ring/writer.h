/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer of the shared ring (kmod/uapi/otprof.h) for a sampler that lives in
 * userspace: one producer, one thread, records whole or not at all.
 *
 * Called by the perf source in the monitor. The reader is the engine, which may
 * be hostile: only the consumer position is read from it, and accepted only
 * between its last valid value and the writer's own, private head.
 * The reader gets two descriptors: one of the consumer page, which it may write,
 * and a read-only one of producer page and data.
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
	uint64_t head; /* private; copied to the producer page */
	uint64_t tail; /* last valid consumer position */
	int consumer_fd; /* owned: a page, to be mapped writable */
	int ring_fd;	 /* owned, read-only: producer page, then data, each once */
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
