// SPDX-License-Identifier: Apache-2.0
/* Apart from the rest of the configuration, which programs without a network library have, too. */
#include "base/cleanup.h"
#include "daemon/config/config.h"
#include "export/http_url.h"

static bool transports_is_url(const char *endpoint)
{
	_cleanup_(freep) char *url = NULL;

	return http_url(endpoint, true, &url) == 0;
}

void config_check_transports(void)
{
	static const struct config_transports transports = {.is_url = transports_is_url, .check = export_config_check};

	config_transports = &transports;
}
