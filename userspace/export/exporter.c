// SPDX-License-Identifier: Apache-2.0
#include "export/export.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "export/destination.h"
#include "export/http_loop.h"
#include "export/metrics_sender.h"
#include "export/request.h"
#include "export/shape.h"
#include "export/spool_sync.h"

/* Time that removed destinations have to deliver their queues. */
#define RELOAD_FLUSH_NS (5 * NSEC_PER_SEC)

#define GONE " " /* not the name of a destination */

struct exporter {
	struct destination_owner owner;
	struct ledger_net *ledger;
	uint64_t deadline_ns; /* of the stop; UINT64_MAX before */
	uint32_t n;
	struct destination *dest[LEDGER_DESTINATIONS_MAX]; /* owned; in the order of the ledger */
	struct shape shapes[LEDGER_DESTINATIONS_MAX];	   /* one for all destinations that want the same */
	struct shape *shape_of[LEDGER_DESTINATIONS_MAX];   /* by destination; NULL: it gets the engine's requests */
	uint32_t nr_shapes;
	struct metrics_sender metrics[LEDGER_DESTINATIONS_MAX]; /* by destination */
	uint32_t nr_metrics;
	const struct export_config *next; /* NULL: no reload is under way */
	uint32_t nr_next;
	uint64_t next_deadline_ns;
};

/* --- places in the ledger --- */

/* The counts of a destination by its name; counts without a name are those of the destination at place. */
static const struct ledger_destination *exporter_find_counts(const struct ledger_net *l, const char *name,
							     uint32_t place)
{
	for (uint32_t i = 0; i < l->destinations; i++)
		if (!strncmp(l->dest[i].name, name, sizeof(l->dest[i].name)))
			return &l->dest[i];
	return place < l->destinations && !l->dest[place].name[0] ? &l->dest[place] : NULL;
}

/* Orders the counts as the configuration does; those of a new destination begin with the samples received earlier. */
static void exporter_place_counts(struct ledger_net *l, const struct export_config *cfgs, uint32_t n)
{
	struct ledger_net before = *l;

	memset(l->dest, 0, sizeof(l->dest));
	for (uint32_t i = 0; i < n; i++) {
		const struct ledger_destination *have = exporter_find_counts(&before, cfgs[i].name, i);

		if (have)
			l->dest[i] = *have;
		else
			l->dest[i].earlier = l->received;
		snprintf(l->dest[i].name, sizeof(l->dest[i].name), "%s", cfgs[i].name);
	}
	l->destinations = n;
}

/* --- shapes --- */

static void exporter_remove_shapes(struct exporter *e)
{
	for (uint32_t i = 0; i < e->nr_shapes; i++)
		shape_done(&e->shapes[i]);
	e->nr_shapes = 0;
}

static struct shape *exporter_find_shape(struct exporter *e, const struct export_config *cfg)
{
	for (uint32_t i = 0; i < e->nr_shapes; i++)
		if (shape_fits(&e->shapes[i], cfg))
			return &e->shapes[i];
	shape_init(&e->shapes[e->nr_shapes], cfg);
	return &e->shapes[e->nr_shapes++];
}

/* Shapes hold nothing while this is called. */
static void exporter_place_shapes(struct exporter *e)
{
	exporter_remove_shapes(e);
	for (uint32_t i = 0; i < e->n; i++)
		e->shape_of[i] = shape_wanted(&e->dest[i]->cfg) ? exporter_find_shape(e, &e->dest[i]->cfg) : NULL;
}

static bool exporter_codes(const struct exporter *e, const struct shape *s, enum export_coding coding)
{
	for (uint32_t i = 0; i < e->n; i++)
		if (e->shape_of[i] == s && destination_coding(e->dest[i]) == coding)
			return true;
	return false;
}

/* To the destinations that want it in this shape. A request that cannot be compressed is sent as it is. */
static void exporter_pass_on(struct exporter *e, const struct shape *s, struct export_request *r, uint64_t now)
{
	for (int coding = EXPORT_CODING_NONE + 1; coding < EXPORT_CODING_NR; coding++)
		if (exporter_codes(e, s, (enum export_coding)coding))
			request_compress(r, (enum export_coding)coding);
	for (uint32_t i = 0; i < e->n; i++)
		if (e->shape_of[i] == s)
			destination_submit(e->dest[i], r, now);
}

static void exporter_each_of_shape(struct exporter *e, const struct shape *s, const struct ledger_counts *samples,
				   void (*fn)(struct destination *d, const struct ledger_counts *samples))
{
	for (uint32_t i = 0; i < e->n; i++)
		if (e->shape_of[i] == s)
			fn(e->dest[i], samples);
}

