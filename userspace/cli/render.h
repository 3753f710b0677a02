/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording as a file that other tools or people read. The format follows
 * the file's name; adding one is a renderer and a line in the table of
 * render.c.
 *
 * Called by the verbs, one thread. Renderers write into a buffer; the file
 * appears whole or not at all.
 */
#ifndef OTP_CLI_RENDER_H
#define OTP_CLI_RENDER_H

#include <stdbool.h>

#include "base/buf.h"
#include "cli/recording.h"

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
/* -errno if the file could not be written there: asked before the work is done. */
int render_check(const char *path);
/* Renders and replaces the file in one step. */
int render_file(const char *path, struct recording *r, const struct render_options *o);

#endif
