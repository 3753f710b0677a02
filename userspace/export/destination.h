/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One destination: its queue, its transport, when to try, and how what became
 * of every request is booked.
 *
 * Called by the exporter, one thread. Invariant, whenever booked() is called:
 * the ledger's sending is the samples of the entry being sent and of those that
 * a try may have delivered, queued those of all others; and every sample that was submitted is in exactly
 * one field.
 */
#ifndef OTP_EXPORT_DESTINATION_H
#define OTP_EXPORT_DESTINATION_H

#include "export/queue.h"
#include "export/transport.h"

/* What all destinations share; lives as long as they do. */
struct destination_owner {
	struct transport_host *host;
	void (*booked)(void *ctx); /* the ledger has changed */
	void *booked_ctx;
	export_event_fn *event; /* may be NULL */
	void *event_ctx;
};

struct destination {
	struct export_config cfg; /* what it points to is borrowed */
	const struct destination_owner *owner;
	struct ledger_destination *ledger;
	const struct transport_ops *ops;
	struct transport *transport;
	struct queue queue;
	bool sending; /* the head is being tried */
	bool failing; /* the last try failed and may be repeated */
	uint64_t failing_since_ns;
	uint32_t failures; /* in a row */
	uint64_t due_ns;   /* no try before */
	bool stopping, stopped;
	uint32_t stop_failures;
};

/*
 * In place: its address stays. All pointers are borrowed for its life, those
 * of cfg until the next destination_configure.
 */
int destination_init(struct destination *d, const struct export_config *cfg, const struct destination_owner *owner,
		     struct ledger_destination *ledger);
void destination_done(struct destination *d);

bool destination_compresses(const struct destination *d);
/* Books r as queued or lost; the caller says booked. */
void destination_submit(struct destination *d, struct export_request *r, uint64_t now_ns);
void destination_refuse(struct destination *d, const struct ledger_counts *samples, uint32_t reason); /* books it as lost */
void destination_run(struct destination *d);
uint64_t destination_due_ns(const struct destination *d); /* UINT64_MAX: waits for nothing but its transport */
bool destination_idle(const struct destination *d);
/* Whether what waits may go out by another configuration: the same kind of transport. */
bool destination_may_become(const struct destination *d, const struct export_config *cfg);
/*
 * Goes on with another configuration of the same name, and with its books in
 * another place. A try that is under way begins anew where anything has
 * changed that it depends on.
 */
int destination_configure(struct destination *d, const struct export_config *cfg, struct ledger_destination *ledger);
void destination_stop(struct destination *d); /* hurry */
void destination_give_up(struct destination *d); /* now */

#endif
