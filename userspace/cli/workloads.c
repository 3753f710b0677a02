// SPDX-License-Identifier: Apache-2.0
/*
 * otprof workloads, enable, disable, clear and ui: what the hub sees, and whose
 * samples it keeps.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/utf8.h"
#include "cli/client.h"
#include "cli/hub.h"
#include "cli/workloads.h"

#define NAME_SHOWN 40

static const char workloads_help[] =
	"Usage: otprof workloads [OPTION]... [TEXT]\n"
	"List the workloads that the hub of the running otprofd has seen in the last\n"
	"minutes, those with most CPU time first; with TEXT only those with TEXT in name,\n"
	"service, program, namespace or host.\n"
	"\n"
	"      --json             print the hub's own answer\n"
	"      --runtime-dir=DIR  directory of otprofd's files (default: " CLI_RUNTIME_DIR ")\n"
	"      --help             display this help and exit\n";

static const char enable_help[] =
	"Usage: otprof enable [OPTION]... WORKLOAD...\n"
	"Let the hub keep the samples of each WORKLOAD, a name or an id of 'otprof\n"
	"workloads'. It does so while somebody looks at them, and for a while after.\n"
	"\n"
	"      --runtime-dir=DIR  directory of otprofd's files (default: " CLI_RUNTIME_DIR ")\n"
	"      --help             display this help and exit\n";

static const char disable_help[] =
	"Usage: otprof disable [OPTION]... WORKLOAD...\n"
	"Let the hub forget the samples of each WORKLOAD, and keep no more of them.\n"
	"\n"
	"      --runtime-dir=DIR  directory of otprofd's files (default: " CLI_RUNTIME_DIR ")\n"
	"      --help             display this help and exit\n";

static const char clear_help[] =
	"Usage: otprof clear [OPTION]... WORKLOAD...\n"
	"Let the hub forget the samples of each WORKLOAD, and keep those that come.\n"
	"\n"
	"      --runtime-dir=DIR  directory of otprofd's files (default: " CLI_RUNTIME_DIR ")\n"
	"      --help             display this help and exit\n";

static const char ui_help[] =
	"Usage: otprof ui [OPTION]...\n"
	"Print the address of the hub's page, with the token that it needs, and open it in\n"
	"a browser if there is a desktop.\n"
	"\n"
	"      --print            only print it\n"
	"      --runtime-dir=DIR  directory of otprofd's files (default: " CLI_RUNTIME_DIR ")\n"
	"      --help             display this help and exit\n";

struct options {
	const char *runtime_dir;
	bool json, print;
};

enum { CONTINUE = -1 };

/* CONTINUE, or the exit status. */
static int workloads_options(int argc, char **argv, const char *help, struct options *o)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'},
		{"print", no_argument, NULL, 'p'},
		{"runtime-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	*o = (struct options){.runtime_dir = CLI_RUNTIME_DIR};
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'h')
			return cli_help(help);
		if (c == 'r')
			o->runtime_dir = optarg;
		else if (c == 'j' && help == workloads_help)
			o->json = true;
		else if (c == 'p' && help == ui_help)
			o->print = true;
		else
			return cli_try_help(CLI_USAGE);
	}
	return CONTINUE;
}

/* --- the list --- */

static void workloads_languages(const json_t *w, char *to, size_t size)
{
	const json_t *list = client_at(w, "languages");
	const json_t *word;
	size_t i, n = 0;

	to[0] = '\0';
	json_array_foreach((json_t *)(uintptr_t)list, i, word)
		if (n < size && i < 3)
			n += (size_t)snprintf(to + n, size - n, "%s%s", i ? "," : "", json_string_value(word));
}

static void workloads_slot(const json_t *w, char *to, size_t size)
{
	const json_t *slot = client_at(w, "slot"), *gone = client_at(w, "gone");

	if (json_is_object(slot))
		snprintf(to, size, "%s", client_text(slot, "state"));
	else if (json_is_object(gone))
		snprintf(to, size, "%s", client_text(gone, "reason"));
	else
		snprintf(to, size, "-");
}

static void workloads_line(struct buf *b, const json_t *w)
{
	const char *name = client_text(w, "name");
	const json_t *cpus = client_at(w, "cpus");
	char languages[64], slot[16], share[16] = "-";

	if (json_is_number(cpus))
		snprintf(share, sizeof(share), "%.1f%%", json_number_value(cpus) * 100);
	workloads_languages(w, languages, sizeof(languages));
	workloads_slot(w, slot, sizeof(slot));
	buf_printf(b, "%8s %9.1f  %-10s %-8s %-20s %s  %.*s\n", share,
		   json_number_value(client_at(w, "samples_per_second")), client_text(w, "kind"), slot, languages,
		   client_text(w, "id"), (int)utf8_bytes(name, NAME_SHOWN), name);
}

