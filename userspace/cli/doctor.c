// SPDX-License-Identifier: Apache-2.0
/* otprof doctor: reports what this host supports, and the commands that would change it. */
#include "cli/doctor.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "source/size.h"
#include "source/source.h"

static const char help[] =
	"Usage: otprof doctor [OPTION]...\n"
	"Report what this host supports of otprof, and the commands that would change it.\n"
	"Nothing is changed. Where otprofd does not run, each exporter of its configuration\n"
	"is sent one request without samples.\n"
	"\n"
	"      --json             print the findings as JSON\n"
	"      --sizes            print what otprofd needs on hosts of other sizes instead\n"
	"      --root=DIR         read DIR/proc, DIR/sys and so on instead (for tests, and\n"
	"                           for a host that is mounted in a container)\n"
	"      --help             display this help and exit\n"
	"\n"
	"A finding is ok, warn (something is missing or works in another way) or fail\n"
	"(otprofd cannot run). Some findings depend on the rights of this process: run it\n"
	"as root to check those of otprofd.\n"
	"\n"
	"Exit status is 0 if all is ok, 1 if there is a warning, 2 if otprofd cannot run\n"
	"here, 64 for wrong usage.\n";

/* Statuses 1 and 2 are verdicts. */
#define EXIT_USAGE 64

static void print_finding(const struct finding *f, const char *bold, const char *plain)
{
	static const char *const marks[] = {[DOCTOR_OK] = "ok", [DOCTOR_WARN] = "WARN", [DOCTOR_FAIL] = "FAIL"};

	printf("%s%-4s%s  %-20s %s\n", f->level ? bold : "", marks[f->level], f->level ? plain : "", f->id, f->text);
	if (f->fix[0])
		printf("%28s%s\n", f->level ? "-> " : "   ", f->fix);
}

static json_t *finding_json(const struct finding *f)
{
	json_t *o = json_pack("{s:s, s:s, s:s}", "id", f->id, "level", doctor_level_name(f->level), "text", f->text);

	if (o && f->fix[0])
		json_object_set_new(o, "fix", json_string(f->fix));
	return o;
}

static enum doctor_level print_text(struct doctor *d)
{
	bool colour = isatty(STDOUT_FILENO);
	enum doctor_level worst = DOCTOR_OK;
	struct finding f;

	for (size_t i = 0; i < doctor_checks_nr; i++) {
		doctor_run(d, i, &f);
		print_finding(&f, colour ? "\033[1m" : "", colour ? "\033[0m" : "");
		worst = MAX(worst, f.level);
	}
	return worst;
}

static int print_json(struct doctor *d, enum doctor_level *ret_worst)
{
	json_t *all = json_array(), *root;
	enum doctor_level worst = DOCTOR_OK;
	struct finding f;
	int err;

	for (size_t i = 0; i < doctor_checks_nr; i++) {
		doctor_run(d, i, &f);
		json_array_append_new(all, finding_json(&f));
		worst = MAX(worst, f.level);
	}
	root = json_pack("{s:s, s:s, s:o}", "version", OTPROF_VERSION, "level", doctor_level_name(worst), "findings", all);
	err = root ? json_dumpf(root, stdout, JSON_INDENT(2)) : -1;
	if (!err)
		err = putchar('\n') == EOF ? -1 : 0;
	json_decref(root);
	*ret_worst = worst;
	return err;
}

static int doctor(const char *root, bool json)
{
	enum doctor_level worst;
	struct doctor d;
	int err = 0;

	doctor_init(&d, root);
	if (json)
		err = print_json(&d, &worst);
	else
		worst = print_text(&d);
	if (err || fflush(stdout) == EOF) {
		cli_error("write error: %s", strerror(errno));
		worst = EXIT_USAGE;
	}
	doctor_done(&d);
	return (int)worst;
}

/* The table of otprofd(8). */
static int print_sizes(void)
{
	static const uint32_t cpus[] = {1, 2, 4, 8, 16, 32, 64, 128, 256}, rates[] = {SOURCE_HZ_DEFAULT, 97};

	printf("CPUs  Hz  Samples/s  Ring MiB  Side-band KiB/CPU  Memory MiB\n");
	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++)
		for (size_t j = 0; j < ARRAY_SIZE(rates); j++)
			printf("%4u %3u %10u %9u %18u %11.0f\n", cpus[i], rates[j], cpus[i] * rates[j],
			       size_ring(cpus[i], rates[j]) >> 20, size_sideband(cpus[i]) >> 10,
			       (double)size_memory(cpus[i], rates[j]) / (1 << 20));
	return fflush(stdout) == EOF ? EXIT_USAGE : 0;
}

int cmd_doctor(int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'},
		{"sizes", no_argument, NULL, 's'},
		{"root", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *root = "";
	bool json = false, sizes = false;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'j')
			json = true;
		else if (c == 's')
			sizes = true;
		else if (c == 'r')
			root = strcmp(optarg, "/") ? optarg : "";
		else
			return c == 'h' ? cli_help(help) : cli_try_help(EXIT_USAGE);
	}
	if (optind < argc) {
		cli_error("extra operand '%s'", argv[optind]);
		return cli_try_help(EXIT_USAGE);
	}
	return sizes ? print_sizes() : doctor(root, json);
}
