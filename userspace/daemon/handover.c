// SPDX-License-Identifier: Apache-2.0
#include "daemon/handover.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/ipc.h"

static void config_error(void *ctx, const char *line)
{
	log_error("%s", line);
}

int handover_parse(const char *text, size_t len, struct config **ret)
{
	return config_parse("configuration", text, len, config_error, NULL, ret);
}

int handover_config(const struct ipc_message *m, struct config **ret)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;
	int r = ipc_memfd_read(m->fds[0], CONFIG_FILE_MAX, &text, &len);

	return r < 0 ? r : handover_parse(text, len, ret);
}
