// SPDX-License-Identifier: Apache-2.0
#include "export/transport.h"

#include <string.h>

#include "base/cleanup.h"

static const struct transport_ops *const transports[] = {&transport_http, &transport_https, &transport_file};

const struct transport_ops *transport_find(const char *endpoint)
{
	for (size_t i = 0; i < ARRAY_SIZE(transports); i++)
		if (!strncmp(endpoint, transports[i]->scheme, strlen(transports[i]->scheme)))
			return transports[i];
	return NULL;
}

void outcome_retry(struct outcome *o, bool maybe, const char *text)
{
	*o = (struct outcome){.kind = OUTCOME_RETRY, .maybe = maybe, .retry_after_ns = OUTCOME_NO_WAIT};
	response_text(text, strlen(text), o->text);
}

int export_config_check(const struct export_config *c, char why[EXPORT_WHY])
{
	const struct transport_ops *ops = c->endpoint ? transport_find(c->endpoint) : NULL;

	if (!ops) {
		snprintf(why, EXPORT_WHY, "unknown endpoint, expected http://, https:// or file:///DIR");
		return -EINVAL;
	}
	return ops->check(c, why);
}
