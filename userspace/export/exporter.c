// SPDX-License-Identifier: Apache-2.0
#include "export/export.h"

#include <curl/curl.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "export/destination.h"
#include "export/http_loop.h"

struct exporter {
	struct destination_owner owner;
	struct ledger_net *ledger;
	uint64_t deadline_ns; /* of the stop; UINT64_MAX before */
	uint32_t n;
	struct destination dest[];
};

static int init_all(struct exporter *e, const struct export_config *cfgs, uint32_t n)
{
	int rc = http_loop_new(&e->owner.host);

	for (uint32_t i = 0; !rc && i < n; i++) {
		rc = destination_init(&e->dest[i], &cfgs[i], &e->owner, &e->ledger->dest[i]);
		e->n = i + 1;
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
	e = calloc(1, sizeof(*e) + n * sizeof(e->dest[0]));
	if (!e)
		return -ENOMEM;
	e->owner.booked = changed;
	e->owner.booked_ctx = ctx;
	e->ledger = ledger;
	e->deadline_ns = UINT64_MAX;
	rc = init_all(e, cfgs, n);
	if (rc < 0) {
		exporter_free(e);
		return rc;
	}
	ledger->destinations = n;
	*ret = e;
	return 0;
}

struct exporter *exporter_free(struct exporter *e)
{
	if (!e)
		return NULL;
	for (uint32_t i = 0; i < e->n; i++)
		destination_done(&e->dest[i]);
	http_loop_free(e->owner.host);
	free(e);
	return NULL;
}

void exporter_on_event(struct exporter *e, export_event_fn *fn, void *ctx)
{
	e->owner.event = fn;
	e->owner.event_ctx = ctx;
}

static bool any_compresses(const struct exporter *e)
{
	for (uint32_t i = 0; i < e->n; i++)
		if (destination_compresses(&e->dest[i]))
			return true;
	return false;
}

/* False: sent again by an engine that did not hear that it was received. It was counted then. */
static bool receive(struct exporter *e, uint64_t id, uint64_t samples)
{
	if (id <= e->ledger->received_id)
		return false;
	e->ledger->received += samples;
	e->ledger->received_id = id;
	return true;
}

void exporter_submit(struct exporter *e, struct export_request *r)
{
	uint64_t now = clock_now_ns();

	if (!receive(e, r->id, r->samples))
		return;
	/* A request that cannot be compressed goes as it is. */
	if (any_compresses(e))
		request_compress(r);
	for (uint32_t i = 0; i < e->n; i++)
		destination_submit(&e->dest[i], r, now);
	e->owner.booked(e->owner.booked_ctx);
}

void exporter_refuse(struct exporter *e, uint64_t id, uint64_t samples, enum otp_loss_reason reason)
{
	if (!receive(e, id, samples))
		return;
	for (uint32_t i = 0; i < e->n; i++)
		destination_refuse(&e->dest[i], samples, reason);
	e->owner.booked(e->owner.booked_ctx);
}

int exporter_pollfds(struct exporter *e, struct pollfd *fds, int max)
{
	if (max < 1)
		return 0;
	fds[0] = (struct pollfd){.fd = http_loop_fd(e->owner.host), .events = POLLIN};
	return 1;
}

static uint64_t due_ns(const struct exporter *e)
{
	uint64_t due = http_loop_due_ns(e->owner.host);

	if (exporter_idle(e))
		return due;
	due = MIN(due, e->deadline_ns);
	for (uint32_t i = 0; i < e->n; i++)
		due = MIN(due, destination_due_ns(&e->dest[i]));
	return due;
}

int exporter_timeout_ms(const struct exporter *e)
{
	uint64_t now, due = due_ns(e);

	if (due == UINT64_MAX)
		return -1;
	now = clock_now_ns();
	/* Rounded up: a poll that ends just before the time would spin. */
	return due <= now ? 0 : (int)MIN((due - now) / NSEC_PER_MSEC + 1, 3600000ULL);
}

void exporter_run(struct exporter *e)
{
	http_loop_run(e->owner.host);
	for (uint32_t i = 0; i < e->n; i++)
		destination_run(&e->dest[i]);
	if (clock_now_ns() >= e->deadline_ns)
		for (uint32_t i = 0; i < e->n; i++)
			destination_give_up(&e->dest[i]);
	/* A try that just began is a timer of now to libcurl: let it connect at once. */
	http_loop_run(e->owner.host);
}

bool exporter_idle(const struct exporter *e)
{
	for (uint32_t i = 0; i < e->n; i++)
		if (!destination_idle(&e->dest[i]))
			return false;
	return true;
}

void exporter_stop(struct exporter *e, uint64_t deadline_ns)
{
	e->deadline_ns = deadline_ns;
	for (uint32_t i = 0; i < e->n; i++)
		destination_stop(&e->dest[i]);
}
