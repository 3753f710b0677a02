// SPDX-License-Identifier: Apache-2.0
/*
 * Worker processes: started by executing ourselves, handed what they need,
 * watched, and started again with growing pauses.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/monitor/monitor.h"

#define BACK_OFF_MIN_NS (100 * NSEC_PER_MSEC)
#define BACK_OFF_MAX_NS (2 * NSEC_PER_SEC)  /* the ring holds more than that */
#define GOOD_LIFE_NS	(10 * NSEC_PER_SEC) /* after so long a death is a new story */
#define FAIR_LIFE	4		    /* so many pauses long: the next one is shorter, not longer */
#define LAST_STARTS	2		    /* of a worker that is dead while we stop */
#define SILENCE_NS	(10 * NSEC_PER_SEC) /* without a sign of life a worker hangs */
#define START_SILENCE_NS (60 * NSEC_PER_SEC) /* while it starts: it reads what an overloaded host gives slowly */
#define SEND_PATIENCE	1000		    /* ms: a worker that starts reads its socket soon */
#define EXEC_FAILED	126

static const char *const kind_names[] = {
	[WORKER_ENGINE] = "engine", [WORKER_NET] = "net", [WORKER_OPENER] = "opener",
	[WORKER_INDEXER] = "indexer", [WORKER_FETCHER] = "fetcher"};

/* Of our environment, what a worker may see: where the log goes, and the proxies that libcurl knows. */
static const char *const environment_kept[] = {"JOURNAL_STREAM", "http_proxy",	"https_proxy",
					       "HTTPS_PROXY",	 "all_proxy",	"ALL_PROXY",
					       "no_proxy",	 "NO_PROXY",	"ASAN_OPTIONS"};

const char *worker_name(const struct worker *w)
{
	return kind_names[w->kind];
}

static void worker_init(struct worker *w, enum worker_kind kind)
{
	*w = (struct worker){.kind = kind, .sock = -1};
}

void workers_init(struct monitor *m)
{
	worker_init(&m->engine, WORKER_ENGINE);
	worker_init(&m->net, WORKER_NET);
	worker_init(&m->indexer, WORKER_INDEXER);
	worker_init(&m->fetcher, WORKER_FETCHER);
	for (int i = 0; i < OPENERS; i++)
		worker_init(&m->opener[i], WORKER_OPENER);
}

int worker_send(struct worker *w, uint32_t type, uint64_t tag, const void *data, size_t len, int fd)
{
	return w->sock < 0 ? -EPIPE : ipc_send(w->sock, type, tag, data, len, &fd, fd >= 0);
}

/* At start more is sent than one socket buffer takes on a host of many CPUs. */
static int send_patiently(struct worker *w, uint32_t type, const void *data, size_t len, int fd)
{
	struct pollfd p = {.fd = w->sock, .events = POLLOUT};
	uint64_t deadline = clock_now_ns() + SEND_PATIENCE * NSEC_PER_MSEC;
	int err;

	while ((err = worker_send(w, type, 0, data, len, fd)) == -EAGAIN && clock_now_ns() < deadline)
		poll(&p, 1, SEND_PATIENCE / 10);
	return err;
}

/* "NAME=value" as it is, however long: of a list of hosts for no_proxy a part would be none. */
static char *variable(const char *name)
{
	size_t len = strlen(name);

	for (char **e = environ; *e; e++)
		if (!strncmp(*e, name, len) && (*e)[len] == '=')
			return *e;
	return NULL;
}

/* The child, until it is another program. */
static void child_environment(char *env[ARRAY_SIZE(environment_kept) + 1])
{
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(environment_kept); i++)
		if ((env[n] = variable(environment_kept[i])))
			n++;
	env[n] = NULL;
}

/*
 * The end is ordered by message. A terminal's interrupt and systemd's stop
 * reach every process of the group: a worker that obeyed them would take
 * with it what the monitor is about to collect.
 */
static void child_signals(void)
{
	static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE};
	sigset_t none;

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

