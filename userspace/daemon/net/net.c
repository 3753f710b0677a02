// SPDX-License-Identifier: Apache-2.0
/*
 * net: its start by the monitor's messages, its sandbox, and the loop that
 * receives requests from the engine and runs the exporter.
 */
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/ledger.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/handover.h"
#include "daemon/ipc.h"
#include "daemon/net/net.h"
#include "daemon/net/net_log.h"
#include "daemon/net/net_metrics.h"
#include "daemon/net/net_spool.h"
#include "daemon/report/metrics.h"
#include "daemon/roles.h"
#include "daemon/sandbox/netroot.h"
#include "daemon/sandbox/sandbox.h"
#include "export/export.h"

/* Between two BEATs, as of the engine. */
#define BEAT_NS       (2 * NSEC_PER_SEC)
#define STOP_NS       (5 * NSEC_PER_SEC) /* the destinations' time to send at a stop */
#define TURN_MESSAGES 64 /* requests read before the exporter runs again */

enum { POLL_MONITOR, POLL_ENGINE, POLL_METRICS, POLL_EXPORTER };
#define POLLFDS (POLL_EXPORTER + 4)

struct net {
	int monitor, engine; /* sockets; engine -1: none now */
	struct config *config;
	struct config *next; /* after a reload, until removed destinations have finished; NULL */
	struct ledger_net_page *page;
	struct ledger_net ledger; /* working copy of the page */
	struct exporter *exporter;
	struct export_spool spool; /* the exporters borrow it */
	struct metrics *metrics; /* NULL: off */
	int metrics_fd;          /* listening, until metrics takes it */
	struct net_log log;
	struct ipc_message from_monitor, from_engine; /* separate: one is read while the other is handled */
	uint64_t beats, next_beat_ns;
	uint64_t next_metrics_ns; /* otprof's own metrics leave */
	bool metrics_asked;	  /* for these */
	bool started, stopping, unacknowledged;
};

/* --- the ledger page --- */

static void net_publish(void *ctx)
{
	struct net *n = ctx;

	n->ledger.cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	ledger_publish(n->page, &n->ledger);
}

static int net_take_ledger(struct net *n, struct ipc_message *m)
{
	void *page;

	if (!ipc_fits(m, 0, 1) || n->page)
		return -EBADMSG;
	page = mmap(NULL, sizeof(*n->page), PROT_READ | PROT_WRITE, MAP_SHARED, m->fds[0], 0);
	if (page == MAP_FAILED)
		return -errno;
	n->page = page;
	if (n->page->magic != LEDGER_MAGIC)
		return -EBADMSG;
	ledger_read(n->page, &n->ledger);
	return 0;
}

/* --- the engine --- */

/* Also the first message on every socket: it names the last request that net holds. */
static void net_acknowledge(struct net *n)
{
	int r;

	if (n->engine < 0)
		return;
	r = ipc_send(n->engine, IPC_RECEIVED, 0, &n->ledger.received_id, sizeof(n->ledger.received_id), NULL, 0);
	n->unacknowledged = r == -EAGAIN;
}

static int net_take_request(struct net *n, struct ipc_message *m)
{
	const struct ipc_request *q = (const void *)m->data;
	struct export_request *r;
	int rc;

	if (m->head.type != IPC_REQUEST || !ipc_fits(m, sizeof(*q), 1))
		return -EBADMSG;
	rc = export_request_new(ipc_take_fd(m, 0), q->id, &q->samples, q->len, &r);
	if (rc == -EBADMSG)
		return rc;
	if (rc < 0) {
		exporter_refuse(n->exporter, q->id, &q->samples,
				rc == -EFBIG ? OTP_LOSS_TOO_LARGE : OTP_LOSS_QUEUE_FULL);
		return 0;
	}
	exporter_submit(n->exporter, r);
	export_request_put(r);
	return 0;
}

