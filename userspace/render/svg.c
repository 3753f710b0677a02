// SPDX-License-Identifier: Apache-2.0
/*
 * The flame graph: one SVG file that refers to no other. Without a script (an
 * image in a page runs none) it is a complete picture; opened in a browser,
 * its script adds zoom, search and tips and fits it to the window.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/utf8.h"
#include "render/drawing.h"
#include "render/palette.h"
#include "render/xml.h"

#define GLYPH_WIDTH 6.95  /* of 11.5 px monospace */
#define DRAWN_MAX   8000u /* frames; more make a browser slow */
#define LEAST       4000u /* frames below 1/LEAST of the width are not drawn */

static const char style[] =
#include "render/flame.css.h"
	;
static const char script[] =
#include "render/flame.js.h"
	;

void svg_add_escaped(struct buf *out, const char *s)
{
	xml_escape(out, s, strlen(s));
}

void svg_add_fitted(struct buf *out, const char *s, size_t max)
{
	if (utf8_count(s) <= max) {
		svg_add_escaped(out, s);
		return;
	}
	xml_escape(out, s, utf8_bytes(s, max - 1));
	buf_add_str(out, "\xe2\x80\xa6");
}

static uint32_t svg_count_drawn(const struct drawing *d, uint64_t least, uint32_t *ret_depth)
{
	uint32_t i, n = 0, depth = 0;

	for (i = 0; i < d->t->count; i++) {
		if (i && d->total[i] < least)
			continue;
		n++;
		depth = MAX(depth, d->t->nodes[i].depth + 1u);
	}
	*ret_depth = depth;
	return n;
}

static void svg_choose_least(struct drawing *d)
{
	d->nodes = svg_count_drawn(d, 1, &d->depth);
	d->least = MAX(d->total[0] / LEAST, (uint64_t)1);
	d->drawn = svg_count_drawn(d, d->least, &d->depth);
	while (d->drawn > DRAWN_MAX) {
		d->least += d->least / 4 + 1;
		d->drawn = svg_count_drawn(d, d->least, &d->depth);
	}
}

/*
 * A few very deep stacks would make the picture so high that the rest is hard to
 * find. Frames beyond its rows are in the file and appear on zooming in.
 */
static int svg_choose_rows(struct drawing *d)
{
	_cleanup_(freep) uint64_t *sums = calloc(d->t->depth + 1, sizeof(*sums));
	uint32_t i, last = 0;

	if (!sums)
		return -ENOMEM;
	for (i = 0; i < d->t->count; i++)
		sums[d->t->nodes[i].depth] += d->total[i];
	for (i = 0; i < d->depth; i++)
		if (sums[i] >= d->total[0] / 100)
			last = i + 1;
	d->rows = MIN(d->depth, MAX(last, (uint32_t)SVG_ROWS));
	return 0;
}

int svg_height(const struct drawing *d)
{
	return SVG_TOP + (int)d->rows * SVG_ROW + SVG_BOTTOM;
}

/* The change of a node's share of all: -1 gone, 0 the same, 1/3 twice as much, 1 new. */
static double svg_change(const struct drawing *d, uint32_t node)
{
	const uint64_t *before = d->picture->graph->before.total;
	double now = format_percent(d->total[node], d->total[0]), then = format_percent(before[node], before[0]);

	return now + then > 0 ? (now - then) / (now + then) : 0;
}

static uint32_t svg_color(const struct drawing *d, uint32_t node)
{
	if (d->picture->graph->compared)
		return palette_change(svg_change(d, node));
	return palette_color(tree_kind(d->t, node), tree_name(d->t, node), d->t->nodes[node].inlined);
}

static void svg_draw_open(struct drawing *d)
{
	buf_printf(d->out,
		   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
		   "data-period=\"%" PRId64 "\" data-unit=\"",
		   SVG_WIDTH, svg_height(d), SVG_WIDTH, svg_height(d), d->picture->period_ns);
	svg_add_escaped(d->out, d->picture->unit);
	buf_add_str(d->out, "\"");
	if (d->picture->graph->compared)
		buf_printf(d->out, " data-before=\"%" PRIu64 "\"", d->picture->graph->before.total[0]);
	buf_printf(d->out, " data-inverted=\"%d\">\n<title>", d->picture->inverted);
	svg_add_escaped(d->out, d->picture->title);
	buf_add_str(d->out, "</title>\n<style>\n");
	buf_add_str(d->out, style);
	buf_add_str(d->out, "</style>\n<rect id=\"paper\" width=\"100%\" height=\"100%\"/>\n");
}

static void svg_draw_before(struct drawing *d, uint32_t i)
{
	const struct values *before = &d->picture->graph->before;
	char total[32], self[32];

	format_count(total, sizeof(total), before->total[i]);
	format_count(self, sizeof(self), before->self[i]);
	buf_printf(d->out, "\nbefore: %s (%.2f %%), self %s (%.2f %%)", total,
		   format_percent(before->total[i], before->total[0]), self,
		   format_percent(before->self[i], before->total[0]));
}

