// SPDX-License-Identifier: Apache-2.0
/* otprof explain: how the running otprofd profiles one process. */
#include "cli/explain.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/client.h"

static const char help[] =
	"Usage: otprof explain [OPTION]... PID\n"
	"Print how the running otprofd profiles one process: for each file whose code it\n"
	"runs, how it is unwound, the source of its names, what is missing and how to\n"
	"install that; how much of the stack is copied, and how its stacks ended so far.\n"
	"\n"
	"      --json             print the whole answer as JSON\n"
	"      --runtime-dir=DIR  directory of otprofd's socket (default: " CLI_RUNTIME_DIR ")\n"
	"      --help             display this help and exit\n"
	"\n"
	"A file is read when a sample first refers to it, so there is little to print of a\n"
	"process that has used no CPU since otprofd started. Packages are looked up in\n"
	"dpkg's lists below the process' own root; nothing is installed.\n"
	"\n"
	"Exit status is 0, 1 if the process is unknown, has ended, or for an error, 2 for\n"
	"wrong usage, 3 if otprofd does not run.\n";

#define PID_MAX (1u << 22)

struct options {
	const char *runtime_dir;
	unsigned pid;
	bool json;
};

/* A line: indentation and name (NULL: none) in 14 columns, then text, cleaned because it may hold anything. */
static void explain_line(struct buf *b, int indent, const char *name, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void explain_line(struct buf *b, int indent, const char *name, const char *fmt, ...)
{
	char text[4608];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_printf(b, "%*s%-*s", indent, "", name ? 14 - indent : 0, name ? name : "");
	utf8_add_clean(b, text, strlen(text));
	buf_add_str(b, "\n");
}

static void explain_shares(struct buf *b, const json_t *parts, uint64_t whole, const char *what)
{
	const char *name;
	json_t *n;

	json_object_foreach((json_t *)parts, name, n)
		if (client_number(n, ""))
			explain_line(b, 0, "", "%8.2f %%  %s%s", format_percent(client_number(n, ""), whole), what,
				     name);
}

static void explain_print_stacks(struct buf *b, const json_t *p)
{
	uint64_t stacks = client_number(p, "stacks.stacks");
	char text[32];

	if (!stacks) {
		explain_line(b, 0, "Stacks", "none yet");
		return;
	}
	explain_line(b, 0, "Stacks", "%s since its program began, %.2f %% whole",
		     format_count(text, sizeof(text), stacks), format_percent(client_number(p, "stacks.complete"), stacks));
	explain_shares(b, client_at(p, "stacks.cut"), stacks, "cut: ");
	explain_shares(b, client_at(p, "stacks.guessed"), client_number(p, "stacks.frames"), "of its frames guessed: ");
}

static void explain_print_names(struct buf *b, const json_t *p)
{
	const json_t *w = json_array_get(client_at(p, "workload"), 0);
	uint64_t frames = client_number(w, "frames");
	char text[32];

	if (!frames)
		return;
	explain_line(b, 0, "Names", "%s frames of this program in its service, %.2f %% named",
		     format_count(text, sizeof(text), frames),
		     format_percent(client_number(w, "frames_named"), frames));
	explain_shares(b, client_at(w, "named_by"), frames, "by ");
}

static const char *explain_plan_origin(const json_t *p)
{
	if (client_is_true(p, "plan.own"))
		return "learned from its own stacks";
	if (client_number(p, "plan.stack_bytes") != client_number(p, "plan.default_stack_bytes"))
		return "learned from programs of its name";
	return "the default of a new program";
}

static void explain_print_plan(struct buf *b, const json_t *answer, const json_t *p)
{
	char bytes[32], base[32], most[32];

	format_bytes(bytes, sizeof(bytes), client_number(p, "plan.stack_bytes"));
	format_bytes(base, sizeof(base), client_number(p, "plan.base_bytes"));
	format_bytes(most, sizeof(most), client_number(p, "plan.stack_max_bytes"));
	explain_line(b, 0, "Selected", client_is_true(answer, "selected") ? "yes" : "no: [targets] leaves it out, and it is not sampled");
	explain_line(b, 0, "Plan", "%s of stack a sample%s%s, %s; at most %s", bytes,
		     client_number(p, "plan.base_bytes") ? " and its outermost " : "",
		     client_number(p, "plan.base_bytes") ? base : "",
		     explain_plan_origin(p), most);
}

/* A summary of the unwinding; the JSON has the details. */
static const char *explain_unwinding(const json_t *f)
{
	const char *by = client_text(f, "unwind.by");

	if (strcmp(by, "eh_frame_hdr") == 0)
		return "by .eh_frame, through its sorted table";
	if (strcmp(by, "eh_frame") == 0)
		return client_is_true(f, "unwind.table_built") ?
			       "by .eh_frame, through a table built by otprofd: the file has none" :
			       "by .eh_frame, through a table that is built when needed";
	if (strcmp(by, "gopclntab") == 0)
		return "by the table that Go's linker made, C code by .eh_frame";
	if (strcmp(by, "debug_frame") == 0)
		return "by .debug_frame, through a table built by otprofd";
	if (strcmp(by, "frame_pointers") == 0)
		return "by frame pointers: it has no unwind tables";
	return "not at all: 32-bit code";
}

static const char *explain_naming(const json_t *f)
{
	if (client_is_true(f, "names.dwarf"))
		return client_is_true(f, "names.fetched") ?
			       "debug information, by debuginfod: functions, inlined calls and lines" :
			       "debug information: functions, inlined calls and lines";
	if (client_is_true(f, "names.gopclntab"))
		return "the table that Go's linker made: functions, inlined calls and lines";
	if (client_is_true(f, "names.debug_symbols"))
		return "the whole symbol table: functions";
	if (client_is_true(f, "names.gnu_debugdata"))
		return ".gnu_debugdata: functions";
	if (client_is_true(f, "names.symtab"))
		return ".symtab: functions";
	return client_is_true(f, "names.dynsym") ? ".dynsym: exported functions" : "nothing: frames are file+0xaddress";
}

static void explain_print_index(struct buf *b, const json_t *f)
{
	const char *index = client_text(f, "names.index"), *error = client_text(f, "names.error");

	if (strcmp(index, "ready") != 0 && strcmp(client_text(f, "kind"), "vdso") != 0)
		explain_line(b, 4, "index", "%s%s%s", index, *error ? ": " : "", error);
}

/* Why debuginfod is not the source of names. */
static void explain_print_debuginfod(struct buf *b, const json_t *f)
{
	const char *says = client_text(f, "names.debuginfod_says");

	if (*says && !client_is_true(f, "names.fetched"))
		explain_line(b, 4, "fetched", "not: %s", says);
}

static void explain_print_elf(struct buf *b, const json_t *f)
{
	const char *debug_file = client_text(f, "debug_file"), *package = client_text(f, "debug_package");

	if (*client_text(f, "build_id"))
		explain_line(b, 4, "build-id", "%s", client_text(f, "build_id"));
	explain_line(b, 4, "unwound", "%s", explain_unwinding(f));
	explain_line(b, 4, "names", "from %s", explain_naming(f));
	explain_print_index(b, f);
	explain_print_debuginfod(b, f);
	if (*debug_file)
		explain_line(b, 4, "debug", "%s", debug_file);
	if (*client_text(f, "missing"))
		explain_line(b, 4, "missing", "%s%s%s%s", client_text(f, "missing"), *package ? " (" : "", package,
			     *package ? ")" : "");
}

static void explain_print_generated(struct buf *b, const json_t *p)
{
	uint64_t maps = client_number(p, "generated_code.perf_map_functions");
	uint64_t dump = client_number(p, "generated_code.jitdump_functions");

	if (maps || dump)
		explain_line(b, 4, "names", "from its %s, %" PRIu64 " functions", dump ? "jitdump" : "perf map", dump ? dump : maps);
	else
		explain_line(b, 4, "missing", "names: %s",
			     client_is_true(p, "generated_code.met") ?
				     "it writes no /tmp/perf-PID.map and no jitdump" :
				     "no /tmp/perf-PID.map and no jitdump of it was found");
	explain_line(b, 4, "unwound", "by frame pointers, or a search of the stack for its caller");
}

/* How interpreted code of the process is walked and named. */
static void explain_print_runtime(struct buf *b, const json_t *r)
{
	uint64_t frames = client_number(r, "frames"), unknown = client_number(r, "frames_unknown");
	const char *version = client_text(r, "version"), *state = client_text(r, "state");

	buf_add_str(b, "\n");
	explain_line(b, 2, NULL, "%s%s%s", client_text(r, "runtime"), *version ? " " : "", version);
	if (client_is_true(r, "walked"))
		explain_line(b, 4, "walked", "frames are copied in the tick, by a plan for this process");
	else if (!*state)
		explain_line(b, 4, "unwound", "frames are on the native stack, by what the runtime knows of its code");
	else
		explain_line(b, 4, "missing", "interpreted frames: %s", state);
	if (frames)
		explain_line(b, 4, "names", "%" PRIu64 " of %" PRIu64 " frames, of %" PRIu64 " functions", frames - unknown,
			     frames, client_number(r, "functions"));
}

static void explain_print_file(struct buf *b, const json_t *p, const json_t *f)
{
	const char *path = client_text(f, "path"), *kind = client_text(f, "kind"), *error = client_text(f, "error");
	char size[32];

	format_bytes(size, sizeof(size), client_number(f, "bytes"));
	buf_add_str(b, "\n");
	explain_line(b, 2, NULL, "%s%s, %s of code", *path ? path : strcmp(kind, "generated") == 0 ? "code without a file" : kind,
		     client_is_true(f, "deleted") ? " (deleted)" : "", size);
	if (strcmp(kind, "generated") == 0)
		explain_print_generated(b, p);
	else if (strcmp(kind, "vsyscall") == 0)
		explain_line(b, 4, "file", "none: the kernel emulates this code");
	else if (strcmp(client_text(f, "state"), "open") != 0)
		explain_line(b, 4, "file", "%s%s%s", client_text(f, "state"), *error ? ": " : "", error);
	else if (client_is_true(f, "elf"))
		explain_print_elf(b, f);
	else
		explain_line(b, 4, "file", "not an ELF file: frames are file+0xoffset");
}

static void explain_print_advice(struct buf *b, const json_t *p)
{
	const json_t *packages = client_at(p, "advice.packages");
	const char *source = client_text(p, "advice.source");
	json_t *name;
	size_t i;

	if (!json_array_size(packages))
		return;
	buf_printf(b, "\nTo get what is missing%s:\n", client_is_true(p, "advice.own_root") ? "" : ", in its container or below its root");
	if (*source)
		buf_printf(b, "  echo '%s' > /etc/apt/sources.list.d/debug.list && apt update\n", source);
	buf_add_str(b, "  apt install");
	json_array_foreach((json_t *)packages, i, name)
		buf_printf(b, " %s", json_string_value(name));
	buf_add_str(b, "\n  otprofd looks for it again after a minute or more: nothing needs to be restarted.\n");
}

static void explain_print_process(struct buf *b, unsigned pid, const json_t *answer)
{
	const json_t *p = client_at(answer, "process"), *files = client_at(p, "files");
	const char *exe = client_text(p, "executable");
	json_t *f;
	size_t i;

	explain_line(b, 0, "Process", "%u, %s", pid, *exe ? exe : client_text(p, "comm"));
	explain_line(b, 0, "Service", "%s", client_text(p, "service"));
	explain_print_plan(b, answer, p);
	explain_print_stacks(b, p);
	explain_print_names(b, p);
	if (json_array_size(files))
		explain_line(b, 0, "Code", "%" PRIu64 " mappings of %zu files%s", client_number(p, "mappings"),
			     json_array_size(files), client_is_true(p, "mappings_known") ? "" : "; there may be more");
	else
		explain_line(b, 0, "Code", "not read yet: no sample of it was taken");
	json_array_foreach((json_t *)client_at(p, "runtimes"), i, f)
		explain_print_runtime(b, f);
	json_array_foreach((json_t *)files, i, f)
		explain_print_file(b, p, f);
	explain_print_advice(b, p);
}

/* Why there is nothing to print; 0: there is. */
static int explain_refused(const struct options *o, const json_t *answer)
{
	const char *error = client_text(answer, "error");
	const json_t *p = client_at(answer, "process");
	char clean[256];

	snprintf(clean, sizeof(clean), "%s", error);
	utf8_clean_str(clean);
	if (*clean)
		cli_error("process %u: %s", o->pid, clean);
	else if (!client_is_true(answer, "running"))
		cli_error("process %u: %s", o->pid, client_is_true(p, "known") ? "it has ended" : "no such process");
	else if (!client_is_true(p, "known"))
		cli_error("process %u is not known to otprofd: no sample of it was taken%s", o->pid,
			  client_is_true(answer, "selected") ? "" : ", and [targets] leaves it out");
	else if (client_is_true(p, "kernel_thread"))
		cli_error("process %u is a kernel thread: it runs only kernel code", o->pid);
	else
		return 0;
	return CLI_FAILED;
}

static int explain_print_page(struct buf *b)
{
	if (fwrite(b->data, 1, b->len, stdout) != b->len || fflush(stdout) == EOF) {
		cli_error("write error: %s", strerror(errno));
		return CLI_FAILED;
	}
	return 0;
}

static int explain_print_json(const json_t *answer)
{
	if (json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) == 0 && putchar('\n') != EOF && fflush(stdout) != EOF)
		return 0;
	cli_error("write error: %s", strerror(errno));
	return CLI_FAILED;
}

