// SPDX-License-Identifier: Apache-2.0
/* Draws title, caption, legend and foot of a flame graph. */
#include <string.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "render/drawing.h"
#include "render/palette.h"

#define TITLE_MAX   62  /* characters beside the tools */
#define CAPTION_MAX 190 /* characters */
#define KEY_WIDTH   7.0 /* of a character of the legend */

/* Draws one entry of the legend at *x and advances *x. */
static void svg_draw_key(struct drawing *d, uint32_t color, const char *text, double *x)
{
	buf_printf(d->out,
		   "<rect x=\"%.1f\" y=\"64\" width=\"12\" height=\"12\" rx=\"2\" fill=\"#%06x\"/>"
		   "<text class=\"key\" x=\"%.1f\" y=\"74\">%s</text>\n",
		   *x, color, *x + 17, text);
	*x += 17 + KEY_WIDTH * (double)strlen(text) + 14;
}

/* The kinds of frames in the graph, with their share of all. */
static void svg_draw_kinds(struct drawing *d)
{
	uint64_t self[KIND_NR] = {0};
	double x = SVG_PAD;
	char text[48];
	uint32_t i;

	for (i = 0; i < d->t->count; i++)
		self[tree_kind(d->t, i)] += d->self[i];
	for (i = KIND_MARKER; i < KIND_NR; i++) {
		if (!self[i])
			continue;
		snprintf(text, sizeof(text), "%s %.1f %%", frame_kind_label(i), format_percent(self[i], d->total[0]));
		svg_draw_key(d, palette_base(i), text, &x);
	}
}

static void svg_draw_changes(struct drawing *d)
{
	static const struct {
		double change;
		const char *text;
	} keys[] = {
		{-0.6, "a quarter of its share before"}, {-1.0 / 3, "half"}, {0, "the same"},
		{1.0 / 3, "twice"}, {0.6, "four times"}, {1, "new"},
	};
	double x = SVG_PAD;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys); i++)
		svg_draw_key(d, palette_change(keys[i].change), keys[i].text, &x);
}

void svg_draw_head(struct drawing *d)
{
	buf_printf(d->out, "<g id=\"head\"><rect id=\"headpaper\" width=\"%d\" height=\"%d\"/>\n", SVG_WIDTH, SVG_TOP - 6);
	buf_printf(d->out, "<text class=\"title\" x=\"%d\" y=\"32\">", SVG_PAD);
	svg_add_fitted(d->out, d->picture->title, TITLE_MAX);
	buf_printf(d->out, "</text>\n<text class=\"sub\" x=\"%d\" y=\"52\">", SVG_PAD);
	svg_add_fitted(d->out, d->picture->caption, CAPTION_MAX);
	buf_add_str(d->out, "</text>\n");
	if (d->picture->graph->compared)
		svg_draw_changes(d);
	else
		svg_draw_kinds(d);
	buf_add_str(d->out, "</g>\n");
}

/* Stacks without a sample now have no width: the legend shows their share instead. */
static void svg_draw_gone(struct drawing *d)
{
	const struct values *before = &d->picture->graph->before;
	uint64_t gone = 0;
	uint32_t i;

	for (i = 0; i < d->t->count; i++)
		if (!d->total[i])
			gone += before->self[i];
	if (gone)
		buf_printf(d->out, SVG_DOT "stacks with %.2f %% of the value before are gone",
			   format_percent(gone, before->total[0]));
}

void svg_draw_foot(struct drawing *d)
{
	uint32_t left = d->nodes - d->drawn;
	char count[32];

	buf_printf(d->out, "<g id=\"foot\" transform=\"translate(0,%d)\"><text x=\"%d\">", svg_height(d) - 14, SVG_PAD);
	buf_add_str(d->out, "otprof " OTPROF_VERSION);
	if (left) {
		format_count(count, sizeof(count), left);
		buf_printf(d->out, SVG_DOT "%s frames below %.3f %% are not drawn", count,
			   format_percent(d->least, d->total[0]));
	}
	if (d->picture->graph->compared)
		svg_draw_gone(d);
	buf_add_str(d->out, "<tspan id=\"deeper\">");
	if (d->depth > d->rows)
		buf_printf(d->out, SVG_DOT "%u deeper rows hold less than 1 %% and are not shown", d->depth - d->rows);
	buf_add_str(d->out, "</tspan><tspan dx=\"18\" id=\"hint\"></tspan></text></g>\n");
}
