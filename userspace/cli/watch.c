// SPDX-License-Identifier: Apache-2.0
/*
 * otprof watch: follows the directory of a file destination, a line every
 * interval, and keeps a flame graph of the last minute.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/limits.h"
#include "cli/output.h"
#include "graph/graph.h"
#include "render/render.h"

#define NAME_SHOWN 48
#define FILE_NAME  64

static const char help[] =
	"Usage: otprof watch [OPTION]... --dir=DIR\n"
	"Follow DIR, where an otprofd writes its profiles as files: print a line every\n"
	"interval, and keep a flame graph of the last window of time.\n"
	"\n"
	"      --dir=DIR          directory of a destination with endpoint = file://DIR\n"
	"      --svg=FILE         keep a flame graph in FILE, replaced in one step. FILE is of\n"
	"                           the first type of samples seen (CPU samples, if there\n"
	"                           are any); others are in FILE.TYPE.svg\n"
	"      --window=TIME      time that the flame graph covers (default: 60s); older\n"
	"                           profiles in DIR are removed\n"
	"      --interval=TIME    time between lines (default: 5s)\n"
	"      --count=N          end after N lines\n"
	"      --runtime-dir=DIR  directory of otprofd's socket (default: " CLI_RUNTIME_DIR ")\n"
	"      --help             display this help and exit\n"
	"\n"
	"A line shows the samples since the previous line, the number of processes, the\n"
	"function with the most samples of its own, the cost of otprofd, and the losses.\n";

struct options {
	const char *dir, *svg, *runtime_dir;
	uint64_t window_ns, interval_ns;
	uint64_t count; /* 0: no end */
};

/* otprofd's counters at the last line. */
struct counters {
	uint64_t time_ns, cpu_ns, taken, lost, missed, processes;
	bool known, kernel; /* kernel: the sampler's time is part of cpu_ns */
};

struct watcher {
	const struct options *o;
	int dir; /* -1: does not exist yet */
	char last[FILE_NAME]; /* newest file that a line was printed of */
	char type[VIEW_NAME]; /* of samples in the file named by --svg; "": no samples yet */
	struct counters before;
};

/* otprof-<Unix ms, 13 digits>-<request, 8 digits or more>.otlp */
static bool watch_parse_name(const char *name, uint64_t *ret_ms)
{
	static const char prefix[] = "otprof-";
	const char *ms = name + sizeof(prefix) - 1, *id;

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0 || strspn(ms, "0123456789") != 13 || ms[13] != '-')
		return false;
	id = ms + 14;
	if (strspn(id, "0123456789") < 8 || strcmp(id + strspn(id, "0123456789"), ".otlp") != 0)
		return false;
	*ret_ms = strtoull(ms, NULL, 10);
	return strlen(name) < FILE_NAME;
}

static int watch_is_ours(const struct dirent *d)
{
	uint64_t ms;

	return watch_parse_name(d->d_name, &ms);
}

static void watch_read(struct watcher *w, const char *name, struct recording *r)
{
	int e = recording_read_file(r, w->dir, name);

	/* The file may be removed already: the destination has a limit of its own. */
	if (e < 0 && e != -ENOENT)
		cli_error("'%s/%s' is left out: %s", w->o->dir, name, recording_strerror(e));
}

static void watch_use_file(struct watcher *w, const char *name, uint64_t oldest_ms, struct recording *fresh,
		     struct recording *window)
{
	uint64_t ms;

	if (!watch_parse_name(name, &ms))
		return;
	if (ms < oldest_ms) {
		unlinkat(w->dir, name, 0);
		return;
	}
	if (w->o->svg)
		watch_read(w, name, window);
	if (strcmp(name, w->last) > 0)
		watch_read(w, name, fresh);
}

