// SPDX-License-Identifier: Apache-2.0
#include "export/transport.h"

#include <string.h>

#include "base/cleanup.h"

static const struct transport_ops *const transports[] = {
	&transport_http, &transport_https, &transport_grpc, &transport_grpcs, &transport_file};

static bool transport_serves(const struct transport_ops *ops, const struct export_config *c)
{
	return !strncmp(c->endpoint, ops->scheme, strlen(ops->scheme)) && (ops->local || ops->protocol == c->protocol);
}

const struct transport_ops *transport_find(const struct export_config *c)
{
	for (size_t i = 0; c->endpoint && i < ARRAY_SIZE(transports); i++)
		if (transport_serves(transports[i], c))
			return transports[i];
	return NULL;
}

void outcome_retry(struct outcome *o, bool maybe, const char *text)
{
	*o = (struct outcome){.kind = OUTCOME_RETRY, .maybe = maybe, .retry_after_ns = OUTCOME_NO_WAIT};
	response_text(text, strlen(text), o->text);
}

void outcome_answered(struct outcome *o, const void *message, size_t len)
{
	struct response r;

	if (response_parse(message, len, &r) < 0) {
		o->kind = OUTCOME_DELIVERED;
		snprintf(o->text, sizeof(o->text), "the answer is no OTLP message: is this an OTLP receiver?");
		return;
	}
	o->kind = r.rejected ? OUTCOME_PARTIAL : OUTCOME_DELIVERED;
	o->rejected = r.rejected;
	memcpy(o->text, r.message, sizeof(o->text));
}

int export_config_check(const struct export_config *c, char why[EXPORT_WHY])
{
	const struct transport_ops *ops = transport_find(c);

	if (!ops) {
		snprintf(why, EXPORT_WHY, "no transport for this endpoint and protocol, expected http://, https:// or "
					  "file:///DIR");
		return -EINVAL;
	}
	return ops->check(c, why);
}
