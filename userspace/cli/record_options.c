// SPDX-License-Identifier: Apache-2.0
/* The command line of otprof record. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/record.h"
#include "cli/target_check.h"
#include "render/render.h"
#include "source/perf_probe.h"
#include "source/pids.h"

#define HZ_MAX 10000

static const char help[] =
	"Usage: otprof record [OPTION]... [--] [COMMAND [ARG]...]\n"
	"Profile this host, some processes, or COMMAND and all that it starts.\n"
	"Works beside a running otprofd, or without one.\n"
	"\n"
	"  -d, --duration=TIME    end after TIME: seconds, or such as 500ms, 2m, 1h\n"
	"                           (default: when COMMAND ends, or on Ctrl-C)\n"
	"  -F, --frequency=HZ     samples a second on every busy CPU (default: 97), on\n"
	"                           average: as root, their distances vary at random\n"
	"  -e, --event=EVENT,...  sample events instead of the CPU's clock: page-faults,\n"
	"                           context-switches, cycles, ... by perf's names; add\n"
	"                           cpu-clock to sample the clock as well; EVENT/period=N/\n"
	"                           or EVENT/freq=HZ/ sets the rate of one event;\n"
	"                           -e help lists the events\n"
	"  -c, --count=N          a sample every N events (default: samples at the\n"
	"                           frequency of -F)\n"
	"\n"
	"What to profile, instead of the whole host; options add up and may be repeated:\n"
	"  -p, --pid=PID,...      these processes and what they start\n"
	"      --unit=NAME        a systemd unit: nginx, 'getty@*.service'\n"
	"      --container=ID     a container, by the beginning of its id or by its name\n"
	"      --cgroup=PATH      a control group and all below it: /user.slice\n"
	"      --exe=NAME         programs of this name, or at this absolute path\n"
	"      --user=NAME        processes of a user, by name or number\n"
	"In NAME and PATH, * matches any characters but a slash, and ? matches one.\n"
	"A unit, program or user that does not exist is an error, and so is a container\n"
	"where none runs at all; one that exists and does not run is waited for. With\n"
	"COMMAND, which may start it, nothing of this is checked.\n"
	"\n"
	"  -o, --output=FILE      write to FILE (default: otprof.svg); its ending is\n"
	"                           the format:\n"
	"                             .svg        flame graph, opens in a browser\n"
	"                             .pb.gz      for pprof: go tool pprof FILE\n"
	"                             .collapsed  one line a stack, with its samples\n"
	"                             .otlp       OTLP profiles, one request\n"
	"  -t, --title=TEXT       title of the flame graph\n"
	"      --inverted         flame graph with the root on top\n"
	"      --sampler=MODE     auto, bpf, kmod or perf (default: auto)\n"
	"  -q, --quiet            no progress and no summary\n"
	"  -v, --verbose          show the log of otprofd\n"
	"      --help             display this help and exit\n"
	"\n"
	"Root can profile everything, including the kernel. An ordinary user can profile\n"
	"the user code of COMMAND or of their own processes, if kernel.perf_event_paranoid\n"
	"is at most 2.\n"
	"\n"
	"COMMAND runs as the user that runs otprof, and is profiled from its first\n"
	"instruction. When -d ends before COMMAND does, the file is written and COMMAND\n"
	"runs on.\n"
	"\n"
	"Exit status is COMMAND's, or 0 without one; 125 if otprof itself fails, 126 if\n"
	"COMMAND cannot be run, 127 if it is not found.\n"
	"\n"
	"Examples:\n"
	"  otprof record -d 30                  the whole host for 30 seconds\n"
	"  otprof record -o make.svg -- make    a command, from start to end\n"
	"  otprof record -p 1234 -o app.pb.gz   one process, until Ctrl-C\n"
	"  otprof record -d 10 --unit nginx     a service\n"
	"  otprof record -e page-faults -c 1 -- ls   each page that ls touches first\n";

static int options_parse_pids(struct session_options *s, char *list)
{
	char *word, *rest = list;
	uint64_t pid;

	while ((word = strsep(&rest, ","))) {
		if (cli_parse_number(word, 1, 4194304, &pid) < 0) {
			cli_error("invalid process '%s'", word);
			return -EINVAL;
		}
		/* One element is reserved for the command. */
		if (s->nr_pids == SESSION_PIDS_MAX - 1) {
			cli_error("more than %d processes", SESSION_PIDS_MAX - 1);
			return -EINVAL;
		}
		if (pid_is_gone((uint32_t)pid)) {
			cli_error("no process %" PRIu64, pid);
			return -ESRCH;
		}
		s->pids[s->nr_pids++] = (uint32_t)pid;
	}
	return 0;
}

