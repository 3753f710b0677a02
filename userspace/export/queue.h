/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of one destination's requests, in order, bounded by the memory that
 * it holds. Called by the destination, one thread. An entry owns a reference to
 * one form of its request; entries are borrowed until they are removed.
 */
#ifndef OTP_EXPORT_QUEUE_H
#define OTP_EXPORT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "export/request.h"

struct queue_entry {
	struct queue_entry *next;
	struct export_request *request;
	enum export_coding coding; /* of the form that it holds */
	bool tried;
	bool maybe; /* a try may have delivered it */
	uint64_t since_ns;
};

struct queue {
	struct queue_entry *head;
	struct queue_entry **tail;
	uint64_t bytes, max;
};

/* Added to the size of every entry: pages are whole, and a flood of tiny requests uses memory too. */
#define QUEUE_ENTRY_BYTES 4096u

void queue_init(struct queue *q, uint64_t max);
void queue_done(struct queue *q);
/* Whether r would fit after all entries, or all but the head, were dropped. */
bool queue_may_fit(const struct queue *q, const struct export_request *r, enum export_coding coding, bool keep_head);
bool queue_fits(const struct queue *q, const struct export_request *r, enum export_coding coding);
int queue_push(struct queue *q, struct export_request *r, enum export_coding coding, uint64_t now_ns); /* -ENOMEM */
/* The entry holds another form of its request from now on, which is there. */
void queue_set_coding(struct queue *q, struct queue_entry *entry, enum export_coding coding);
void queue_entry_set_coding(struct queue_entry *entry, enum export_coding coding); /* of one that is in no queue */
/* Takes the entry behind *link out and frees it. */
void queue_remove(struct queue *q, struct queue_entry **link);

#endif
