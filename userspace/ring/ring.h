/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader of the shared ring (kmod/uapi/otprof.h), whichever sampler writes it.
 *
 * The engine reads by a view, in which it can write nothing, and publishes how
 * far it is (base/ledger.h). The monitor keeps the ring mapped, and alone moves
 * the consumer position that the sampler obeys: it follows the engine, as far
 * as the records themselves confirm what the engine says.
 *
 * The engine may be taken over by what it parses. Before Linux 6.10 and its
 * backports (kernel/bpf/ringbuf.c, "bpf: Fix overrunning reservations in
 * ringbuf") the kernel believed any consumer position: a forged one let a record
 * overlap the header of another that was still being written, and the kernel
 * then followed that header. Newer kernels, the module and ring/writer.h defend
 * themselves; the one way serves all.
 *
 * One reader at a time. Records are borrowed in place: valid until ring_release
 * passes them. A malformed length ends reading with -EBADMSG; the caller skips
 * the rest by ring_release.
 * Cost: no copy, no system call; ring_follow reads the header of each record.
 */
#ifndef OTP_RING_RING_H
#define OTP_RING_RING_H

#include <stddef.h>
#include <stdint.h>

#include "kmod/uapi/otprof.h"

struct ring {
	unsigned long *consumer;       /* the reader's position: mapped and writable, in a view the caller's own */
	const unsigned long *freed;    /* mapped: the position that the sampler obeys; consumer itself if no view */
	const unsigned long *producer; /* mapped, read-only */
	const uint8_t *data;           /* mapped twice in a row, read-only */
	size_t size;                   /* of the data area, a power of two */
	size_t page;
};

/* For the monitor: the consumer page is writable. 0 or negative errno, as of the next three. */
int ring_map(struct ring *r, int fd, size_t size);
/*
 * The same of a file that a userspace sampler writes (ring/writer.h), in which the
 * data area lies once; consumer_fd: writable, of the same file.
 */
int ring_map_file(struct ring *r, int consumer_fd, int fd, size_t size);
/*
 * For the engine: all of it read-only, and for good (no mprotect). fd may be
 * closed. own: the reader's position, set by the caller; borrowed until ring_unmap.
 */
int ring_view(struct ring *r, int fd, size_t size, unsigned long *own);
int ring_view_file(struct ring *r, int fd, size_t size, unsigned long *own);
void ring_unmap(struct ring *r);
/* The same over memory (tests, replay of whole rings). */
void ring_wrap(struct ring *r, unsigned long *consumer, const unsigned long *producer, const void *data, size_t size);

uint64_t ring_producer(const struct ring *r); /* acquire: records below it may be read */
uint64_t ring_consumer(const struct ring *r);

/*
 * The record at *pos, below end; advances *pos past it. 1 and a record; 0 at end
 * or at a record that is still busy; -EBADMSG. Discarded records are skipped.
 */
int ring_next(const struct ring *r, uint64_t *pos, uint64_t end, const struct otp_rec **ret);
/* Everything below pos may be overwritten from now on (release). */
void ring_release(struct ring *r, uint64_t pos);
/*
 * Releases what a reader that is not trusted says to have read: up to pos, but no
 * further than the first record that is still being written, and never back.
 */
void ring_follow(struct ring *r, uint64_t pos);
/* Of a view: bytes that were read, and that the sampler may not overwrite yet. */
uint64_t ring_kept(const struct ring *r);

/* A sample's section of this type; borrowed from the record. NULL: none, or the record's lengths are wrong. */
const void *sample_section(const struct otp_sample *s, enum otp_section_type type, uint32_t *ret_len);
/* The same where there may be more than one: the nth, from 0. */
const void *sample_section_nth(const struct otp_sample *s, enum otp_section_type type, uint32_t nth, uint32_t *ret_len);

#endif
