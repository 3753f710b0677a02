// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/status_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"

#define TEXT_MAX     (1u << 20)
#define CLIENTS_TURN 4
#define METRICS_NS   (500 * NSEC_PER_MSEC) /* greatest age of the text */

static struct ledger_view status_server_view(const struct monitor *m)
{
	return (struct ledger_view){.counters = m->sampler.counters,
				    .counters_stride = m->sampler.layout.counters_stride,
				    .cpus = m->sampler.layout.cpus,
				    .origins = &m->sampler.layout.origins,
				    .ring = &m->sampler.ring,
				    .engine = m->books.engine,
				    .net = m->books.net};
}

void status_server_collect(struct monitor *m, struct status *ret)
{
	static struct ledger_view view;

	books_follow_engine(&m->books, &m->sampler);
	view = status_server_view(m);
	*ret = (struct status){
		.config = m->config,
		.pid = getpid(),
		.uptime_ns = clock_now_ns() - m->started_ns,
		.start_unix_ns = m->status.start_unix_ns,
		.mode = m->sampler.source->ops->name,
		.why = m->sampler.why,
		.sampling = m->sampler.sampling && m->config->mode != SAMPLER_NONE,
		.cpus_sampled = ledger_count_cpus(&view),
		.ring_bytes = m->sampler.layout.ring_bytes,
		.ring_used = ring_producer(&m->sampler.ring) - ring_consumer(&m->sampler.ring),
		.expected_ticks = m->sampler.source->ops->expected_ticks ? m->sampler.source->ops->expected_ticks(m->sampler.source) : 0,
		.idle_ticks = m->sampler.source->ops->idle_ticks ? m->sampler.source->ops->idle_ticks(m->sampler.source) : 0,
		.missed_before = m->status.missed,
		.workers = {{"engine", m->workers.engine.pid, m->workers.engine.restarts}, {"net", m->workers.net.pid, m->workers.net.restarts},
			    {m->config->hub_listen ? "hub" : NULL, m->workers.hub.pid, m->workers.hub.restarts}},
		.asks = m->asks.asked,
		.asks_refused = m->asks.refused,
		.asks_timed_out = m->asks.timed_out,
		.plans_set = m->plans.set,
		.plans_refused = m->plans.refused,
		.view = &view,
		.selection = &m->selector.shown,
		.hub = {.on = m->config->hub_listen, .ready = m->workers.hub.ready, .listen = m->config->hub_listen,
			.why = m->hub.why},
	};
	ledger_sum_read(&view, m->config->nr_exporters, &ret->ledger);
	m->status.missed = status_missed(ret);
	ret->rate_hz = m->rate.hz;
	guard_status(m, &ret->guard);
	fetch_jobs_status(m, &ret->debuginfod);
	cost_collect(&m->cost, &m->workers, &m->sampler);
	ret->cost = m->cost.figures;
}

typedef void status_format_fn(const struct status *s, struct buf *to);

/* -ENOMEM: no text, rather than a part of it. */
static int status_server_make_text(struct monitor *m, status_format_fn *format, struct buf *to)
{
	struct status *s = malloc(sizeof(*s));

	buf_init(to, TEXT_MAX);
	if (!s)
		return -ENOMEM;
	status_server_collect(m, s);
	format(s, to);
	free(s);
	return to->failed ? -ENOMEM : 0;
}

int status_socket(const char *runtime_dir, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char path[1100];

	snprintf(path, sizeof(path), "%s/%s", runtime_dir, name);
	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	/* Removes the socket of a killed monitor; the lock proves that none is using it. */
	unlink(path);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || chmod(path, 0660) < 0 || listen(fd, 16) < 0)
		return -errno;
	return steal_fd(&fd);
}

void status_socket_remove(const char *runtime_dir, const char *name)
{
	char path[1100];

	snprintf(path, sizeof(path), "%s/%s", runtime_dir, name);
	unlink(path);
}

void status_server_close(struct monitor *m)
{
	free(m->status.metrics);
	if (m->status.fd < 0)
		return;
	status_socket_remove(m->config->runtime_dir, "status.sock");
	close(m->status.fd);
	m->status = (struct status_server){.fd = -1};
}

int status_server_open(struct monitor *m)
{
	m->status.start_unix_ns = m->started_ns + clock_unix_offset_ns();
	m->status.fd = status_socket(m->config->runtime_dir, "status.sock");
	return MIN(m->status.fd, 0);
}

/* Writes as much as the socket takes at once; its buffer is far larger than a text. */
static void status_server_serve(struct monitor *m, int fd)
{
	_cleanup_(buf_done) struct buf text;
	const int room = TEXT_MAX;

	if (status_server_make_text(m, status_json, &text)) {
		log_warn("status: no memory for an answer");
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (send(fd, text.data, text.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("status: a client went away: %s", strerror(errno));
}

void status_server_accept(struct monitor *m)
{
	for (int i = 0; i < CLIENTS_TURN; i++) {
		_cleanup_(closep) int fd = accept4(m->status.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		status_server_serve(m, fd);
	}
}

static void status_server_renew_metrics(struct monitor *m, uint64_t now)
{
	struct buf text;

	if (m->status.metrics && now - m->status.metrics_ns < METRICS_NS)
		return;
	if (status_server_make_text(m, status_prometheus, &text))
		buf_done(&text);
	free(m->status.metrics);
	m->status.metrics = (char *)text.data;
	m->status.metrics_len = text.len;
	m->status.metrics_ns = now;
}

void status_server_metrics(struct monitor *m)
{
	_cleanup_(closep) int fd = -1;

	status_server_renew_metrics(m, clock_now_ns());
	fd = ipc_memfd("metrics", m->status.metrics ? m->status.metrics : "", m->status.metrics_len);
	if (fd >= 0)
		worker_send(&m->workers.net, IPC_STATUS, 0, NULL, 0, fd);
}

void status_server_save(struct monitor *m)
{
	_cleanup_(buf_done) struct buf text;
	char path[1100];
	int err = status_server_make_text(m, status_json, &text);

	snprintf(path, sizeof(path), "%s/last-status.json", m->config->runtime_dir);
	if (!err)
		err = file_replace(AT_FDCWD, path, 0640, text.data, text.len, NULL, NULL);
	if (err)
		log_warn("%s cannot be written: %s", path, strerror(-err));
}
