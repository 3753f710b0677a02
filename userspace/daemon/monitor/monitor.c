// SPDX-License-Identifier: Apache-2.0
/*
 * The monitor's loop over signals, workers' messages, clients and the clock,
 * and the ordinary end in three steps.
 */
#include "daemon/monitor/monitor.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/notify.h"
#include "daemon/sandbox/netroot.h"
#include "process/host.h"

#define MESSAGES_TURN  64
#define STOP_ENGINE_NS (20 * NSEC_PER_SEC)
#define STOP_NET_NS    (30 * NSEC_PER_SEC)
#define ASKED_AGAIN_NS NSEC_PER_SEC
#define SLOW_NS	       (10 * NSEC_PER_SEC)
#define NAMES_PATIENCE_NS (3 * NSEC_PER_SEC) /* longer than an opener may take */
#define FIRST_TRIES    10 /* restarts of an engine that never became ready */

/* Messages. */

static void monitor_engine_ready(struct monitor *m)
{
	guard_engine_ready(m);
	if (m->sampler.sampling) {
		log_tagged(&(struct log_tag){.event = LOG_EVENT_WORKER_BACK, .worker = "engine"}, LOG_LEVEL_NOTICE, "engine is back (pid %d)", m->workers.engine.pid);
		return;
	}
	m->names_deadline_ns = clock_now_ns() + NAMES_PATIENCE_NS;
}

/* Sampling waits until the selection is complete: an opener resolves the names of containers. */
static void monitor_begin_when_ready(struct monitor *m, uint64_t now)
{
	if (m->sampler.sampling || !m->names_deadline_ns || !m->workers.engine.ready || m->phase != PHASE_RUN)
		return;
	if (!target_names_settled(&m->targets.names)) {
		if (now < m->names_deadline_ns)
			return;
		log_warn("targets: the names of containers cannot be resolved yet: sampling begins without those "
			 "that a line may select or exclude by name");
	}
	if (monitor_begin_sampling(m)) {
		m->exit_status = 1;
		m->phase = PHASE_OVER;
	}
}

static void monitor_take_question(struct monitor *m, struct ipc_message *msg)
{
	const struct ipc_ask *ask = (const void *)msg->data;
	uint32_t kind = msg->head.len >= sizeof(*ask) ? ask->kind : 0;

	if (kind == HOST_OPEN_INDEX)
		index_jobs_ask(m, msg);
	else if (kind == HOST_OPEN_DECODER)
		decoder_jobs_ask(m, msg);
	else
		asks_add(&m->asks, ASKER_ENGINE, msg);
}

static void monitor_read(struct monitor *m, struct worker *w, struct ipc_message *msg);

/*
 * What a decoder told the engine, it told the monitor before: that it vouches for a walk, which the engine sets next. So
 * that is heard first, whichever socket comes first.
 */
static void monitor_hear_decoders(struct monitor *m)
{
	for (int i = 0; i < DECODERS; i++)
		if (m->workers.decoder[i].sock >= 0)
			monitor_read(m, &m->workers.decoder[i], &m->aside);
}

static void monitor_from_engine(struct monitor *m, struct ipc_message *msg)
{
	switch (msg->head.type) {
	case IPC_READY:
		monitor_engine_ready(m);
		break;
	case IPC_ASK:
		monitor_take_question(m, msg);
		break;
	case IPC_DECODER_END:
		monitor_hear_decoders(m);
		decoder_jobs_end(m, msg);
		break;
	case IPC_HINT:
		hints_set(m, msg);
		break;
	case IPC_PLAN:
		plans_set(m, msg);
		break;
	case IPC_WALK:
		monitor_hear_decoders(m);
		walks_set(m, msg);
		break;
	case IPC_RELOADED:
		reload_answered(m, &m->workers.engine);
		break;
	case IPC_LIFE:
		target_processes_life(m, msg);
		break;
	case IPC_EXPLAINED:
		queries_answered(m, msg);
		break;
	case IPC_RATE:
		rate_acked(m, msg);
		break;
	default:
		break; /* BEAT, and RELEASED, on which every turn acts: their arrival is their content */
	}
}