__attribute__((noreturn)) static void child_run(const char *role, int sock)
{
	char *argv[] = {"otprofd", "--role", (char *)role, NULL};
	char *env[ARRAY_SIZE(environment_kept) + 1];

	child_signals();
	child_environment(env);
	if (sock == ROLE_SOCKET)
		fcntl(sock, F_SETFD, 0);
	else
		dup2(sock, ROLE_SOCKET);
	execve("/proc/self/exe", argv, env);
	_exit(EXEC_FAILED);
}

static int spawn(struct worker *w)
{
	int pair[2], err = ipc_pair(pair);
	pid_t pid;

	if (err)
		return err;
	pid = fork();
	if (pid == 0)
		child_run(worker_name(w), pair[1]);
	err = pid < 0 ? -errno : 0;
	close(pair[1]);
	if (err) {
		close(pair[0]);
		return err;
	}
	w->pid = pid;
	w->sock = pair[0];
	w->ready = w->asked = w->exited = false;
	w->started_ns = w->heard_ns = clock_now_ns();
	return 0;
}

static int send_ring(struct monitor *m)
{
	const int fds[3] = {m->layout.ring_fd, m->layout.consumer_fd, m->layout.wake_fd};
	const struct ipc_ring ring = {.ring_bytes = m->layout.ring_bytes,
				.origins = *rate_ring_origins(m),
				.flags = m->sideband || m->layout.life ? 0 : IPC_RING_SCAN};

	return ipc_send(m->engine.sock, IPC_RING, 0, &ring, sizeof(ring), fds, m->layout.consumer_fd >= 0 ? 3 : 1);
}

static int send_sideband(struct monitor *m)
{
	uint32_t n = sideband_buffers(m->sideband);
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i++) {
		size_t bytes;
		int fd = sideband_fd(m->sideband, i, &bytes);
		const struct ipc_sideband message = {.data_bytes = bytes};

		err = send_patiently(&m->engine, IPC_SIDEBAND, &message, sizeof(message), fd);
	}
	m->sideband_sent = n;
	return err;
}

static int send_rate(struct monitor *m)
{
	const struct ipc_rate *rate = rate_pending(m);

	return rate ? send_patiently(&m->engine, IPC_RATE, rate, sizeof(*rate), -1) : 0;
}

/* Opened for each engine anew: the kernel's symbols change, and the right to addresses is looked at here. */
static int send_kallsyms(struct monitor *m)
{
	_cleanup_(closep) int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? 0 : send_patiently(&m->engine, IPC_KALLSYMS, NULL, 0, fd);
}

/* One engine, one capture: another's records behind a torn one would be no capture. */
static int send_capture(struct monitor *m)
{
	int err = m->capture_fd < 0 ? 0 : send_patiently(&m->engine, IPC_CAPTURE, NULL, 0, m->capture_fd);

	closep(&m->capture_fd);
	m->capture_fd = -1;
	return err;
}

static int hand_over_engine(struct monitor *m)
{
	struct worker *w = &m->engine;
	int err = send_patiently(w, IPC_CONFIG, NULL, 0, m->public_config_fd);

	if (!err)
		err = send_ring(m);
	if (!err)
		err = send_sideband(m);
	if (!err)
		err = send_patiently(w, IPC_LEDGER, NULL, 0, m->engine_page_fd);
	if (!err)
		err = send_rate(m);
	if (!err)
		err = send_capture(m);
	if (!err)
		err = send_kallsyms(m);
	if (!err)
		err = targets_tell_engine(m);
	if (!err)
		peer_engine_started(m);
	return err ? err : send_patiently(w, IPC_START, NULL, 0, -1);
}

static int hand_over_net(struct monitor *m)
{
	struct worker *w = &m->net;
	int err = send_patiently(w, IPC_CONFIG, NULL, 0, m->config_fd);

	if (!err)
		err = send_patiently(w, IPC_LEDGER, NULL, 0, m->net_page_fd);
	if (!err)
		peer_net_started(m);
	return err ? err : send_patiently(w, IPC_START, NULL, 0, -1);
}

