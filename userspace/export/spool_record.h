/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a spool: headers of records, and the position. Numbers are in
 * the byte order of the host, which wrote them itself; those of another one
 * have no valid checksum.
 *
 * Called by the spool, any thread; no state. What is read is foreign input:
 * every field is checked before it is used.
 */
#ifndef OTP_EXPORT_SPOOL_RECORD_H
#define OTP_EXPORT_SPOOL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/spool.h"

#define SPOOL_MAGIC	     0x3170736fu /* "osp1" */
#define SPOOL_POSITION_MAGIC 0x31706f73u /* "sop1" */
#define SPOOL_GZIP  1u
#define SPOOL_MAYBE 2u
#define SPOOL_TRIED 4u
#define SPOOL_ZSTD  8u
#define SPOOL_NO_ORIGIN 0xff

struct spool_header {
	uint32_t magic;
	uint32_t header_crc; /* of all that follows in the header */
	uint32_t body_crc;
	uint32_t body_len;
	uint64_t number, id, unix_ns, profiles;
	uint32_t flags, reserved;
	uint8_t origins[OTP_ORIGINS_MAX]; /* of the slots, at the time of writing */
	uint64_t samples[OTP_ORIGINS_MAX];
};
_Static_assert(sizeof(struct spool_header) == 128, "a header has no padding");

/* Written to one of two places in turn, so that a torn one leaves the other. */
struct spool_position {
	uint32_t magic, crc; /* of all that follows */
	uint64_t turn; /* the higher one is the newer */
	uint64_t next; /* the oldest record that was not taken */
	uint64_t maybe; /* the record that a try may have delivered; 0: none */
};
_Static_assert(sizeof(struct spool_position) == 32, "a position has no padding");

void spool_header_make(const struct spool_record *r, const void *data, const uint8_t origins[OTP_ORIGINS_MAX],
		       struct spool_header *ret);
/*
 * -EBADMSG: no header, or not that of record number; else its record, with the
 * samples of each origin in the slot that it has in origins, or in slot 0.
 */
int spool_header_read(const struct spool_header *h, uint64_t number, const uint8_t origins[OTP_ORIGINS_MAX],
		      struct spool_record *ret);
bool spool_body_is(const struct spool_header *h, const void *data);

void spool_position_make(struct spool_position *p); /* sets magic and checksum */
bool spool_position_is(const struct spool_position *p);

#endif
