// SPDX-License-Identifier: Apache-2.0
#include "export/destination_spool.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "export/retry.h"

/* While stopping: the longest wait between tries, and the failures in a row that end them. */
#define STOP_WAIT_NS  (500 * NSEC_PER_MSEC)
#define STOP_FAILURES 3

void destination_booked(const struct destination *d)
{
	d->owner->booked(d->owner->booked_ctx);
}

void destination_report(const struct destination *d, enum export_event event, const char *text,
			const struct ledger_counts *samples)
{
	if (d->owner->event)
		d->owner->event(d->owner->event_ctx, d->cfg.name, event, text, samples ? ledger_counts_total(samples) : 0);
}

/*
 * Where the ledger counts a waiting request. One that a try may have delivered
 * stays with those being sent: if net dies now, it is unconfirmed, too.
 */
struct ledger_counts *destination_waiting_counts(const struct destination *d, const struct queue_entry *entry)
{
	if (entry == &d->backlog)
		return &d->ledger->spooled;
	return entry->maybe ? &d->ledger->sending : &d->ledger->queued;
}

/* The entry that is being sent, or was last. */
static struct queue_entry *destination_current(struct destination *d)
{
	return d->from_spool ? &d->backlog : d->queue.head;
}

/* Where the ledger counts it meanwhile: what is on disk stays there, also if net dies now. */
static struct ledger_counts *destination_sending_counts(const struct destination *d)
{
	return d->from_spool ? &d->ledger->spooled : &d->ledger->sending;
}

/* --- how requests end --- */

/* The entry's samples are in no field: the caller has subtracted them. */
static void destination_count_end(struct destination *d, const struct queue_entry *entry, uint32_t reason)
{
	ledger_counts_add(entry->maybe ? &d->ledger->unconfirmed : &d->ledger->lost[reason], &entry->request->samples);
}

static const char *destination_reason_text(uint32_t reason)
{
	static const char *const texts[OTP_LOSS_MAX] = {
#define X(number, NAME, name, place, text) [number] = text,
		OTP_LOSS_REASONS(X)
#undef X
	};

	return reason < OTP_LOSS_MAX && texts[reason] ? texts[reason] : "";
}

void destination_lose(struct destination *d, const struct ledger_counts *samples, bool maybe, uint32_t reason)
{
	ledger_counts_add(maybe ? &d->ledger->unconfirmed : &d->ledger->lost[reason], samples);
	destination_report(d, EXPORT_DROPPED, destination_reason_text(reason), samples);
}

static void destination_drop(struct destination *d, struct queue_entry **link, uint32_t reason)
{
	struct ledger_counts samples = (*link)->request->samples;
	bool maybe = (*link)->maybe;

	ledger_counts_subtract(destination_waiting_counts(d, *link), &samples);
	queue_remove(&d->queue, link);
	destination_lose(d, &samples, maybe, reason);
}

/* All that is in memory: what cannot go to disk is lost. */
static void destination_drop_all(struct destination *d, uint32_t reason)
{
	destination_spill(d, SPILL_ALL, clock_now_ns());
	while (d->queue.head)
		destination_drop(d, &d->queue.head, reason);
}

/* Its samples have been counted. The backlog's record is dropped once they are published, too. */
static void destination_remove_current(struct destination *d)
{
	if (d->from_spool)
		d->ended = true;
	else
		queue_remove(&d->queue, &d->queue.head);
}

/* --- whether it takes zstd --- */

enum export_coding destination_coding(const struct destination *d)
{
	if (!d->ops->compresses)
		return EXPORT_CODING_NONE;
	return d->cfg.compression == EXPORT_CODING_ZSTD && d->zstd != DESTINATION_ZSTD_OPEN ? EXPORT_CODING_GZIP :
											      d->cfg.compression;
}

static void destination_show_coding(struct destination *d)
{
	d->ledger->coding = destination_coding(d);
	d->ledger->zstd_refused = d->zstd == DESTINATION_ZSTD_REFUSED;
}

