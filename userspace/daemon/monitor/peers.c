// SPDX-License-Identifier: Apache-2.0
/*
 * The socket between engine and net. net always has its end first; the
 * engine's end waits here until there is an engine, and there is none before
 * net has read what a dead one had sent (ipc.h).
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"

#define DRAIN_NS (5 * NSEC_PER_SEC)

static void drop_peer(struct monitor *m)
{
	closep(&m->peer_fd);
	m->peer_fd = -1;
}

/* A new pair: one end to net, the other is kept for the engine. */
static void make_pair(struct monitor *m)
{
	int pair[2], err = ipc_pair(pair);

	drop_peer(m);
	if (!err) {
		err = worker_send(&m->workers.net, IPC_PEER, 0, NULL, 0, pair[1]);
		close(pair[1]);
		if (err)
			close(pair[0]);
	}
	if (err) {
		log_warn("net cannot be joined to the engine: %s", strerror(-err));
		worker_kill(&m->workers.net);
		return;
	}
	m->peer_fd = pair[0];
	m->drains++;
}

static void give_to_engine(struct monitor *m)
{
	if (m->peer_fd < 0 || m->workers.engine.sock < 0)
		return;
	if (worker_send(&m->workers.engine, IPC_PEER, 0, NULL, 0, m->peer_fd))
		worker_kill(&m->workers.engine);
	drop_peer(m);
}

void peer_net_started(struct monitor *m)
{
	make_pair(m);
	give_to_engine(m);
}

void peer_engine_started(struct monitor *m)
{
	give_to_engine(m);
}

static void settle_gap(struct monitor *m)
{
	if (!m->gap_pending)
		return;
	m->gap_pending = false;
	books_gap(m, OTP_LOSS_ENGINE_DIED);
}

void peer_engine_died(struct monitor *m)
{
	m->gap_pending = true;
	if (m->workers.net.pid) {
		make_pair(m);
		m->gap_deadline_ns = clock_now_ns() + DRAIN_NS;
	} else {
		settle_gap(m);
	}
}

void peer_net_died(struct monitor *m)
{
	m->drains = 0;
	drop_peer(m);
	settle_gap(m);
}

void peer_drained(struct monitor *m)
{
	if (!m->drains)
		return;
	m->drains--;
	if (!m->drains)
		settle_gap(m);
}

bool peer_allows_engine(const struct monitor *m)
{
	return !m->gap_pending;
}

void peer_run(struct monitor *m, uint64_t now)
{
	if (!m->gap_pending || !m->workers.net.pid || now < m->gap_deadline_ns)
		return;
	log_warn("net (pid %d) did not read its socket to the end: it is killed", m->workers.net.pid);
	m->gap_deadline_ns = UINT64_MAX;
	worker_kill(&m->workers.net);
}

void peer_close(struct monitor *m)
{
	drop_peer(m);
}
