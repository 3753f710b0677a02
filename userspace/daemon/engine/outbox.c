// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/outbox.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "daemon/ipc.h"

struct outbox_entry {
	struct outbox_entry *next;
	struct ipc_request request;
	int fd;    /* sealed memfd; owned */
	bool seen; /* sent to a net, which may hold it */
	bool sent; /* on the present socket */
};

void outbox_init(struct outbox *o, struct ledger_engine *ledger, void (*publish)(void *ctx), void *ctx)
{
	*o = (struct outbox){.sock = -1, .ledger = ledger, .publish = publish, .ctx = ctx};
	o->last = &o->first;
}

static void outbox_remove_entry(struct outbox *o, struct outbox_entry **slot)
{
	struct outbox_entry *e = *slot;

	*slot = e->next;
	if (o->last == &e->next)
		o->last = slot;
	o->bytes -= e->request.len;
	close(e->fd);
	free(e);
}

void outbox_done(struct outbox *o)
{
	while (o->first)
		outbox_remove_entry(o, &o->first);
	if (o->sock >= 0)
		close(o->sock);
	o->sock = -1;
}

void outbox_peer(struct outbox *o, int sock)
{
	if (o->sock >= 0)
		close(o->sock);
	o->sock = sock;
	o->open = false;
	for (struct outbox_entry *e = o->first; e; e = e->next)
		e->sent = false;
}

/* Only requests that no net can hold may be dropped: net accounts for the others. */
static void outbox_make_room(struct outbox *o, size_t len)
{
	struct outbox_entry **slot = &o->first;

	while (*slot && o->bytes + len > OUTBOX_BYTES) {
		struct outbox_entry *e = *slot;

		if (e->seen) {
			slot = &e->next;
			continue;
		}
		ledger_counts_move(&o->ledger->handed, &o->ledger->lost[OTP_LOSS_NO_EXPORTER], &e->request.samples);
		outbox_remove_entry(o, slot);
	}
}

int outbox_add(struct outbox *o, const void *request, size_t len, const struct ledger_counts *samples)
{
	struct outbox_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->fd = ipc_memfd("otlp", request, len);
	if (e->fd < 0) {
		int r = e->fd;

		free(e);
		return r;
	}
	outbox_make_room(o, len);
	e->request = (struct ipc_request){.id = ++o->ledger->last_id, .samples = *samples, .len = len};
	*o->last = e;
	o->last = &e->next;
	o->bytes += len;
	ledger_counts_move(&o->ledger->held, &o->ledger->handed, samples);
	o->publish(o->ctx);
	outbox_pump(o);
	return 0;
}

int outbox_newest(const struct outbox *o)
{
	return o->first ? container_of(o->last, struct outbox_entry, next)->fd : -1;
}

void outbox_received(struct outbox *o, uint64_t id)
{
	o->open = true;
	while (o->first && o->first->request.id <= id)
		outbox_remove_entry(o, &o->first);
	outbox_pump(o);
}

void outbox_pump(struct outbox *o)
{
	if (o->sock < 0 || !o->open)
		return;
	for (struct outbox_entry *e = o->first; e; e = e->next) {
		if (e->sent)
			continue;
		if (ipc_send(o->sock, IPC_REQUEST, 0, &e->request, sizeof(e->request), &e->fd, 1) < 0)
			return;
		e->sent = e->seen = true;
	}
}
