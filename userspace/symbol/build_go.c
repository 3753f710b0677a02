// SPDX-License-Identifier: Apache-2.0
/*
 * Functions, inlined calls and lines of Go's own table (process/go_table.h).
 */
#include <string.h>

#include "base/cleanup.h"
#include "process/go_table.h"
#include "symbol/build.h"

#define FILES_KEPT 8 /* of a function: its own, and those of what is inlined in it */

struct go_kept_file {
	int64_t number;
	uint32_t unit, string;
	bool filled;
};

struct go_build {
	struct builder *b;
	const struct go_table *table;
	struct go_function f;
	uint32_t node; /* of the function itself */
	struct go_kept_file files[FILES_KEPT];
	char text[GO_NAME_MAX];
};

/* --- strings --- */

static uint32_t go_build_name(struct go_build *g, uint32_t name)
{
	if (go_name(g->table, name, g->text) < 0)
		return 0;
	return index_add_string(g->b->out, g->text, strlen(g->text));
}

static uint32_t go_build_file(struct go_build *g, int64_t number)
{
	struct go_kept_file *kept = &g->files[(uint64_t)number % FILES_KEPT];

	if (kept->filled && kept->number == number && kept->unit == g->f.unit)
		return kept->string;
	*kept = (struct go_kept_file){.number = number, .unit = g->f.unit, .filled = true};
	if (go_file(g->table, &g->f, number, g->text) == 0)
		kept->string = index_add_string(g->b->out, g->text, strlen(g->text));
	return kept->string;
}

/* --- functions --- */

static int go_build_range(struct go_build *g, uint64_t start, uint64_t end, uint32_t node, uint32_t depth)
{
	struct sort_record r = {.key = start, .v = {(uint32_t)MIN(end - start, (uint64_t)UINT32_MAX), node, depth}};

	if (!node || !builder_is_code(g->b, start, r.v[0]))
		return 0;
	r.v[3] = g->b->order++;
	return builder_put(g->b, g->b->functions, &r);
}

/* Where the call is: the place of the function around it, which is inlined itself or not. */
static void go_build_call(struct go_build *g, uint64_t at, struct index_node *n)
{
	int64_t file, line;

	if (go_value(g->table, &g->f, g->f.file, at, &file) < 0 || go_value(g->table, &g->f, g->f.line, at, &line) < 0)
		return;
	n->call_file = go_build_file(g, file);
	n->call_line = line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
}

/* The calls around number, innermost first; how many, or -EBADMSG. */
static int go_build_chain(struct go_build *g, int64_t number, struct go_inlined chain[GO_INLINED_MAX])
{
	int n = 0;

	while (number >= 0) {
		if (n == GO_INLINED_MAX || go_inlined_at(g->table, &g->f, number, &chain[n]) < 0 ||
		    go_value(g->table, &g->f, g->f.inlined, chain[n].call, &number) < 0)
			return -EBADMSG;
		n++;
	}
	return n;
}

/* A chain that cannot be read leaves the function without inlined calls there. */
static int go_build_inlined(struct go_build *g, const struct go_steps *s)
{
	struct go_inlined chain[GO_INLINED_MAX];
	uint32_t node = g->node;
	int n = go_build_chain(g, s->value, chain);

	for (int i = n - 1; i >= 0; i--) {
		struct index_node x = {.parent = node, .start_line = chain[i].start_line};

		x.name = go_build_name(g, chain[i].name);
		go_build_call(g, chain[i].call, &x);
		node = index_add_node(g->b->out, &x);
	}
	return n > 0 ? go_build_range(g, s->start, s->end, node, (uint32_t)n) : 0;
}

static int go_build_inlines(struct go_build *g)
{
	struct go_steps s;
	int r = 0;

	if (!g->b->job->inlines || !g->f.tree)
		return 0;
	go_steps_init(&s, g->table, &g->f, g->f.inlined);
	while (r == 0 && go_steps_next(&s) > 0)
		if (s.value >= 0)
			r = go_build_inlined(g, &s);
	return r;
}

/* --- lines --- */

static int go_build_line(struct go_build *g, uint64_t at, int64_t file, int64_t line)
{
	struct sort_record r = {.key = at};

	r.v[0] = go_build_file(g, file);
	r.v[1] = line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
	r.v[2] = ++g->b->order;
	return builder_put(g->b, g->b->lines, &r);
}

/* Files and lines change at addresses of their own. */
static int go_build_lines(struct go_build *g)
{
	struct go_steps file, line;
	uint64_t at = g->f.start;
	int r = 0;

	go_steps_init(&file, g->table, &g->f, g->f.file);
	go_steps_init(&line, g->table, &g->f, g->f.line);
	while (r == 0 && builder_is_code(g->b, at, 0)) {
		if ((file.end <= at && go_steps_next(&file) <= 0) || (line.end <= at && go_steps_next(&line) <= 0))
			break;
		r = go_build_line(g, at, file.value, line.value);
		at = MIN(file.end, line.end);
	}
	/* The gap loses against what begins at its address. */
	if (r == 0 && at > g->f.start)
		r = builder_put(g->b, g->b->lines, &(struct sort_record){.key = at, .v = {0, 0, UINT32_MAX}});
	return r;
}

/* --- all --- */

static int go_build_function(struct go_build *g)
{
	struct index_node n = {.start_line = g->f.start_line};
	int r;

	n.name = go_build_name(g, g->f.name);
	if (!n.name)
		return 0;
	g->node = index_add_node(g->b->out, &n);
	r = go_build_range(g, g->f.start, g->f.end, g->node, 0);
	if (r == 0)
		r = go_build_inlines(g);
	return r == 0 && g->b->job->lines ? go_build_lines(g) : r;
}

int build_go(struct builder *b)
{
	struct go_build g = {.b = b, .table = go_table_get(b->binary)};
	int r = 0;

	if (!g.table)
		return -ENOENT;
	(void)go_table_find_trees(b->binary);
	for (uint32_t i = 0; r == 0 && i < g.table->count; i++)
		if (go_function_at(g.table, i, &g.f) == 0)
			r = go_build_function(&g);
	return r;
}
