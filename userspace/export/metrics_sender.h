/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends otprof's own metrics to one destination, beside its profiles: over a
 * transport of its own, one request at a time, the newest.
 *
 * Called by the exporter, one thread. No queue and no retries: the figures are
 * cumulative, so the next request says all that a lost one would have said.
 * Nothing of it is in the ledger, whose samples it does not carry.
 */
#ifndef OTP_EXPORT_METRICS_SENDER_H
#define OTP_EXPORT_METRICS_SENDER_H

#include "export/destination.h"

struct metrics_sender {
	struct export_config cfg; /* its strings are borrowed */
	const struct destination_owner *owner;
	const struct transport_ops *ops; /* NULL: this destination gets no metrics */
	struct transport *transport;
	bool sending, failing;
	void *data; /* owned: of the request under way */
};

/* In place: its address stays. cfg as of destination_init. */
int metrics_sender_init(struct metrics_sender *s, const struct export_config *cfg,
			const struct destination_owner *owner);
void metrics_sender_done(struct metrics_sender *s);
/* Copies the request; while another one is under way, it is dropped. */
void metrics_sender_send(struct metrics_sender *s, const void *request, size_t len);

#endif