static void monitor_from_net(struct monitor *m, struct ipc_message *msg)
{
	switch (msg->head.type) {
	case IPC_DRAINED:
		peers_drained(&m->peers);
		break;
	case IPC_STATUS_WANTED:
		status_server_metrics(m);
		break;
	case IPC_RELOADED:
		reload_answered(m, &m->workers.net);
		break;
	case IPC_READY:
		if (m->workers.net.restarts)
			log_tagged(&(struct log_tag){.event = LOG_EVENT_WORKER_BACK, .worker = "net"}, LOG_LEVEL_NOTICE, "net is back (pid %d)", m->workers.net.pid);
		break;
	default:
		break;
	}
}

static void monitor_from_indexer(struct monitor *m, struct ipc_message *msg)
{
	if (msg->head.type == IPC_INDEXED)
		index_jobs_indexed(m, msg);
	if (msg->head.type != IPC_ASK || fetch_jobs_asked(m, msg))
		return;
	index_jobs_set_root(m, msg);
	asks_add(&m->asks, ASKER_INDEXER, msg);
}

/* A worker begins once: to repeat READY would fill the log, and delay the start of sampling. */
static bool monitor_is_repeated(const struct worker *w, const struct ipc_message *msg)
{
	return msg->head.type == IPC_READY && w->ready;
}

static void monitor_dispatch(struct monitor *m, struct worker *w, struct ipc_message *msg)
{
	w->heard_ns = clock_now_ns();
	if (worker_is_disposable(w) || msg->head.type == IPC_ASK)
		cost_turn_for_files(&m->cost);
	if (msg->head.type == IPC_READY)
		w->ready = true;
	if (w->kind == WORKER_ENGINE)
		monitor_from_engine(m, msg);
	else if (w->kind == WORKER_NET)
		monitor_from_net(m, msg);
	else if (w->kind == WORKER_HUB)
		hub_link_from(m, msg);
	else if (w->kind == WORKER_INDEXER)
		monitor_from_indexer(m, msg);
	else if (w->kind == WORKER_FETCHER)
		fetch_jobs_fetched(m, msg);
	else if (w->kind == WORKER_DECODER)
		decoder_jobs_from(m, (int)(w - m->workers.decoder), msg);
	else if (msg->head.type != IPC_READY)
		asks_from_opener(&m->asks, (int)(w - m->workers.opener), msg);
	ipc_close_fds(msg);
}

static void monitor_read(struct monitor *m, struct worker *w, struct ipc_message *msg)
{
	int r = 1;

	for (int i = 0; i < MESSAGES_TURN && w->sock >= 0; i++) {
		/* An opener answers questions of the monitor itself by a memfd, the others have none to pass. */
		r = w->kind == WORKER_OPENER ? ipc_receive(w->sock, msg) : ipc_receive_plain(w->sock, msg);
		if (r != 1)
			break;
		if (monitor_is_repeated(w, msg))
			ipc_close_fds(msg);
		else
			monitor_dispatch(m, w, msg);
	}
	if (r == 1 || r == -EAGAIN)
		return;
	if (r < 0)
		log_warn("%s (pid %d) sent a malformed message (%s): it is killed", worker_name(w), w->pid,
			 strerror(-r));
	/* A worker that closes its socket ends, or is killed. */
	worker_kill(w);
	worker_hang_up(w);
}

void monitor_hear(struct monitor *m, struct worker *w)
{
	monitor_read(m, w, &m->message);
}

/* The end, in steps: sampling, engine, net. */

static void monitor_enter_phase(struct monitor *m, enum monitor_phase phase, uint64_t patience)
{
	m->phase = phase;
	m->phase_deadline_ns = clock_now_ns() + patience;
}

/* A worker that is starting has samples to finish before it stops, unless none was ever taken. */
static void monitor_ask_to_stop(struct monitor *m, struct worker *w)
{
	int err = 0;

	if (!w->pid || w->asked)
		return;
	if (w->ready)
		err = worker_send(w, IPC_STOP, 0, NULL, 0, -1);
	w->asked = w->ready && !err;
	if ((!w->ready && !m->sampler.sampling) || (err && err != -EAGAIN))
		worker_kill(w);
}

