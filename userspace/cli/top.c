// SPDX-License-Identifier: Apache-2.0
/*
 * otprof top: the functions of a workload, or all workloads, live on a terminal.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "cli/client.h"
#include "cli/hub.h"
#include "cli/screen.h"
#include "cli/workloads.h"

#define EVERY_NS   (2 * NSEC_PER_SEC)
#define WINDOW_NS  (60 * NSEC_PER_SEC)
#define NAME_SHOWN 72
#define ROWS	   60

static const char help[] =
	"Usage: otprof top [OPTION]... [WORKLOAD]\n"
	"Show the functions of WORKLOAD by their samples in the last minute, renewed every\n"
	"two seconds; without WORKLOAD, all workloads. WORKLOAD is a name or an id of\n"
	"'otprof workloads'. The hub keeps its samples while they are shown. q ends.\n"
	"\n"
	"      --total            order by the samples of a function and what it calls\n"
	"      --hide=KIND        leave out frames of this kind, such as kernel\n"
	"      --type=TYPE        show this type of samples (default: cpu, or the first)\n"
	"      --window=TIME      of the last TIME (default: 60s)\n"
	"      --once             print one page and exit\n"
	"      --runtime-dir=DIR  directory of otprofd's files (default: " CLI_RUNTIME_DIR ")\n"
	"      --help             display this help and exit\n";

struct options {
	const char *runtime_dir, *hide, *type, *workload;
	uint64_t window_ns;
	bool by_total, once;
};

struct function {
	const char *name, *module, *kind; /* borrowed from the answer */
	uint64_t self, total;
	uint32_t on_path; /* of the walk: how many of its nodes are above */
};

/* --- functions of a tree --- */

static uint64_t top_item(const json_t *tree, const char *column, size_t i)
{
	return (uint64_t)json_integer_value(json_array_get(client_at(tree, column), i));
}

static const char *top_string(const json_t *tree, const char *column, size_t i)
{
	const char *s = json_string_value(json_array_get(client_at(tree, "strings"), top_item(tree, column, i)));

	return s ? s : "";
}

static struct function *top_functions(const json_t *tree, size_t *ret_n)
{
	size_t n = json_array_size(client_at(tree, "functions.name"));
	struct function *f = calloc(n + 1, sizeof(*f));

	for (size_t i = 0; f && i < n; i++) {
		const json_t *kind = json_array_get(client_at(tree, "kinds"), top_item(tree, "functions.kind", i));

		f[i].name = top_string(tree, "functions.name", i);
		f[i].module = top_string(tree, "functions.module", i);
		f[i].kind = client_text(kind, "label");
	}
	*ret_n = n;
	return f;
}

/* The columns of the nodes, and the path to the one that is looked at. */
struct walk {
	const json_t *depth, *function, *self;
	struct function *functions;
	size_t n, nr_functions;
	uint32_t *path; /* owned: functions above, by depth */
	size_t open;
};

static void top_leave(struct walk *w, size_t depth)
{
	while (w->open > depth)
		w->functions[w->path[--w->open]].on_path--;
}

/* A stack counts once for a function, however often the function is on it. */
static void top_count(struct walk *w, uint64_t self)
{
	for (size_t i = w->open; i-- > 0;) {
		struct function *f = &w->functions[w->path[i]];
		bool outer = false;

		for (size_t k = 0; f->on_path > 1 && k < i; k++)
			outer |= w->path[k] == w->path[i];
		if (!outer)
			f->total += self;
	}
	w->functions[w->path[w->open - 1]].self += self;
}

static int top_walk(struct walk *w)
{
	w->path = calloc(w->n + 1, sizeof(*w->path));
	if (!w->path)
		return -ENOMEM;
	for (size_t i = 0; i < w->n; i++) {
		size_t depth = (size_t)json_integer_value(json_array_get(w->depth, i));
		uint64_t self = (uint64_t)json_integer_value(json_array_get(w->self, i));
		size_t function = (size_t)json_integer_value(json_array_get(w->function, i));

		if (depth > w->open || function >= w->nr_functions)
			return -EBADMSG;
		top_leave(w, depth);
		w->path[w->open++] = (uint32_t)function;
		w->functions[function].on_path++;
		if (self)
			top_count(w, self);
	}
	return 0;
}

static int top_add_up(const json_t *tree, struct function *f, size_t n)
{
	struct walk w = {
		.depth = client_at(tree, "nodes.depth"),
		.function = client_at(tree, "nodes.function"),
		.self = client_at(tree, "nodes.self"),
		.functions = f,
		.nr_functions = n,
	};
	int r;

	w.n = json_array_size(w.depth);
	r = top_walk(&w);
	free(w.path);
	return r;
}

static int top_by_self(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	return x->total != y->total ? (x->total > y->total ? -1 : 1) : strcmp(x->name, y->name);
}

static int top_by_total(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->total != y->total ? (x->total > y->total ? -1 : 1) : top_by_self(a, b);
}

/* --- pages --- */

