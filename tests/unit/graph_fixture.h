/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and drawings of a test's recording. */
#ifndef OTP_TESTS_GRAPH_FIXTURE_H
#define OTP_TESTS_GRAPH_FIXTURE_H

#include "graph/graph.h"
#include "otlp_fixture.h"
#include "render/caption.h"
#include "render/render.h"

#define FX_TREE_DEPTH   8192
#define FX_WRITER_BYTES (1u << 30)

static const struct tree_limits fixture_tree_limits = {
	.nodes = 1u << 20, .depth = FX_TREE_DEPTH, .names = 1u << 20, .name_bytes = 1u << 28,
};

static inline struct rec_views fixture_views(const struct recording *r)
{
	struct rec_views views;

	if (recording_views(r, &views) < 0)
		abort();
	return views;
}

/* Of the recording's first type. */
static inline struct graph *fixture_graph(const struct recording *r)
{
	_cleanup_(rec_views_done) struct rec_views views = fixture_views(r);
	struct graph *g = NULL;

	if (graph_new(&fixture_tree_limits, &g) < 0 || graph_add(g, r, &views.list[0]) < 0 || graph_finish(g) < 0)
		abort();
	return g;
}

/* The same, compared with another recording. */
static inline struct graph *fixture_comparison(const struct recording *r, const struct recording *base)
{
	_cleanup_(rec_views_done) struct rec_views views = fixture_views(r), before = fixture_views(base);
	struct graph *g = NULL;

	if (graph_new(&fixture_tree_limits, &g) < 0 || graph_add(g, r, &views.list[0]) < 0 ||
	    graph_add_before(g, base, &before.list[0]) < 0 || graph_finish(g) < 0)
		abort();
	return g;
}

/* p holds what the test wants of it; the rest is filled in. */
static inline int fixture_draw(render_graph_fn *draw, struct recording *r, struct picture p, const char *subtitle,
			       struct buf *out)
{
	_cleanup_(graph_freep) struct graph *g = fixture_graph(r);
	_cleanup_(rec_views_done) struct rec_views views = fixture_views(r);
	const struct rec_view *v = &views.list[0];
	_cleanup_(buf_done) struct buf caption = {0};

	caption_view(&caption, r, v, g->now.total[0], subtitle);
	p.graph = g;
	p.title = p.title ? p.title : "title";
	p.caption = buf_cstr(&caption);
	p.unit = rec_view_unit(r, v);
	p.period_ns = rec_view_is_cpu(r, v) ? v->period : 0;
	return draw(&p, out);
}

#endif