/* One that was compressed before zstd was refused, or another coding configured. */
static int destination_fit_coding(struct destination *d, struct queue_entry *entry)
{
	int rc;

	if (entry->coding != EXPORT_CODING_ZSTD || destination_coding(d) == EXPORT_CODING_ZSTD)
		return 0;
	rc = request_recode(entry->request, entry->coding, EXPORT_CODING_GZIP);
	if (rc < 0)
		return rc;
	if (entry == &d->backlog)
		queue_entry_set_coding(entry, EXPORT_CODING_GZIP);
	else
		queue_set_coding(&d->queue, entry, EXPORT_CODING_GZIP);
	return 0;
}

static void destination_set_error(struct destination *d, const char *text)
{
	snprintf(d->ledger->last_error, sizeof(d->ledger->last_error), "%s", text);
}

static bool destination_may_refuse_zstd(const struct queue_entry *head, const struct outcome *o)
{
	return o->kind == OUTCOME_REFUSED && o->coding && head->coding == EXPORT_CODING_ZSTD;
}

/* The request waits again, and is sent in gzip at once. */
static void destination_doubt_zstd(struct destination *d, struct queue_entry *head, const struct outcome *o)
{
	d->zstd = DESTINATION_ZSTD_DOUBTED;
	d->due_ns = 0;
	head->tried = true;
	ledger_counts_add(destination_waiting_counts(d, head), &head->request->samples);
	destination_set_error(d, o->text);
	if (d->from_spool)
		destination_spool_failed(d);
}

/* In gzip it was taken, or refused as well: then it was not the coding. */
static void destination_settle_zstd(struct destination *d, const struct outcome *o)
{
	if (d->zstd != DESTINATION_ZSTD_DOUBTED || o->kind == OUTCOME_RETRY)
		return;
	d->zstd = o->kind == OUTCOME_REFUSED ? DESTINATION_ZSTD_OPEN : DESTINATION_ZSTD_REFUSED;
	destination_show_coding(d);
	if (d->zstd == DESTINATION_ZSTD_REFUSED)
		destination_report(d, EXPORT_CODING_REFUSED, d->ledger->last_error, NULL);
}

/* --- the outcome of a try; the current entry's samples are in no field when these run --- */

static void destination_recover(struct destination *d)
{
	d->failures = d->stop_failures = 0;
	d->due_ns = 0;
	if (d->failing)
		destination_report(d, EXPORT_BACK, "", NULL);
	d->failing = false;
}

static void destination_on_delivered(struct destination *d, struct queue_entry *head, const struct outcome *o)
{
	ledger_counts_add(&d->ledger->exported, &head->request->samples);
	if (head->maybe)
		ledger_counts_add(&d->ledger->repeated, &head->request->samples);
	d->ledger->requests++;
	d->ledger->bytes += request_bytes(head->request, head->coding);
	d->ledger->last_error[0] = '\0';
	destination_recover(d);
	if (*o->text)
		destination_report(d, EXPORT_REMARK, o->text, &head->request->samples);
	destination_remove_current(d);
}

/*
 * The receiver reports the number of refused profiles, not which. If it refused
 * all, all samples are lost; else it is unknown which were kept.
 */
static void destination_on_partial(struct destination *d, struct queue_entry *head, const struct outcome *o)
{
	if (o->rejected >= head->request->profiles)
		destination_count_end(d, head, OTP_LOSS_REJECTED);
	else
		ledger_counts_add(&d->ledger->unconfirmed, &head->request->samples);
	destination_set_error(d, o->text);
	destination_recover(d);
	destination_report(d, EXPORT_PARTIAL, o->text, &head->request->samples);
	destination_remove_current(d);
}

static void destination_on_refused(struct destination *d, struct queue_entry *head, const struct outcome *o)
{
	head->maybe |= o->maybe;
	destination_count_end(d, head, o->reason);
	destination_set_error(d, o->text);
	destination_recover(d);
	destination_report(d, EXPORT_REFUSED, o->text, &head->request->samples);
	destination_remove_current(d);
}

