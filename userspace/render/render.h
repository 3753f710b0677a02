/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats that profiles are written in, by the ending of a file's name. A
 * new one is a renderer and a line in the table of render.c.
 *
 * Called by verbs, one thread. Renderers append to a buffer and touch no
 * file. A format shows one graph (picture.h), or holds a whole recording.
 * Bounds: those of the buffer and of the graph or recording; memory_bytes for
 * the messages of a recording. Errors: -E2BIG, a bound; -ENOMEM.
 */
#ifndef OTP_RENDER_RENDER_H
#define OTP_RENDER_RENDER_H

#include <stddef.h>

#include "render/picture.h"

typedef int render_graph_fn(const struct picture *p, struct buf *out);
typedef int render_recording_fn(const struct recording *r, size_t memory_bytes, struct buf *out);

int render_pprof(const struct recording *r, size_t memory_bytes, struct buf *out); /* gzip */
int render_otlp(const struct recording *r, size_t memory_bytes, struct buf *out);

struct render_format {
	const char *suffix, *what; /* static: ".svg", "flame graph" */
	/* One of the two is set. */
	render_graph_fn *graph;
	render_recording_fn *recording;
};

/* The format of a file of that name, static, or NULL. */
const struct render_format *render_format_of(const char *path);
/* ".svg (flame graph), ..." for messages; static. */
const char *render_formats(void);

#endif
