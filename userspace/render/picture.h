/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of a renderer that draws: a graph and the texts around it.
 *
 * Filled by verbs; everything is borrowed for the call of a renderer. Texts are
 * clean (base/utf8.h).
 */
#ifndef OTP_RENDER_PICTURE_H
#define OTP_RENDER_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "graph/graph.h"

struct picture {
	const struct graph *graph; /* finished */
	const char *title;
	const char *caption; /* one line about all of it */
	const char *unit;    /* of a value: "samples" */
	int64_t period_ns;   /* CPU time that one value stands for; 0: none */
	bool inverted;       /* the root on top */
};

/* Each appends the whole output. -E2BIG: the buffer's bound; -ENOMEM. */
int render_svg(const struct picture *p, struct buf *out);
int render_collapsed(const struct picture *p, struct buf *out);
int render_speedscope(const struct picture *p, struct buf *out);

#endif