static uint64_t destination_wait_after(const struct destination *d, const struct outcome *o, uint64_t now)
{
	uint64_t wait = retry_backoff_ns(d->cfg.retry_initial_ns, d->cfg.retry_max_ns, d->failures,
					 hash_u64(now ^ hash_seed ^ (uintptr_t)d));

	/* A wait of 0 would be a busy loop for as long as the server asks for it. */
	if (o->retry_after_ns != OUTCOME_NO_WAIT && o->retry_after_ns)
		wait = o->retry_after_ns;
	return d->stopping ? MIN(wait, STOP_WAIT_NS) : wait;
}

/* With a spool, what waits in memory nevertheless (the disk is full) has the time that it would have on disk. */
static uint64_t destination_patience_ns(const struct destination *d)
{
	return destination_has_spool(d) ? d->cfg.spool_age_ns : d->cfg.retry_elapsed_ns;
}

static bool destination_entry_is_old(const struct destination *d, const struct queue_entry *entry, uint64_t at)
{
	return at - MIN(at, entry->since_ns) >= destination_patience_ns(d);
}

/*
 * Whether to end tries while stopping: a file system does not recover within seconds, a peer that restarts may, and what
 * can go to disk need not wait for it.
 */
static bool destination_stop_is_over(struct destination *d)
{
	return d->stopping && (!d->ops->patient || destination_has_spool(d) || ++d->stop_failures >= STOP_FAILURES);
}

/* The operator learns how many samples wait, on disk or in memory. */
static void destination_report_failing(struct destination *d, const char *text)
{
	struct ledger_counts waiting = d->ledger->queued;

	ledger_counts_add(&waiting, &d->ledger->sending);
	ledger_counts_add(&waiting, &d->ledger->spooled);
	destination_report(d, EXPORT_FAILING, text, &waiting);
}

static void destination_on_retry(struct destination *d, struct queue_entry *head, const struct outcome *o)
{
	uint64_t now = clock_now_ns();

	head->tried = true;
	head->maybe |= o->maybe;
	ledger_counts_add(destination_waiting_counts(d, head), &head->request->samples);
	d->failures += d->failures < UINT32_MAX;
	destination_set_error(d, o->text);
	if (!d->failing) {
		d->failing_since_ns = now;
		destination_report_failing(d, o->text);
	}
	d->failing = true;
	/* Without retries a failure does not delay the next request. */
	d->due_ns = destination_patience_ns(d) || d->from_spool ? now + destination_wait_after(d, o, now) : now;
	if (d->from_spool)
		destination_spool_failed(d);
	if (destination_stop_is_over(d))
		destination_drop_all(d, d->ops->stopped);
	else if (!d->stopping && !d->from_spool && destination_entry_is_old(d, head, d->due_ns))
		destination_drop(d, &d->queue.head, d->ops->expired);
}

static void destination_on_outcome(void *ctx, const struct outcome *o)
{
	struct destination *d = ctx;
	struct queue_entry *head = destination_current(d);

	ledger_counts_subtract(destination_sending_counts(d), &head->request->samples);
	d->sending = false;
	if (destination_may_refuse_zstd(head, o)) {
		destination_doubt_zstd(d, head, o);
		destination_booked(d);
		return;
	}
	destination_settle_zstd(d, o);
	switch (o->kind) {
	case OUTCOME_DELIVERED:
		destination_on_delivered(d, head, o);
		break;
	case OUTCOME_PARTIAL:
		destination_on_partial(d, head, o);
		break;
	case OUTCOME_REFUSED:
		destination_on_refused(d, head, o);
		break;
	case OUTCOME_RETRY:
		destination_on_retry(d, head, o);
		break;
	}
	destination_booked(d);
	if (d->ended)
		destination_spool_sent(d, clock_now_ns());
	d->ended = false;
}

/* --- trying --- */

