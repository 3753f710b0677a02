// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/kallsyms_open.h"
#include "base/log.h"
#include "daemon/monitor/hub_link.h"
#include "daemon/monitor/monitor.h"

#define LAST_STARTS 2 /* of an unfinished worker, while we stop */

void workers_init(struct workers *w)
{
	w->program = -1;
	worker_init(&w->engine, WORKER_ENGINE);
	worker_init(&w->net, WORKER_NET);
	worker_init(&w->hub, WORKER_HUB);
	worker_init(&w->indexer, WORKER_INDEXER);
	worker_init(&w->fetcher, WORKER_FETCHER);
	for (int i = 0; i < OPENERS; i++)
		worker_init(&w->opener[i], WORKER_OPENER);
	for (int i = 0; i < DECODERS; i++)
		worker_init(&w->decoder[i], WORKER_DECODER);
}

/* --- messages at the start of each --- */

static int workers_send_ring(struct monitor *m)
{
	const int fds[2] = {m->sampler.layout.ring_fd, m->sampler.layout.wake_fd};
	const struct ipc_ring ring = {.ring_bytes = m->sampler.layout.ring_bytes,
				.pos = ring_consumer(&m->sampler.ring),
				.origins = *rate_ring_origins(m),
				.flags = m->sampler.sideband || m->sampler.layout.life ? 0 : IPC_RING_SCAN};

	return ipc_send(m->workers.engine.sock, IPC_RING, 0, &ring, sizeof(ring), fds, fds[1] >= 0 ? 2 : 1);
}

static int workers_send_sideband(struct monitor *m)
{
	uint32_t n = sideband_buffers(m->sampler.sideband);
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i++) {
		size_t bytes;
		int fd = sideband_fd(m->sampler.sideband, i, &bytes);
		const struct ipc_sideband message = {.data_bytes = bytes};

		err = worker_send_patiently(&m->workers.engine, IPC_SIDEBAND, &message, sizeof(message), fd);
	}
	m->sampler.sideband_sent = n;
	return err;
}

static int workers_send_rate(struct monitor *m)
{
	const struct ipc_rate *rate = rate_pending(m);

	return rate ? worker_send_patiently(&m->workers.engine, IPC_RATE, rate, sizeof(*rate), -1) : 0;
}

static int workers_send_kallsyms(struct monitor *m)
{
	_cleanup_(closep) int fd = kallsyms_open();

	return fd < 0 ? 0 : worker_send_patiently(&m->workers.engine, IPC_KALLSYMS, NULL, 0, fd);
}

/* Only the first engine captures: records of another after a torn one would make the capture invalid. */
static int workers_send_capture(struct monitor *m)
{
	int err = m->capture_fd < 0 ? 0 : worker_send_patiently(&m->workers.engine, IPC_CAPTURE, NULL, 0, m->capture_fd);

	closep(&m->capture_fd);
	m->capture_fd = -1;
	return err;
}

static int workers_hand_over_engine(struct monitor *m)
{
	struct worker *w = &m->workers.engine;
	int err = worker_send_patiently(w, IPC_CONFIG, NULL, 0, m->public_config_fd);

	if (!err)
		err = workers_send_ring(m);
	if (!err)
		err = workers_send_sideband(m);
	if (!err)
		err = worker_send_patiently(w, IPC_LEDGER, NULL, 0, m->books.engine_fd);
	if (!err)
		err = workers_send_rate(m);
	if (!err)
		err = workers_send_capture(m);
	if (!err)
		err = workers_send_kallsyms(m);
	if (!err)
		err = targets_send_watch(m);
	if (!err) {
		peers_engine_started(&m->peers);
		hub_link_make(m);
	}
	return err ? err : worker_send_patiently(w, IPC_START, NULL, 0, -1);
}

static int workers_hand_over_net(struct monitor *m)
{
	struct worker *w = &m->workers.net;
	int err = worker_send_patiently(w, IPC_CONFIG, NULL, 0, m->config_fd);

	if (!err)
		err = worker_send_patiently(w, IPC_LEDGER, NULL, 0, m->books.net_fd);
	if (!err)
		peers_net_started(&m->peers);
	return err ? err : worker_send_patiently(w, IPC_START, NULL, 0, -1);
}

