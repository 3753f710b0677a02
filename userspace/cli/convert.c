// SPDX-License-Identifier: Apache-2.0
/* otprof convert: writes OTLP files in any format of the renderers. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/limits.h"
#include "cli/output.h"
#include "render/render.h"

#define BASES_MAX 64

static const char help[] =
	"Usage: otprof convert [OPTION]... FILE...\n"
	"Merge OTLP profiles and write them in another format.\n"
	"A FILE is one raw ExportProfilesServiceRequest, such as a file destination of\n"
	"otprofd writes; a directory stands for all *.otlp files in it.\n"
	"\n"
	"  -o, --output=FILE    write to FILE (default: otprof.svg); its ending is the\n"
	"                         format: .svg (flame graph), .pb.gz (pprof),\n"
	"                         .collapsed (one line a stack), .otlp (one request).\n"
	"                         Where there are several types of samples, .svg and\n"
	"                         .collapsed show one each: FILE.svg that of CPU samples,\n"
	"                         FILE.TYPE.svg each other one\n"
	"      --type=TYPE      write this type only: cpu, page_faults, ...\n"
	"  -t, --title=TEXT     title of the flame graph\n"
	"      --inverted       flame graph with the root on top\n"
	"      --base=FILE      compare with FILE, or with all files in that directory; may be\n"
	"                         repeated. The flame graph's colours show how much larger\n"
	"                         (orange) or smaller (blue) each share is; .collapsed has\n"
	"                         two values, before and after\n"
	"      --help           display this help and exit\n"
	"\n"
	"Which stacks and frames to write; --focus and --ignore may be repeated:\n"
	"      --focus=REGEX    only stacks with a function that matches REGEX\n"
	"      --ignore=REGEX   no stacks with a function that matches REGEX\n"
	"      --hide=KIND,...  leave out frames of these kinds: their value belongs to\n"
	"                         their callers. KIND is kernel, native, jit, marker,\n"
	"                         other, or the name of a runtime: cpython, jvm, v8js, ...\n"
	"REGEX is a POSIX extended regular expression, such as '^(malloc|free)$'.\n"
	"\n"
	"Exit status is 0, 1 if a file could not be read or written, 2 for wrong usage.\n";

struct options {
	const char *output, *title, *type;
	struct filter filter;
	const char *bases[BASES_MAX]; /* files and directories to compare with */
	uint32_t nr_bases;
	bool inverted;
};

static int convert_read_directory(struct recording *r, const char *path)
{
	char name[256];
	int n = recording_read_directory(r, path, name, sizeof(name));

	if (n < 0)
		cli_error("cannot read '%s%s%s': %s", path, *name ? "/" : "", name, recording_strerror(n));
	else if (!n)
		cli_error("no .otlp files in '%s'", path);
	return n > 0 ? 0 : -ENOENT;
}

static int convert_read(struct recording *r, const char *path)
{
	int e = recording_read_file(r, AT_FDCWD, path);

	if (e == -EISDIR)
		return convert_read_directory(r, path);
	if (e < 0)
		cli_error("cannot read '%s': %s", path, recording_strerror(e));
	return e;
}

static int convert_read_all(const char *const *files, uint32_t n, struct recording **ret)
{
	_cleanup_(recording_freep) struct recording *r = NULL;
	uint32_t i;
	int e = recording_new(&cli_recording_limits, &r);

	if (e < 0)
		cli_error("%s", strerror(-e));
	for (i = 0; !e && i < n; i++)
		e = convert_read(r, files[i]);
	if (!e)
		*ret = steal_ptr(&r);
	return e;
}

static int convert(const struct options *o, const char *const *files, uint32_t n)
{
	_cleanup_(recording_freep) struct recording *r = NULL, *base = NULL;
	struct output_options out = {
		.path = o->output,
		.type = o->type,
		.title = o->title,
		.filter = filter_is_empty(&o->filter) ? NULL : &o->filter,
		.inverted = o->inverted,
	};

	if (convert_read_all(files, n, &r) < 0 || (o->nr_bases && convert_read_all(o->bases, o->nr_bases, &base) < 0))
		return CLI_FAILED;
	out.base = base;
	return output_write(r, &out) < 0 ? CLI_FAILED : 0;
}

static int convert_parse_expression(struct filter *f, const char *option, const char *s)
{
	char why[FILTER_WHY];
	int e = *option == 'f' ? filter_focus(f, s, why) : filter_ignore(f, s, why);

	if (e < 0)
		cli_error("invalid --%s '%s': %s", option, s, why);
	return e;
}

static int convert_parse_kinds(struct filter *f, char *list)
{
	char *word, *rest = list, why[FILTER_WHY];

	while ((word = strsep(&rest, ",")))
		if (filter_hide(f, word, why) < 0) {
			cli_error("invalid --hide '%s': %s", word, why);
			return -EINVAL;
		}
	return 0;
}

static int convert_parse_base(struct options *o, const char *path)
{
	if (o->nr_bases == BASES_MAX) {
		cli_error("more than %d files to compare with", BASES_MAX);
		return -EINVAL;
	}
	o->bases[o->nr_bases++] = path;
	return 0;
}

static int convert_parse_option(struct options *o, int c)
{
	switch (c) {
	case 'o':
		o->output = optarg;
		return 0;
	case 't':
		o->title = optarg;
		return 0;
	case 'i':
		o->inverted = true;
		return 0;
	case 'T':
		o->type = optarg;
		return 0;
	case 'B':
		return convert_parse_base(o, optarg);
	case 'F':
		return convert_parse_expression(&o->filter, "focus", optarg);
	case 'I':
		return convert_parse_expression(&o->filter, "ignore", optarg);
	case 'H':
		return convert_parse_kinds(&o->filter, optarg);
	default:
		return -EINVAL;
	}
}

static int convert_check(const struct options *o, bool has_file)
{
	if (!has_file) {
		cli_error("missing FILE");
		return -EINVAL;
	}
	if (!render_format_of(o->output)) {
		cli_error("unknown format of '%s': FILE must end in %s", o->output, render_formats());
		return -EINVAL;
	}
	if (o->nr_bases && !render_format_of(o->output)->graph) {
		cli_error("--base is for .svg and .collapsed: '%s' cannot hold a comparison", o->output);
		return -EINVAL;
	}
	return 0;
}

static void convert_options_done(struct options *o)
{
	filter_done(&o->filter);
}

int cmd_convert(int argc, char **argv)
{
	static const struct option longs[] = {
		{"output", required_argument, NULL, 'o'}, {"title", required_argument, NULL, 't'},
		{"inverted", no_argument, NULL, 'i'},     {"type", required_argument, NULL, 'T'},
		{"focus", required_argument, NULL, 'F'},  {"ignore", required_argument, NULL, 'I'},
		{"hide", required_argument, NULL, 'H'},   {"base", required_argument, NULL, 'B'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	_cleanup_(convert_options_done) struct options o = {.output = "otprof.svg"};
	int c;

	while ((c = getopt_long(argc, argv, "o:t:", longs, NULL)) != -1) {
		if (c == 'h')
			return cli_help(help);
		if (convert_parse_option(&o, c) < 0)
			return cli_try_help(CLI_USAGE);
	}
	if (convert_check(&o, optind < argc) < 0)
		return cli_try_help(CLI_USAGE);
	return convert(&o, (const char *const *)argv + optind, (uint32_t)(argc - optind));
}