static void exporter_lose(struct destination *d, const struct ledger_counts *samples)
{
	destination_refuse(d, samples, OTP_LOSS_ENCODE);
}

/* Ends the interval of a shape: its samples leave it as a request, or are lost. */
static void exporter_finish_shape(struct exporter *e, struct shape *s, uint64_t now)
{
	struct ledger_counts samples = s->samples;
	struct export_request *r;
	int rc;

	if (!s->merged)
		return;
	rc = shape_finish(s, &r);
	exporter_each_of_shape(e, s, &samples, destination_release);
	if (rc < 0) {
		exporter_each_of_shape(e, s, &samples, exporter_lose);
		return;
	}
	exporter_pass_on(e, s, r, now);
	export_request_put(r);
}

/* No request waits in a shape while the exporter stops or its destinations change. */
static bool exporter_hurries(const struct exporter *e)
{
	return e->next || e->deadline_ns != UINT64_MAX;
}

static void exporter_add_to_shape(struct exporter *e, struct shape *s, const struct export_request *r, uint64_t now)
{
	if (!shape_has_room(s, r))
		exporter_finish_shape(e, s, now);
	if (shape_add(s, r, now) < 0)
		exporter_each_of_shape(e, s, &r->samples, exporter_lose);
	else
		exporter_each_of_shape(e, s, &r->samples, destination_hold);
	if (s->due_ns <= now || exporter_hurries(e))
		exporter_finish_shape(e, s, now);
}

static void exporter_finish_shapes(struct exporter *e, uint64_t now, bool all)
{
	bool any = false;

	for (uint32_t i = 0; i < e->nr_shapes; i++) {
		struct shape *s = &e->shapes[i];

		if (!s->merged || (!all && now < s->due_ns))
			continue;
		exporter_finish_shape(e, s, now);
		any = true;
	}
	if (any)
		e->owner.booked(e->owner.booked_ctx);
}

/* --- otprof's own metrics --- */

static void exporter_close_metrics(struct exporter *e)
{
	for (uint32_t i = 0; i < e->nr_metrics; i++)
		metrics_sender_done(&e->metrics[i]);
	e->nr_metrics = 0;
}

/* Opened anew by each reload: a request that is under way then is given up. */
static int exporter_open_metrics(struct exporter *e)
{
	int rc = 0;

	exporter_close_metrics(e);
	for (uint32_t i = 0; !rc && i < e->n; i++) {
		rc = metrics_sender_init(&e->metrics[i], &e->dest[i]->cfg, &e->owner);
		e->nr_metrics = i + 1;
	}
	return rc;
}

bool exporter_wants_metrics(const struct exporter *e)
{
	for (uint32_t i = 0; i < e->nr_metrics; i++)
		if (e->metrics[i].ops)
			return true;
	return false;
}

void exporter_send_metrics(struct exporter *e, const void *request, size_t len)
{
	for (uint32_t i = 0; i < e->nr_metrics; i++)
		metrics_sender_send(&e->metrics[i], request, len);
}

/* --- life --- */

static int exporter_add_destination(struct exporter *e, const struct export_config *cfg, uint32_t place)
{
	struct destination *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return -ENOMEM;
	rc = destination_init(d, cfg, &e->owner, &e->ledger->dest[place]);
	e->dest[place] = d;
	return rc;
}

static struct destination *exporter_remove_destination(struct destination *d)
{
	if (d)
		destination_done(d);
	free(d);
	return NULL;
}

/* Without the thread, spools are left to the kernel's own writeback. */
static void exporter_start_sync(struct exporter *e, const struct export_config *cfgs, uint32_t n)
{
	bool wanted = false;

	for (uint32_t i = 0; i < n; i++)
		wanted |= cfgs[i].spool_bytes && cfgs[i].spool && cfgs[i].spool->dir >= 0;
	if (wanted && !e->owner.sync && spool_sync_new(&e->owner.sync) < 0)
		e->owner.sync = NULL;
}

static int exporter_init_all(struct exporter *e, const struct export_config *cfgs, uint32_t n)
{
	int rc = http_loop_new(&e->owner.host);

	exporter_start_sync(e, cfgs, n);
	for (uint32_t i = 0; !rc && i < n; i++) {
		rc = exporter_add_destination(e, &cfgs[i], i);
		e->n = i + 1;
	}
	if (!rc) {
		exporter_place_shapes(e);
		rc = exporter_open_metrics(e);
	}
	return rc;
}

