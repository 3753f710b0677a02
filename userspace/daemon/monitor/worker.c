// SPDX-License-Identifier: Apache-2.0
#include "daemon/monitor/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "daemon/roles.h"
#include "process/proc_stat.h"

#define BACK_OFF_MIN_NS (100 * NSEC_PER_MSEC)
#define BACK_OFF_MAX_NS (2 * NSEC_PER_SEC)  /* the ring holds more samples than that */
#define HUB_BACK_OFF_MAX_NS (60 * NSEC_PER_SEC) /* nothing is lost while there is none */
#define GOOD_LIFE_NS	(10 * NSEC_PER_SEC) /* after this long a death does not count as a repeated one */
#define FAIR_LIFE	4		    /* after a life of so many pauses the next pause is shorter, not longer */
#define SILENCE_NS	(10 * NSEC_PER_SEC) /* without a message for this long a worker hangs */
#define START_SILENCE_NS (60 * NSEC_PER_SEC) /* while it starts: on an overloaded host its reads are slow */
#define ENGINE_STUCK_NS	(2500 * NSEC_PER_MSEC) /* it beats every two seconds */
#define INDEXER_STUCK_NS (10 * NSEC_PER_SEC)
#define LOOK_NS		(500 * NSEC_PER_MSEC)
/*
 * After SIGKILL: an engine or an indexer that has not ended by then hangs in the kernel. An opener has longer: it is
 * replaced as soon as it is killed, these when they have ended or are left behind.
 */
#define DEATH_NS	(500 * NSEC_PER_MSEC)
#define EXEC_FAILED	126
#define SEND_PATIENCE	1000		    /* ms: a starting worker reads its socket soon */

static const char *const worker_names[] = {
	[WORKER_ENGINE] = "engine", [WORKER_NET] = "net", [WORKER_OPENER] = "opener",
	[WORKER_INDEXER] = "indexer", [WORKER_FETCHER] = "fetcher", [WORKER_DECODER] = "decoder",
	[WORKER_HUB] = "hub"};

/* The variables that a worker inherits. A proxy's URL may hold a password: only those with a network get it. */
static const struct {
	const char *name;
	bool networked;
} environment_kept[] = {
	{"JOURNAL_STREAM", false}, {"ASAN_OPTIONS", false}, {"http_proxy", true}, {"https_proxy", true},
	{"HTTPS_PROXY", true},	   {"all_proxy", true},	    {"ALL_PROXY", true},  {"no_proxy", true},
	{"NO_PROXY", true},
};

const char *worker_name(const struct worker *w)
{
	return worker_names[w->kind];
}

void worker_init(struct worker *w, enum worker_kind kind)
{
	*w = (struct worker){.kind = kind, .sock = -1};
}

int worker_send(struct worker *w, uint32_t type, uint64_t tag, const void *data, size_t len, int fd)
{
	return w->sock < 0 ? -EPIPE : ipc_send(w->sock, type, tag, data, len, &fd, fd >= 0);
}

int worker_send_patiently(struct worker *w, uint32_t type, const void *data, size_t len, int fd)
{
	struct pollfd p = {.fd = w->sock, .events = POLLOUT};
	uint64_t deadline = clock_now_ns() + SEND_PATIENCE * NSEC_PER_MSEC;
	int err;

	while ((err = worker_send(w, type, 0, data, len, fd)) == -EAGAIN && clock_now_ns() < deadline)
		poll(&p, 1, SEND_PATIENCE / 10);
	return err;
}

/* The whole "NAME=value", however long: a truncated no_proxy would name wrong hosts. */
static char *worker_variable(const char *name)
{
	size_t len = strlen(name);

	for (char **e = environ; *e; e++)
		if (!strncmp(*e, name, len) && (*e)[len] == '=')
			return *e;
	return NULL;
}

/* The child, until it executes the program. */
static void worker_child_environment(enum worker_kind kind, char *env[ARRAY_SIZE(environment_kept) + 1])
{
	bool networked = kind == WORKER_NET || kind == WORKER_FETCHER;
	int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(environment_kept); i++)
		if ((networked || !environment_kept[i].networked) && (env[n] = worker_variable(environment_kept[i].name)))
			n++;
	env[n] = NULL;
}

/*
 * Workers are stopped by message. A terminal's interrupt and systemd's stop signal reach every process of the group:
 * a worker that obeyed them would lose the samples that the monitor is about to collect. A file above RLIMIT_FSIZE is
 * an error, not a signal.
 */
static void worker_child_signals(void)
{
	static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ};
	sigset_t none;

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Not the monitor's: it may be a terminal, or kernel addresses, which only the engine gets. */
static bool worker_child_input(void)
{
	int null = open("/dev/null", O_RDONLY);

	return null >= 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO && (null == STDIN_FILENO || close(null) == 0);
}

static void worker_child_execute(enum worker_kind kind, int program)
{
	bool network = kind == WORKER_NET || kind == WORKER_FETCHER || kind == WORKER_HUB;
	char *argv[] = {network ? "otprofd" : "otprof-worker", "--role", (char *)worker_names[kind], NULL};
	char *env[ARRAY_SIZE(environment_kept) + 1], path[32];

	worker_child_environment(kind, env);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
	execve(network ? "/proc/self/exe" : path, argv, env);
}