static int explain(const struct options *o)
{
	_cleanup_(json_decrefp) json_t *answer = NULL;
	_cleanup_(buf_done) struct buf text = {0}, page = {0};
	char question[32];
	int r;

	snprintf(question, sizeof(question), "explain %u\n", o->pid);
	r = client_ask(o->runtime_dir, question, &text, &answer);
	if (r < 0)
		return client_failed(o->runtime_dir, "query.sock", r);
	r = explain_refused(o, answer);
	if (r)
		return r;
	r = explain_files(json_object_get(answer, "process"), o->pid);
	if (r < 0)
		cli_error("process %u: its root cannot be read (%s): no debug files and no packages are looked for", o->pid,
			  strerror(-r));
	if (o->json)
		return explain_print_json(answer);
	explain_print_process(&page, o->pid, answer);
	return explain_print_page(&page);
}

int cmd_explain(int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'},
		{"runtime-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options o = {.runtime_dir = CLI_RUNTIME_DIR};
	uint64_t pid;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'j')
			o.json = true;
		else if (c == 'r')
			o.runtime_dir = optarg;
		else
			return c == 'h' ? cli_help(help) : cli_try_help(CLI_USAGE);
	}
	if (optind + 1 != argc) {
		if (optind < argc)
			cli_error("extra operand '%s'", argv[optind + 1]);
		else
			cli_error("missing operand");
		return cli_try_help(CLI_USAGE);
	}
	if (cli_parse_number(argv[optind], 1, PID_MAX, &pid) < 0) {
		cli_error("invalid pid '%s'", argv[optind]);
		return cli_try_help(CLI_USAGE);
	}
	o.pid = (unsigned)pid;
	return explain(&o);
}
