// SPDX-License-Identifier: Apache-2.0
/*
 * The fetcher: the disposable process that requests one file from debuginfod
 * servers, and exits. It has the network, a descriptor to write, and no
 * rights.
 */
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/disposable/fetch_http.h"
#include "daemon/handover.h"
#include "daemon/ipc.h"
#include "daemon/roles.h"
#include "daemon/sandbox/sandbox.h"

struct fetcher {
	int sock, fd;
	struct config *config;
	struct ipc_fetch job;
	struct ipc_message message;
};

static int fetcher_take_job(void *ctx, struct ipc_message *m)
{
	struct fetcher *f = ctx;

	if (m->head.type != IPC_FETCH)
		return 0;
	if (!ipc_fits(m, sizeof(f->job), 1))
		return -EBADMSG;
	memcpy(&f->job, m->data, sizeof(f->job));
	f->job.id[sizeof(f->job.id) - 1] = '\0';
	f->fd = ipc_take_fd(m, 0);
	return fetch_id_is_sound(f->job.id) ? 0 : -EBADMSG;
}

static int fetcher_begin(struct fetcher *f)
{
	int r = handover_receive(f->sock, &f->message, "fetcher", &f->config, fetcher_take_job, f);

	if (r < 0 || !f->config || f->fd < 0 || !f->config->debuginfod.urls)
		return r < 0 ? r : -EBADMSG;
	/* A file that grows too large ends in an error, not in a signal. */
	signal(SIGXFSZ, SIG_IGN);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	return sandbox_fetcher(f->config);
}

/* On disk before the file is named: after a power failure the cache holds no partial file. */
static int fetcher_work(struct fetcher *f)
{
	const struct config_debuginfod *c = &f->config->debuginfod;
	const struct fetch_request r = {.urls = c->urls, .id = f->job.id, .timeout_ns = c->timeout_ns,
					.max_bytes = c->file_bytes, .fd = f->fd};
	struct fetch_report report;
	struct ipc_fetched result = {.state = fetch_http(&r, &report)};

	if (result.state == FETCH_FETCHED && fdatasync(f->fd) < 0)
		result.state = FETCH_LOCAL;
	result.requests = report.requests;
	result.bytes = report.bytes;
	memcpy(result.text, report.text, sizeof(result.text));
	return ipc_send(f->sock, IPC_FETCHED, 0, &result, sizeof(result), NULL, 0);
}

int fetcher_main(int sock)
{
	static struct fetcher f = {.fd = -1};

	log_init("fetcher", LOG_LEVEL_INFO);
	f.sock = sock;
	if (sandbox_begin() || fetcher_begin(&f) < 0)
		return 1;
	ipc_send(sock, IPC_READY, 0, NULL, 0, NULL, 0);
	return fetcher_work(&f) ? 1 : 0;
}
