// SPDX-License-Identifier: Apache-2.0
#include "cli/session.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/utf8.h"
#include "cli/client.h"

#define STOP_NS   (20 * NSEC_PER_SEC)
#define LOG_SHOWN 4096

extern char **environ;

/* The path becomes part of a URL and a configuration file: only characters without a meaning there. */
static const char *session_temporary_parent(void)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-";
	/* Root's may be the one of the user who called sudo, who could exchange what root makes there. */
	const char *dir = geteuid() ? secure_getenv("TMPDIR") : NULL;

	if (!dir || *dir != '/' || strlen(dir) > 40 || dir[strspn(dir, plain)])
		return "/tmp";
	return dir;
}

static int session_make_directories(struct session *s)
{
	snprintf(s->dir, sizeof(s->dir), "%s/otprof-XXXXXX", session_temporary_parent());
	if (!mkdtemp(s->dir)) {
		s->dir[0] = '\0';
		return -errno;
	}
	snprintf(s->runtime, sizeof(s->runtime), "%s/run", s->dir);
	snprintf(s->out, sizeof(s->out), "%s/out", s->dir);
	snprintf(s->config, sizeof(s->config), "%s/otprof.conf", s->dir);
	snprintf(s->log, sizeof(s->log), "%s/log", s->dir);
	if (mkdir(s->runtime, 0755) < 0 || mkdir(s->out, 0700) < 0)
		return -errno;
	/* net writes as a user that otprofd chooses; the directory above is closed to others. */
	return chmod(s->out, 0777) < 0 ? -errno : 0;
}

static int session_write_config(const struct session *s, const struct session_options *o)
{
	_cleanup_(fclosep) FILE *f = fopen(s->config, "we");
	_cleanup_(buf_done) struct buf events = {0};
	uint32_t i;

	if (!f)
		return -errno;
	event_list_print(&o->events, &events);
	fprintf(f, "[sampler]\nmode = %s\nfrequency_hz = %" PRIu32 "\nevents = %s\n", o->sampler ? o->sampler : "auto",
		o->frequency_hz, buf_cstr(&events));
	/* Longer than a service's: no reader waits for a part of a recording, and fewer dictionaries are written. */
	fprintf(f, "[profile]\ninterval = 10s\n");
	if (o->nr_pids || o->nr_targets)
		fprintf(f, "[targets]\n");
	for (i = 0; i < o->nr_pids; i++)
		fprintf(f, "include = pid:%" PRIu32 "\n", o->pids[i]);
	for (i = 0; i < o->nr_targets; i++)
		fprintf(f, "include = %s%s\n", o->targets[i].kind, o->targets[i].value);
	fprintf(f, "[exporter file]\nendpoint = file://%s\n[daemon]\nruntime_dir = %s\n", s->out, s->runtime);
	return fflush(f) == EOF ? -errno : 0;
}

void session_exec_otprofd(char *const argv[])
{
	static const char *const places[] = {"/otprofd", "/../sbin/otprofd"};
	char self[4000], path[4096];
	int err = file_own_directory(self, sizeof(self));

	for (size_t i = 0; !err && i < ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%s%s", self, places[i]);
		execv(path, argv);
	}
	execvp("otprofd", argv);
}

/* Removes variables that configure a service: they could change the recording or send it elsewhere. */
static void session_clean_environment(void)
{
	static const char *const prefixes[] = {"OTEL_", "PROFILES_", "NOTIFY_SOCKET=", "WATCHDOG_", "LISTEN_",
					       "JOURNAL_STREAM="};
	char **from, **to = environ;
	size_t i;

	for (from = environ; *from; from++) {
		for (i = 0; i < ARRAY_SIZE(prefixes); i++)
			if (strncmp(*from, prefixes[i], strlen(prefixes[i])) == 0)
				break;
		if (i == ARRAY_SIZE(prefixes))
			*to++ = *from;
	}
	*to = NULL;
}

static void session_run_otprofd(const struct session *s, pid_t parent, bool verbose)
{
	int log = open(s->log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	/* Its own group: Ctrl-C on the terminal reaches only otprof, which then stops otprofd in order. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || log < 0 || null < 0)
		_exit(127);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (!verbose)
		dup2(log, STDERR_FILENO);
	session_clean_environment();
	session_exec_otprofd((char *[]){(char *)"otprofd", (char *)"-f", (char *)(uintptr_t)s->config, NULL});
	dprintf(STDERR_FILENO, "otprofd cannot be started: %s\n", strerror(errno));
	_exit(127);
}

int session_start(struct session *s, const struct session_options *o)
{
	pid_t parent = getpid(), pid;
	int r;

	*s = (struct session){0};
	r = session_make_directories(s);
	if (!r)
		r = session_write_config(s, o);
	if (r < 0)
		return r;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		session_run_otprofd(s, parent, o->verbose);
	s->pid = pid;
	return 0;
}

bool session_alive(struct session *s)
{
	pid_t pid = s->pid ? waitpid(s->pid, &s->status, WNOHANG) : -1;

	if (pid == 0)
		return true;
	s->pid = 0;
	return false;
}

int session_ready(struct session *s)
{
	_cleanup_(json_decrefp) json_t *status = NULL;

	if (!session_alive(s))
		return -ECHILD;
	return client_status(s->runtime, &status) == 0 && client_is_true(status, "sampler.sampling");
}

int session_stop(struct session *s)
{
	uint64_t deadline = clock_now_ns() + STOP_NS;
	struct timespec tick = {.tv_nsec = 10 * NSEC_PER_MSEC};

	if (!s->pid)
		return -ECHILD;
	kill(s->pid, SIGTERM);
	while (session_alive(s)) {
		if (clock_now_ns() < deadline) {
			nanosleep(&tick, NULL);
			continue;
		}
		kill(s->pid, SIGKILL);
		waitpid(s->pid, &s->status, 0);
		s->pid = 0;
		return -ETIME;
	}
	return WIFEXITED(s->status) && WEXITSTATUS(s->status) == 0 ? 0 : -ECHILD;
}

int session_read(struct session *s, struct recording *r)
{
	char name[256];
	int n = recording_read_directory(r, s->out, name, sizeof(name));

	return n < 0 ? n : 0;
}

void session_print_log(const struct session *s)
{
	_cleanup_(closep) int fd = open(s->log, O_RDONLY | O_CLOEXEC);
	off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	char text[LOG_SHOWN + 1], *line;
	ssize_t n;

	if (end <= 0)
		return;
	n = pread(fd, text, LOG_SHOWN, end > LOG_SHOWN ? end - LOG_SHOWN : 0);
	text[n > 0 ? n : 0] = '\0';
	/* The cut may be inside a line: begin with the next one. */
	line = end > LOG_SHOWN ? strchr(text, '\n') : NULL;
	for (line = strtok(line ? line : text, "\n"); line; line = strtok(NULL, "\n")) {
		utf8_clean_str(line);
		fprintf(stderr, "  | %s\n", line);
	}
}

static int session_remove_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	remove(path); /* on failure, only its directory remains */
	return 0;
}

void session_done(struct session *s)
{
	if (s->pid)
		session_stop(s);
	/* FTW_PHYS, FTW_MOUNT: follows no link and no mount. */
	if (s->dir[0])
		nftw(s->dir, session_remove_file, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	s->dir[0] = '\0';
}