int exporter_new(const struct export_config *cfgs, uint32_t n, struct ledger_net *ledger,
		 void (*changed)(void *ctx), void *ctx, struct exporter **ret)
{
	struct exporter *e;
	int rc;

	if (n > LEDGER_DESTINATIONS_MAX)
		return -EINVAL;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->owner.booked = changed;
	e->owner.booked_ctx = ctx;
	e->ledger = ledger;
	e->deadline_ns = UINT64_MAX;
	exporter_place_counts(ledger, cfgs, n);
	rc = exporter_init_all(e, cfgs, n);
	if (rc < 0) {
		exporter_free(e);
		return rc;
	}
	*ret = e;
	return 0;
}

struct exporter *exporter_free(struct exporter *e)
{
	if (!e)
		return NULL;
	for (uint32_t i = 0; i < e->n; i++)
		e->dest[i] = exporter_remove_destination(e->dest[i]);
	exporter_remove_shapes(e);
	exporter_close_metrics(e);
	http_loop_free(e->owner.host);
	spool_sync_free(e->owner.sync);
	free(e);
	return NULL;
}

void exporter_on_event(struct exporter *e, export_event_fn *fn, void *ctx)
{
	e->owner.event = fn;
	e->owner.event_ctx = ctx;
}

/* False: it was counted before, and is sent again by an engine that has not seen so. */
static bool exporter_receive(struct exporter *e, uint64_t id, const struct ledger_counts *samples)
{
	if (id <= e->ledger->received_id)
		return false;
	ledger_counts_add(&e->ledger->received, samples);
	e->ledger->received_id = id;
	return true;
}

void exporter_submit(struct exporter *e, struct export_request *r)
{
	uint64_t now = clock_now_ns();

	for (uint32_t i = 0; i < e->n; i++)
		destination_prepare(e->dest[i], now);
	if (!exporter_receive(e, r->id, &r->samples))
		return;
	exporter_pass_on(e, NULL, r, now);
	for (uint32_t i = 0; i < e->nr_shapes; i++)
		exporter_add_to_shape(e, &e->shapes[i], r, now);
	e->owner.booked(e->owner.booked_ctx);
}

void exporter_refuse(struct exporter *e, uint64_t id, const struct ledger_counts *samples, enum otp_loss_reason reason)
{
	if (!exporter_receive(e, id, samples))
		return;
	for (uint32_t i = 0; i < e->n; i++)
		destination_refuse(e->dest[i], samples, reason);
	e->owner.booked(e->owner.booked_ctx);
}

int exporter_pollfds(struct exporter *e, struct pollfd *fds, int max)
{
	if (max < 1)
		return 0;
	fds[0] = (struct pollfd){.fd = http_loop_fd(e->owner.host), .events = POLLIN};
	return 1;
}

static uint64_t exporter_due_ns(const struct exporter *e)
{
	uint64_t due = http_loop_due_ns(e->owner.host);

	if (e->next)
		due = MIN(due, e->next_deadline_ns);
	for (uint32_t i = 0; i < e->nr_shapes; i++)
		due = MIN(due, e->shapes[i].due_ns);
	if (exporter_idle(e))
		return due;
	due = MIN(due, e->deadline_ns);
	for (uint32_t i = 0; i < e->n; i++)
		due = MIN(due, destination_due_ns(e->dest[i]));
	return due;
}

int exporter_timeout_ms(const struct exporter *e)
{
	uint64_t now, due = exporter_due_ns(e);

	if (due == UINT64_MAX)
		return -1;
	now = clock_now_ns();
	/* Rounded up: a poll that ends just before the time would spin. */
	return due <= now ? 0 : (int)MIN((due - now) / NSEC_PER_MSEC + 1, 3600000ULL);
}

void exporter_run(struct exporter *e)
{
	http_loop_run(e->owner.host);
	exporter_finish_shapes(e, clock_now_ns(), false);
	for (uint32_t i = 0; i < e->n; i++)
		destination_run(e->dest[i]);
	if (clock_now_ns() >= e->deadline_ns)
		for (uint32_t i = 0; i < e->n; i++)
			destination_abandon(e->dest[i]);
	/* libcurl has a timer that is due now for a try that just began: lets it connect at once. */
	http_loop_run(e->owner.host);
}

bool exporter_idle(const struct exporter *e)
{
	for (uint32_t i = 0; i < e->n; i++)
		if (!destination_idle(e->dest[i]))
			return false;
	return true;
}

void exporter_stop(struct exporter *e, uint64_t deadline_ns)
{
	exporter_finish_shapes(e, clock_now_ns(), true);
	e->deadline_ns = deadline_ns;
	for (uint32_t i = 0; i < e->n; i++)
		destination_stop(e->dest[i]);
}

/* --- reload --- */

