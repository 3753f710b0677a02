/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph while it is drawn. Private to the SVG renderer: svg.c draws the
 * frames, svg_head.c the rest.
 */
#ifndef OTP_RENDER_DRAWING_H
#define OTP_RENDER_DRAWING_H

#include "render/picture.h"

/* The geometry, which flame.js uses too. */
#define SVG_WIDTH  1200
#define SVG_PAD    16
#define SVG_TOP    92
#define SVG_BOTTOM 40
#define SVG_ROW    18
#define SVG_ROWS   60 /* deeper rows are drawn if they hold at least 1 % of all */

#define SVG_DOT " \xc2\xb7 "

struct drawing {
	const struct picture *picture;
	const struct tree *t;
	const uint64_t *self, *total;
	struct buf *out;
	uint64_t least; /* value of the narrowest frame drawn */
	uint32_t nodes; /* with a value */
	uint32_t drawn; /* of those nodes, the ones drawn */
	uint32_t depth; /* rows of those frames */
	uint32_t rows;  /* rows of the still picture */
};

void svg_add_escaped(struct buf *out, const char *s);
void svg_add_fitted(struct buf *out, const char *s, size_t max); /* at most max characters, escaped */
int svg_height(const struct drawing *d);

void svg_draw_head(struct drawing *d);
void svg_draw_foot(struct drawing *d);

#endif