static int hand_over(struct monitor *m, struct worker *w)
{
	int err;

	if (w->kind == WORKER_ENGINE)
		return hand_over_engine(m);
	if (w->kind == WORKER_NET)
		return hand_over_net(m);
	if (w->kind == WORKER_INDEXER)
		return index_jobs_hand_over(m);
	if (w->kind == WORKER_FETCHER)
		return fetch_jobs_hand_over(m);
	err = send_patiently(w, IPC_CONFIG, NULL, 0, m->public_config_fd);
	return err ? err : send_patiently(w, IPC_START, NULL, 0, -1);
}

static uint64_t next_pause(const struct worker *w, uint64_t life)
{
	uint64_t pause = w->back_off_ns;

	if (life > GOOD_LIFE_NS || !pause)
		return BACK_OFF_MIN_NS;
	pause = w->ready && life > FAIR_LIFE * pause ? pause / 2 : pause * 2;
	return MAX(MIN(pause, BACK_OFF_MAX_NS), BACK_OFF_MIN_NS);
}

/* What dies at once waits ever longer; what is killed now and then is away for a fifth of the time at most. */
static void pause_before_start(struct worker *w, uint64_t now)
{
	w->back_off_ns = next_pause(w, now - w->started_ns);
	w->next_start_ns = now + w->back_off_ns;
}

static void start_worker(struct monitor *m, struct worker *w, uint64_t now)
{
	int err = spawn(w);

	if (!err) {
		err = hand_over(m, w);
		if (err) {
			log_warn("%s (pid %d) took nothing over: %s", worker_name(w), w->pid, strerror(-err));
			worker_kill(m, w);
		}
		return;
	}
	w->started_ns = now;
	pause_before_start(w, now);
	log_error("%s cannot be started: %s", worker_name(w), strerror(-err));
}

/* While we stop, engine and net are started only to finish what there is, and then at once. */
bool worker_may_start(const struct monitor *m, const struct worker *w)
{
	if (w->pid || w->exited)
		return false;
	if (w->kind == WORKER_OPENER)
		return m->phase < PHASE_STOP_NET && m->abandoned < ABANDONED_MAX;
	if (w->kind == WORKER_INDEXER)
		return m->phase == PHASE_RUN && index_jobs_wait(m);
	if (w->kind == WORKER_FETCHER)
		return m->phase == PHASE_RUN && fetch_jobs_wait(m);
	if (m->phase == PHASE_RUN)
		return true;
	return m->phase == PHASE_STOP_ENGINE && m->sampling && w->last_starts < LAST_STARTS;
}

static bool is_due(const struct monitor *m, const struct worker *w, uint64_t now)
{
	bool last = m->phase != PHASE_RUN && (w->kind == WORKER_ENGINE || w->kind == WORKER_NET);

	if (!worker_may_start(m, w) || (!last && now < w->next_start_ns))
		return false;
	return w->kind != WORKER_ENGINE || peer_allows_engine(m);
}

static bool is_disposable(const struct worker *w)
{
	return w->kind == WORKER_OPENER || w->kind == WORKER_INDEXER || w->kind == WORKER_FETCHER;
}

/*
 * Openers hang by nature, indexer and fetcher work: their questions and jobs have
 * deadlines, so silence says nothing. One that was asked to stop is busy, and has the stop's deadline.
 */
static bool hangs(const struct worker *w, uint64_t now)
{
	uint64_t patience = w->ready ? SILENCE_NS : START_SILENCE_NS;
	bool silent = is_disposable(w);

	return w->pid && !w->asked && (!silent || !w->ready) && now - w->heard_ns > patience;
}

static void run_worker(struct monitor *m, struct worker *w, uint64_t now)
{
	if (hangs(w, now)) {
		log_warn("%s (pid %d) gave no sign of life for %llu s: it is killed", worker_name(w), w->pid,
			 (unsigned long long)(now - w->heard_ns) / NSEC_PER_SEC);
		w->heard_ns = now;
		worker_kill(m, w);
	} else if (is_due(m, w, now)) {
		w->last_starts += m->phase != PHASE_RUN;
		start_worker(m, w, now);
	}
}

void workers_run(struct monitor *m, uint64_t now)
{
	for (int i = 0; i < OPENERS; i++)
		run_worker(m, &m->opener[i], now);
	run_worker(m, &m->net, now);
	run_worker(m, &m->engine, now);
	run_worker(m, &m->indexer, now);
	run_worker(m, &m->fetcher, now);
}

