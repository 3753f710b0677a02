/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording in the formats that other tools and people read. The format
 * follows from a file's name; a new one is a renderer and a line in the table
 * of render.c.
 *
 * Called by verbs, one thread. Renderers append to a buffer and touch no
 * file. Bounds: those of the buffer and of the recording.
 */
#ifndef OTP_RENDER_RENDER_H
#define OTP_RENDER_RENDER_H

#include <stdbool.h>

#include "base/buf.h"
#include "recording/recording.h"

struct render_options {
	const char *title;    /* NULL: a default; borrowed */
	const char *subtitle; /* before the figures, NULL: none; borrowed */
	bool inverted;        /* flame graph with the root on top */
};

/* Each appends the whole output. -E2BIG, -ENOMEM; r gains strings at most. */
typedef int render_fn(struct recording *r, const struct render_options *o, struct buf *out);

int render_svg(struct recording *r, const struct render_options *o, struct buf *out);
int render_collapsed(struct recording *r, const struct render_options *o, struct buf *out);
int render_pprof(struct recording *r, const struct render_options *o, struct buf *out); /* gzip */
int render_otlp(struct recording *r, const struct render_options *o, struct buf *out);

struct render_format {
	const char *suffix, *what;
	render_fn *render;
};

/* The format that the file's name asks for, or NULL. */
const struct render_format *render_format_of(const char *path);
/* ".svg (flame graph), ..." for messages; static. */
const char *render_formats(void);

#endif
