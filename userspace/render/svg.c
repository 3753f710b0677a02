// SPDX-License-Identifier: Apache-2.0
/*
 * The flame graph: one SVG file without anything outside it. It is a whole
 * picture by itself (an image in a page runs no script); opened in a browser,
 * its script adds zoom, search and tips and fits it to the window.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/utf8.h"
#include "graph/tree.h"
#include "render/caption.h"
#include "render/palette.h"
#include "render/render.h"
#include "render/xml.h"

/* The geometry that flame.js takes up where this leaves off. */
#define WIDTH      1200
#define PAD        16
#define TOP        92
#define BOTTOM     40
#define ROW        18
#define CHAR_WIDTH 6.95 /* of 11.5 px monospace */
#define TITLE_MAX  62   /* characters beside the tools */
#define ROWS       60   /* deeper rows are drawn as long as they hold 1 % of all samples */

#define DRAWN_MAX  8000u  /* frames; more make a browser slow */
#define LEAST      4000u  /* frames below 1/LEAST of the width are not drawn */

static const char style[] =
#include "render/flame.css.h"
	;
static const char script[] =
#include "render/flame.js.h"
	;

struct drawing {
	const struct recording *rec;
	struct rec_view view;
	struct tree *t;
	struct buf *out;
	uint64_t least; /* samples of the narrowest frame drawn */
	uint32_t drawn;         /* frames */
	uint32_t depth;         /* rows that there are of those frames */
	uint32_t rows;          /* rows in the still picture */
	const char *unit;
	bool inverted;
};

static void escaped(struct buf *out, const char *s)
{
	xml_escape(out, s, strlen(s));
}

/* Text of at most max characters, escaped. */
static void fitted(struct buf *out, const char *s, size_t max)
{
	if (utf8_count(s) <= max) {
		escaped(out, s);
		return;
	}
	xml_escape(out, s, utf8_bytes(s, max - 1));
	buf_add_str(out, "\xe2\x80\xa6");
}

static uint32_t count_drawn(const struct tree *t, uint64_t least, uint32_t *ret_depth)
{
	uint32_t i, n = 0, depth = 0;

	for (i = 0; i < t->count; i++) {
		if (i && t->nodes[i].total < least)
			continue;
		n++;
		depth = MAX(depth, t->nodes[i].depth + 1u);
	}
	*ret_depth = depth;
	return n;
}

static void choose_least(struct drawing *d)
{
	d->least = MAX(d->t->nodes[0].total / LEAST, (uint64_t)1);
	d->drawn = count_drawn(d->t, d->least, &d->depth);
	while (d->drawn > DRAWN_MAX) {
		d->least += d->least / 4 + 1;
		d->drawn = count_drawn(d->t, d->least, &d->depth);
	}
}

/*
 * A few endless stacks would make the picture so high that the rest is lost
 * in it. Frames past its rows are in the file, for who zooms in.
 */
static int choose_rows(struct drawing *d)
{
	_cleanup_(freep) uint64_t *sums = calloc(d->t->depth + 1, sizeof(*sums));
	uint32_t i, last = 0;

	if (!sums)
		return -ENOMEM;
	for (i = 0; i < d->t->count; i++)
		sums[d->t->nodes[i].depth] += d->t->nodes[i].total;
	for (i = 0; i < d->depth; i++)
		if (sums[i] >= d->t->nodes[0].total / 100)
			last = i + 1;
	d->rows = MIN(d->depth, MAX(last, (uint32_t)ROWS));
	return 0;
}

static int height_of(const struct drawing *d)
{
	return TOP + (int)d->rows * ROW + BOTTOM;
}

static void draw_open(struct drawing *d, const char *title)
{
	buf_printf(d->out,
		   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
		   "data-period=\"%" PRId64 "\" data-unit=\"",
		   WIDTH, height_of(d), WIDTH, height_of(d), caption_is_cpu(d->rec, &d->view) ? d->view.period : 0);
	escaped(d->out, d->unit);
	buf_printf(d->out, "\" data-inverted=\"%d\">\n<title>", d->inverted);
	escaped(d->out, title);
	buf_add_str(d->out, "</title>\n<style>\n");
	buf_add_str(d->out, style);
	buf_add_str(d->out, "</style>\n<rect id=\"paper\" width=\"100%\" height=\"100%\"/>\n");
}