static double top_percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static void top_table(const struct options *o, const json_t *tree, struct function *f, size_t n, struct buf *b)
{
	uint64_t all = client_number(tree, "value");

	qsort(f, n, sizeof(*f), o->by_total ? top_by_total : top_by_self);
	buf_printf(b, "%7s %7s %9s  %-10s %s\n", "self", "total", "samples", "kind", "function");
	for (size_t i = 0, rows = 0; i < n && rows < ROWS; i++) {
		if (!f[i].total || strcmp(f[i].kind, "all") == 0)
			continue;
		rows++;
		buf_printf(b, "%6.1f%% %6.1f%% %9" PRIu64 "  %-10s %.*s%s%s\n", top_percent(f[i].self, all),
			   top_percent(f[i].total, all), f[i].self, f[i].kind, (int)utf8_bytes(f[i].name, NAME_SHOWN),
			   f[i].name, *f[i].module ? "  " : "", f[i].module);
	}
}

static int top_function_page(const struct options *o, const json_t *workload, const json_t *tree, struct buf *b)
{
	size_t n;
	_cleanup_(freep) struct function *f = top_functions(tree, &n);
	int r = f ? top_add_up(tree, f, n) : -ENOMEM;

	if (r < 0) {
		cli_error("the hub's answer cannot be shown: %s", strerror(-r));
		return CLI_FAILED;
	}
	buf_printf(b, "%s: %" PRIu64 " %s of %s in %.0f s\n\n", client_text(workload, "name"),
		   client_number(tree, "value"), client_text(tree, "type.unit"), client_text(tree, "type.name"),
		   (double)(client_number(tree, "to_ms") - client_number(tree, "from_ms")) / 1000);
	if (!client_number(tree, "value"))
		buf_add_str(b, "No samples yet: those of the next interval are kept.\n");
	else
		top_table(o, tree, f, n, b);
	return 0;
}

static int top_read_functions(const struct options *o, const struct hub *h, const char *id, const json_t *workload,
			      struct buf *b)
{
	_cleanup_(json_decrefp) json_t *slot = NULL, *tree = NULL;
	char path[512];
	int r;

	snprintf(path, sizeof(path), "/workloads/%s/slot", id);
	r = hub_ask(h, "PUT", path, &slot);
	if (r)
		return r;
	snprintf(path, sizeof(path), "/workloads/%s/tree?from=-%" PRIu64 "%s%s%s%s", id,
		 (uint64_t)(o->window_ns / NSEC_PER_MSEC), o->hide ? "&hide=" : "", o->hide ? o->hide : "", o->type ? "&type=" : "", o->type ? o->type : "");
	r = hub_ask(h, "GET", path, &tree);
	return r ? r : top_function_page(o, workload, tree, b);
}

static int top_read(const struct options *o, const struct hub *h, const char *id, const json_t *workload, struct buf *b)
{
	_cleanup_(json_decrefp) json_t *answer = NULL;
	int r;

	buf_reset(b);
	if (o->workload)
		return top_read_functions(o, h, id, workload, b);
	r = hub_ask(h, "GET", "/workloads", &answer);
	if (!r)
		workloads_page(answer, true, b);
	return r;
}

static int top_run(const struct options *o, const struct hub *h, const char *id, const json_t *workload)
{
	_cleanup_(buf_done) struct buf b = {0};
	enum screen_event event = SCREEN_TIME;
	int r = top_read(o, h, id, workload, &b);

	if (r || o->once || !screen_possible())
		return r ? r : cli_help(buf_cstr(&b));
	if (screen_enter() < 0)
		return CLI_FAILED;
	while (event != SCREEN_QUIT && !r) {
		screen_paint(buf_cstr(&b), b.len);
		event = screen_wait(EVERY_NS);
		if (event == SCREEN_TIME)
			r = top_read(o, h, id, workload, &b);
	}
	screen_leave();
	return r;
}

/* A word in an address: what needs escaping is no kind and no type. */
static bool top_is_word(const char *s)
{
	return *s && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == strlen(s);
}

static bool top_option(struct options *o, int c)
{
	switch (c) {
	case 't':
		o->by_total = true;
		return true;
	case 'H':
		o->hide = optarg;
		return top_is_word(optarg);
	case 'T':
		o->type = optarg;
		return top_is_word(optarg);
	case 'w':
		return cli_parse_time(optarg, &o->window_ns) == 0;
	case '1':
		o->once = true;
		return true;
	case 'r':
		o->runtime_dir = optarg;
		return true;
	default:
		return false;
	}
}

int cmd_top(int argc, char **argv)
{
	static const struct option longs[] = {
		{"total", no_argument, NULL, 't'},	 {"hide", required_argument, NULL, 'H'},
		{"type", required_argument, NULL, 'T'},	 {"window", required_argument, NULL, 'w'},
		{"once", no_argument, NULL, '1'},	 {"runtime-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},	 {0},
	};
	struct options o = {.runtime_dir = CLI_RUNTIME_DIR, .window_ns = WINDOW_NS};
	_cleanup_(json_decrefp) json_t *workload = NULL;
	char id[HUB_ID] = "";
	struct hub h;
	int c, r;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'h')
			return cli_help(help);
		if (!top_option(&o, c)) {
			if (c != '?')
				cli_error("invalid value '%s'", optarg);
			return cli_try_help(CLI_USAGE);
		}
	}
	if (argc - optind > 1) {
		cli_error("extra operand '%s'", argv[optind + 1]);
		return cli_try_help(CLI_USAGE);
	}
	o.workload = argv[optind];
	r = hub_find(o.runtime_dir, &h);
	if (!r && o.workload)
		r = hub_workload(&h, o.workload, id, &workload);
	return r ? r : top_run(&o, &h, id, workload);
}