static int options_parse_frequency(struct record_options *o, const char *s)
{
	uint64_t n;

	if (cli_parse_number(s, 1, HZ_MAX, &n) < 0) {
		cli_error("invalid frequency '%s', expected 1 to %d", s, HZ_MAX);
		return -EINVAL;
	}
	o->session.frequency_hz = (uint32_t)n;
	return 0;
}

/* Lists of several -e are joined. */
static int options_parse_events(struct record_options *o, const char *list)
{
	int n = snprintf(o->events + strlen(o->events), sizeof(o->events) - strlen(o->events), "%s%s",
			 *o->events ? "," : "", list);

	if (n >= 0 && strlen(o->events) < sizeof(o->events) - 1)
		return 0;
	cli_error("too many events");
	return -EINVAL;
}

static int options_parse_count(struct record_options *o, const char *s)
{
	if (cli_parse_number(s, 1, 1ULL << 48, &o->count) == 0)
		return 0;
	cli_error("invalid count '%s', expected a number of events", s);
	return -EINVAL;
}

/* The count is for events without a rate of their own, and never for the clock. */
static int options_check_count(const struct record_options *o)
{
	const struct event_list *l = &o->session.events;
	bool taken = !o->count;

	for (uint32_t i = 0; i < l->count; i++)
		taken |= !l->event[i].period && !l->event[i].frequency_hz;
	if (taken)
		return 0;
	cli_error(l->count ? "-c: every event in the list has a rate of its own"
			   : "-c counts events, and cpu-clock has a frequency: see -F");
	return -EINVAL;
}

/* Parses the whole list, and sets the rate of events without one. */
static int options_check_events(struct record_options *o)
{
	char why[EVENT_WHY];

	if (o->count && !*o->events) {
		cli_error("-c counts events: name them by -e");
		return -EINVAL;
	}
	if (!*o->events)
		return 0;
	if (event_list_parse(o->events, &o->session.events, why) < 0) {
		cli_error("-e: %s", why);
		return -EINVAL;
	}
	if (options_check_count(o) < 0)
		return -EINVAL;
	event_list_set_rate(&o->session.events, o->count, o->session.frequency_hz);
	return 0;
}

static int options_parse_duration(struct record_options *o, const char *s)
{
	if (cli_parse_time(s, &o->duration_ns) == 0)
		return 0;
	cli_error("invalid duration '%s', expected seconds, or such as 500ms, 2m, 1h", s);
	return -EINVAL;
}

/* The index in this table is part of the option's code. */
static const struct {
	const char *name, *kind;
} target_options[] = {{"unit", "unit:"}, {"container", "container:"}, {"cgroup", "cgroup:"}, {"exe", "exe:"}, {"user", "user:"}};
enum { OPTION_TARGET = 256, OPTION_TARGET_END = OPTION_TARGET + ARRAY_SIZE(target_options) };

/* Refuses what the configuration would refuse, so that the error names the option. */
static bool target_is_valid(const char *name, const char *value)
{
	if (!*value || value[0] == '-')
		return false;
	for (const char *s = value; *s; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f)
			return false;
	if (!strcmp(name, "exe"))
		return value[0] == '/' || !strchr(value, '/');
	if (!strcmp(name, "cgroup"))
		return strcmp(value, "..") && strncmp(value, "../", 3) && !strstr(value, "/../");
	return !strchr(value, '/');
}

static int options_parse_target(struct session_options *s, int option, const char *value)
{
	const char *name = target_options[option - OPTION_TARGET].name;

	if (!target_is_valid(name, value)) {
		cli_error("invalid %s '%s'", name, value);
		return -EINVAL;
	}
	if (s->nr_targets == SESSION_TARGETS_MAX) {
		cli_error("more than %d units, containers, cgroups, programs and users", SESSION_TARGETS_MAX);
		return -EINVAL;
	}
	s->targets[s->nr_targets++] = (struct session_target){target_options[option - OPTION_TARGET].kind, value};
	return 0;
}

static int options_parse_sampler(struct record_options *o, const char *s)
{
	static const char *const modes[] = {"auto", "bpf", "kmod", "perf"};

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (strcmp(s, modes[i]) == 0)
			o->session.sampler = modes[i];
	if (o->session.sampler)
		return 0;
	cli_error("invalid sampler '%s', expected auto, bpf, kmod or perf", s);
	return -EINVAL;
}

static int options_parse_option(struct record_options *o, int c)
{
	if (c >= OPTION_TARGET && c < OPTION_TARGET_END)
		return options_parse_target(&o->session, c, optarg);
	switch (c) {
	case 'd':
		return options_parse_duration(o, optarg);
	case 'F':
		return options_parse_frequency(o, optarg);
	case 'e':
		return options_parse_events(o, optarg);
	case 'c':
		return options_parse_count(o, optarg);
	case 'p':
		return options_parse_pids(&o->session, optarg);
	case 'o':
		o->output = optarg;
		return 0;
	case 't':
		o->title = optarg;
		return 0;
	case 'i':
		o->inverted = true;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case 's':
		return options_parse_sampler(o, optarg);
	case 'v':
		o->session.verbose = true;
		return 0;
	default:
		return -EINVAL;
	}
}

