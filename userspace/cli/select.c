// SPDX-License-Identifier: Apache-2.0
/* otprof select: what otprofd samples for a while. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/hub.h"
#include "cli/select.h"
#include "process/selection.h"

static const char help[] =
	"Usage: otprof select [OPTION]... [WORKLOAD]...\n"
	"Sample only each WORKLOAD for a while, or sample at another rate or depth. A WORKLOAD\n"
	"is KIND:NAME as in [targets], such as unit:nginx.service, container:web or\n"
	"exe:redis-server, or a name or an id of 'otprof workloads'. Processes that [targets]\n"
	"does not select stay unsampled. Without WORKLOAD and options, print what is selected.\n"
	"\n"
	"      --rate=HZ          sample at HZ, from 1 to 1000\n"
	"      --stack-bytes=N    copy N bytes of the stack of an unknown program; a number\n"
	"                           below the configured one holds for all programs\n"
	"      --for=TIME         end after TIME, at most 24h (default: 1h)\n"
	"      --end              end it now: the configuration alone selects again\n"
	"      --json             print what is selected as JSON\n"
	"      --runtime-dir=DIR  directory of otprofd's files (default: " CLI_RUNTIME_DIR ")\n"
	"      --help             display this help and exit\n"
	"\n"
	"It also ends with otprofd. 'otprof status' and 'otprof doctor' show it. Root and the\n"
	"group of otprofd's sockets may select.\n"
	"\n"
	"Exit status is 0, 1 for an error, 2 for wrong usage, 3 if otprofd does not run.\n";

struct options {
	const char *runtime_dir;
	uint64_t hz, stack_bytes, seconds; /* 0: not given */
	bool end, json;
};

enum { CONTINUE = -1 };

static bool select_take_time(const char *value, uint64_t *ret_seconds)
{
	uint64_t ns;

	if (cli_parse_time(value, &ns) || ns < NSEC_PER_SEC || ns > SELECTION_SECONDS_MAX * NSEC_PER_SEC)
		return false;
	*ret_seconds = ns / NSEC_PER_SEC;
	return true;
}

/* Whether the option's value is good. */
static bool select_take(struct options *o, int option, const char *value)
{
	switch (option) {
	case 'z':
		return !cli_parse_number(value, 1, SELECTION_HZ_MAX, &o->hz);
	case 's':
		return !cli_parse_number(value, 512, 1u << 30, &o->stack_bytes);
	case 'f':
		return select_take_time(value, &o->seconds);
	case 'e':
		o->end = true;
		return true;
	case 'j':
		o->json = true;
		return true;
	case 'r':
		o->runtime_dir = value;
		return true;
	default:
		return false;
	}
}

/* CONTINUE, or the exit status. */
static int select_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"rate", required_argument, NULL, 'z'},
		{"stack-bytes", required_argument, NULL, 's'},
		{"for", required_argument, NULL, 'f'},
		{"end", no_argument, NULL, 'e'},
		{"json", no_argument, NULL, 'j'},
		{"runtime-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	*o = (struct options){.runtime_dir = CLI_RUNTIME_DIR};
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'h')
			return cli_help(help);
		if (c == '?')
			return cli_try_help(CLI_USAGE);
		if (select_take(o, c, optarg))
			continue;
		cli_error("bad value '%s'", optarg);
		return cli_try_help(CLI_USAGE);
	}
	if (o->end && (optind < argc || o->hz || o->stack_bytes || o->seconds)) {
		cli_error("--end goes with nothing else");
		return cli_try_help(CLI_USAGE);
	}
	if (o->seconds && optind == argc && !o->hz && !o->stack_bytes) {
		cli_error("--for needs a WORKLOAD, --rate or --stack-bytes");
		return cli_try_help(CLI_USAGE);
	}
	return CONTINUE;
}

/* --- what is asked for --- */

/* A workload's name as the hub lists it becomes what [targets] would call it. */
static int select_by_hub(const struct options *o, const char *word, char to[SELECTION_LINE_MAX])
{
	_cleanup_(json_decrefp) json_t *workload = NULL;
	char id[HUB_ID];
	struct hub h;
	int r = hub_find(o->runtime_dir, &h);

	if (!r)
		r = hub_workload(&h, word, id, &workload);
	if (r)
		return r;
	snprintf(to, SELECTION_LINE_MAX, "%s", client_text(workload, "target"));
	if (*to)
		return 0;
	cli_error("'%s' cannot be selected: it is no unit, container or program that this otprofd samples", word);
	return CLI_FAILED;
}

