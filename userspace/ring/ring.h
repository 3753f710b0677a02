/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader of the shared ring (kmod/uapi/otprof.h), whichever sampler writes it.
 *
 * Called by the engine (reads) and the monitor (keeps it mapped, counts unread
 * bytes, repairs the consumer position after an engine died). One reader at a
 * time. Records are borrowed in place: valid until ring_release passes them. A
 * malformed length ends reading with -EBADMSG; the caller skips the rest by
 * ring_release.
 * Cost: no copy, no system call.
 */
#ifndef OTP_RING_RING_H
#define OTP_RING_RING_H

#include <stddef.h>
#include <stdint.h>

#include "kmod/uapi/otprof.h"

struct ring {
	unsigned long *consumer;       /* mapped, writable */
	const unsigned long *producer; /* mapped, read-only */
	const uint8_t *data;           /* mapped twice in a row, read-only */
	size_t size;                   /* of the data area, a power of two */
	size_t page;
};

int ring_map(struct ring *r, int fd, size_t size);
/*
 * The same where a userspace sampler writes (ring/writer.h): the consumer page
 * and the rest are two files, and the data area lies once in the second.
 */
int ring_map_files(struct ring *r, int consumer_fd, int fd, size_t size);
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

/* A sample's section of this type; borrowed from the record. NULL: none, or the record's lengths are wrong. */
const void *sample_section(const struct otp_sample *s, enum otp_section_type type, uint32_t *ret_len);

#endif