/* An ordinary user may open perf events for their own processes, if perf_event_paranoid allows it. */
static int options_check_rights(const struct record_options *o)
{
	const struct source_config cfg = {.events = o->session.events, .pids = o->session.pids, .nr_pids = o->session.nr_pids + (o->command != NULL)};
	char why[SOURCE_WHY];
	bool single;
	int e;

	if (geteuid() == 0)
		return 0;
	if (!cfg.nr_pids) {
		cli_error("only root can sample the whole host: try 'sudo otprof record ...', or name a COMMAND");
		return -EPERM;
	}
	if (o->session.nr_targets) {
		cli_error("only root can choose by unit, container, cgroup, exe or user: name a COMMAND, or -p");
		return -EPERM;
	}
	e = perf_probe(&cfg, &single, why);
	if (e < 0)
		cli_error("cannot sample: %s", why);
	return e;
}

static int options_check_target(const struct record_options *o, const struct session_target *t)
{
	char kind[16];
	const char *what;

	snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(t->kind, ":"), t->kind);
	what = strcmp(kind, "exe") ? kind : "program";
	switch (target_check(kind, t->value)) {
	case TARGET_RUNS:
		return 0;
	case TARGET_IDLE:
		if (!o->quiet)
			cli_note("no process of %s '%s' runs now: waiting for one", what, t->value);
		return 0;
	case TARGET_UNKNOWN:
		if (!o->quiet)
			cli_note("%s '%s' cannot be checked here: only otprofd reads the names that runtimes give", what, t->value);
		return 0;
	default:
		cli_error("no %s '%s'", what, t->value);
		return -ESRCH;
	}
}

/* COMMAND may start what does not exist yet, and nothing is waited for longer than COMMAND runs: nothing to check. */
static int options_check_targets(const struct record_options *o)
{
	int e = 0;

	for (uint32_t i = 0; !o->command && !e && i < o->session.nr_targets; i++)
		e = options_check_target(o, &o->session.targets[i]);
	return e;
}

/* Reports every error that can be found before otprofd is started. */
static int options_check(const struct record_options *o)
{
	int e;

	if (!render_format_of(o->output)) {
		cli_error("unknown format of '%s': the name must end in %s", o->output, render_formats());
		return -EINVAL;
	}
	e = output_check(o->output);
	if (e < 0) {
		cli_error("cannot write '%s': %s", o->output, strerror(-e));
		return e;
	}
	e = options_check_rights(o);
	return e < 0 ? e : options_check_targets(o);
}

static int options_list_events(void)
{
	for (uint32_t i = 0; origin_name(i); i++)
		puts(origin_name(i));
	return 0;
}

int record_parse(int argc, char **argv, struct record_options *ret)
{
	static const struct option longs[] = {
		{"duration", required_argument, NULL, 'd'}, {"frequency", required_argument, NULL, 'F'},
		{"unit", required_argument, NULL, OPTION_TARGET}, {"container", required_argument, NULL, OPTION_TARGET + 1},
		{"cgroup", required_argument, NULL, OPTION_TARGET + 2}, {"exe", required_argument, NULL, OPTION_TARGET + 3},
		{"user", required_argument, NULL, OPTION_TARGET + 4},
		{"event", required_argument, NULL, 'e'},    {"count", required_argument, NULL, 'c'},
		{"pid", required_argument, NULL, 'p'},      {"output", required_argument, NULL, 'o'},
		{"title", required_argument, NULL, 't'},    {"inverted", no_argument, NULL, 'i'},
		{"sampler", required_argument, NULL, 's'},
		{"quiet", no_argument, NULL, 'q'},          {"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},           {0},
	};
	struct record_options o = {.output = "otprof.svg", .session.frequency_hz = 97};
	int c;

	/* "+": options after COMMAND are its own. */
	while ((c = getopt_long(argc, argv, "+d:F:e:c:p:o:t:qv", longs, NULL)) != -1) {
		if (c == 'h')
			return cli_help(help);
		if (c == 'e' && !strcmp(optarg, "help"))
			return options_list_events();
		if (options_parse_option(&o, c) < 0)
			return cli_try_help(CLI_RECORD_FAILED);
	}
	if (optind < argc)
		o.command = argv + optind;
	if (options_check_events(&o) < 0 || options_check(&o) < 0)
		return CLI_RECORD_FAILED;
	*ret = o;
	return -1;
}
