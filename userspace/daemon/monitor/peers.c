// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/peers.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define DRAIN_NS (5 * NSEC_PER_SEC)

void peers_init(struct peers *p, struct workers *workers, struct books *books)
{
	*p = (struct peers){.workers = workers, .books = books, .fd = -1};
}

static void peers_drop(struct peers *p)
{
	closep(&p->fd);
	p->fd = -1;
}

/* Makes a new pair: one end is sent to net, the other is kept for the engine. */
static void peers_make_pair(struct peers *p)
{
	int pair[2], err = ipc_pair(pair);

	peers_drop(p);
	if (!err) {
		err = worker_send(&p->workers->net, IPC_PEER, 0, NULL, 0, pair[1]);
		close(pair[1]);
		if (err)
			close(pair[0]);
	}
	if (err) {
		log_warn("net cannot be connected to the engine: %s", strerror(-err));
		worker_kill(&p->workers->net);
		return;
	}
	p->fd = pair[0];
	p->drains++;
}

static void peers_hand_to_engine(struct peers *p)
{
	if (p->fd < 0 || p->workers->engine.sock < 0)
		return;
	if (worker_send(&p->workers->engine, IPC_PEER, 0, NULL, 0, p->fd))
		worker_kill(&p->workers->engine);
	peers_drop(p);
}

void peers_net_started(struct peers *p)
{
	peers_make_pair(p);
	peers_hand_to_engine(p);
}

void peers_engine_started(struct peers *p)
{
	peers_hand_to_engine(p);
}

static void peers_settle_gap(struct peers *p)
{
	if (!p->gap_pending)
		return;
	p->gap_pending = false;
	books_gap(p->books, OTP_LOSS_ENGINE_DIED);
}

void peers_engine_died(struct peers *p)
{
	p->gap_pending = true;
	if (p->workers->net.pid) {
		peers_make_pair(p);
		p->gap_deadline_ns = clock_now_ns() + DRAIN_NS;
	} else {
		peers_settle_gap(p);
	}
}

void peers_net_died(struct peers *p)
{
	p->drains = 0;
	peers_drop(p);
	peers_settle_gap(p);
}

void peers_drained(struct peers *p)
{
	if (!p->drains)
		return;
	p->drains--;
	if (!p->drains)
		peers_settle_gap(p);
}

bool peers_allow_engine(const struct peers *p)
{
	return !p->gap_pending;
}

void peers_run(struct peers *p, uint64_t now)
{
	if (!p->gap_pending || !p->workers->net.pid || now < p->gap_deadline_ns)
		return;
	log_warn("net (pid %d) did not read its socket to the end: it is killed", p->workers->net.pid);
	p->gap_deadline_ns = UINT64_MAX;
	worker_kill(&p->workers->net);
}

void peers_close(struct peers *p)
{
	peers_drop(p);
}