/* 1: more may wait; 0: nothing now; -EPIPE: the engine is gone; -EBADMSG. */
static int net_read_requests(struct net *n, unsigned int max)
{
	int r = 1;

	for (unsigned int i = 0; i < max && r == 1; i++) {
		r = ipc_receive(n->engine, &n->from_engine);
		if (r != 1)
			return r == -EAGAIN ? 0 : r == 0 ? -EPIPE : r;
		r = net_take_request(n, &n->from_engine);
		ipc_close_fds(&n->from_engine);
		if (r < 0)
			return r;
		r = 1;
	}
	return r;
}

static void net_engine_gone(struct net *n)
{
	closep(&n->engine);
	n->engine = -1;
	n->unacknowledged = false;
}

static int net_serve_engine(struct net *n)
{
	int r = net_read_requests(n, TURN_MESSAGES);

	if (r == -EPIPE) {
		net_engine_gone(n); /* a new one arrives with PEER */
		return 0;
	}
	if (r < 0) {
		/* After a restart of net, the engine sends its unreceived requests again on a new socket. */
		log_error("the engine sent a malformed request: %s", strerror(-r));
		return r;
	}
	net_acknowledge(n);
	return 0;
}

/* Receives everything that the engine had sent before it died, and only then answers DRAINED. */
static int net_drain_engine(struct net *n)
{
	int r = 1;

	while (n->engine >= 0 && r == 1)
		r = net_read_requests(n, TURN_MESSAGES);
	if (n->engine >= 0)
		net_engine_gone(n);
	return r == -EBADMSG ? r : 0;
}

static int net_take_peer(struct net *n, struct ipc_message *m)
{
	int r;

	if (!ipc_fits(m, 0, 1))
		return -EBADMSG;
	r = net_drain_engine(n);
	if (r < 0)
		return r;
	n->engine = ipc_take_fd(m, 0);
	if (n->started)
		net_acknowledge(n);
	return ipc_send(n->monitor, IPC_DRAINED, 0, NULL, 0, NULL, 0);
}

/* --- the monitor --- */

static int net_take_config(struct net *n, struct ipc_message *m)
{
	/* Destinations change only by a reload: their part of the page is tied to their place. */
	return n->started ? 0 : handover_begin(m, "net", &n->config);
}

static void net_want_status(void *ctx)
{
	static const uint32_t format = IPC_STATUS_PROMETHEUS;
	struct net *n = ctx;

	ipc_send(n->monitor, IPC_STATUS_WANTED, 0, &format, sizeof(format), NULL, 0);
}

static void net_start_metrics(struct net *n)
{
	int r;

	if (n->metrics_fd < 0)
		return;
	r = metrics_new(steal_fd(&n->metrics_fd), net_want_status, n, &n->metrics);
	if (r < 0)
		log_error("cannot serve %s: %s; there are no metrics", n->config->metrics_listen, strerror(-r));
}

/* --- another configuration --- */

static void net_change_metrics(struct net *n, uint32_t how, struct ipc_message *m)
{
	if (how == IPC_METRICS_STAY)
		return;
	n->metrics = metrics_free(n->metrics);
	closep(&n->metrics_fd);
	n->metrics_fd = how == IPC_METRICS_NEW ? ipc_take_fd(m, 1) : -1;
	if (n->exporter)
		net_start_metrics(n);
}

/* The destinations borrow from the old configuration, which is freed after them. */
static int net_put_in_force(struct net *n)
{
	config_free(n->config);
	n->config = steal_ptr(&n->next);
	net_log_init(&n->log, n->config);
	log_init("net", n->config->log_level);
	return ipc_send(n->monitor, IPC_RELOADED, 0, NULL, 0, NULL, 0);
}

static int net_continue_reload(struct net *n)
{
	int r = n->next ? exporter_reloading(n->exporter) : 1;

	return r == 0 ? net_put_in_force(n) : MIN(r, 0);
}

