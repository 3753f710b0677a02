// SPDX-License-Identifier: Apache-2.0
/* otprof record: profiles for a time, or a command, and writes a file. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/limits.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/record.h"
#include "cli/session.h"
#include "source/pids.h"

#define READY_NS (30 * NSEC_PER_SEC)
#define TICK_MS  200

struct recorder {
	const struct record_options *o;
	struct command command;
	struct session session;
	struct progress progress;
	int signals; /* signalfd; -1 until made */
	uint64_t start_ns, end_ns;
	bool interrupted;
};

/* Blocks the signals that end a program, and receives them by descriptor instead. */
static int record_take_signals(struct recorder *r)
{
	static const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
	sigset_t set;
	size_t i;

	sigemptyset(&set);
	for (i = 0; i < ARRAY_SIZE(wanted); i++)
		sigaddset(&set, wanted[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return r->signals < 0 ? -errno : 0;
}

/* The terminal sends Ctrl-C to the command as well; a signal from another process is forwarded. */
static void record_forward_signal(const struct recorder *r, const struct signalfd_siginfo *info)
{
	if (r->command.pid && !r->command.ended && info->ssi_code <= 0)
		kill(r->command.pid, (int)info->ssi_signo);
}

static void record_wait_tick(struct recorder *r, int ms)
{
	struct pollfd p = {.fd = r->signals, .events = POLLIN};
	struct signalfd_siginfo info;

	poll(&p, 1, ms);
	while (read(r->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		record_forward_signal(r, &info);
		r->interrupted = true;
	}
}

static int record_report_failure(struct recorder *r, const char *what)
{
	progress_clear(&r->progress);
	cli_error("%s%s", what, r->o->session.verbose ? "" : "; its log:");
	if (!r->o->session.verbose)
		session_print_log(&r->session);
	return -EIO;
}

static int record_wait_ready(struct recorder *r)
{
	uint64_t deadline = clock_now_ns() + READY_NS;
	int up;

	while (!(up = session_ready(&r->session))) {
		if (clock_now_ns() > deadline)
			return record_report_failure(r, "otprofd did not start to sample in time");
		record_wait_tick(r, 20);
		if (r->interrupted)
			return -EINTR;
	}
	return up < 0 ? record_report_failure(r, "otprofd did not start") : 0;
}

static bool record_targets_gone(const struct recorder *r)
{
	const struct session_options *s = &r->o->session;
	uint32_t i;

	if (r->o->command || !s->nr_pids || s->nr_targets)
		return false;
	for (i = 0; i < s->nr_pids; i++)
		if (!pid_is_gone(s->pids[i]))
			return false;
	return true;
}

static bool record_is_over(struct recorder *r)
{
	if (r->interrupted || command_poll(&r->command) || record_targets_gone(r))
		return true;
	return r->o->duration_ns && clock_now_ns() - r->start_ns >= r->o->duration_ns;
}

static int record_next_tick_ms(const struct recorder *r)
{
	uint64_t passed = clock_now_ns() - r->start_ns;

	if (!r->o->duration_ns || r->o->duration_ns > passed + TICK_MS * NSEC_PER_MSEC)
		return TICK_MS;
	return r->o->duration_ns > passed ? (int)((r->o->duration_ns - passed) / NSEC_PER_MSEC) + 1 : 0;
}

/* Waits until the recording is over. */
static int record_sample(struct recorder *r)
{
	r->start_ns = clock_now_ns();
	progress_start(&r->progress, r->session.runtime, r->o->quiet);
	while (!record_is_over(r)) {
		if (!session_alive(&r->session))
			return record_report_failure(r, "otprofd ended by itself");
		progress_tick(&r->progress);
		record_wait_tick(r, record_next_tick_ms(r));
	}
	r->end_ns = clock_now_ns();
	progress_clear(&r->progress);
	return 0;
}

static void record_warn_lost(const json_t *status)
{
	const json_t *lost = client_at(status, "ledger.lost");
	uint64_t unconfirmed = client_sum(status, "ledger.unconfirmed");
	const char *reason;
	char text[32];
	json_t *n;

	json_object_foreach((json_t *)lost, reason, n)
		if (client_number(n, ""))
			cli_error("warning: %s samples were lost: %s", format_count(text, sizeof(text), client_number(n, "")),
				  reason);
	if (unconfirmed)
		cli_error("warning: %s samples may be missing", format_count(text, sizeof(text), unconfirmed));
	if (json_is_false(client_at(status, "ledger.balanced")))
		cli_error("warning: otprofd's count of samples does not balance");
}

/* What otprofd wrote of an origin, in the unit of its values. False: unknown, as some was lost. */
static bool record_written(const json_t *origin, uint64_t *ret)
{
	bool samples = strcmp(client_text(origin, "type"), "samples") == 0;

	*ret = samples ? client_sum(origin, "exported") : client_number(origin, "value");
	return samples || client_sum(origin, "lost") + client_sum(origin, "unconfirmed") + client_number(origin, "in_flight") == 0;
}

static uint64_t record_value(const struct recording *rec, const struct rec_views *views, const char *type)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < views->count; i++)
		if (strcmp(recording_str(rec, views->list[i].type.type), type) == 0)
			value += views->list[i].value;
	return value;
}

static void record_check_origins(const json_t *status, const struct recording *rec)
{
	_cleanup_(rec_views_done) struct rec_views views = {0};
	const char *name;
	json_t *origin;

	if (recording_views(rec, &views) < 0)
		return;
	json_object_foreach((json_t *)client_at(status, "ledger.origins"), name, origin) {
		const char *type = client_text(origin, "type");
		uint64_t read = record_value(rec, &views, type), written;
		char a[32], b[32];

		if (record_written(origin, &written) && read != written)
			cli_error("warning: otprofd wrote %s %s, %s were read", format_count(a, sizeof(a), written), type,
				  format_count(b, sizeof(b), read));
	}
}

/* Checks that of each origin as much was read as otprofd counts as written. */
static void record_check_ledger(struct recorder *r, const struct recording *rec)
{
	_cleanup_(json_decrefp) json_t *status = NULL;

	if (client_last_status(r->session.runtime, &status) < 0) {
		cli_error("warning: otprofd left no ledger of its samples");
		return;
	}
	record_warn_lost(status);
	record_check_origins(status, rec);
}

static void command_text(struct buf *b, char *const *argv)
{
	for (; *argv; argv++)
		buf_printf(b, "%s%s", b->len ? " " : "", *argv);
}

static void record_default_title(const struct record_options *o, struct buf *b)
{
	uint32_t i;

	if (o->title)
		buf_add_str(b, o->title);
	else if (o->command)
		command_text(b, o->command);
	else if (!o->session.nr_pids && !o->session.nr_targets)
		buf_add_str(b, "Whole host");
	for (i = 0; !o->title && !o->command && i < o->session.nr_pids; i++)
		buf_printf(b, "%s%" PRIu32, i ? ", " : "Process ", o->session.pids[i]);
	for (i = 0; !o->title && !o->command && i < o->session.nr_targets; i++)
		buf_printf(b, "%s%.*s %s", b->len ? ", " : "", (int)strcspn(o->session.targets[i].kind, ":"),
			   o->session.targets[i].kind, o->session.targets[i].value);
}

/* Titles come from arguments, which may hold anything. */
static void record_make_title(const struct record_options *o, struct buf *title)
{
	_cleanup_(buf_done) struct buf raw = {0};

	record_default_title(o, &raw);
	utf8_add_clean(title, (const char *)raw.data, raw.len);
}

static int record_write_output(struct recorder *r, struct recording *rec)
{
	_cleanup_(buf_done) struct buf title = {0};
	char rate[32], time[32];
	struct output_options o = {
		.path = r->o->output, .subtitle = rate, .duration = time, .inverted = r->o->inverted, .quiet = r->o->quiet,
	};

	record_make_title(r->o, &title);
	o.title = buf_cstr(&title);
	snprintf(rate, sizeof(rate), "%" PRIu32 " Hz", r->o->session.frequency_hz);
	format_duration(time, sizeof(time), r->end_ns - r->start_ns);
	if (output_write(rec, &o) < 0)
		return -EIO;
	if (!rec->total && !r->o->quiet)
		cli_error("no samples: no selected process %s in that time",
			  r->o->session.events.count ? "made the events" : "used the CPU");
	return 0;
}

static int record_finish(struct recorder *r)
{
	_cleanup_(recording_freep) struct recording *rec = NULL;
	int e = session_stop(&r->session);

	if (e < 0)
		record_report_failure(r, e == -ETIME ? "otprofd did not end in time" : "otprofd ended with an error");
	e = recording_new(&cli_recording_limits, &rec);
	if (!e)
		e = session_read(&r->session, rec);
	if (e < 0) {
		cli_error("cannot read the profiles of otprofd: %s", recording_strerror(e));
		return e;
	}
	record_check_ledger(r, rec);
	return record_write_output(r, rec);
}

static int record_start_command(struct recorder *r)
{
	int e;

	if (!r->command.pid)
		return 0;
	e = command_start(&r->command);
	if (e < 0) {
		cli_error("cannot run '%s': %s", r->o->command[0], strerror(-e));
		command_wait(&r->command);
	}
	return e;
}

static int record(struct recorder *r, const struct session_options *session)
{
	int e = session_start(&r->session, session);

	if (e < 0) {
		cli_error("cannot start otprofd: %s", strerror(-e));
		return e;
	}
	e = record_wait_ready(r);
	if (!e)
		e = record_start_command(r);
	if (!e)
		e = record_sample(r);
	return e < 0 ? e : record_finish(r);
}

static void record_done(struct recorder *r)
{
	command_done(&r->command);
	session_done(&r->session);
	closep(&r->signals);
}

static int record_exit_status(struct recorder *r, int e)
{
	if (r->command.ended && (r->command.status == CLI_NOT_FOUND || r->command.status == CLI_NOT_EXECUTABLE) && e < 0)
		return r->command.status;
	if (e < 0)
		return CLI_RECORD_FAILED;
	if (!r->command.pid)
		return 0;
	/* The recording is written; the command may run on. */
	session_done(&r->session);
	while (!command_poll(&r->command)) {
		r->interrupted = false;
		record_wait_tick(r, -1);
		if (r->interrupted)
			return 128 + SIGINT;
	}
	return r->command.status;
}

static int record_run(const struct record_options *o)
{
	_cleanup_(record_done) struct recorder r = {.o = o, .signals = -1};
	struct session_options session = o->session;
	int e = record_take_signals(&r);

	/* The command exists before otprofd is configured: selection is by its pid. */
	if (!e && o->command)
		e = command_create(&r.command, o->command);
	if (e < 0) {
		cli_error("%s", strerror(-e));
		return CLI_RECORD_FAILED;
	}
	if (o->command)
		session.pids[session.nr_pids++] = (uint32_t)r.command.pid;
	return record_exit_status(&r, record(&r, &session));
}

int cmd_record(int argc, char **argv)
{
	struct record_options o;
	int status = record_parse(argc, argv, &o);

	return status < 0 ? record_run(&o) : status;
}
