/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers' ledger pages, in memory that the monitor owns, and the booking
 * of the samples that a dead worker held.
 *
 * Called by the monitor, one thread. A page is changed here only while the
 * worker that publishes it does not run. books_init before anything else,
 * books_close at the end; in between the pages are mapped.
 */
#ifndef OTP_DAEMON_MONITOR_BOOKS_H
#define OTP_DAEMON_MONITOR_BOOKS_H

#include <stdbool.h>

#include "base/ledger.h"
#include "daemon/monitor/sampler.h"

struct books {
	struct ledger_engine_page *engine; /* mapped; NULL before books_open */
	struct ledger_net_page *net;
	int engine_fd, net_fd; /* for the workers; -1 */
};

void books_init(struct books *b);
int books_open(struct books *b); /* negative errno after it was logged */
void books_close(struct books *b);

/* In each turn: frees the part of the ring that the engine says to have read, as far as that can be true. */
void books_follow_engine(const struct books *b, struct sampler *s);
/* Books the samples that the engine held as lost. */
void books_engine_died(struct books *b, struct sampler *s);
/* Books the samples that it had handed over, and net has not received. */
void books_gap(struct books *b, enum otp_loss_reason reason);
void books_net_died(struct books *b, bool stopping);
/* At the very end, without an engine: books the samples left on the ring. */
void books_ring_left(struct books *b, const struct sampler *s);

#endif
