// SPDX-License-Identifier: Apache-2.0
#include "export/metrics_sender.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/gzip.h"

static void metrics_sender_report(const struct metrics_sender *s, enum export_event event, const char *text)
{
	if (s->owner->event)
		s->owner->event(s->owner->event_ctx, s->cfg.name, event, text, 0);
}

static void metrics_sender_on_outcome(void *ctx, const struct outcome *o)
{
	struct metrics_sender *s = ctx;
	bool fails = o->kind == OUTCOME_RETRY || o->kind == OUTCOME_REFUSED;

	s->sending = false;
	free(s->data);
	s->data = NULL;
	if (fails != s->failing)
		metrics_sender_report(s, fails ? EXPORT_METRICS_FAILING : EXPORT_METRICS_BACK, o->text);
	s->failing = fails;
}

int metrics_sender_init(struct metrics_sender *s, const struct export_config *cfg,
			const struct destination_owner *owner)
{
	*s = (struct metrics_sender){.cfg = *cfg, .owner = owner};
	if (!cfg->metrics)
		return 0;
	s->cfg.signal = EXPORT_SIGNAL_METRICS;
	s->ops = transport_find(&s->cfg);
	if (!s->ops)
		return -EINVAL;
	return s->ops->open(&s->cfg, owner->host, metrics_sender_on_outcome, s, &s->transport);
}

void metrics_sender_done(struct metrics_sender *s)
{
	if (s->transport)
		s->ops->close(s->transport);
	free(s->data);
	*s = (struct metrics_sender){0};
}

/* Metrics that cannot be compressed are sent as they are. Not in zstd: they are short, and not sent twice. */
static int metrics_sender_body(struct metrics_sender *s, const void *request, size_t len, struct body *ret)
{
	void *data;

	if (s->cfg.compression != EXPORT_CODING_NONE && s->ops->compresses &&
	    gzip_compress(request, len, len, &data, &ret->len) == 0) {
		ret->coding = EXPORT_CODING_GZIP;
	} else {
		data = malloc(len);
		if (!data)
			return -ENOMEM;
		memcpy(data, request, len);
		ret->len = len;
	}
	s->data = data;
	ret->data = data;
	return 0;
}

void metrics_sender_send(struct metrics_sender *s, const void *request, size_t len)
{
	struct body body = {0};
	struct outcome o;
	int rc;

	if (!s->ops || s->sending || metrics_sender_body(s, request, len, &body) < 0)
		return;
	s->sending = true;
	rc = s->ops->send(s->transport, &body, &o);
	if (rc < 0)
		outcome_retry(&o, false, strerrordesc_np(-rc));
	if (rc)
		metrics_sender_on_outcome(s, &o);
}
