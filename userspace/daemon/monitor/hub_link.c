// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/hub_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/ipc.h"
#include "daemon/monitor/monitor.h"

static void hub_link_path(const struct monitor *m, char to[1100])
{
	snprintf(to, 1100, "%s/" HUB_TOKEN_FILE, m->config->runtime_dir);
}

static int hub_link_make_token(char to[HUB_TOKEN + 1])
{
	uint8_t bytes[HUB_TOKEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(to + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* "ADDRESS TOKEN" in a line: what a client needs to find the hub. */
static int hub_link_write(const struct monitor *m)
{
	char path[1100], text[256];
	int n = snprintf(text, sizeof(text), "%s %s\n", m->config->hub_listen, m->hub_token);

	hub_link_path(m, path);
	return file_replace(AT_FDCWD, path, 0640, text, (size_t)n, NULL, NULL);
}

int hub_link_open(struct monitor *m)
{
	int err;

	if (!m->config->hub_listen)
		return 0;
	err = m->config->hub_token ? hub_link_make_token(m->hub_token) : 0;
	if (!err)
		err = hub_link_write(m);
	if (err)
		log_error("the hub's token cannot be written below %s: %s", m->config->runtime_dir, strerror(-err));
	return err;
}

void hub_link_close(struct monitor *m)
{
	char path[1100];

	if (!m->config->hub_listen || m->lock_fd < 0)
		return;
	hub_link_path(m, path);
	unlink(path);
}

void hub_link_make(struct monitor *m)
{
	struct worker *hub = &m->workers.hub, *engine = &m->workers.engine;
	int pair[2], err;

	if (hub->sock < 0 || engine->sock < 0)
		return;
	err = ipc_pair(pair);
	if (!err) {
		err = worker_send(hub, IPC_PEER, 0, NULL, 0, pair[0]);
		if (!err)
			err = worker_send(engine, IPC_HUB, 0, NULL, 0, pair[1]);
		close(pair[0]);
		close(pair[1]);
	}
	/* The hub is what may be missing. */
	if (err) {
		log_warn("the hub cannot be connected to the engine: %s", strerror(-err));
		worker_kill(hub);
	}
}

void hub_link_from(struct monitor *m, const struct ipc_message *msg)
{
	if (msg->head.type == IPC_READY)
		log_info("the hub is at http://%s%s (pid %d)", m->config->hub_listen,
			 m->hub_token[0] ? ", with the token that 'otprof ui' has" : "", m->workers.hub.pid);
}
