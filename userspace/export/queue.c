// SPDX-License-Identifier: Apache-2.0
#include "export/queue.h"

#include "base/cleanup.h"

static uint64_t entry_bytes(const struct export_request *r, enum export_coding coding)
{
	return request_bytes(r, coding) + QUEUE_ENTRY_BYTES;
}

void queue_init(struct queue *q, uint64_t max)
{
	*q = (struct queue){.max = max};
	q->tail = &q->head;
}

void queue_done(struct queue *q)
{
	while (q->head)
		queue_remove(q, &q->head);
}

bool queue_may_fit(const struct queue *q, const struct export_request *r, enum export_coding coding, bool keep_head)
{
	uint64_t kept = keep_head ? entry_bytes(q->head->request, q->head->coding) : 0;

	return kept <= q->max && entry_bytes(r, coding) <= q->max - kept;
}

bool queue_fits(const struct queue *q, const struct export_request *r, enum export_coding coding)
{
	return q->bytes <= q->max && entry_bytes(r, coding) <= q->max - q->bytes;
}

int queue_push(struct queue *q, struct export_request *r, enum export_coding coding, uint64_t now_ns)
{
	struct queue_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	entry->request = r;
	entry->coding = coding;
	entry->since_ns = now_ns;
	request_hold(r, coding);
	q->bytes += entry_bytes(r, coding);
	*q->tail = entry;
	q->tail = &entry->next;
	return 0;
}

void queue_entry_set_coding(struct queue_entry *entry, enum export_coding coding)
{
	request_hold(entry->request, coding);
	request_release(entry->request, entry->coding);
	entry->coding = coding;
}

void queue_set_coding(struct queue *q, struct queue_entry *entry, enum export_coding coding)
{
	q->bytes += entry_bytes(entry->request, coding) - entry_bytes(entry->request, entry->coding);
	queue_entry_set_coding(entry, coding);
}

void queue_remove(struct queue *q, struct queue_entry **link)
{
	struct queue_entry *entry = *link;

	*link = entry->next;
	if (q->tail == &entry->next)
		q->tail = link;
	q->bytes -= entry_bytes(entry->request, entry->coding);
	request_release(entry->request, entry->coding);
	free(entry);
}