/* Counted as sending before the first byte is sent: a kill from now on leaves it unconfirmed, or on disk. */
static void destination_try_current(struct destination *d)
{
	struct queue_entry *head = destination_current(d);
	int rc = destination_fit_coding(d, head);
	struct export_request *r = head->request;
	struct body body = {.id = r->id, .data = r->form[head->coding].data,
			    .len = request_bytes(r, head->coding), .coding = head->coding};
	struct outcome o;

	ledger_counts_move(destination_waiting_counts(d, head), destination_sending_counts(d), &r->samples);
	d->ledger->retries += head->tried;
	d->sending = true;
	destination_booked(d);
	if (d->from_spool)
		destination_spool_begin(d, clock_now_ns());
	if (rc == 0)
		rc = d->ops->send(d->transport, &body, &o);
	if (rc < 0)
		outcome_retry(&o, false, strerrordesc_np(-rc));
	if (rc)
		destination_on_outcome(d, &o);
}

/*
 * Whether the entry waited too long. One that was queued while the destination
 * failed has waited for the failure all the time; one that was queued before
 * may have waited for others, and is tried once.
 */
static bool destination_entry_expired(const struct destination *d, const struct queue_entry *entry, uint64_t now)
{
	return d->failing && !d->stopping && destination_patience_ns(d) && destination_entry_is_old(d, entry, now) &&
	       (entry->tried || entry->since_ns >= d->failing_since_ns);
}

static void destination_expire(struct destination *d, uint64_t now)
{
	bool any = false;

	while (d->queue.head && destination_entry_expired(d, d->queue.head, now)) {
		destination_drop(d, &d->queue.head, d->ops->expired);
		any = true;
	}
	if (any)
		destination_booked(d);
}

void destination_run(struct destination *d)
{
	/* One pass a call: a transport that ends a try at once must not block the loop for others. */
	uint64_t now = clock_now_ns();

	destination_spill_if_needed(d, now);
	if (d->sending || d->paused || now < d->due_ns)
		return;
	destination_expire(d, now);
	d->from_spool = !d->queue.head;
	if (d->queue.head || (!d->stopping && destination_spool_load(d, now)))
		destination_try_current(d);
}

static uint64_t destination_try_due_ns(const struct destination *d)
{
	uint64_t spool = d->stopping ? UINT64_MAX : destination_spool_due_ns(d);

	if (d->sending || d->paused)
		return UINT64_MAX;
	if (d->queue.head)
		return d->due_ns;
	return spool == UINT64_MAX ? UINT64_MAX : MAX(d->due_ns, spool);
}

uint64_t destination_due_ns(const struct destination *d)
{
	return MIN(destination_try_due_ns(d), destination_spill_due_ns(d));
}

/* While stopping, what is on disk stays there. */
bool destination_idle(const struct destination *d)
{
	return !d->queue.head && !d->sending && (d->stopping || destination_spool_is_empty(d));
}

/* --- taking over --- */

static bool destination_make_room(struct destination *d, const struct export_request *r, enum export_coding coding)
{
	bool keep_head = d->sending && !d->from_spool;
	struct queue_entry **oldest = keep_head ? &d->queue.head->next : &d->queue.head;

	if (!queue_may_fit(&d->queue, r, coding, keep_head))
		return false;
	while (!queue_fits(&d->queue, r, coding) && *oldest)
		destination_drop(d, oldest, OTP_LOSS_QUEUE_FULL);
	return queue_fits(&d->queue, r, coding);
}

void destination_refuse(struct destination *d, const struct ledger_counts *samples, uint32_t reason)
{
	ledger_counts_add(&d->ledger->lost[reason], samples);
	destination_report(d, EXPORT_DROPPED, destination_reason_text(reason), samples);
}

void destination_hold(struct destination *d, const struct ledger_counts *samples)
{
	ledger_counts_add(&d->ledger->queued, samples);
}

void destination_release(struct destination *d, const struct ledger_counts *samples)
{
	ledger_counts_subtract(&d->ledger->queued, samples);
}

void destination_prepare(struct destination *d, uint64_t now_ns)
{
	destination_spill_if_needed(d, now_ns);
}

