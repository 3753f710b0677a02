// SPDX-License-Identifier: Apache-2.0
#include "cli/top_functions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/utf8.h"
#include "cli/client.h"

#define NAME_SHOWN 72

static uint64_t top_item(const json_t *tree, const char *column, size_t i)
{
	return (uint64_t)json_integer_value(json_array_get(client_at(tree, column), i));
}

static const char *top_string(const json_t *tree, const char *column, size_t i)
{
	const char *s = json_string_value(json_array_get(client_at(tree, "strings"), top_item(tree, column, i)));

	return s ? s : "";
}

static int top_read_names(const json_t *tree, struct top_functions *f)
{
	size_t n = json_array_size(client_at(tree, "functions.name"));

	f->list = calloc(n + 1, sizeof(*f->list));
	if (!f->list)
		return -ENOMEM;
	f->count = n;
	for (size_t i = 0; i < n; i++) {
		const json_t *kind = json_array_get(client_at(tree, "kinds"), top_item(tree, "functions.kind", i));

		f->list[i].name = top_string(tree, "functions.name", i);
		f->list[i].module = top_string(tree, "functions.module", i);
		f->list[i].kind = client_text(kind, "label");
	}
	return 0;
}

/* The columns of the nodes, and the path to the one that is looked at. */
struct walk {
	const json_t *depth, *function, *self;
	struct top_function *functions;
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
		struct top_function *f = &w->functions[w->path[i]];
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

static int top_add_up(const json_t *tree, struct top_functions *f)
{
	struct walk w = {
		.depth = client_at(tree, "nodes.depth"),
		.function = client_at(tree, "nodes.function"),
		.self = client_at(tree, "nodes.self"),
		.functions = f->list,
		.nr_functions = f->count,
	};
	int r;

	w.n = json_array_size(w.depth);
	r = top_walk(&w);
	free(w.path);
	return r;
}

int top_functions_read(const json_t *tree, struct top_functions *ret)
{
	int r;

	*ret = (struct top_functions){0};
	r = top_read_names(tree, ret);
	return r < 0 ? r : top_add_up(tree, ret);
}

void top_functions_done(struct top_functions *f)
{
	free(f->list);
	*f = (struct top_functions){0};
}

/* Neither the whole nor a function without samples is a row. */
static bool top_is_row(const struct top_function *f)
{
	return f->total && strcmp(f->kind, "all") != 0;
}

const char *top_functions_next_kind(const struct top_functions *f, const char *kind)
{
	const char *next = NULL;

	for (size_t i = 0; i < f->count; i++) {
		const char *k = f->list[i].kind;

		if (top_is_row(&f->list[i]) && (!kind || strcmp(k, kind) > 0) && (!next || strcmp(k, next) < 0))
			next = k;
	}
	return next;
}

static int top_by_self(const void *a, const void *b)
{
	const struct top_function *x = a, *y = b;

	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	return x->total != y->total ? (x->total > y->total ? -1 : 1) : strcmp(x->name, y->name);
}

static int top_by_total(const void *a, const void *b)
{
	const struct top_function *x = a, *y = b;

	return x->total != y->total ? (x->total > y->total ? -1 : 1) : top_by_self(a, b);
}

static void top_row(const struct top_function *f, uint64_t all, struct buf *b)
{
	buf_printf(b, "%6.1f%% %6.1f%% %9" PRIu64 "  %-10s %.*s%s%s\n", format_percent(f->self, all), format_percent(f->total, all),
		   f->self, f->kind, (int)utf8_bytes(f->name, NAME_SHOWN), f->name, *f->module ? "  " : "", f->module);
}

void top_functions_table(struct top_functions *f, const struct top_choice *choice, uint64_t all, struct buf *b)
{
	qsort(f->list, f->count, sizeof(*f->list), choice->by_total ? top_by_total : top_by_self);
	buf_printf(b, "%7s %7s %9s  %-10s %s\n", "self", "total", "samples", "kind", "function");
	for (size_t i = 0, rows = 0; i < f->count && rows < choice->most; i++) {
		if (!top_is_row(&f->list[i]) || (choice->kind && strcmp(f->list[i].kind, choice->kind) != 0))
			continue;
		rows++;
		top_row(&f->list[i], all, b);
	}
}