static int net_take_reload(struct net *n, struct ipc_message *m)
{
	const struct ipc_reload *how = (const void *)m->data;
	int r;

	if (m->head.len != sizeof(*how) || ipc_nr_fds(m) != (how->metrics == IPC_METRICS_NEW ? 2 : 1) || n->next)
		return -EBADMSG;
	r = handover_config(m, &n->next);
	if (r < 0)
		return r;
	net_spool_lend(n->next, &n->spool);
	net_change_metrics(n, how->metrics, m);
	if (!n->exporter)
		return net_put_in_force(n);
	exporter_reload(n->exporter, n->next->exporters, n->next->nr_exporters);
	return 0;
}

static int net_take_status(struct net *n, struct ipc_message *m)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;
	int r;

	if (!ipc_fits(m, 0, 1))
		return -EBADMSG;
	r = ipc_memfd_read(m->fds[0], METRICS_TEXT_MAX, &text, &len);
	if (r < 0)
		return r;
	if (n->metrics)
		metrics_answer(n->metrics, text, len);
	if (n->metrics_asked && n->exporter)
		net_metrics_send(n->exporter, n->config, text);
	n->metrics_asked = false;
	return 0;
}

/* The monitor has the figures: they leave when its answer arrives. */
static void net_ask_metrics(struct net *n)
{
	uint64_t now = clock_now_ns();

	if (now < n->next_metrics_ns || !exporter_wants_metrics(n->exporter))
		return;
	n->next_metrics_ns = now + n->config->metrics_interval_ns;
	n->metrics_asked = true;
	net_want_status(n);
}

/* The engine has exited by now, so its socket has an end. */
static int net_stop(struct net *n)
{
	if (!n->exporter)
		return -ECANCELED;
	net_drain_engine(n);
	n->stopping = true;
	exporter_stop(n->exporter, clock_now_ns() + STOP_NS);
	return 0;
}

static int net_handle_message(struct net *n, struct ipc_message *m)
{
	switch (m->head.type) {
	case IPC_CONFIG:
		return net_take_config(n, m);
	case IPC_LEDGER:
		return net_take_ledger(n, m);
	case IPC_PEER:
		return net_take_peer(n, m);
	case IPC_START:
		n->started = true;
		return 0;
	case IPC_STOP:
		return net_stop(n);
	case IPC_STATUS:
		return net_take_status(n, m);
	case IPC_RELOAD:
		return net_take_reload(n, m);
	default:
		return 0; /* of a newer monitor */
	}
}

static int net_read_monitor(struct net *n)
{
	int r;

	while ((r = ipc_receive(n->monitor, &n->from_monitor)) == 1) {
		r = net_handle_message(n, &n->from_monitor);
		ipc_close_fds(&n->from_monitor);
		if (r < 0)
			return r;
	}
	return r == -EAGAIN ? 0 : r == 0 ? -EPIPE : r;
}

/* --- start --- */

static int net_receive_start(struct net *n)
{
	struct pollfd p = {.fd = n->monitor, .events = POLLIN};
	int r = 0;

	while (!r && !n->started) {
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return -errno;
		r = net_read_monitor(n);
	}
	if (!r && (!n->config || !n->page))
		return -EBADMSG;
	return r;
}

/* Without the port there are no metrics, but profiles all the same. */
static void net_open_metrics(struct net *n)
{
	const char *address = n->config->metrics_listen;
	int r = address ? metrics_listen(address, &n->metrics_fd) : 0;

	if (r < 0)
		log_error("cannot listen on %s: %s; there are no metrics", address, strerror(-r));
}

static int net_begin(struct net *n, int (*sandbox)(const struct config *c))
{
	int r;

	net_open_metrics(n);
	netroot_hold(n->config);
	net_spool_hold(n->config, &n->spool);
	r = sandbox(n->config);
	if (r < 0)
		return r;
	net_spool_open(n->config, &n->spool);
	net_spool_log_orphans(n->config, &n->spool);
	net_spool_lend(n->config, &n->spool);
	r = exporter_new(n->config->exporters, n->config->nr_exporters, &n->ledger, net_publish, n, &n->exporter);
	if (r < 0)
		return r;
	net_log_init(&n->log, n->config);
	exporter_on_event(n->exporter, net_log_event, &n->log);
	net_start_metrics(n);
	net_publish(n);
	r = ipc_send(n->monitor, IPC_READY, 0, NULL, 0, NULL, 0);
	net_acknowledge(n);
	return r;
}