void destination_submit(struct destination *d, struct export_request *r, uint64_t now_ns)
{
	enum export_coding wanted = destination_coding(d);
	enum export_coding coding = request_has(r, wanted) ? wanted : EXPORT_CODING_NONE;

	if (d->stopped)
		destination_refuse(d, &r->samples, OTP_LOSS_SHUTDOWN);
	else if (!destination_make_room(d, r, coding) || queue_push(&d->queue, r, coding, now_ns) < 0)
		destination_refuse(d, &r->samples, OTP_LOSS_QUEUE_FULL);
	else
		ledger_counts_add(&d->ledger->queued, &r->samples);
}

/* --- life --- */

void destination_stop(struct destination *d)
{
	d->stopping = true;
	d->due_ns = 0;
}

/* Ends a try that is under way; its request stays where it waited. */
static void destination_end_try(struct destination *d)
{
	struct queue_entry *head = destination_current(d);

	if (!d->sending)
		return;
	ledger_counts_subtract(destination_sending_counts(d), &head->request->samples);
	head->maybe |= d->ops->abort(d->transport);
	ledger_counts_add(destination_waiting_counts(d, head), &head->request->samples);
	d->sending = false;
	if (d->from_spool)
		destination_spool_failed(d);
}

void destination_abandon(struct destination *d)
{
	d->stopped = true;
	destination_end_try(d);
	if (!d->queue.head)
		return;
	destination_drop_all(d, d->ops->stopped);
	destination_booked(d);
}

/* --- another configuration --- */

bool destination_may_become(const struct destination *d, const struct export_config *cfg)
{
	const struct transport_ops *ops = transport_find(cfg);

	return !strcmp(d->cfg.name, cfg->name) && ops && ops->compresses == d->ops->compresses;
}

static bool destination_keeps_transport(const struct destination *d, const struct export_config *cfg)
{
	return transport_find(cfg) == d->ops && d->ops->same(&d->cfg, cfg);
}

bool destination_may_change(struct destination *d, const struct export_config *cfg)
{
	d->paused = d->paused || !destination_keeps_transport(d, cfg);
	return !d->paused || !d->sending;
}

static int destination_reopen(struct destination *d)
{
	destination_end_try(d);
	d->ops->close(d->transport);
	d->transport = NULL;
	d->ops = transport_find(&d->cfg);
	/* The new configuration may work: it is tried at once. */
	d->due_ns = 0;
	return d->ops->open(&d->cfg, d->owner->host, destination_on_outcome, d, &d->transport);
}

int destination_configure(struct destination *d, const struct export_config *cfg, struct ledger_destination *ledger)
{
	bool keeps = destination_keeps_transport(d, cfg);
	int file_dir = d->cfg.file_dir, rc;

	d->ledger = ledger;
	d->cfg = *cfg;
	d->paused = false;
	d->zstd = DESTINATION_ZSTD_OPEN;
	d->cfg.file_dir = cfg->file_dir > 0 ? cfg->file_dir : file_dir;
	d->queue.max = cfg->queue_bytes; /* a queue above it is cut by the next request */
	if (cfg->spool_bytes)
		destination_spool_open(d);
	rc = keeps ? 0 : destination_reopen(d);
	destination_show_coding(d);
	return rc;
}

int destination_init(struct destination *d, const struct export_config *cfg, const struct destination_owner *owner,
		     struct ledger_destination *ledger)
{
	*d = (struct destination){.cfg = *cfg, .owner = owner, .ledger = ledger};
	queue_init(&d->queue, cfg->queue_bytes);
	d->ops = transport_find(cfg);
	if (!d->ops)
		return -EINVAL;
	destination_show_coding(d);
	destination_spool_open(d);
	return d->ops->open(&d->cfg, owner->host, destination_on_outcome, d, &d->transport);
}

void destination_done(struct destination *d)
{
	if (d->transport)
		d->ops->close(d->transport);
	d->transport = NULL;
	queue_done(&d->queue);
	destination_spool_close(d);
}