uint64_t workers_next_ns(const struct monitor *m)
{
	const struct worker *all[] = {&m->engine, &m->net, &m->opener[0], &m->opener[1]};
	uint64_t now = clock_now_ns(), next = UINT64_MAX;

	/* One that is due and still not there waits for a message or a death, not for the clock. */
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!all[i]->pid && !all[i]->exited && all[i]->next_start_ns > now)
			next = MIN(next, all[i]->next_start_ns);
	return next;
}

/* Its death is dealt with when the kernel reports it. */
void worker_kill(struct monitor *m, struct worker *w)
{
	if (w->pid)
		kill(w->pid, SIGKILL);
}

static void how_it_ended(int status, char to[64])
{
	if (WIFSIGNALED(status))
		snprintf(to, 64, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == EXEC_FAILED)
		snprintf(to, 64, "could not be executed");
	else
		snprintf(to, 64, "exited with status %d", WEXITSTATUS(status));
}

static void engine_ended(struct monitor *m)
{
	asks_asker_died(m, ASKER_ENGINE);
	index_jobs_engine_died(m);
	queries_engine_died(m);
	if (m->phase == PHASE_RUN || !m->engine.exited) {
		books_engine_died(m);
		if (m->phase <= PHASE_STOP_ENGINE)
			peer_engine_died(m);
	}
}

static void net_ended(struct monitor *m)
{
	books_net_died(m, m->phase == PHASE_STOP_NET);
	peer_net_died(m);
}

/* One file, one indexer or fetcher: its end is no accident, and the next one need not wait. */
static void job_ended(struct monitor *m, struct worker *w, int status)
{
	enum worker_kind kind = w->kind;
	char how[64];

	how_it_ended(status, how);
	if (status)
		log_info("%s (pid %d) %s", worker_name(w), w->pid, how);
	close(w->sock);
	*w = (struct worker){.kind = kind, .sock = -1, .next_start_ns = clock_now_ns()};
	if (kind == WORKER_FETCHER) {
		fetch_jobs_fetcher_ended(m);
		return;
	}
	asks_asker_died(m, ASKER_INDEXER);
	index_jobs_indexer_ended(m);
}

static void worker_ended(struct monitor *m, struct worker *w, int status)
{
	bool asked = m->phase != PHASE_RUN && status == 0;
	uint64_t now = clock_now_ns();
	char how[64];

	how_it_ended(status, how);
	close(w->sock);
	w->sock = -1;
	w->exited = w->exited || asked;
	if (!asked) {
		pause_before_start(w, now);
		w->restarts++;
		log_tagged(&(struct log_tag){.event = LOG_EVENT_WORKER_ENDED, .worker = worker_name(w)}, LOG_LEVEL_WARN,
			   "%s (pid %d) %s; it is started again", worker_name(w), w->pid, how);
	}
	w->pid = 0;
	w->ready = false;
	if (w->kind == WORKER_ENGINE)
		engine_ended(m);
	else if (w->kind == WORKER_NET)
		net_ended(m);
	else
		asks_opener_died(m, (int)(w - m->opener), false);
}

static struct worker *find(struct monitor *m, pid_t pid)
{
	if (m->engine.pid == pid)
		return &m->engine;
	if (m->net.pid == pid)
		return &m->net;
	if (m->indexer.pid == pid)
		return &m->indexer;
	if (m->fetcher.pid == pid)
		return &m->fetcher;
	for (int i = 0; i < OPENERS; i++)
		if (m->opener[i].pid == pid)
			return &m->opener[i];
	return NULL;
}

static uint64_t cpu_ns(const struct rusage *used)
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
		struct worker *w = find(m, pid);

		if (!w || is_disposable(w))
			m->openers_past_ns += cpu_ns(&used);
		else
			w->past_cpu_ns += cpu_ns(&used);
		if (w == &m->indexer || w == &m->fetcher)
			job_ended(m, w, status);
		else if (w)
			worker_ended(m, w, status);
		else if (m->abandoned)
			m->abandoned--;
	}
}