static void monitor_begin_stop(struct monitor *m)
{
	if (m->phase != PHASE_RUN) {
		/*
		 * A second request stops at once. A signal to the process and one to its group arrive together and
		 * count as one.
		 */
		if (clock_now_ns() - m->stop_ns > ASKED_AGAIN_NS)
			m->phase_deadline_ns = 0;
		return;
	}
	log_tagged(&(struct log_tag){.event = LOG_EVENT_STOP}, LOG_LEVEL_INFO, "stopping");
	m->stop_ns = clock_now_ns();
	notify_stopping();
	m->sampler.defaults.running = 0;
	if (m->sampler.sampling && (guard_set_defaults(m) || m->sampler.source->ops->stop(m->sampler.source)))
		log_warn("the sampler did not stop at once");
	monitor_enter_phase(m, PHASE_STOP_ENGINE, STOP_ENGINE_NS);
}

static void monitor_kill_late(struct monitor *m, struct worker *w, uint64_t now)
{
	if (now < m->phase_deadline_ns)
		return;
	log_warn("%s (pid %d) did not stop in time: it is killed", worker_name(w), w->pid);
	m->phase_deadline_ns = UINT64_MAX;
	w->exited = true; /* this worker is not started again */
	worker_kill(w);
}

/* If the engine is dead now, it is started once more, to drain the ring. */
static bool monitor_has_stopped(struct monitor *m, struct worker *w, uint64_t now)
{
	if (!w->pid)
		return !workers_may_start(m, w) || now >= m->phase_deadline_ns;
	monitor_ask_to_stop(m, w);
	monitor_kill_late(m, w, now);
	return false;
}

static void monitor_run_stop(struct monitor *m, uint64_t now)
{
	if (m->phase == PHASE_STOP_ENGINE && monitor_has_stopped(m, &m->workers.engine, now)) {
		peers_close(&m->peers);
		monitor_enter_phase(m, PHASE_STOP_NET, STOP_NET_NS);
	}
	if (m->phase == PHASE_STOP_NET && monitor_has_stopped(m, &m->workers.net, now))
		m->phase = PHASE_OVER;
}

static void monitor_log_ledger(struct monitor *m)
{
	struct status *s = m->config->mode == SAMPLER_NONE ? NULL : malloc(sizeof(*s));

	if (!s)
		return;
	status_server_collect(m, s);
	for (uint32_t i = 0; i < s->ledger.destinations; i++) {
		const struct ledger_sum_destination *d = &s->ledger.all.dest[i];
		unsigned long long lost = 0;

		for (int r = 0; r < OTP_LOSS_MAX; r++)
			lost += d->lost[r];
		log_info("%s: taken %llu = exported %llu + unconfirmed %llu + lost %llu%s", status_destination(s, i),
			 (unsigned long long)s->ledger.all.taken, (unsigned long long)d->exported,
			 (unsigned long long)d->unconfirmed, lost, d->balanced ? "" : " (NOT BALANCED)");
	}
	free(s);
}

/* No worker runs any more: samples in flight are booked as lost. */
static void monitor_close_books(struct monitor *m)
{
	books_engine_died(&m->books, &m->sampler);
	books_ring_left(&m->books, &m->sampler);
	books_net_died(&m->books, true);
	books_gap(&m->books, OTP_LOSS_NO_EXPORTER);
	status_server_save(m);
	monitor_log_ledger(m);
}

static void monitor_end_openers(struct monitor *m)
{
	for (int i = 0; i < OPENERS; i++)
		worker_kill(&m->workers.opener[i]);
	worker_kill(&m->workers.hub);
	worker_kill(&m->workers.indexer);
	worker_kill(&m->workers.fetcher);
	for (int i = 0; i < DECODERS; i++)
		worker_kill(&m->workers.decoder[i]);
}

/* The loop. */

