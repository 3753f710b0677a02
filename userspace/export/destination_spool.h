/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a destination does with its spool: which requests go to disk, which come
 * back, and their entries in the ledger.
 *
 * Called by destination.c, one thread. Without a spool nothing goes to disk: it
 * is empty, and nothing is due. Begin, failed and sent are called with a loaded
 * request of it only. Nothing here fails: where the disk does, requests stay in
 * memory, or are counted as lost.
 *
 * Order. Requests go to disk in the order in which they arrived, and come back
 * in that order. A request that waits behind a newer one of the spool, because
 * it was being sent when the others left, stays in memory and is sent first.
 * New requests overtake those of the spool, one of which has as much time as it
 * took before the next one follows: so the spool has half of the time at most.
 *
 * Books. An entry is counted as queued, and published, before it is written, and
 * as spooled after: a kill in between leaves it lost and on disk, and the next
 * process counts it as restored. Samples are subtracted, and published, before
 * their record is dropped: a kill in between sends them twice, restored too.
 */
#ifndef OTP_EXPORT_DESTINATION_SPOOL_H
#define OTP_EXPORT_DESTINATION_SPOOL_H

#include "export/destination.h"

/* Once the configuration is set: opens the spool, and counts what is in it. */
void destination_spool_open(struct destination *d);
void destination_spool_close(struct destination *d);
/* Whether requests that fail may go to disk, now or later. */
bool destination_has_spool(const struct destination *d);

/* How much of what waits goes to disk. */
enum spill {
	SPILL_SOME, /* as much as one turn may write */
	SPILL_ALL,
};
/* Writes the requests that wait in memory, if the disk can be used. */
void destination_spill(struct destination *d, enum spill how, uint64_t now_ns);
/* The same where the destination fails, or its queue is half full. */
void destination_spill_if_needed(struct destination *d, uint64_t now_ns);
/* The time of the next destination_spill_if_needed that would write; UINT64_MAX: none. */
uint64_t destination_spill_due_ns(const struct destination *d);

/* Makes d->backlog the oldest request of the spool that may be sent now; false: there is none. */
bool destination_spool_load(struct destination *d, uint64_t now_ns);
uint64_t destination_spool_due_ns(const struct destination *d); /* UINT64_MAX: it is empty */
bool destination_spool_is_empty(const struct destination *d);

/* Around a try of d->backlog: the next process learns that it may have been delivered. */
void destination_spool_begin(struct destination *d, uint64_t now_ns);
void destination_spool_failed(struct destination *d);
/* Its samples have left the spool's count, which was published. */
void destination_spool_sent(struct destination *d, uint64_t now_ns);

/* Parts of destination.c. */
void destination_booked(const struct destination *d);
void destination_report(const struct destination *d, enum export_event event, const char *text,
			const struct ledger_counts *samples);
void destination_lose(struct destination *d, const struct ledger_counts *samples, bool maybe, uint32_t reason);
struct ledger_counts *destination_waiting_counts(const struct destination *d, const struct queue_entry *entry);

#endif