static int workers_hand_over_hub(struct monitor *m)
{
	int err = hub_link_hand_over(m);

	return err ? err : worker_send_patiently(&m->workers.hub, IPC_START, NULL, 0, -1);
}

static int workers_hand_over(struct monitor *m, struct worker *w)
{
	int err;

	if (w->kind == WORKER_HUB)
		return workers_hand_over_hub(m);

	if (w->kind == WORKER_ENGINE)
		return workers_hand_over_engine(m);
	if (w->kind == WORKER_NET)
		return workers_hand_over_net(m);
	if (w->kind == WORKER_INDEXER)
		return index_jobs_hand_over(m);
	if (w->kind == WORKER_FETCHER)
		return fetch_jobs_hand_over(m);
	if (w->kind == WORKER_DECODER)
		return decoder_jobs_hand_over(m, (int)(w - m->workers.decoder));
	err = worker_send_patiently(w, IPC_CONFIG, NULL, 0, m->public_config_fd);
	if (!err)
		err = worker_send_patiently(w, IPC_KEY, m->ticket_key, sizeof(m->ticket_key), -1);
	if (!err)
		err = asks_opener_started(&m->asks, (int)(w - m->workers.opener));
	return err ? err : worker_send_patiently(w, IPC_START, NULL, 0, -1);
}

static void workers_start_one(struct monitor *m, struct worker *w, uint64_t now)
{
	int err = worker_start(w, m->workers.program);

	if (worker_is_disposable(w))
		cost_turn_for_files(&m->cost);
	if (!err) {
		err = workers_hand_over(m, w);
		if (err) {
			log_warn("%s (pid %d) could not be sent its start messages: %s", worker_name(w), w->pid,
				 strerror(-err));
			worker_kill(w);
		}
		return;
	}
	w->started_ns = now;
	worker_pause(w, now);
	if (w->kind == WORKER_DECODER)
		decoder_jobs_cannot_start(m);
	log_error("%s cannot be started: %s", worker_name(w), strerror(-err));
}

/* While we stop, engine and net are started only to finish, and then at once. */
bool workers_may_start(const struct monitor *m, const struct worker *w)
{
	if (w->pid || w->exited)
		return false;
	if (m->config->mode == SAMPLER_NONE && w->kind != WORKER_HUB)
		return false;
	if (w->kind == WORKER_OPENER)
		return m->phase < PHASE_STOP_NET && m->workers.abandoned < ABANDONED_MAX;
	if (w->kind == WORKER_INDEXER)
		return m->phase == PHASE_RUN && index_jobs_wait(m);
	if (w->kind == WORKER_FETCHER)
		return m->phase == PHASE_RUN && fetch_jobs_wait(m);
	if (w->kind == WORKER_DECODER)
		return m->phase == PHASE_RUN && decoder_jobs_wait(m) && m->workers.abandoned < ABANDONED_MAX;
	if (w->kind == WORKER_HUB)
		return hub_link_may_start(m);
	if (m->phase == PHASE_RUN)
		return true;
	return m->phase == PHASE_STOP_ENGINE && m->sampler.sampling && w->last_starts < LAST_STARTS;
}

static bool workers_is_due(const struct monitor *m, const struct worker *w, uint64_t now)
{
	bool last = m->phase != PHASE_RUN && (w->kind == WORKER_ENGINE || w->kind == WORKER_NET);

	if (!workers_may_start(m, w) || (!last && now < w->next_start_ns))
		return false;
	return w->kind != WORKER_ENGINE || peers_allow_engine(&m->peers);
}

static void workers_on_engine_end(struct monitor *m)
{
	asks_asker_died(&m->asks, ASKER_ENGINE);
	index_jobs_engine_died(m);
	decoder_jobs_engine_died(m);
	queries_engine_died(m);
	if (m->phase == PHASE_RUN || !m->workers.engine.exited) {
		books_engine_died(&m->books, &m->sampler);
		if (m->phase <= PHASE_STOP_ENGINE)
			peers_engine_died(&m->peers);
	}
}

