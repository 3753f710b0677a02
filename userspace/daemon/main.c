// SPDX-License-Identifier: Apache-2.0
/*
 * otprofd: the command line, and the choice of this process' role.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/version.h"
#include "daemon/config/config.h"
#include "daemon/roles.h"

#define DEFAULT_CONFIG "/etc/otprof.conf"

enum { OPTION_ROLE = 256, OPTION_CAPTURE, OPTION_REPLAY, OPTION_TRY, OPTION_VERSION };

struct options {
	const char *config_path, *role, *replay_path;
	struct monitor_options monitor;
	bool test, print, try_exporters;
};

static void help(void)
{
	printf("Usage: otprofd [OPTION]...\n"
	       "Profile all processes of this host continuously and export OTLP profiles.\n"
	       "\n"
	       "  -f FILE                read the configuration from FILE instead of\n"
	       "                           " DEFAULT_CONFIG "\n"
	       "  -t                     check the configuration and exit\n"
	       "  -n                     print the effective configuration and exit\n"
	       "      --try              send each exporter a request without samples, print what\n"
	       "                           it answered, and exit\n"
	       "      --capture FILE     also write what is sampled to FILE, for --replay\n"
	       "      --replay FILE      run a capture through the engine instead of sampling\n"
	       "  -h, --help             display this help and exit\n"
	       "      --version          output version information and exit\n"
	       "\n"
	       "SIGHUP makes it read the configuration again, SIGTERM export all samples and\n"
	       "exit. 'otprof status' shows its state, 'otprof doctor' what this host allows.\n"
	       "\n"
	       "Exit status is 0, 1 if it cannot start or continue or if the configuration is\n"
	       "wrong, 2 for wrong usage.\n");
}

static const struct option long_options[] = {
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"capture", required_argument, NULL, OPTION_CAPTURE},
	{"replay", required_argument, NULL, OPTION_REPLAY},
	{"try", no_argument, NULL, OPTION_TRY},
	{"role", required_argument, NULL, OPTION_ROLE}, /* used by the monitor only */
	{NULL, 0, NULL, 0},
};

static void take_option(int option, struct options *o)
{
	switch (option) {
	case 'f':
		o->config_path = optarg;
		break;
	case 't':
		o->test = true;
		break;
	case 'n':
		o->print = true;
		break;
	case OPTION_CAPTURE:
		o->monitor.capture_path = optarg;
		break;
	case OPTION_REPLAY:
		o->replay_path = optarg;
		break;
	case OPTION_TRY:
		o->try_exporters = true;
		break;
	case OPTION_ROLE:
		o->role = optarg;
		break;
	case OPTION_VERSION:
		version_print("otprofd");
		exit(0);
	case 'h':
		help();
		exit(0);
	default:
		fprintf(stderr, "Try 'otprofd --help'.\n");
		exit(EXIT_USAGE);
	}
}

static void parse_options(int argc, char **argv, struct options *o)
{
	int option;

	while ((option = getopt_long(argc, argv, "f:tnh", long_options, NULL)) != -1)
		take_option(option, o);
	if (optind == argc)
		return;
	fprintf(stderr, "otprofd: unexpected argument '%s'\nTry 'otprofd --help'.\n", argv[optind]);
	exit(EXIT_USAGE);
}

/* Those with a network. */
static const struct role main_roles[] = {
	{"net", "otprof-net", net_main},
	{"hub", "otprof-hub", hub_main},
	{"fetcher", "otprof-fetcher", fetcher_main},
};

/* In the form of compilers; an error in the journal, so that -p err shows why otprofd does not run. */
static void print_error(void *ctx, const char *line)
{
	if (log_is_journal())
		log_error("%s", line);
	else
		fprintf(stderr, "%s\n", line);
}

/* The default file may be missing: then its drop-ins and the defaults hold. A file that was named must exist. */
static int main_load_config(const struct options *o, struct config **ret)
{
	if (o->config_path)
		return config_load(o->config_path, print_error, NULL, ret);
	return config_load_usual(DEFAULT_CONFIG, print_error, NULL, ret);
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct config *c;
	int status;

	hash_seed_init();
	config_check_transports();
	parse_options(argc, argv, &o);
	if (o.role)
		return role_run(main_roles, ARRAY_SIZE(main_roles), o.role);
	o.monitor.config_path = o.config_path ? o.config_path : DEFAULT_CONFIG;
	o.monitor.config_usual = !o.config_path;
	log_init("otprofd", LOG_LEVEL_INFO);
	if (main_load_config(&o, &c))
		return EXIT_FAILURE;
	log_init("otprofd", c->log_level);
	if (!o.test && !o.print && !o.replay_path && !o.try_exporters)
		return monitor_main(c, &o.monitor);
	status = 0;
	if (o.print)
		status = config_print_shown(c, stdout) ? EXIT_FAILURE : 0;
	else if (o.try_exporters)
		status = try_main(c);
	else if (o.test)
		fprintf(stderr, "%s: the configuration is good\n", o.monitor.config_path);
	else
		status = replay_main(c, o.replay_path);
	config_free(c);
	return status;
}
