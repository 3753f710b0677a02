/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One destination: its queue, its transport, the times of its tries, and the
 * ledger's entries for the outcome of every request.
 *
 * Called by the exporter, one thread. Invariant, whenever booked() is called:
 * the ledger's sending counts the samples of the entry being sent and of those
 * that a try may have delivered, spooled those on disk (being sent or not), queued
 * those of all others; every submitted or restored sample is in exactly one field.
 */
#ifndef OTP_EXPORT_DESTINATION_H
#define OTP_EXPORT_DESTINATION_H

#include "export/queue.h"
#include "export/transport.h"

struct spool;
struct spool_sync;

/* Shared by all destinations; outlives them. */
struct destination_owner {
	struct transport_host *host;
	void (*booked)(void *ctx); /* the ledger has changed */
	void *booked_ctx;
	struct spool_sync *sync; /* NULL: spools are not synced */
	export_event_fn *event; /* may be NULL */
	void *event_ctx;
};

/* Whether the receiver takes zstd, which only a try can tell. */
enum destination_zstd {
	DESTINATION_ZSTD_OPEN,	  /* or it does */
	DESTINATION_ZSTD_DOUBTED, /* a request was refused, and is sent again in gzip */
	DESTINATION_ZSTD_REFUSED, /* it took that */
};

struct destination {
	struct export_config cfg; /* its strings are borrowed */
	const struct destination_owner *owner;
	struct ledger_destination *ledger;
	const struct transport_ops *ops;
	struct transport *transport;
	struct queue queue;
	struct spool *spool; /* owned; NULL: none, see destination_spool.h */
	struct queue_entry backlog; /* the spool's oldest request, once it is loaded: request is not NULL */
	bool from_spool; /* the last try was, or is, the backlog's, not that of the queue's head */
	bool sending; /* one of them is being tried */
	bool ended; /* within an outcome: the backlog's request has come to its end */
	bool failing; /* the last try failed and may be repeated */
	uint64_t failing_since_ns;
	uint32_t failures; /* in a row */
	uint64_t due_ns;   /* no try before */
	bool stopping, stopped;
	bool paused; /* until it is configured, no try begins */
	uint32_t stop_failures;
	enum destination_zstd zstd; /* until it is configured anew */
	/* Of the spool. */
	uint64_t spool_last_id; /* of the newest request that went to disk */
	uint64_t spool_began_ns, spool_due_ns; /* the try of the backlog; none before */
	uint64_t spill_due_ns; /* nothing is written before */
	bool spool_fails; /* the last write failed */
	uint64_t spool_torn_seen;
	enum export_event spool_event; /* to be reported with spool_text; 0: none */
	char spool_text[120];
};

/*
 * In place: its address stays. All pointers are borrowed for its life, those
 * of cfg until the next destination_configure.
 */
int destination_init(struct destination *d, const struct export_config *cfg, const struct destination_owner *owner,
		     struct ledger_destination *ledger);
void destination_done(struct destination *d);

/* How new requests are compressed for it. */
enum export_coding destination_coding(const struct destination *d);
/* Before a submit, while the books are whole: makes room where the queue has a spool. Calls booked(). */
void destination_prepare(struct destination *d, uint64_t now_ns);
/* Counts r as queued or lost; the caller then calls booked(). */
void destination_submit(struct destination *d, struct export_request *r, uint64_t now_ns);
/* Samples of requests that are merged before this destination gets them count as queued, until they are released. */
void destination_hold(struct destination *d, const struct ledger_counts *samples);
void destination_release(struct destination *d, const struct ledger_counts *samples);
/* Counts samples as lost. */
void destination_refuse(struct destination *d, const struct ledger_counts *samples, uint32_t reason);
void destination_run(struct destination *d);
uint64_t destination_due_ns(const struct destination *d); /* UINT64_MAX: waits for nothing but its transport */
bool destination_idle(const struct destination *d);
/* Whether queued requests can be sent by another configuration: its transport takes the same form of them. */
bool destination_may_become(const struct destination *d, const struct export_config *cfg);
/*
 * Whether it can change to cfg now without cutting a try short, whose request
 * the receiver might then get twice. False: no try begins any more; ask again
 * when the one under way has ended.
 */
bool destination_may_change(struct destination *d, const struct export_config *cfg);
/*
 * Changes to another configuration of the same name, and to another place in
 * the ledger. A try that is under way is repeated if its transport has to be
 * opened anew.
 */
int destination_configure(struct destination *d, const struct export_config *cfg, struct ledger_destination *ledger);
void destination_stop(struct destination *d); /* retries at once */
void destination_abandon(struct destination *d); /* ends the try under way and drops the queue */

#endif