/* Name, module, figures: the script reads the first two lines. */
static void svg_draw_tip(struct drawing *d, uint32_t i)
{
	const char *module = tree_module(d->t, i), *kind = frame_kind_label(tree_kind(d->t, i));
	char total[32], self[32];

	buf_add_str(d->out, "<title>");
	svg_add_escaped(d->out, tree_name(d->t, i));
	buf_add_str(d->out, "\n");
	svg_add_escaped(d->out, *module ? module : kind);
	if (*module)
		buf_printf(d->out, SVG_DOT "%s", kind);
	if (d->t->nodes[i].inlined)
		buf_add_str(d->out, SVG_DOT "inlined");
	format_count(total, sizeof(total), d->total[i]);
	format_count(self, sizeof(self), d->self[i]);
	buf_printf(d->out, "\n%s ", total);
	svg_add_escaped(d->out, d->picture->unit);
	buf_printf(d->out, " (%.2f %%), self %s (%.2f %%)", format_percent(d->total[i], d->total[0]), self,
		   format_percent(d->self[i], d->total[0]));
	if (d->picture->graph->compared)
		svg_draw_before(d, i);
	buf_add_str(d->out, "</title>");
}

static void svg_draw_label(struct drawing *d, const char *name, double x, double width, int y)
{
	double chars = (width - 7) / GLYPH_WIDTH;

	if (chars < 3)
		return;
	buf_printf(d->out, "<text x=\"%.2f\" y=\"%.1f\">", x + 4, y + 12.5);
	svg_add_fitted(d->out, name, (size_t)chars);
	buf_add_str(d->out, "</text>");
}

static void svg_draw_place(struct drawing *d, uint32_t i, uint64_t offset, uint32_t color)
{
	int depth = d->t->nodes[i].depth, row = d->picture->inverted ? depth : (int)d->rows - 1 - depth;
	double scale = (double)(SVG_WIDTH - 2 * SVG_PAD) / (double)MAX(d->total[0], (uint64_t)1);
	double x = SVG_PAD + (double)offset * scale, width = depth ? (double)d->total[i] * scale : SVG_WIDTH - 2 * SVG_PAD;
	int y = SVG_TOP + row * SVG_ROW;

	buf_printf(d->out, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" rx=\"2\" fill=\"#%06x\"/>", x, y,
		   MAX(width > 3 ? width - 0.6 : width, 0.3), SVG_ROW - 1, color);
	svg_draw_label(d, tree_name(d->t, i), x, width, y);
}

static void svg_draw_frame(struct drawing *d, uint32_t i, uint64_t offset)
{
	const struct tree_node *n = &d->t->nodes[i];
	const struct values *before = &d->picture->graph->before;
	uint32_t color = svg_color(d, i);
	bool deep = n->depth >= d->rows;

	buf_printf(d->out, "<g class=\"f\"%s data-v=\"%" PRIu64 " %" PRIu64 " %" PRIu64 " %u\"",
		   deep ? " style=\"display:none\"" : "", offset, d->total[i], d->self[i], n->depth);
	if (d->picture->graph->compared)
		buf_printf(d->out, " data-b=\"%" PRIu64 " %" PRIu64 "\"", before->total[i], before->self[i]);
	buf_add_str(d->out, ">");
	svg_draw_tip(d, i);
	if (deep)
		buf_printf(d->out, "<rect height=\"%d\" rx=\"2\" fill=\"#%06x\"/>", SVG_ROW - 1, color);
	else
		svg_draw_place(d, i, offset, color);
	buf_add_str(d->out, "</g>\n");
}

/*
 * Depth first, parents before children, as the script expects. offsets[depth]
 * is where the next frame of that depth begins.
 */
static int svg_draw_frames(struct drawing *d)
{
	const struct tree *t = d->t;
	_cleanup_(freep) uint64_t *offsets = calloc(t->depth + 2, sizeof(*offsets));
	uint32_t i = 0;

	if (!offsets)
		return -ENOMEM;
	buf_add_str(d->out, "<g id=\"graph\">\n");
	while (i != TREE_NONE && !d->out->failed) {
		const struct tree_node *n = &t->nodes[i];
		bool drawn = !i || d->total[i] >= d->least;

		if (drawn)
			svg_draw_frame(d, i, offsets[n->depth]);
		offsets[n->depth + 1] = offsets[n->depth];
		offsets[n->depth] += d->total[i];
		i = drawn && n->first != TREE_NONE ? n->first : tree_after(t, i);
	}
	buf_add_str(d->out, "</g>\n");
	return 0;
}

int render_svg(const struct picture *p, struct buf *out)
{
	struct drawing d = {
		.picture = p, .t = p->graph->tree, .self = p->graph->now.self, .total = p->graph->now.total, .out = out,
	};
	int r;

	svg_choose_least(&d);
	r = svg_choose_rows(&d);
	if (r < 0)
		return r;
	svg_draw_open(&d);
	r = svg_draw_frames(&d);
	if (r < 0)
		return r;
	svg_draw_head(&d);
	svg_draw_foot(&d);
	buf_add_str(out, "<script><![CDATA[\n");
	buf_add_str(out, script);
	buf_add_str(out, "]]></script>\n</svg>\n");
	return out->failed ? -E2BIG : 0;
}