static void workers_on_net_end(struct monitor *m)
{
	books_net_died(&m->books, m->phase == PHASE_STOP_NET);
	peers_net_died(&m->peers);
}

static bool workers_is_job(const struct worker *w)
{
	return w->kind == WORKER_INDEXER || w->kind == WORKER_FETCHER || w->kind == WORKER_DECODER;
}

/* These are started for one file or process: their end is expected, and the next one starts without a pause. */
static void workers_on_job_end(struct monitor *m, struct worker *w, int status)
{
	enum worker_kind kind = w->kind;
	char how[64];

	worker_how_ended(status, how);
	if (status && !(kind == WORKER_DECODER && w->killed_ns))
		log_info("%s (pid %d) %s", worker_name(w), w->pid, how);
	worker_hang_up(w);
	*w = (struct worker){.kind = kind, .sock = -1, .next_start_ns = clock_now_ns()};
	if (kind == WORKER_FETCHER) {
		fetch_jobs_fetcher_ended(m);
		return;
	}
	if (kind == WORKER_DECODER) {
		decoder_jobs_ended(m, (int)(w - m->workers.decoder));
		return;
	}
	asks_asker_died(&m->asks, ASKER_INDEXER);
	index_jobs_indexer_ended(m);
}

static void workers_on_service_end(struct monitor *m, struct worker *w, int status)
{
	bool asked = m->phase != PHASE_RUN && status == 0;
	uint64_t now = clock_now_ns();
	char how[64];

	worker_how_ended(status, how);
	worker_hang_up(w);
	w->exited = w->exited || asked;
	if (w->kind == WORKER_HUB && !hub_link_may_start(m)) {
		log_info("hub (pid %d) has ended", w->pid);
	} else if (!asked) {
		worker_pause(w, now);
		w->restarts++;
		log_tagged(&(struct log_tag){.event = LOG_EVENT_WORKER_ENDED, .worker = worker_name(w)}, LOG_LEVEL_WARN,
			   "%s (pid %d) %s; it is started again", worker_name(w), w->pid, how);
	}
	w->pid = 0;
	w->ready = false;
	if (w->kind == WORKER_ENGINE)
		workers_on_engine_end(m);
	else if (w->kind == WORKER_NET)
		workers_on_net_end(m);
	else if (w->kind == WORKER_OPENER)
		asks_opener_died(&m->asks, (int)(w - m->workers.opener), false);
}

static void workers_on_end(struct monitor *m, struct worker *w, int status)
{
	if (workers_is_job(w))
		workers_on_job_end(m, w, status);
	else
		workers_on_service_end(m, w, status);
}

static void workers_count_abandoned(struct workers *w)
{
	w->abandoned++;
	if (w->abandoned == ABANDONED_MAX)
		log_error("%u processes hang in the kernel: files and mappings of processes cannot be read until one ends",
			  ABANDONED_MAX);
}

/* No signal ends it. Whatever it waits for, it never runs again: its work goes to another one now. */
static void workers_give_up(struct monitor *m, struct worker *w)
{
	log_warn("%s (pid %d) hangs in the kernel: it is left there", worker_name(w), w->pid);
	workers_count_abandoned(&m->workers);
	if (w->kind == WORKER_DECODER)
		decoder_jobs_hangs(m, (int)(w - m->workers.decoder), clock_now_ns());
	workers_on_end(m, w, SIGKILL);
}

/* Those that wait for others' files or memory, and are replaced at once. Openers have their own way (asks.c). */
static bool workers_may_give_up(const struct monitor *m, const struct worker *w, uint64_t now)
{
	return (w->kind == WORKER_ENGINE || w->kind == WORKER_INDEXER || w->kind == WORKER_DECODER) &&
	       worker_outlives(w, now) && m->workers.abandoned < ABANDONED_MAX;
}

/*
 * It may die of the signal, as where another process already reads the page that it waits for: the next one would wait
 * for the same file again, so from now on it gets a copy.
 */