/* --- the loop --- */

static void net_beat(struct net *n)
{
	uint64_t now = clock_now_ns();

	if (now < n->next_beat_ns)
		return;
	n->beats++;
	n->next_beat_ns = now + BEAT_NS;
	net_publish(n);
	ipc_send(n->monitor, IPC_BEAT, 0, &n->beats, sizeof(n->beats), NULL, 0);
}

static int net_ms_until(uint64_t due, uint64_t now)
{
	return due <= now ? 0 : (int)MIN((due - now) / NSEC_PER_MSEC + 1, 3600000ULL);
}

static int net_timeout_ms(const struct net *n)
{
	uint64_t now = clock_now_ns();
	int ms = net_ms_until(n->next_beat_ns, now);
	int other = exporter_timeout_ms(n->exporter);

	if (other >= 0)
		ms = MIN(ms, other);
	if (exporter_wants_metrics(n->exporter))
		ms = MIN(ms, net_ms_until(n->next_metrics_ns, now));
	other = n->metrics ? metrics_timeout_ms(n->metrics) : -1;
	return other >= 0 ? MIN(ms, other) : ms;
}

static int net_wait_for_work(struct net *n, struct pollfd fds[POLLFDS])
{
	int more;

	fds[POLL_MONITOR] = (struct pollfd){.fd = n->monitor, .events = POLLIN};
	fds[POLL_ENGINE] = (struct pollfd){.fd = n->engine,
					   .events = (short)(POLLIN | (n->unacknowledged ? POLLOUT : 0))};
	fds[POLL_METRICS] = (struct pollfd){.fd = n->metrics ? metrics_fd(n->metrics) : -1, .events = POLLIN};
	more = exporter_pollfds(n->exporter, fds + POLL_EXPORTER, POLLFDS - POLL_EXPORTER);
	if (poll(fds, (nfds_t)(POLL_EXPORTER + more), net_timeout_ms(n)) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

static int net_turn(struct net *n)
{
	struct pollfd fds[POLLFDS] = {0};
	int r = net_wait_for_work(n, fds);

	if (!r && fds[POLL_ENGINE].revents && n->engine >= 0)
		r = net_serve_engine(n);
	if (!r && fds[POLL_MONITOR].revents)
		r = net_read_monitor(n);
	if (r < 0)
		return r;
	exporter_run(n->exporter);
	r = net_continue_reload(n);
	if (r < 0)
		return r;
	if (n->metrics)
		metrics_run(n->metrics);
	net_ask_metrics(n);
	net_beat(n);
	return 0;
}

static void net_done(struct net *n)
{
	metrics_free(n->metrics);
	closep(&n->metrics_fd);
	exporter_free(n->exporter);
	net_spool_close(&n->spool);
	if (n->engine >= 0)
		net_engine_gone(n);
	if (n->page)
		munmap(n->page, sizeof(*n->page));
	config_free(n->config);
	config_free(n->next);
	free(n);
}

static int net_run(struct net *n, int (*sandbox)(const struct config *c))
{
	int r = net_receive_start(n);

	if (!r)
		r = net_begin(n, sandbox);
	if (r < 0) {
		if (r != -EPIPE && r != -ECANCELED)
			log_error("net cannot start: %s", strerror(-r));
		return r;
	}
	while (!r && !(n->stopping && exporter_idle(n->exporter)))
		r = net_turn(n);
	net_publish(n);
	return r;
}

int net_serve(int sock, int (*sandbox)(const struct config *c))
{
	struct net *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return 1;
	n->monitor = sock;
	n->engine = n->metrics_fd = n->spool.dir = -1;
	r = net_run(n, sandbox);
	net_done(n);
	/* A stop before the start is complete is a success, too. */
	return r < 0 && r != -ECANCELED;
}

int net_main(int sock)
{
	log_init("net", LOG_LEVEL_INFO);
	return sandbox_begin() < 0 ? 1 : net_serve(sock, sandbox_net);
}
