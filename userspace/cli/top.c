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
#include "cli/client.h"
#include "cli/hub.h"
#include "cli/screen.h"
#include "cli/top_functions.h"
#include "cli/top_screen.h"
#include "cli/workloads.h"

#define EVERY_NS  (2 * NSEC_PER_SEC)
#define WINDOW_NS (60 * NSEC_PER_SEC)
#define ROWS_ONCE 60
#define ROWS_LIVE 2000
#define KIND	  32

static const char help[] =
	"Usage: otprof top [OPTION]... [WORKLOAD]\n"
	"Show the functions of WORKLOAD by their samples in the last minute, renewed every\n"
	"two seconds; without WORKLOAD, all workloads. WORKLOAD is a name or an id of\n"
	"'otprof workloads'. The hub keeps its samples while they are shown.\n"
	"Keys: s and t order by self and total, k shows one kind of functions after the\n"
	"other, arrows and pages scroll, q ends.\n"
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

/* What is shown, from answer to answer. */
struct top {
	const struct options *o;
	const struct hub *hub;
	const char *id;
	const json_t *workload; /* NULL: all workloads */
	json_t *answer; /* owned: a tree, or the list of workloads */
	bool by_total;
	char kind[KIND]; /* "": all */
	struct buf page;
	uint32_t head; /* of the page's lines */
};

static void top_done(struct top *t)
{
	json_decref(t->answer);
	buf_done(&t->page);
}

/* --- pages --- */

static void top_head(struct top *t, const json_t *tree)
{
	struct buf *b = &t->page;

	buf_printf(b, "%s: %" PRIu64 " %s of %s in %.0f s, by %s, kind: %s\n", client_text(t->workload, "name"),
		   client_number(tree, "value"), client_text(tree, "type.unit"), client_text(tree, "type.name"),
		   (double)(client_number(tree, "to_ms") - client_number(tree, "from_ms")) / 1000,
		   t->by_total ? "total" : "self", *t->kind ? t->kind : "all");
	buf_printf(b, "flame graph: %s%s/#/w/%s\n\n", hub_scheme(t->hub), t->hub->address, t->id);
}

static int top_function_page(struct top *t)
{
	struct top_choice choice = {*t->kind ? t->kind : NULL, t->by_total, t->o->once ? ROWS_ONCE : ROWS_LIVE};
	_cleanup_(top_functions_done) struct top_functions f;
	int r = top_functions_read(t->answer, &f);

	if (r < 0) {
		cli_error("the hub's answer cannot be shown: %s", strerror(-r));
		return CLI_FAILED;
	}
	top_head(t, t->answer);
	t->head = 4;
	if (!client_number(t->answer, "value"))
		buf_add_str(&t->page, "No samples yet: those of the next interval are kept.\n");
	else
		top_functions_table(&f, &choice, client_number(t->answer, "value"), &t->page);
	return 0;
}

/* The page of the answer that is there. The exit status. */
static int top_show(struct top *t)
{
	buf_reset(&t->page);
	if (t->workload)
		return top_function_page(t);
	t->head = 1;
	workloads_page(t->answer, true, &t->page);
	return 0;
}

static int top_read_tree(struct top *t, json_t **ret)
{
	const struct options *o = t->o;
	_cleanup_(json_decrefp) json_t *slot = NULL;
	char path[512];
	int r;

	snprintf(path, sizeof(path), "/workloads/%s/slot", t->id);
	r = hub_ask(t->hub, "PUT", path, &slot);
	if (r)
		return r;
	snprintf(path, sizeof(path), "/workloads/%s/tree?from=-%" PRIu64 "%s%s%s%s", t->id,
		 (uint64_t)(o->window_ns / NSEC_PER_MSEC), o->hide ? "&hide=" : "", o->hide ? o->hide : "",
		 o->type ? "&type=" : "", o->type ? o->type : "");
	return hub_ask(t->hub, "GET", path, ret);
}

/* Asks the hub, and shows its answer. The exit status. */
static int top_renew(struct top *t)
{
	json_t *answer = NULL;
	int r = t->workload ? top_read_tree(t, &answer) : hub_ask(t->hub, "GET", "/workloads", &answer);

	if (r)
		return r;
	json_decref(t->answer);
	t->answer = answer;
	return top_show(t);
}

static void top_next_kind(struct top *t)
{
	_cleanup_(top_functions_done) struct top_functions f;
	const char *next;

	if (!t->workload || top_functions_read(t->answer, &f) < 0)
		return;
	next = top_functions_next_kind(&f, *t->kind ? t->kind : NULL);
	snprintf(t->kind, sizeof(t->kind), "%s", next ? next : "");
}

/* --- the screen --- */

static int top_on_key(struct top *t, int key)
{
	switch (key) {
	case TOP_KEY_TIME:
		return top_renew(t);
	case 's':
	case 't':
		t->by_total = key == 't';
		return top_show(t);
	case 'k':
		top_next_kind(t);
		return top_show(t);
	default:
		return 0;
	}
}

static int top_live(struct top *t)
{
	struct top_page page = {.keys = t->workload ? "q quit   s by self   t by total   k next kind   arrows, pages scroll" :
						      "q quit   arrows, pages scroll"};
	int key = TOP_KEY_REPAINT, r = 0;

	if (top_screen_enter() < 0) {
		cli_error("the terminal is not known; --once prints one page");
		return CLI_FAILED;
	}
	while (key != TOP_KEY_QUIT && !r) {
		page.text = buf_cstr(&t->page);
		page.len = t->page.len;
		page.head = t->head;
		top_screen_paint(&page);
		key = top_screen_wait(EVERY_NS);
		r = top_on_key(t, key);
	}
	top_screen_leave();
	return r ? top_renew(t) : 0; /* the message was on the screen that is gone */
}

static int top_run(struct top *t)
{
	int r = top_renew(t);

	if (r || t->o->once || !screen_possible())
		return r ? r : cli_help(buf_cstr(&t->page));
	return top_live(t);
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
	_cleanup_(top_done) struct top t = {.o = &o, .hub = &h, .id = id};
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
	t.workload = workload;
	t.by_total = o.by_total;
	return r ? r : top_run(&t);
}