static int watch_open_dir(struct watcher *w)
{
	if (w->dir < 0)
		w->dir = open(w->o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return w->dir;
}

/* Names sort by age: both numbers in them have fixed widths. */
static int watch_scan(struct watcher *w, struct recording *fresh, struct recording *window)
{
	uint64_t now_ms = clock_read_ns(CLOCK_REALTIME) / NSEC_PER_MSEC, window_ms = w->o->window_ns / NSEC_PER_MSEC;
	struct dirent **names = NULL;
	int n = watch_open_dir(w) < 0 ? -1 : scandir(w->o->dir, &names, watch_is_ours, alphasort), i;

	if (n < 0)
		return -errno;
	for (i = 0; i < n; i++)
		watch_use_file(w, names[i]->d_name, now_ms > window_ms ? now_ms - window_ms : 0, fresh, window);
	if (n && strcmp(names[n - 1]->d_name, w->last) > 0)
		snprintf(w->last, sizeof(w->last), "%.63s", names[n - 1]->d_name);
	for (i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return 0;
}

static struct counters watch_read_counters(const char *runtime_dir)
{
	_cleanup_(json_decrefp) json_t *s = NULL;
	struct counters c = {.time_ns = clock_now_ns()};

	if (client_status(runtime_dir, &s) < 0)
		return c;
	c.known = true;
	c.cpu_ns = client_number(s, "cost.kernel_ns") + client_number(s, "cost.monitor_cpu_ns") +
		   client_number(s, "cost.engine_cpu_ns") + client_number(s, "cost.net_cpu_ns") +
		   client_number(s, "cost.hub_cpu_ns") +
		   client_number(s, "cost.opener_cpu_ns");
	c.kernel = client_number(s, "cost.kernel_runs") > 0;
	c.taken = client_number(s, "ledger.taken");
	c.lost = client_lost(s, "ledger");
	c.missed = client_number(s, "ledger.missed");
	c.processes = client_number(s, "processes");
	return c;
}

static void watch_add_values(struct buf *b, const struct recording *fresh, const struct rec_views *views)
{
	char text[32];
	uint32_t i;

	for (i = 0; i < MIN(views->count, (uint32_t)CLI_TYPES); i++)
		buf_printf(b, "  %s %s", format_count(text, sizeof(text), views->list[i].value),
			   rec_view_unit(fresh, &views->list[i]));
}

static void watch_add_top(struct buf *b, const struct recording *fresh, const struct rec_view *v)
{
	_cleanup_(graph_freep) struct graph *g = NULL;
	const struct tree_function *f;
	const char *name, *module, *slash;
	uint32_t function;
	uint64_t self;

	if (graph_new(&cli_tree_limits, &g) < 0 || graph_add(g, fresh, v) < 0 || graph_finish(g) < 0 ||
	    values_hottest(&g->now, g->tree, &function, &self) < 0 || !function)
		return;
	f = tree_function(g->tree, function);
	name = tree_string(g->tree, f->name);
	module = tree_string(g->tree, f->module);
	slash = strrchr(module, '/');
	buf_add_str(b, "  hottest ");
	buf_add(b, name, utf8_bytes(name, NAME_SHOWN));
	if (*module)
		buf_printf(b, " (%s)", slash ? slash + 1 : module);
	buf_printf(b, " %.1f %%", format_percent(self, v->value));
}

/* Since the previous line; a smaller counter belongs to another otprofd. */
static void watch_add_cost(struct buf *b, const struct counters *now, const struct counters *before)
{
	uint64_t cpu, taken, lost;
	char text[32];

	if (!now->known) {
		buf_add_str(b, "  otprofd does not answer");
		return;
	}
	lost = now->lost - (before->known && now->lost >= before->lost ? before->lost : 0);
	if (before->known && now->cpu_ns >= before->cpu_ns && now->taken >= before->taken) {
		cpu = now->cpu_ns - before->cpu_ns;
		taken = now->taken - before->taken;
		buf_printf(b, "  cost %.2f %% of one CPU", format_percent(cpu, now->time_ns - before->time_ns));
		if (taken)
			buf_printf(b, ", %.1f \xc2\xb5s a sample", (double)cpu / 1000 / (double)taken);
	}
	if (!now->kernel)
		buf_add_str(b, " (kernel time not measured: kernel.bpf_stats_enabled=0)");
	buf_printf(b, "  lost %s", format_count(text, sizeof(text), lost));
}

static int watch_print_line(struct watcher *w, struct recording *fresh)
{
	_cleanup_(buf_done) struct buf b = {0};
	struct counters now = watch_read_counters(w->o->runtime_dir);
	time_t t = time(NULL);
	struct tm tm = {0};
	_cleanup_(rec_views_done) struct rec_views views = {0};
	char text[32];

	if (recording_views(fresh, &views) < 0)
		return -ENOMEM;
	localtime_r(&t, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	buf_printf(&b, "%s", text);
	watch_add_values(&b, fresh, &views);
	if (now.known)
		buf_printf(&b, "  %" PRIu64 " processes", now.processes);
	watch_add_top(&b, fresh, &views.list[0]);
	watch_add_cost(&b, &now, &w->before);
	w->before = now;
	return puts(buf_cstr(&b)) == EOF || fflush(stdout) == EOF ? -errno : 0;
}

/* The type that the first window with samples has first; a later window may lack it. */
static void watch_choose_type(struct watcher *w, const struct recording *window)
{
	_cleanup_(rec_views_done) struct rec_views views = {0};

	if (!*w->type && window->samples.count && recording_views(window, &views) == 0)
		memcpy(w->type, views.list[0].name, sizeof(w->type));
}

static void watch_keep_svg(struct watcher *w, struct recording *window)
{
	char title[64], time[32];
	struct output_options o = {.path = w->o->svg, .title = title, .quiet = true};

	if (!w->o->svg)
		return;
	watch_choose_type(w, window);
	o.plain = *w->type ? w->type : NULL;
	snprintf(title, sizeof(title), "Whole host, the last %s", format_duration(time, sizeof(time), w->o->window_ns));
	output_write(window, &o);
}

static int watch_step(struct watcher *w)
{
	_cleanup_(recording_freep) struct recording *fresh = NULL, *window = NULL;
	int e;

	if (recording_new(&cli_recording_limits, &fresh) < 0 || recording_new(&cli_recording_limits, &window) < 0)
		return -ENOMEM;
	e = watch_scan(w, fresh, window);
	/* The directory comes with otprofd's first profile at the latest. */
	if (e < 0 && e != -ENOENT) {
		cli_error("cannot read '%s': %s", w->o->dir, strerror(-e));
		return e;
	}
	watch_keep_svg(w, window);
	e = watch_print_line(w, fresh);
	if (e < 0)
		cli_error("write error: %s", strerror(-e));
	return e;
}

/* True when asked to end. A deadline, not a pause: lines do not drift by what a step takes. */
static bool watch_wait_until(const sigset_t *ends, uint64_t deadline)
{
	uint64_t now = clock_now_ns(), left = deadline > now ? deadline - now : 0;
	struct timespec ts = {.tv_sec = (time_t)(left / NSEC_PER_SEC), .tv_nsec = (long)(left % NSEC_PER_SEC)};

	return sigtimedwait(ends, NULL, &ts) > 0;
}

static int watch(const struct options *o)
{
	struct watcher w = {.o = o, .dir = -1, .before = watch_read_counters(o->runtime_dir)};
	uint64_t next = clock_now_ns(), lines = 0;
	sigset_t ends;
	int e = 0;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	while (!e) {
		next = MAX(next + o->interval_ns, clock_now_ns());
		if (watch_wait_until(&ends, next))
			break;
		e = watch_step(&w);
		if (o->count && ++lines == o->count)
			break;
	}
	closep(&w.dir);
	return e < 0 ? CLI_FAILED : 0;
}

static int watch_parse_time(const char *what, const char *s, uint64_t *ret)
{
	if (cli_parse_time(s, ret) == 0)
		return 0;
	cli_error("invalid %s '%s', expected such as 60s, 500ms, 2m", what, s);
	return -EINVAL;
}

static int watch_parse_option(struct options *o, int c)
{
	switch (c) {
	case 'd':
		o->dir = optarg;
		return 0;
	case 's':
		o->svg = optarg;
		return 0;
	case 'r':
		o->runtime_dir = optarg;
		return 0;
	case 'w':
		return watch_parse_time("window", optarg, &o->window_ns);
	case 'i':
		return watch_parse_time("interval", optarg, &o->interval_ns);
	case 'n':
		if (cli_parse_number(optarg, 1, UINT32_MAX, &o->count) == 0)
			return 0;
		cli_error("invalid count '%s'", optarg);
		return -EINVAL;
	default:
		return -EINVAL;
	}
}

static int watch_check(const struct options *o)
{
	const struct render_format *f = o->svg ? render_format_of(o->svg) : NULL;

	if (!o->dir) {
		cli_error("missing --dir");
		return -EINVAL;
	}
	if (o->svg && (!f || f->graph != render_svg)) {
		cli_error("--svg takes a name that ends in .svg, not '%s'", o->svg);
		return -EINVAL;
	}
	return 0;
}

int cmd_watch(int argc, char **argv)
{
	static const struct option longs[] = {
		{"dir", required_argument, NULL, 'd'},      {"svg", required_argument, NULL, 's'},
		{"window", required_argument, NULL, 'w'},   {"interval", required_argument, NULL, 'i'},
		{"count", required_argument, NULL, 'n'},    {"runtime-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},           {0},
	};
	struct options o = {.runtime_dir = CLI_RUNTIME_DIR, .window_ns = 60 * NSEC_PER_SEC, .interval_ns = 5 * NSEC_PER_SEC};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'h')
			return cli_help(help);
		if (watch_parse_option(&o, c) < 0)
			return cli_try_help(CLI_USAGE);
	}
	if (optind < argc) {
		cli_error("extra operand '%s'", argv[optind]);
		return cli_try_help(CLI_USAGE);
	}
	return watch_check(&o) < 0 ? cli_try_help(CLI_USAGE) : watch(&o);
}