/* Name, where it is from, figures: the script reads the first two lines. */
static void draw_tip(struct drawing *d, const struct tree_node *n)
{
	const char *module = recording_str(d->rec, n->module), *kind = frame_kind_label(n->kind);
	char total[32], self[32];
	uint64_t all = d->t->nodes[0].total;

	buf_add_str(d->out, "<title>");
	escaped(d->out, tree_name(d->t, n));
	buf_add_str(d->out, "\n");
	escaped(d->out, *module ? module : kind);
	if (*module)
		buf_printf(d->out, " \xc2\xb7 %s", kind);
	if (n->inlined)
		buf_add_str(d->out, " \xc2\xb7 inlined");
	format_count(total, sizeof(total), n->total);
	format_count(self, sizeof(self), n->self);
	buf_printf(d->out, "\n%s ", total);
	escaped(d->out, d->unit);
	buf_printf(d->out, " (%.2f %%), self %s (%.2f %%)</title>", format_percent(n->total, all), self,
		   format_percent(n->self, all));
}

static void draw_label(struct drawing *d, const char *name, double x, double width, int y)
{
	double chars = (width - 7) / CHAR_WIDTH;

	if (chars < 3)
		return;
	buf_printf(d->out, "<text x=\"%.2f\" y=\"%.1f\">", x + 4, y + 12.5);
	fitted(d->out, name, (size_t)chars);
	buf_add_str(d->out, "</text>");
}

static void draw_place(struct drawing *d, const struct tree_node *n, uint64_t offset)
{
	const char *name = tree_name(d->t, n);
	uint64_t all = MAX(d->t->nodes[0].total, (uint64_t)1);
	double scale = (double)(WIDTH - 2 * PAD) / (double)all;
	double x = PAD + (double)offset * scale, width = n->depth ? (double)n->total * scale : WIDTH - 2 * PAD;
	int row = d->inverted ? n->depth : (int)d->rows - 1 - n->depth, y = TOP + row * ROW;

	buf_printf(d->out, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" rx=\"2\" fill=\"#%06x\"/>", x, y,
		   MAX(width > 3 ? width - 0.6 : width, 0.3), ROW - 1, palette_color(n->kind, name, n->inlined));
	draw_label(d, name, x, width, y);
}

static void draw_frame(struct drawing *d, const struct tree_node *n, uint64_t offset)
{
	bool deep = n->depth >= d->rows;

	buf_printf(d->out, "<g class=\"f\"%s data-v=\"%" PRIu64 " %" PRIu64 " %" PRIu64 " %u\">",
		   deep ? " style=\"display:none\"" : "", offset, n->total, n->self, n->depth);
	draw_tip(d, n);
	if (deep)
		buf_printf(d->out, "<rect height=\"%d\" rx=\"2\" fill=\"#%06x\"/>", ROW - 1,
			   palette_color(n->kind, tree_name(d->t, n), n->inlined));
	else
		draw_place(d, n, offset);
	buf_add_str(d->out, "</g>\n");
}

/*
 * Depth first, parents before children, as the script expects. offsets[depth]
 * is where the next frame of that depth begins.
 */
static int draw_frames(struct drawing *d)
{
	const struct tree *t = d->t;
	_cleanup_(freep) uint64_t *offsets = calloc(t->depth + 2, sizeof(*offsets));
	uint32_t i = 0;

	if (!offsets)
		return -ENOMEM;
	buf_add_str(d->out, "<g id=\"graph\">\n");
	while (i != TREE_NONE && !d->out->failed) {
		const struct tree_node *n = &t->nodes[i];
		bool drawn = !i || n->total >= d->least;

		if (drawn)
			draw_frame(d, n, offsets[n->depth]);
		offsets[n->depth + 1] = offsets[n->depth];
		offsets[n->depth] += n->total;
		i = drawn && n->first != TREE_NONE ? n->first : tree_after(t, i);
	}
	buf_add_str(d->out, "</g>\n");
	return 0;
}