static void monitor_read_signals(struct monitor *m)
{
	struct signalfd_siginfo info;

	while (read(m->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			monitor_begin_stop(m);
		else if (info.ssi_signo == SIGHUP)
			reload_ask(m);
	}
	workers_reap(m);
}

static void monitor_run_slowly(struct monitor *m, uint64_t now)
{
	if (now < m->next_slow_ns)
		return;
	m->next_slow_ns = now + SLOW_NS;
	netroot_refresh(m->config);
}

/* Where ticks change their period at about that time, together with them: one wake-up less. */
static uint64_t monitor_next_tick_ns(const struct monitor *m, uint64_t now)
{
	uint64_t early = now + MONITOR_TICK_NS * 3 / 4, late = now + MONITOR_TICK_NS * 5 / 4;

	return m->sampler.next_vary_ns > early && m->sampler.next_vary_ns < late ? m->sampler.next_vary_ns :
										   now + MONITOR_TICK_NS;
}

static void monitor_run_tick(struct monitor *m, uint64_t now)
{
	if (now < m->next_tick_ns)
		return;
	m->next_tick_ns = monitor_next_tick_ns(m, now);
	notify_run();
	if (m->phase == PHASE_RUN) {
		hotplug_run(&m->hotplug, &m->sampler, &m->workers.engine, now);
		if (m->config->mode != SAMPLER_NONE)
			targets_run(m, now);
		guard_run(m, now);
	}
	monitor_run_slowly(m, now);
}

static void monitor_run_watchdog(struct monitor *m, uint64_t now)
{
	uint64_t every = notify_alive_ns();

	if (!every || now < m->next_watchdog_ns)
		return;
	m->next_watchdog_ns = now + every;
	notify_alive();
}

static void monitor_give_up_if_hopeless(struct monitor *m)
{
	if (m->sampler.sampling || m->phase != PHASE_RUN || m->workers.engine.restarts + m->workers.net.restarts < FIRST_TRIES)
		return;
	log_error("the workers do not start: giving up");
	m->exit_status = 1;
	m->phase = PHASE_OVER;
}

static void monitor_run_clock(struct monitor *m)
{
	uint64_t now = clock_now_ns();

	books_follow_engine(&m->books, &m->sampler);
	sampler_pump(&m->sampler, now);
	hub_link_run(m, now);
	workers_run(m, now);
	peers_run(&m->peers, now);
	rate_run(m, now);
	target_rules_run(m, now);
	targets_ask_names(m);
	asks_run(&m->asks, now);
	index_jobs_run(m, now);
	decoder_jobs_run(m, now);
	fetch_jobs_run(m, now);
	queries_run(m, now);
	monitor_begin_when_ready(m, now);
	reload_run(m, now);
	selector_run(m, now);
	monitor_run_tick(m, now);
	monitor_run_watchdog(m, now);
	monitor_run_stop(m, now);
	monitor_give_up_if_hopeless(m);
	/* No tick comes for a while after it: it is the end of the turn, or the turn itself would never be sampled. */
	sampler_vary(&m->sampler, clock_now_ns());
}

static int monitor_timeout_ms(const struct monitor *m)
{
	uint64_t now = clock_now_ns(), next = MIN(m->next_tick_ns, MIN(workers_next_ns(&m->workers), MIN(asks_next_ns(&m->asks), index_jobs_next_ns(m))));

	next = MIN(next, MIN(m->sampler.next_pump_ns, decoder_jobs_next_ns(m)));
	if (m->sampler.sampling)
		next = MIN(next, m->sampler.next_vary_ns);
	next = MIN(next, targets_next_ns(m));
	next = MIN(next, queries_next_ns(m));
	if (m->phase != PHASE_RUN)
		next = MIN(next, m->phase_deadline_ns);
	return next <= now ? 0 : (int)MIN((next - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC, 1000);
}

enum { POLL_SIGNAL, POLL_STATUS, POLL_UEVENT, POLL_TARGETS, POLL_ENGINE, POLL_NET, POLL_HUB, POLL_INDEXER, POLL_FETCHER, POLL_OPENER, POLL_DECODER = POLL_OPENER + OPENERS, POLL_QUERY = POLL_DECODER + DECODERS, POLL_NR = POLL_QUERY + QUERY_POLLS };

static void monitor_fill_poll(const struct monitor *m, struct pollfd p[POLL_NR])
{
	p[POLL_SIGNAL] = (struct pollfd){m->signal_fd, POLLIN, 0};
	p[POLL_STATUS] = (struct pollfd){m->status.fd, POLLIN, 0};
	p[POLL_UEVENT] = (struct pollfd){m->hotplug.fd, POLLIN, 0};
	p[POLL_TARGETS] = (struct pollfd){targets_poll_fd(m), POLLIN, 0};
	p[POLL_ENGINE] = (struct pollfd){m->workers.engine.sock, POLLIN, 0};
	p[POLL_NET] = (struct pollfd){m->workers.net.sock, POLLIN, 0};
	p[POLL_HUB] = (struct pollfd){m->workers.hub.sock, POLLIN, 0};
	p[POLL_INDEXER] = (struct pollfd){m->workers.indexer.sock, POLLIN, 0};
	p[POLL_FETCHER] = (struct pollfd){m->workers.fetcher.sock, POLLIN, 0};
	for (int i = 0; i < OPENERS; i++)
		p[POLL_OPENER + i] = (struct pollfd){m->workers.opener[i].sock, POLLIN, 0};
	for (int i = 0; i < DECODERS; i++)
		p[POLL_DECODER + i] = (struct pollfd){m->workers.decoder[i].sock, POLLIN, 0};
	queries_poll(m, &p[POLL_QUERY]);
}

/* Messages before deaths: the messages that a worker sent before it died count. */
static void monitor_handle(struct monitor *m, const struct pollfd p[POLL_NR])
{
	const short readable = POLLIN | POLLHUP | POLLERR;

	if (p[POLL_ENGINE].revents & readable)
		monitor_hear(m, &m->workers.engine);
	if (p[POLL_NET].revents & readable)
		monitor_hear(m, &m->workers.net);
	if (p[POLL_HUB].revents & readable)
		monitor_hear(m, &m->workers.hub);
	if (p[POLL_INDEXER].revents & readable)
		monitor_hear(m, &m->workers.indexer);
	if (p[POLL_FETCHER].revents & readable)
		monitor_hear(m, &m->workers.fetcher);
	for (int i = 0; i < OPENERS; i++)
		if (p[POLL_OPENER + i].revents & readable)
			monitor_hear(m, &m->workers.opener[i]);
	for (int i = 0; i < DECODERS; i++)
		if (p[POLL_DECODER + i].revents & readable)
			monitor_hear(m, &m->workers.decoder[i]);
	if (p[POLL_STATUS].revents)
		status_server_accept(m);
	queries_handle(m, &p[POLL_QUERY]);
	if (p[POLL_TARGETS].revents)
		targets_read(m);
	if (p[POLL_UEVENT].revents)
		hotplug_read(&m->hotplug);
	if (p[POLL_SIGNAL].revents)
		monitor_read_signals(m);
}

static void monitor_loop(struct monitor *m)
{
	struct pollfd p[POLL_NR];

	monitor_run_clock(m);
	while (m->phase != PHASE_OVER) {
		monitor_fill_poll(m, p);
		if (poll(p, POLL_NR, monitor_timeout_ms(m)) > 0)
			monitor_handle(m, p);
		monitor_run_clock(m);
		cost_end_turn(&m->cost);
	}
}

int monitor_main(struct config *c, const struct monitor_options *options)
{
	struct monitor *m = calloc(1, sizeof(*m));
	int status;

	if (!m) {
		config_free(c);
		return 1;
	}
	m->config = c;
	m->options = options;
	m->started_ns = clock_now_ns();
	m->lock_fd = m->signal_fd = m->config_fd = m->public_config_fd = m->hotplug.fd = m->status.fd = m->capture_fd = -1;
	m->targets.rules.inotify_fd = -1;
	if (getrandom(m->ticket_key, sizeof(m->ticket_key), 0) != sizeof(m->ticket_key)) {
		log_error("there are no random numbers: %s", strerror(errno));
		config_free(c);
		free(m);
		return 1;
	}
	workers_init(&m->workers);
	hub_link_init(&m->hub);
	books_init(&m->books);
	peers_init(&m->peers, &m->workers, &m->books);
	asks_init(&m->asks, &m->workers, targets_names_answered, m);
	m->exit_status = monitor_start(m) ? 1 : 0;
	if (!m->exit_status) {
		monitor_loop(m);
		monitor_close_books(m);
		monitor_end_openers(m);
	}
	status = m->exit_status;
	monitor_close(m);
	return status;
}
