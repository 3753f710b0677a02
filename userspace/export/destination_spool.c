// SPDX-License-Identifier: Apache-2.0
#include "export/destination_spool.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "export/spool.h"

#define SPILL_TURN_BYTES (8u << 20) /* written in one turn of the loop */
#define SPOOL_PAUSE_NS	 (10 * NSEC_PER_SEC) /* after an error of the disk */
#define SPOOL_SOON_NS	 (100 * NSEC_PER_MSEC) /* after a request that had no room beside one that is being sent */
#define SPOOL_SLOW_NS	 (100 * NSEC_PER_MSEC) /* a write that takes longer is followed by a pause of the same length */
#define SPOOL_GAP_MAX_NS NSEC_PER_SEC /* between two requests of the spool, while the destination works */

bool destination_has_spool(const struct destination *d)
{
	return d->spool && d->cfg.spool_bytes;
}

bool destination_spool_is_empty(const struct destination *d)
{
	return !d->spool || !spool_content(d->spool)->records;
}

/* The figures that stand beside the equation. */
static void destination_spool_show(struct destination *d)
{
	const struct spool_content *c = spool_content(d->spool);

	d->ledger->spool_requests = c->records;
	d->ledger->spool_bytes = c->bytes;
	d->ledger->spool_torn += c->torn - d->spool_torn_seen;
	d->spool_torn_seen = c->torn;
}

/* --- opening --- */

/* What the books of an earlier process do not have was restored; what the disk does not have is lost. */
static void destination_spool_reconcile(struct destination *d, const struct ledger_counts *on_disk)
{
	struct ledger_destination *l = d->ledger;
	struct ledger_counts gone;

	for (int slot = 0; slot < OTP_ORIGINS_MAX; slot++) {
		uint64_t booked = l->spooled.of[slot], have = on_disk->of[slot];

		l->restored.of[slot] += have - MIN(have, booked);
		gone.of[slot] = booked - MIN(have, booked);
	}
	ledger_counts_add(&l->lost[OTP_LOSS_SPOOL_DAMAGED], &gone);
	l->spooled = *on_disk;
}

/* One line for the operator, at the first turn: nobody listens yet while destinations are made. */
static void destination_spool_note(struct destination *d)
{
	const struct spool_content *c = spool_content(d->spool);

	if (!c->records && !c->torn)
		return;
	snprintf(d->spool_text, sizeof(d->spool_text), "%" PRIu64 " requests, %" PRIu64 " KiB; %" PRIu64 " torn",
		 c->records, c->bytes >> 10, c->torn);
	d->spool_event = EXPORT_RESTORED;
}

static void destination_spool_refuse(struct destination *d, const char *why)
{
	static const struct ledger_counts nothing;

	destination_spool_reconcile(d, &nothing);
	d->ledger->spool_requests = d->ledger->spool_bytes = 0;
	if (!d->cfg.spool_bytes)
		return;
	snprintf(d->spool_text, sizeof(d->spool_text), "%s", why);
	d->spool_event = EXPORT_SPOOL_FAILING;
}

static const char *destination_spool_why(int err)
{
	return err == -EBUSY ? "another process uses it" : strerrordesc_np(-err);
}

/* Without spool_bytes, one that has something in it is still sent. */
void destination_spool_open(struct destination *d)
{
	int err;

	if (d->spool || d->ops->local)
		return;
	if (!d->cfg.spool || d->cfg.spool->dir < 0) {
		destination_spool_refuse(d, "its directory is not open; a restart of otprofd opens it");
		return;
	}
	err = spool_open(d->cfg.spool, d->cfg.name, d->cfg.spool_bytes, &d->spool);
	if (err) {
		destination_spool_refuse(d, destination_spool_why(err));
		return;
	}
	destination_spool_reconcile(d, &spool_content(d->spool)->samples);
	destination_spool_note(d);
	destination_spool_show(d);
}

static void destination_spool_unload(struct destination *d)
{
	if (d->backlog.request)
		request_release(d->backlog.request, d->backlog.coding);
	d->backlog = (struct queue_entry){0};
}

void destination_spool_close(struct destination *d)
{
	destination_spool_unload(d);
	d->spool = spool_close(d->spool);
}

/* --- losing what is on disk --- */

