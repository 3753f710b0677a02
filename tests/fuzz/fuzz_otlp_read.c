// SPDX-License-Identifier: Apache-2.0
/* An .otlp file from anywhere, read, written in every format, and filtered. */
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/limits.h"
#include "render/caption.h"
#include "render/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever was accepted must survive its own OTLP form with the same samples. */
static void again(const struct buf *otlp, uint64_t total)
{
	_cleanup_(recording_freep) struct recording *r = NULL;

	if (recording_new(&cli_recording_limits, &r) < 0 || recording_read(r, otlp->data, otlp->len) < 0 || r->total != total)
		abort();
}

static void write_all(const struct recording *r)
{
	_cleanup_(buf_done) struct buf pprof = {.max = 64u << 20}, otlp = {.max = 64u << 20};

	render_pprof(r, CLI_WRITER_BYTES, &pprof);
	if (render_otlp(r, CLI_WRITER_BYTES, &otlp) == 0)
		again(&otlp, r->total);
}

static struct graph *graph_of(const struct recording *r, const struct rec_view *v)
{
	struct graph *g = NULL;

	if (graph_new(&cli_tree_limits, &g) == 0 && graph_add(g, r, v) == 0)
		return g;
	return graph_free(g);
}

/* The whole of a tree is what its stacks add up to. */
static void draw(const struct recording *r, const struct rec_view *v)
{
	_cleanup_(buf_done) struct buf caption = {0}, svg = {.max = 64u << 20}, collapsed = {.max = 64u << 20};
	_cleanup_(graph_freep) struct graph *g = graph_of(r, v);
	struct picture p = {.title = "fuzz", .graph = g, .unit = rec_view_unit(r, v)};

	if (!g || graph_finish(g) < 0)
		return;
	if (g->now.total[0] != v->value)
		abort();
	caption_view(&caption, r, v, v->value, NULL);
	p.caption = buf_cstr(&caption);
	render_svg(&p, &svg);
	render_collapsed(&p, &collapsed);
}

static void draw_all(const struct recording *r)
{
	_cleanup_(rec_views_done) struct rec_views views = {0};

	if (recording_views(r, &views) < 0)
		return;
	for (uint32_t i = 0; i < MIN(views.count, (uint32_t)CLI_TYPES); i++)
		draw(r, &views.list[i]);
}

/* A filter leaves the same of a tree as of the recording, while the tree is not cut at its depth. */
static void filter_both(struct recording *r)
{
	_cleanup_(rec_views_done) struct rec_views views = {0};
	_cleanup_(filter_done) struct filter f = {.hidden = 1u << KIND_KERNEL | 1u << KIND_OTHER};
	_cleanup_(graph_freep) struct graph *g = NULL;
	char why[FILTER_WHY];
	bool whole;

	if (recording_views(r, &views) < 0 || views.count > 1 || !(g = graph_of(r, &views.list[0])))
		return;
	filter_focus(&f, "[a-m]", why);
	filter_ignore(&f, "x$", why);
	whole = g->tree->depth < cli_tree_limits.depth;
	if (graph_filter(g, &f) < 0 || graph_finish(g) < 0 || filter_recording(&f, r) < 0)
		return;
	if (whole && g->now.total[0] != r->total)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(recording_freep) struct recording *r = NULL;

	if (recording_new(&cli_recording_limits, &r) < 0 || recording_read(r, data, size) < 0)
		return 0;
	draw_all(r);
	write_all(r);
	filter_both(r);
	return 0;
}
