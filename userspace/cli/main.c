// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/version.h"
#include "cli/cli.h"

static const struct verb {
	const char *name, *program;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{"record", "otprof record", cmd_record},
	{"status", "otprof status", cmd_status},
	{"explain", "otprof explain", cmd_explain},
	{"doctor", "otprof doctor", cmd_doctor},
	{"watch", "otprof watch", cmd_watch},
	{"convert", "otprof convert", cmd_convert},
	{"workloads", "otprof workloads", cmd_workloads},
	{"top", "otprof top", cmd_top},
	{"enable", "otprof enable", cmd_enable},
	{"disable", "otprof disable", cmd_disable},
	{"clear", "otprof clear", cmd_clear},
	{"select", "otprof select", cmd_select},
	{"ui", "otprof ui", cmd_ui},
};

static const char help[] =
	"Usage: otprof VERB [OPTION]...\n"
	"Profile the CPU time and events of this host, without changing its programs.\n"
	"\n"
	"Verbs:\n"
	"  record       profile for a while, or a command, and write a file:\n"
	"                 flame graph, pprof, collapsed stacks or OTLP\n"
	"  status       what the running otprofd does, and where its samples went\n"
	"  explain      of one process: how its code is unwound, where names come from,\n"
	"                 what is missing and how to get it\n"
	"  doctor       what this host can and cannot do for otprof, and how to change it\n"
	"  watch        follow a directory of profiles that otprofd writes\n"
	"  convert      OTLP profiles into any of record's formats\n"
	"  workloads    what the hub of otprofd has seen: units, containers, programs\n"
	"  top          the functions of a workload, live on the terminal\n"
	"  enable       let the hub keep the samples of a workload\n"
	"  disable      let it forget them\n"
	"  clear        let it forget the samples of a workload\n"
	"  select       sample only some workloads for a while, or at another rate\n"
	"  ui           the address of the hub's page\n"
	"\n"
	"      --help     display this help and exit\n"
	"  -V, --version  output version information and exit\n"
	"\n"
	"'otprof VERB --help' describes one verb.\n"
	"\n"
	"Examples:\n"
	"  otprof record -d 30                  the whole host for 30 seconds\n"
	"  otprof record -o make.svg -- make    a command, from start to end\n"
	"  otprof record -p 1234 -o app.pb.gz   one process, until Ctrl-C\n";

static int version(void)
{
	version_print("otprof");
	return cli_help("");
}

static int run_verb(const struct verb *v, int argc, char **argv)
{
	cli_set_name(v->program);
	argv[0] = (char *)v->program;
	return v->run(argc, argv);
}

/* "otprof help VERB" is "otprof VERB --help". */
static int help_verb(int argc, char **argv)
{
	static char option[] = "--help";
	char *args[] = {NULL, option, NULL};
	size_t i;

	for (i = 0; argc > 1 && i < ARRAY_SIZE(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return run_verb(&verbs[i], 2, args);
	return cli_help(help);
}

int main(int argc, char **argv)
{
	size_t i;

	hash_seed_init();
	if (argc < 2) {
		cli_error("missing verb");
		return cli_try_help(CLI_USAGE);
	}
	for (i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return run_verb(&verbs[i], argc - 1, argv + 1);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		return version();
	if (strcmp(argv[1], "help") == 0)
		return help_verb(argc - 1, argv + 1);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return cli_help(help);
	cli_error(argv[1][0] == '-' ? "unrecognized option '%s'" : "unknown verb '%s'", argv[1]);
	return cli_try_help(CLI_USAGE);
}