static void workers_kill_stuck(struct monitor *m, struct worker *w)
{
	log_warn("%s (pid %d) waits for a file that cannot be read: it is killed", worker_name(w), w->pid);
	asks_copy_overlays(&m->asks);
	worker_kill(w);
}

static void workers_run_one(struct monitor *m, struct worker *w, uint64_t now)
{
	if (workers_may_give_up(m, w, now)) {
		workers_give_up(m, w);
	} else if (worker_is_stuck(w, now)) {
		workers_kill_stuck(m, w);
	} else if (worker_hangs(w, now)) {
		log_warn("%s (pid %d) sent no message for %llu s: it is killed", worker_name(w), w->pid,
			 (unsigned long long)(now - w->heard_ns) / NSEC_PER_SEC);
		w->heard_ns = now;
		worker_kill(w);
	} else if (workers_is_due(m, w, now)) {
		w->last_starts += m->phase != PHASE_RUN;
		workers_start_one(m, w, now);
	}
}

void workers_run(struct monitor *m, uint64_t now)
{
	for (int i = 0; i < OPENERS; i++)
		workers_run_one(m, &m->workers.opener[i], now);
	workers_run_one(m, &m->workers.net, now);
	workers_run_one(m, &m->workers.engine, now);
	workers_run_one(m, &m->workers.hub, now);
	workers_run_one(m, &m->workers.indexer, now);
	workers_run_one(m, &m->workers.fetcher, now);
	for (int i = 0; i < DECODERS; i++)
		workers_run_one(m, &m->workers.decoder[i], now);
}

uint64_t workers_next_ns(const struct workers *w)
{
	const struct worker *all[] = {&w->engine, &w->net, &w->hub, &w->opener[0], &w->opener[1]};
	uint64_t now = clock_now_ns(), next = UINT64_MAX;

	/* A worker that is due and was not started waits for a message or a death, not for the clock. */
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!all[i]->pid && !all[i]->exited && all[i]->next_start_ns > now)
			next = MIN(next, all[i]->next_start_ns);
	for (int i = 0; i < DECODERS; i++)
		next = MIN(next, worker_look_ns(&w->decoder[i], now));
	return MIN(next, MIN(worker_look_ns(&w->engine, now), worker_look_ns(&w->indexer, now)));
}

void workers_abandon(struct workers *all, struct worker *w)
{
	worker_kill(w);
	worker_hang_up(w);
	w->pid = 0;
	w->ready = false;
	w->restarts++;
	w->next_start_ns = clock_now_ns();
	workers_count_abandoned(all);
}

static struct worker *workers_find(struct workers *w, pid_t pid)
{
	if (w->engine.pid == pid)
		return &w->engine;
	if (w->net.pid == pid)
		return &w->net;
	if (w->hub.pid == pid)
		return &w->hub;
	if (w->indexer.pid == pid)
		return &w->indexer;
	if (w->fetcher.pid == pid)
		return &w->fetcher;
	for (int i = 0; i < OPENERS; i++)
		if (w->opener[i].pid == pid)
			return &w->opener[i];
	for (int i = 0; i < DECODERS; i++)
		if (w->decoder[i].pid == pid)
			return &w->decoder[i];
	return NULL;
}

static void workers_abandoned_ended(struct monitor *m, pid_t pid)
{
	asks_abandoned_ended(&m->asks, pid);
	if (m->workers.abandoned)
		m->workers.abandoned--;
}

static uint64_t workers_cpu_ns(const struct rusage *used)
{
	return (uint64_t)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) * NSEC_PER_SEC +
	       (uint64_t)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) * NSEC_PER_USEC;
}

void workers_reap(struct monitor *m)
{
	struct rusage used;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
		struct worker *w = workers_find(&m->workers, pid);

		if (!w || worker_is_disposable(w)) {
			m->workers.disposable_past_ns += workers_cpu_ns(&used);
			cost_turn_for_files(&m->cost);
		} else {
			w->past_cpu_ns += workers_cpu_ns(&used);
		}
		if (w)
			workers_on_end(m, w, status);
		else
			workers_abandoned_ended(m, pid);
	}
}
