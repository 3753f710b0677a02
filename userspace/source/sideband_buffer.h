/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One mapped perf buffer, independent of its origin: the side-band's reader and
 * the perf source map it, tests make it.
 */
#ifndef OTP_SOURCE_SIDEBAND_BUFFER_H
#define OTP_SOURCE_SIDEBAND_BUFFER_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#include "source/source.h"

/* The size of a record is 16 bits wide. */
#define SIDEBAND_RECORD_MAX 65536

struct sideband_buffer {
	int fd;
	struct perf_event_mmap_page *page;
	const uint8_t *data;
	size_t data_bytes;
	size_t map_bytes;
};

/*
 * Length of the record at position at, below head, and the record in ret:
 * borrowed in place, or copied to scratch where it wraps. 0 at head; -EBADMSG at
 * a malformed record.
 */
int sideband_buffer_record(const struct sideband_buffer *b, uint64_t at, uint64_t head, uint8_t *scratch,
			   const void **ret);

/*
 * Passes every record written so far to fn, and advances the tail. -EBADMSG at a
 * malformed record: the rest of the buffer is skipped.
 * scratch: SIDEBAND_RECORD_MAX bytes, for records that wrap.
 */
int sideband_buffer_drain(struct sideband_buffer *b, uint8_t *scratch, sideband_fn *fn, void *ctx);

#endif