static void destination_spool_drop(struct destination *d, const struct spool_record *r, uint32_t reason)
{
	ledger_counts_subtract(&d->ledger->spooled, &r->samples);
	destination_lose(d, &r->samples, r->maybe, reason);
	destination_booked(d);
	spool_drop(d->spool);
	destination_spool_show(d);
}

static void destination_spool_drop_damaged(struct destination *d)
{
	struct ledger_counts samples;

	spool_drop_damaged(d->spool, &samples);
	ledger_counts_subtract(&d->ledger->spooled, &samples);
	destination_lose(d, &samples, false, OTP_LOSS_SPOOL_DAMAGED);
	destination_spool_show(d);
	destination_booked(d);
}

/* The oldest record; false: there is none. What cannot be read is counted and left behind. */
static bool destination_spool_peek(struct destination *d, struct spool_record *ret)
{
	int rc;

	while ((rc = spool_peek(d->spool, ret)) < 0)
		destination_spool_drop_damaged(d);
	return rc;
}

/* --- to disk --- */

static void destination_spool_errs(struct destination *d, int err, uint64_t now)
{
	struct ledger_counts waiting = d->ledger->queued;

	d->spill_due_ns = now + SPOOL_PAUSE_NS;
	ledger_counts_add(&waiting, &d->ledger->sending);
	if (!d->spool_fails)
		destination_report(d, EXPORT_SPOOL_FAILING, destination_spool_why(err), &waiting);
	d->spool_fails = true;
}

static void destination_spool_works(struct destination *d, uint64_t began)
{
	uint64_t now = clock_now_ns();

	if (d->spool_fails)
		destination_report(d, EXPORT_SPOOL_BACK, "", NULL);
	d->spool_fails = false;
	d->spill_due_ns = now - began > SPOOL_SLOW_NS ? now + (now - began) : 0;
}

/* The oldest records give way; not the one that is being sent, or is loaded to be. */
static bool destination_spool_make_room(struct destination *d, uint64_t bytes)
{
	struct spool_record oldest;

	while (spool_content(d->spool)->bytes + bytes > d->cfg.spool_bytes) {
		if ((d->sending && d->from_spool) || !destination_spool_peek(d, &oldest))
			return false;
		destination_spool_unload(d);
		destination_spool_drop(d, &oldest, OTP_LOSS_SPOOL_FULL);
	}
	return true;
}

static struct spool_record destination_spool_record(const struct queue_entry *entry)
{
	const struct export_request *r = entry->request;

	return (struct spool_record){.id = r->id, .profiles = r->profiles, .samples = r->samples,
				     .unix_ns = clock_read_ns(CLOCK_REALTIME), .coding = entry->coding,
				     .tried = entry->tried, .maybe = entry->maybe, .len = request_bytes(r, entry->coding)};
}

/* -EAGAIN: there is no room beside one that is being sent. */
static int destination_spill_one(struct destination *d, struct queue_entry **link)
{
	struct queue_entry *entry = *link;
	const struct export_request *r = entry->request;
	const struct spool_record record = destination_spool_record(entry);
	int err = -EAGAIN;

	if (destination_spool_make_room(d, spool_bytes_of(record.len)))
		err = spool_append(d->spool, &record, r->form[entry->coding].data, d->cfg.spool_bytes,
				   d->owner->sync);
	if (err)
		return err;
	ledger_counts_move(destination_waiting_counts(d, entry), &d->ledger->spooled, &r->samples);
	d->spool_last_id = r->id;
	queue_remove(&d->queue, link);
	destination_spool_show(d);
	destination_booked(d);
	return 0;
}

/* Not what is being sent, what the whole spool has no room for, and, but for the last time, what would be out of order. */
static bool destination_may_spill(const struct destination *d, const struct queue_entry *entry, enum spill how)
{
	uint64_t bytes = spool_bytes_of(request_bytes(entry->request, entry->coding));

	if (d->sending && !d->from_spool && entry == d->queue.head)
		return false;
	return bytes <= d->cfg.spool_bytes && (how == SPILL_ALL || entry->request->id > d->spool_last_id);
}

/* From link on, the oldest request in memory that may go to disk, or the end of the queue. */
static struct queue_entry **destination_spill_next(const struct destination *d, struct queue_entry **link,
						   enum spill how)
{
	while (*link && !destination_may_spill(d, *link, how))
		link = &(*link)->next;
	return link;
}