__attribute__((noreturn)) static void worker_child_run(enum worker_kind kind, int sock, int program)
{
	worker_child_signals();
	if (!worker_child_input())
		_exit(EXEC_FAILED);
	if (sock == ROLE_SOCKET)
		fcntl(sock, F_SETFD, 0);
	else
		dup2(sock, ROLE_SOCKET);
	worker_child_execute(kind, program);
	_exit(EXEC_FAILED);
}

int worker_start(struct worker *w, int program)
{
	int pair[2], err = ipc_pair(pair);
	pid_t pid;

	if (err)
		return err;
	pid = fork();
	if (pid == 0)
		worker_child_run(w->kind, pair[1], program);
	err = pid < 0 ? -errno : 0;
	close(pair[1]);
	if (err) {
		close(pair[0]);
		return err;
	}
	w->pid = pid;
	w->sock = pair[0];
	w->ready = w->asked = w->exited = false;
	w->killed_ns = w->looked_ran_ns = 0;
	w->started_ns = w->heard_ns = clock_now_ns();
	return 0;
}

static uint64_t worker_next_pause(const struct worker *w, uint64_t life)
{
	uint64_t pause = w->back_off_ns, longest = w->kind == WORKER_HUB ? HUB_BACK_OFF_MAX_NS : BACK_OFF_MAX_NS;

	if (life > GOOD_LIFE_NS || !pause)
		return BACK_OFF_MIN_NS;
	pause = w->ready && life > FAIR_LIFE * pause ? pause / 2 : pause * 2;
	return MAX(MIN(pause, longest), BACK_OFF_MIN_NS);
}

/*
 * A worker that dies early waits longer each time; one that is killed now and then is absent for a fifth of the time
 * at most.
 */
void worker_pause(struct worker *w, uint64_t now)
{
	w->back_off_ns = worker_next_pause(w, now - w->started_ns);
	w->next_start_ns = now + w->back_off_ns;
}

bool worker_is_disposable(const struct worker *w)
{
	return w->kind != WORKER_ENGINE && w->kind != WORKER_NET && w->kind != WORKER_HUB;
}

/*
 * Disposable workers may be silent, since their questions and jobs have deadlines. A worker that was asked
 * to stop is busy, and has the stop's deadline.
 */
bool worker_hangs(const struct worker *w, uint64_t now)
{
	uint64_t patience = w->ready ? SILENCE_NS : START_SILENCE_NS;
	bool silent = worker_is_disposable(w);

	return w->pid && !w->asked && (!silent || !w->ready) && now - w->heard_ns > patience;
}

/*
 * CPU time so far, where the process waits now; else 0. One that waits for FUSE looks as if a signal could end it
 * (Linux, fs/fuse/dev.c, request_wait_answer). Of schedstat: Linux, Documentation/scheduler/sched-stats.rst.
 */
static uint64_t worker_waits_at(pid_t pid)
{
	struct proc_stat stat;
	char text[64];

	if (proc_stat_read((uint32_t)pid, &stat) || (stat.state != 'D' && stat.state != 'S') ||
	    file_read_proc((uint32_t)pid, "schedstat", text, sizeof(text)) <= 0)
		return 0;
	return strtoull(text, NULL, 10);
}

/* Each engine that was stuck leaves its successors more: a host that swaps is slow, and a new engine makes it slower. */
static uint64_t worker_stuck_patience(const struct worker *w)
{
	return w->kind == WORKER_ENGINE ? MIN((uint64_t)ENGINE_STUCK_NS << MIN(w->stuck, 2u), SILENCE_NS) : INDEXER_STUCK_NS;
}

bool worker_is_stuck(struct worker *w, uint64_t now)
{
	uint64_t patience = worker_stuck_patience(w), ran;

	if (!w->pid || (w->kind != WORKER_ENGINE && w->kind != WORKER_INDEXER) || now - w->heard_ns < patience ||
	    now - w->looked_ns < LOOK_NS)
		return false;
	ran = worker_waits_at(w->pid);
	if (ran && ran == w->looked_ran_ns) {
		w->stuck++;
		return true;
	}
	w->looked_ns = now;
	w->looked_ran_ns = ran;
	return false;
}

bool worker_outlives(const struct worker *w, uint64_t now)
{
	return w->pid && w->killed_ns && now - w->killed_ns > DEATH_NS;
}

uint64_t worker_look_ns(const struct worker *w, uint64_t now)
{
	if (w->pid && w->killed_ns)
		return w->killed_ns + DEATH_NS + 1;
	return w->kind == WORKER_ENGINE && w->pid && now - w->heard_ns > ENGINE_STUCK_NS ? now + LOOK_NS : UINT64_MAX;
}

void worker_kill(struct worker *w)
{
	if (!w->pid)
		return;
	kill(w->pid, SIGKILL);
	if (!w->killed_ns)
		w->killed_ns = clock_now_ns();
}

void worker_hang_up(struct worker *w)
{
	if (w->sock >= 0)
		close(w->sock);
	w->sock = -1;
}

void worker_how_ended(int status, char to[64])
{
	if (WIFSIGNALED(status))
		snprintf(to, 64, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == EXEC_FAILED)
		snprintf(to, 64, "could not be executed");
	else
		snprintf(to, 64, "exited with status %d", WEXITSTATUS(status));
}
