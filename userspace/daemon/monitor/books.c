// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/books.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/ipc.h"
#include "daemon/report/ledger_sum.h"

void books_init(struct books *b)
{
	*b = (struct books){.engine_fd = -1, .net_fd = -1};
}

static int books_open_page(const char *name, size_t size, void **ret_page, int *ret_fd)
{
	_cleanup_(closep) int fd = ipc_memfd_new(name);
	void *page;

	if (fd < 0)
		return fd;
	/* If a worker truncated it, we would die of SIGBUS. */
	if (ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	*ret_page = page;
	*ret_fd = steal_fd(&fd);
	return 0;
}

int books_open(struct books *b)
{
	void *engine, *net;
	int err = books_open_page("engine-ledger", sizeof(*b->engine), &engine, &b->engine_fd);

	if (!err) {
		b->engine = engine;
		b->engine->magic = LEDGER_MAGIC;
		err = books_open_page("net-ledger", sizeof(*b->net), &net, &b->net_fd);
	}
	if (!err) {
		b->net = net;
		b->net->magic = LEDGER_MAGIC;
	} else {
		log_error("the workers' ledger: %s", strerror(-err));
	}
	return err;
}

void books_close(struct books *b)
{
	if (b->engine)
		munmap(b->engine, sizeof(*b->engine));
	if (b->net)
		munmap(b->net, sizeof(*b->net));
	closep(&b->engine_fd);
	closep(&b->net_fd);
	books_init(b);
}

static void books_log(const struct ledger_counts *samples, const char *what)
{
	uint64_t n = ledger_counts_total(samples);

	if (n)
		log_warn("%llu samples %s", (unsigned long long)n, what);
}

void books_follow_engine(const struct books *b, struct sampler *s)
{
	ring_follow(&s->ring, ledger_ring_pos(b->engine));
}

/* Records that the engine counted are counted once: the next engine begins behind them. */
static void books_repair_ring(struct ring *ring, struct ledger_engine *e)
{
	ring_follow(ring, e->ring_pos);
	e->ring_pos = ring_consumer(ring); /* changed only where no engine of ours published it */
}

void books_engine_died(struct books *b, struct sampler *s)
{
	struct ledger_engine e;

	ledger_look_engine(b->engine, &e);
	books_repair_ring(&s->ring, &e);
	books_log(&e.held, "were lost with the engine");
	ledger_counts_add(&e.lost[OTP_LOSS_ENGINE_DIED], &e.held);
	e.held = (struct ledger_counts){0};
	e.parked = 0;
	ledger_publish(b->engine, &e);
}

void books_gap(struct books *b, enum otp_loss_reason reason)
{
	struct ledger_engine e;
	struct ledger_net n;
	struct ledger_counts gap;

	ledger_look_engine(b->engine, &e);
	ledger_look_net(b->net, &n);
	for (int slot = 0; slot < OTP_ORIGINS_MAX; slot++)
		gap.of[slot] = e.handed.of[slot] - MIN(n.received.of[slot], e.handed.of[slot]);
	books_log(&gap, "were lost between engine and net");
	ledger_counts_move(&e.handed, &e.lost[reason], &gap);
	ledger_publish(b->engine, &e);
}

void books_net_died(struct books *b, bool stopping)
{
	enum otp_loss_reason reason = stopping ? OTP_LOSS_SHUTDOWN : OTP_LOSS_NET_DIED;
	struct ledger_net n;

	ledger_look_net(b->net, &n);
	for (uint32_t i = 0; i < n.destinations; i++) {
		struct ledger_destination *d = &n.dest[i];

		books_log(&d->queued, "were lost with net");
		ledger_counts_add(&d->lost[reason], &d->queued);
		ledger_counts_add(&d->unconfirmed, &d->sending);
		d->queued = d->sending = (struct ledger_counts){0};
	}
	ledger_publish(b->net, &n);
}

void books_ring_left(struct books *b, const struct sampler *s)
{
	struct ledger_engine e;
	struct ledger_counts left;

	ledger_look_engine(b->engine, &e);
	ledger_count_ring(&s->ring, e.ring_pos, &s->layout.origins, &left);
	books_log(&left, "were still on the ring");
	ledger_counts_add(&e.read, &left);
	ledger_counts_add(&e.lost[OTP_LOSS_ENGINE_DIED], &left);
	e.ring_pos = ring_producer(&s->ring);
	e.batch_end = 0;
	ledger_publish(b->engine, &e);
}