void destination_spill(struct destination *d, enum spill how, uint64_t now_ns)
{
	struct queue_entry **link;
	uint64_t written = 0;
	int err = 0;

	if (!destination_has_spool(d) || (how == SPILL_SOME && now_ns < d->spill_due_ns))
		return;
	link = destination_spill_next(d, &d->queue.head, how);
	while (*link && !err && (how == SPILL_ALL || written < SPILL_TURN_BYTES)) {
		uint64_t began = clock_now_ns();

		written += request_bytes((*link)->request, (*link)->coding);
		err = destination_spill_one(d, link);
		if (err == -EAGAIN)
			d->spill_due_ns = now_ns + SPOOL_SOON_NS;
		else if (err)
			destination_spool_errs(d, err, now_ns);
		else
			destination_spool_works(d, began);
		link = destination_spill_next(d, link, how);
	}
}

static bool destination_spills(const struct destination *d)
{
	struct queue_entry *head = d->queue.head;

	return destination_has_spool(d) && (d->failing || d->queue.bytes > d->queue.max / 2) &&
	       *destination_spill_next(d, &head, SPILL_SOME);
}

void destination_spill_if_needed(struct destination *d, uint64_t now_ns)
{
	if (d->spool_event)
		destination_report(d, d->spool_event, d->spool_text, &d->ledger->spooled);
	d->spool_event = 0;
	if (destination_spills(d))
		destination_spill(d, SPILL_SOME, now_ns);
}

uint64_t destination_spill_due_ns(const struct destination *d)
{
	return destination_spills(d) ? d->spill_due_ns : UINT64_MAX;
}

/* --- back from disk --- */

static bool destination_spool_is_old(const struct destination *d, const struct spool_record *r)
{
	uint64_t now = clock_read_ns(CLOCK_REALTIME);

	return now - MIN(now, r->unix_ns) >= d->cfg.spool_age_ns;
}

/* The oldest record that is young enough; false: there is none. */
static bool destination_spool_next(struct destination *d, struct spool_record *ret)
{
	while (destination_spool_peek(d, ret)) {
		if (!destination_spool_is_old(d, ret))
			return true;
		destination_spool_unload(d);
		destination_spool_drop(d, ret, OTP_LOSS_SPOOL_EXPIRED);
	}
	return false;
}

/* 0, -ENOMEM, or what is wrong with the record. */
static int destination_spool_take(struct destination *d, const struct spool_record *r)
{
	struct queue_entry entry = {.coding = r->coding, .tried = r->tried, .maybe = r->maybe,
				    .since_ns = clock_now_ns()};
	void *data;
	int err = request_restore(r->id, r->profiles, &r->samples, r->len, r->coding, &entry.request, &data);

	if (err)
		return err;
	err = spool_read(d->spool, r, data);
	if (err)
		request_release(entry.request, entry.coding);
	else
		d->backlog = entry;
	return err;
}

bool destination_spool_load(struct destination *d, uint64_t now_ns)
{
	struct spool_record r;
	int err;

	while (d->spool && now_ns >= d->spool_due_ns && destination_spool_next(d, &r)) {
		if (d->backlog.request)
			return true;
		err = destination_spool_take(d, &r);
		if (!err)
			return true;
		if (err == -ENOMEM) {
			d->spool_due_ns = now_ns + SPOOL_GAP_MAX_NS;
			return false;
		}
		destination_spool_drop(d, &r, OTP_LOSS_SPOOL_DAMAGED);
	}
	return false;
}

uint64_t destination_spool_due_ns(const struct destination *d)
{
	return destination_spool_is_empty(d) ? UINT64_MAX : d->spool_due_ns;
}

void destination_spool_begin(struct destination *d, uint64_t now_ns)
{
	d->spool_began_ns = now_ns;
	spool_mark(d->spool, true);
}

void destination_spool_failed(struct destination *d)
{
	spool_mark(d->spool, d->backlog.maybe);
}

void destination_spool_sent(struct destination *d, uint64_t now_ns)
{
	uint64_t took = now_ns - MIN(now_ns, d->spool_began_ns);

	destination_spool_unload(d);
	spool_drop(d->spool);
	destination_spool_show(d);
	d->spool_due_ns = now_ns + MIN(took, SPOOL_GAP_MAX_NS);
}
