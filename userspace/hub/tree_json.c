// SPDX-License-Identifier: Apache-2.0
#include "hub/tree_json.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

struct tree_writer {
	struct jsonw *w;
	const struct tree_view *v;
	uint32_t *nodes;     /* owned: those in use, in preorder */
	uint32_t count;
	uint32_t *functions; /* owned, by function of the tree: its place in the answer + 1, 0: none */
	uint32_t *used;	     /* owned: functions in the order of the answer */
	uint32_t nr_used;
	uint32_t *strings;   /* owned, by string of the tree: its place in the answer + 1, 0: none */
	uint32_t *texts;     /* owned: strings in the order of the answer */
	uint32_t nr_texts;
};

static uint64_t tree_writer_total(const struct tree_writer *t, uint32_t node)
{
	return t->v->now->total[node] + (t->v->base ? t->v->base->total[node] : 0);
}

/* The place of item in a list that grows, which it joins at its first use. */
static uint32_t tree_writer_place(uint32_t *places, uint32_t *list, uint32_t *count, uint32_t item)
{
	if (!places[item]) {
		list[(*count)++] = item;
		places[item] = *count;
	}
	return places[item] - 1;
}

static uint32_t tree_writer_string(struct tree_writer *t, uint32_t string)
{
	return tree_writer_place(t->strings, t->texts, &t->nr_texts, string);
}

static const struct slot_place *tree_writer_source(const struct tree_writer *t, uint32_t function)
{
	static const struct slot_place unknown;

	return t->v->places && function < t->v->nr_places ? &t->v->places[function] : &unknown;
}

static void tree_writer_collect(struct tree_writer *t)
{
	const struct tree *tree = t->v->tree;
	uint32_t i = 0;

	while (i != TREE_NONE) {
		if (i && !tree_writer_total(t, i)) {
			i = tree_after(tree, i);
			continue;
		}
		t->nodes[t->count++] = i;
		tree_writer_place(t->functions, t->used, &t->nr_used, tree->nodes[i].function);
		i = tree_next(tree, i);
	}
	tree_writer_string(t, 0);
	for (i = 0; i < t->nr_used; i++) {
		const struct tree_function *f = tree_function(tree, t->used[i]);

		tree_writer_string(t, f->name);
		tree_writer_string(t, f->module);
		tree_writer_string(t, tree_writer_source(t, t->used[i])->file);
	}
}

static int tree_writer_init(struct tree_writer *t, struct jsonw *w, const struct tree_view *v)
{
	uint32_t functions = v->tree->functions.count, strings = v->tree->strings.count;

	*t = (struct tree_writer){.w = w, .v = v};
	t->nodes = calloc(v->tree->count, sizeof(*t->nodes));
	t->functions = calloc(functions, sizeof(*t->functions));
	t->used = calloc(functions, sizeof(*t->used));
	t->strings = calloc(strings, sizeof(*t->strings));
	t->texts = calloc(strings, sizeof(*t->texts));
	return t->nodes && t->functions && t->used && t->strings && t->texts ? 0 : -ENOMEM;
}

static void tree_writer_done(struct tree_writer *t)
{
	free(t->nodes);
	free(t->functions);
	free(t->used);
	free(t->strings);
	free(t->texts);
}

/* A list named name with one number for each node, or each function. */
#define COLUMN(t, name, n, item, value)                          \
	do {                                                     \
		jsonw_open_list((t)->w, name);                   \
		for (uint32_t _i = 0; _i < (n); _i++) {          \
			uint32_t item = list[_i];                \
			jsonw_number((t)->w, NULL, value);       \
		}                                                \
		jsonw_close_list((t)->w);                        \
	} while (0)

static void tree_writer_inlined(struct tree_writer *t)
{
	jsonw_open_list(t->w, "inlined");
	for (uint32_t i = 0; i < t->count; i++)
		if (t->v->tree->nodes[t->nodes[i]].inlined)
			jsonw_number(t->w, NULL, i);
	jsonw_close_list(t->w);
}

static void tree_writer_nodes(struct tree_writer *t)
{
	const struct tree *tree = t->v->tree;
	const uint32_t *list = t->nodes;

	jsonw_open(t->w, "nodes");
	COLUMN(t, "id", t->count, i, i);
	COLUMN(t, "depth", t->count, i, tree->nodes[i].depth);
	COLUMN(t, "function", t->count, i, t->functions[tree->nodes[i].function] - 1);
	COLUMN(t, "self", t->count, i, t->v->now->self[i]);
	if (t->v->base)
		COLUMN(t, "base", t->count, i, t->v->base->self[i]);
	tree_writer_inlined(t);
	jsonw_close(t->w);
}

static void tree_writer_functions(struct tree_writer *t)
{
	const struct tree *tree = t->v->tree;
	const uint32_t *list = t->used;

	jsonw_open(t->w, "functions");
	COLUMN(t, "id", t->nr_used, i, i);
	COLUMN(t, "name", t->nr_used, i, tree_writer_string(t, tree_function(tree, i)->name));
	COLUMN(t, "module", t->nr_used, i, tree_writer_string(t, tree_function(tree, i)->module));
	COLUMN(t, "kind", t->nr_used, i, tree_function(tree, i)->kind);
	COLUMN(t, "file", t->nr_used, i, tree_writer_string(t, tree_writer_source(t, i)->file));
	COLUMN(t, "line", t->nr_used, i, tree_writer_source(t, i)->line);
	jsonw_close(t->w);
}

static void tree_writer_texts(struct tree_writer *t)
{
	jsonw_open_list(t->w, "strings");
	for (uint32_t i = 0; i < t->nr_texts; i++)
		jsonw_text(t->w, NULL, tree_string(t->v->tree, t->texts[i]));
	jsonw_close_list(t->w);
	jsonw_open_list(t->w, "kinds");
	for (int i = 0; i < KIND_NR; i++) {
		jsonw_open(t->w, NULL);
		jsonw_text(t->w, "name", frame_kind_name(i));
		jsonw_text(t->w, "label", frame_kind_label(i));
		jsonw_close(t->w);
	}
	jsonw_close_list(t->w);
}

int tree_json(struct jsonw *w, const struct tree_view *v)
{
	_cleanup_(tree_writer_done) struct tree_writer t;
	int r = tree_writer_init(&t, w, v);

	if (r < 0)
		return r;
	tree_writer_collect(&t);
	tree_writer_nodes(&t);
	tree_writer_functions(&t);
	tree_writer_texts(&t);
	return 0;
}

void hub_type_json(struct jsonw *w, const char *name, const struct hub_type *t)
{
	jsonw_open(w, name);
	jsonw_text(w, "name", t->name);
	jsonw_text(w, "unit", t->unit);
	jsonw_bool(w, "cpu", t->cpu);
	jsonw_signed(w, "period", t->period);
	jsonw_close(w);
}