static void draw_subtitle(struct drawing *d, const char *extra)
{
	_cleanup_(buf_done) struct buf b = {0};

	caption_view(&b, d->rec, &d->view, extra);
	buf_printf(d->out, "<text class=\"sub\" x=\"%d\" y=\"52\">", PAD);
	fitted(d->out, buf_cstr(&b), 190);
	buf_add_str(d->out, "</text>\n");
}

/* The kinds that there are, with their share of all samples. */
static void draw_legend(struct drawing *d)
{
	uint64_t self[KIND_NR] = {0};
	double x = PAD;
	uint32_t i;

	for (i = 0; i < d->t->count; i++)
		self[d->t->nodes[i].kind] += d->t->nodes[i].self;
	for (i = KIND_MARKER; i < KIND_NR; i++) {
		const char *label = frame_kind_label(i);
		double share = format_percent(self[i], d->t->nodes[0].total);

		if (!self[i])
			continue;
		buf_printf(d->out,
			   "<rect x=\"%.1f\" y=\"64\" width=\"12\" height=\"12\" rx=\"2\" fill=\"#%06x\"/>"
			   "<text class=\"key\" x=\"%.1f\" y=\"74\">%s %.1f %%</text>\n",
			   x, palette_base(i), x + 17, label, share);
		x += 17 + 7.0 * (double)(strlen(label) + 7) + 14;
	}
}

static void draw_head(struct drawing *d, const char *title, const char *subtitle)
{
	buf_printf(d->out, "<g id=\"head\"><rect id=\"headpaper\" width=\"%d\" height=\"%d\"/>\n", WIDTH, TOP - 6);
	buf_printf(d->out, "<text class=\"title\" x=\"%d\" y=\"32\">", PAD);
	fitted(d->out, title, TITLE_MAX);
	buf_add_str(d->out, "</text>\n");
	draw_subtitle(d, subtitle);
	draw_legend(d);
	buf_add_str(d->out, "</g>\n");
}

static void draw_foot(struct drawing *d)
{
	uint32_t left = d->t->count - d->drawn;
	char count[32];

	buf_printf(d->out, "<g id=\"foot\" transform=\"translate(0,%d)\"><text x=\"%d\">", height_of(d) - 14, PAD);
	buf_add_str(d->out, "otprof " OTPROF_VERSION);
	if (left) {
		format_count(count, sizeof(count), left);
		buf_printf(d->out, " \xc2\xb7 %s frames below %.3f %% are not drawn", count,
			   format_percent(d->least, d->t->nodes[0].total));
	}
	buf_add_str(d->out, "<tspan id=\"deeper\">");
	if (d->depth > d->rows)
		buf_printf(d->out, " \xc2\xb7 %u deeper rows hold less than 1 %% and are not shown", d->depth - d->rows);
	buf_add_str(d->out, "</tspan><tspan dx=\"18\" id=\"hint\"></tspan></text></g>\n");
}

static int draw(struct drawing *d, const struct render_options *o)
{
	const char *title = o->title ? o->title : "CPU flame graph";
	int r;

	choose_least(d);
	r = choose_rows(d);
	if (r < 0)
		return r;
	draw_open(d, title);
	r = draw_frames(d);
	if (r < 0)
		return r;
	draw_head(d, title, o->subtitle);
	draw_foot(d);
	buf_add_str(d->out, "<script><![CDATA[\n");
	buf_add_str(d->out, script);
	buf_add_str(d->out, "]]></script>\n</svg>\n");
	return d->out->failed ? -E2BIG : 0;
}

int render_svg(struct recording *r, const struct render_options *o, struct buf *out)
{
	_cleanup_(tree_freep) struct tree *t = NULL;
	struct drawing d = {.rec = r, .out = out, .inverted = o->inverted};
	int e;

	recording_view(r, &d.view);
	e = tree_build(r, &d.view, &t);
	if (e < 0)
		return e;
	d.t = t;
	d.unit = caption_unit(r, &d.view);
	return draw(&d, o);
}