void workloads_page(const json_t *answer, bool all, struct buf *b)
{
	const json_t *list = client_at(answer, "workloads");
	const json_t *w;
	size_t i;

	buf_printf(b, "%8s %9s  %-10s %-8s %-20s %-16s  %s\n", "CPU", "samples/s", "kind", "slot", "languages", "id",
		   "name");
	json_array_foreach((json_t *)(uintptr_t)list, i, w)
		workloads_line(b, w);
	if (!i)
		buf_add_str(b, all ? "No samples yet: those of the first interval arrive within seconds.\n" :
				     "No workload with this text was seen in the last minutes.\n");
}

static int workloads_get(const struct hub *h, const char *text, json_t **ret)
{
	char path[512] = "/workloads?q=";
	size_t n = strlen(path);

	/* All but letters and digits are escaped, whatever they are. */
	for (; text && *text && n + 4 < sizeof(path); text++)
		n += (size_t)snprintf(path + n, sizeof(path) - n, "%%%02x", (unsigned char)*text);
	return hub_ask(h, "GET", path, ret);
}

int cmd_workloads(int argc, char **argv)
{
	_cleanup_(json_decrefp) json_t *answer = NULL;
	_cleanup_(buf_done) struct buf b = {0};
	struct options o;
	struct hub h;
	int r = workloads_options(argc, argv, workloads_help, &o);

	if (r != CONTINUE)
		return r;
	if (argc - optind > 1) {
		cli_error("extra operand '%s'", argv[optind + 1]);
		return cli_try_help(CLI_USAGE);
	}
	r = hub_find(o.runtime_dir, &h);
	if (!r)
		r = workloads_get(&h, argv[optind], &answer);
	if (r)
		return r;
	if (o.json)
		return json_dumpf(answer, stdout, JSON_INDENT(2)) || puts("") < 0 || fflush(stdout) ? CLI_FAILED : 0;
	workloads_page(answer, !argv[optind], &b);
	return cli_help(buf_cstr(&b));
}

/* --- enable and disable --- */

static int workloads_change(const struct hub *h, const char *method, const char *what, const char *word)
{
	_cleanup_(json_decrefp) json_t *workload = NULL, *answer = NULL;
	char id[HUB_ID], path[64];
	int r = hub_workload(h, word, id, &workload);

	if (r)
		return r;
	snprintf(path, sizeof(path), "/workloads/%s/%s", id, what);
	r = hub_ask(h, method, path, &answer);
	if (!r && json_is_object(client_at(answer, "evicted")))
		cli_note("the samples of %s gave way to those of %s", client_text(answer, "evicted.name"), word);
	return r;
}

static int workloads_change_all(int argc, char **argv, const char *help, const char *method, const char *what)
{
	struct options o;
	struct hub h;
	int r = workloads_options(argc, argv, help, &o);

	if (r != CONTINUE)
		return r;
	if (optind == argc) {
		cli_error("missing WORKLOAD");
		return cli_try_help(CLI_USAGE);
	}
	r = hub_find(o.runtime_dir, &h);
	for (int i = optind; !r && i < argc; i++)
		r = workloads_change(&h, method, what, argv[i]);
	return r;
}

int cmd_enable(int argc, char **argv)
{
	return workloads_change_all(argc, argv, enable_help, "PUT", "slot");
}

int cmd_disable(int argc, char **argv)
{
	return workloads_change_all(argc, argv, disable_help, "DELETE", "slot");
}

int cmd_clear(int argc, char **argv)
{
	return workloads_change_all(argc, argv, clear_help, "DELETE", "samples");
}

/* --- the page --- */

/* Root's browser would be a bad idea, and has no desktop. */
static void ui_open(const char *url)
{
	pid_t pid;

	if (!geteuid() || (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")))
		return;
	pid = fork();
	if (pid == 0) {
		execlp("xdg-open", "xdg-open", url, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

int cmd_ui(int argc, char **argv)
{
	char url[512];
	struct options o;
	struct hub h;
	int r = workloads_options(argc, argv, ui_help, &o);

	if (r != CONTINUE)
		return r;
	r = hub_find(o.runtime_dir, &h);
	if (r)
		return r;
	if (!strncmp(h.address, HUB_UNIX, strlen(HUB_UNIX))) {
		cli_note("the hub listens on a UNIX socket, which no browser opens: try 'ssh -L 4380:%s THIS-HOST' "
			 "there, and http://127.0.0.1:4380/", h.address + strlen(HUB_UNIX));
		return CLI_FAILED;
	}
	/* Behind a # it is not sent to anybody, and in no log of a server. */
	snprintf(url, sizeof(url), "%s%s/%s%s", hub_scheme(&h), h.address, *h.token ? "#token=" : "", h.token);
	if (printf("%s\n", url) < 0 || fflush(stdout))
		return CLI_FAILED;
	if (!o.print)
		ui_open(url);
	return 0;
}