static struct destination *exporter_find_destination(struct exporter *e, const struct export_config *cfg)
{
	for (uint32_t i = 0; i < e->n; i++)
		if (e->dest[i] && destination_may_become(e->dest[i], cfg))
			return e->dest[i];
	return NULL;
}

/* What a destination becomes; NULL: it is removed. */
static const struct export_config *exporter_next_of(const struct exporter *e, const struct destination *d)
{
	for (uint32_t i = 0; i < e->nr_next; i++)
		if (destination_may_become(d, &e->next[i]))
			return &e->next[i];
	return NULL;
}

void exporter_reload(struct exporter *e, const struct export_config *cfgs, uint32_t n)
{
	exporter_finish_shapes(e, clock_now_ns(), true);
	e->next = cfgs;
	e->nr_next = n;
	e->next_deadline_ns = clock_now_ns() + RELOAD_FLUSH_NS;
	for (uint32_t i = 0; i < e->n; i++)
		if (!exporter_next_of(e, e->dest[i]))
			destination_stop(e->dest[i]);
}

/* Whether removed destinations have delivered or lost their queues. */
static bool exporter_is_flushed(struct exporter *e, bool late)
{
	bool flushed = true;

	for (uint32_t i = 0; i < e->n; i++) {
		if (exporter_next_of(e, e->dest[i]))
			continue;
		if (late)
			destination_abandon(e->dest[i]);
		flushed = flushed && destination_idle(e->dest[i]);
	}
	return flushed;
}

static bool exporter_may_change(struct exporter *e)
{
	const struct export_config *next;
	bool may = true;

	for (uint32_t i = 0; i < e->n; i++) {
		next = exporter_next_of(e, e->dest[i]);
		may = (!next || destination_may_change(e->dest[i], next)) && may;
	}
	return may;
}

static void exporter_report_removed(const struct exporter *e, const struct destination *d)
{
	const struct ledger_destination *l = d->ledger;
	uint64_t exported = ledger_counts_total(&l->exported), lost = 0;
	uint64_t on_disk = ledger_counts_total(&l->spooled);
	char text[200];
	int len;

	for (int r = 0; r < OTP_LOSS_MAX; r++)
		lost += ledger_counts_total(&l->lost[r]);
	len = snprintf(text, sizeof(text), "exported %" PRIu64 ", unconfirmed %" PRIu64 ", lost %" PRIu64, exported,
		       ledger_counts_total(&l->unconfirmed), lost);
	if (on_disk)
		snprintf(text + len, sizeof(text) - (size_t)len,
			 "; %" PRIu64 " stay on disk, for a destination of this name", on_disk);
	if (e->owner.event)
		e->owner.event(e->owner.event_ctx, d->cfg.name, EXPORT_REMOVED, text, exported);
}

static void exporter_remove_absent(struct exporter *e)
{
	for (uint32_t i = 0; i < e->n; i++) {
		if (exporter_next_of(e, e->dest[i]))
			continue;
		exporter_report_removed(e, e->dest[i]);
		/* One of the same name with another kind of transport gets new counts. */
		snprintf(e->dest[i]->ledger->name, sizeof(e->dest[i]->ledger->name), GONE);
		e->dest[i] = exporter_remove_destination(e->dest[i]);
	}
}

/* The ledger is not published in between: counts and destinations change places together. */
static int exporter_change_places(struct exporter *e)
{
	struct destination *now[LEDGER_DESTINATIONS_MAX] = {0};
	int rc = 0, each;

	for (uint32_t i = 0; i < e->nr_next; i++)
		now[i] = exporter_find_destination(e, &e->next[i]);
	exporter_place_counts(e->ledger, e->next, e->nr_next);
	exporter_start_sync(e, e->next, e->nr_next);
	memcpy(e->dest, now, sizeof(e->dest));
	e->n = e->nr_next;
	for (uint32_t i = 0; i < e->n; i++) {
		each = e->dest[i] ? destination_configure(e->dest[i], &e->next[i], &e->ledger->dest[i]) :
				    exporter_add_destination(e, &e->next[i], i);
		rc = rc ? rc : each;
	}
	if (rc)
		return rc;
	exporter_place_shapes(e);
	return exporter_open_metrics(e);
}

int exporter_reloading(struct exporter *e)
{
	bool late = clock_now_ns() >= e->next_deadline_ns;
	int rc;

	if (!e->next)
		return 0;
	if (!exporter_is_flushed(e, late) || (!exporter_may_change(e) && !late))
		return 1;
	exporter_remove_absent(e);
	rc = exporter_change_places(e);
	e->next = NULL;
	e->owner.booked(e->owner.booked_ctx);
	return rc;
}
