// SPDX-License-Identifier: Apache-2.0
#include "daemon/handover.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/ipc.h"

static void config_error(void *ctx, const char *line)
{
	log_error("%s", line);
}

int handover_config(const struct ipc_message *m, struct config **ret)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;
	int r = ipc_memfd_read(m->fds[0], CONFIG_FILE_MAX, &text, &len);

	return r < 0 ? r : config_parse("configuration", text, len, config_error, NULL, ret);
}

int handover_begin(const struct ipc_message *m, const char *role, struct config **config)
{
	int r;

	if (!ipc_fits(m, 0, 1))
		return -EBADMSG;
	*config = config_free(*config);
	r = handover_config(m, config);
	if (r == 0)
		log_init(role, (*config)->log_level);
	return r;
}

int handover_receive(int sock, struct ipc_message *m, const char *role, struct config **config,
		     handover_job_fn *job, void *ctx)
{
	bool started = false;
	int r = 0;

	while (r == 0 && !started) {
		r = ipc_wait(sock, m);
		if (r != 1)
			return r < 0 ? r : -EPIPE;
		started = m->head.type == IPC_START;
		r = started ? 0 : m->head.type == IPC_CONFIG ? handover_begin(m, role, config) : job(ctx, m);
		ipc_close_fds(m);
	}
	return r;
}
