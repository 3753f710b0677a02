/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool of one destination: requests on disk, in order, that survive the
 * process and the host.
 *
 * Called by the destination, one thread. A directory of its own holds segments,
 * files of records that are only ever appended to, and the file "position",
 * which says up to where they were taken. A record is a header and the bytes of
 * a request, each under a checksum (CRC-32), so that a record that was torn by a
 * kill or a power cut is recognised, and every one before it is read. What was
 * taken is removed with its segment; an empty spool has no segment.
 *
 * Nothing is synced in the calls: a kill of the process loses nothing, and
 * spool_sync.h limits what a power cut may lose to about a second. The position
 * may then be an older one, and requests are sent again.
 *
 * A directory is locked by the process that has it open. Errors are negative
 * errno. Cost: a write or read of the page cache for each call, and memory for
 * each segment. spool_open reads the headers of all records.
 */
#ifndef OTP_EXPORT_SPOOL_H
#define OTP_EXPORT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ledger.h"
#include "export/export.h"

struct spool;
struct spool_sync;

struct spool_record {
	uint64_t number; /* in the spool, from 1; set by the spool */
	uint64_t id, profiles; /* as in struct export_request */
	uint64_t unix_ns;      /* when it was written */
	struct ledger_counts samples; /* by the slots of this session */
	size_t len;
	enum export_coding coding;
	bool tried;
	bool maybe; /* a try may have delivered it */
};

struct spool_content {
	struct ledger_counts samples;
	uint64_t records;
	uint64_t bytes; /* of all segments; what was taken counts until its segment is removed */
	uint64_t torn;  /* records, or rests of segments, that cannot be read, since spool_open */
};

/*
 * Opens directory name below place's, and creates it if create is set; place
 * is borrowed for the call. -EBUSY: another process has it open; -ENOENT;
 * -EINVAL: not a name for a directory.
 */
int spool_open(const struct export_spool *place, const char *name, bool create, struct spool **ret);
struct spool *spool_close(struct spool *s); /* NULL; everything stays on disk */
const struct spool_content *spool_content(const struct spool *s); /* borrowed; up to date */

/* The bytes that a request of len bytes adds. */
uint64_t spool_bytes_of(size_t len);
/*
 * Appends a request; max_bytes: of the whole spool, which the caller keeps below
 * it; it determines the size of segments. sync: borrowed for the call; NULL: the
 * kernel's writeback is enough. On failure nothing was added.
 */
int spool_append(struct spool *s, const struct spool_record *r, const void *data, uint64_t max_bytes,
		 struct spool_sync *sync);

/* 1 and the oldest record, 0: there is none; -errno: it cannot be read, see spool_drop_damaged. */
int spool_peek(struct spool *s, struct spool_record *ret);
/* The request of the record that spool_peek returned, len bytes. -EBADMSG: they are not what was written. */
int spool_read(struct spool *s, const struct spool_record *r, void *to);
/* Remembers, for the next process, whether a try may have delivered the oldest record. */
void spool_mark(struct spool *s, bool maybe);
/* Removes the oldest record, which spool_peek has returned. */
void spool_drop(struct spool *s);
/* Removes all that the oldest segment still holds, and counts it as torn. */
void spool_drop_damaged(struct spool *s, struct ledger_counts *ret_samples);

#endif