static int select_add(const struct options *o, struct selection *s, const char *word)
{
	char target[SELECTION_LINE_MAX], why[SELECTION_WHY];
	int r = 0;

	if (strchr(word, ':'))
		snprintf(target, sizeof(target), "%s", word);
	else
		r = select_by_hub(o, word, target);
	if (!r && selection_add(s, target, strlen(target), why)) {
		cli_error("%s: %s", word, why);
		r = CLI_USAGE;
	}
	return r;
}

static int select_make(const struct options *o, char **words, struct buf *line)
{
	struct selection s = {.hz = (uint32_t)o->hz, .stack_bytes = (uint32_t)o->stack_bytes};
	int r = 0;

	s.seconds = o->seconds ? (uint32_t)o->seconds : SELECTION_SECONDS;
	for (; *words && !r; words++)
		r = select_add(o, &s, *words);
	buf_add_str(line, "select ");
	selection_print(&s, line);
	buf_add_str(line, "\n");
	return r;
}

/* --- answers --- */

static void select_time(uint64_t unix_ms, char to[32])
{
	time_t at = (time_t)(unix_ms / 1000);
	struct tm local;

	if (!localtime_r(&at, &local) || !strftime(to, 32, "%H:%M:%S", &local))
		snprintf(to, 32, "?");
}

void select_sentence(const json_t *s, struct buf *to)
{
	const char *targets = client_text(s, "targets");
	uint64_t hz = client_number(s, "frequency_hz"), bytes = client_number(s, "stack_bytes");
	char since[32], until[32];

	if (!client_is_true(s, "on")) {
		buf_add_str(to, "all that the configuration selects is sampled");
		return;
	}
	select_time(client_number(s, "since_ms"), since);
	select_time(client_number(s, "until_ms"), until);
	buf_printf(to, "%s%s", *targets ? "only " : "all that the configuration selects", targets);
	if (hz)
		buf_printf(to, ", at %" PRIu64 " Hz", hz);
	if (bytes)
		buf_printf(to, ", stacks of %" PRIu64 " bytes", bytes);
	buf_printf(to, ", since %s until %s (%s)", since, until, client_text(s, "by"));
}

static int select_print(const json_t *s, bool json)
{
	_cleanup_(buf_done) struct buf text = {0}, clean = {0};

	if (json)
		return json_dumpf(s, stdout, JSON_INDENT(2)) || puts("") < 0 || fflush(stdout) ? CLI_FAILED : 0;
	select_sentence(s, &text);
	utf8_add_clean(&clean, (const char *)text.data, text.len);
	buf_add_str(&clean, "\n");
	return cli_help(buf_cstr(&clean));
}

static int select_send(const struct options *o, const char *line)
{
	_cleanup_(json_decrefp) json_t *answer = NULL;
	_cleanup_(buf_done) struct buf text = {0};
	int r = client_ask(o->runtime_dir, line, &text, &answer);

	if (r < 0)
		return client_failed(o->runtime_dir, "query.sock", r);
	if (*client_text(answer, "error")) {
		cli_error("%s", client_text(answer, "error"));
		return CLI_FAILED;
	}
	return select_print(client_at(answer, "selection"), o->json);
}

static int select_show(const struct options *o)
{
	_cleanup_(json_decrefp) json_t *status = NULL;
	int r = client_status(o->runtime_dir, &status);

	return r < 0 ? client_failed(o->runtime_dir, "status.sock", r) :
		       select_print(client_at(status, "selection"), o->json);
}

int cmd_select(int argc, char **argv)
{
	_cleanup_(buf_done) struct buf line = {0};
	struct options o;
	int r = select_options(argc, argv, &o);

	if (r != CONTINUE)
		return r;
	if (o.end)
		return select_send(&o, "select\n");
	if (optind == argc && !o.hz && !o.stack_bytes)
		return select_show(&o);
	r = select_make(&o, argv + optind, &line);
	return r ? r : select_send(&o, buf_cstr(&line));
}
