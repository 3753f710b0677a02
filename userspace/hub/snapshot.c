// SPDX-License-Identifier: Apache-2.0
#include "hub/snapshot.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "hub/tree_otlp.h"
#include "render/render.h"

#define SNAPSHOT_MEMORY (1u << 30)

static const char *snapshot_unit(const struct snapshot *s)
{
	return s->type->unit;
}

static struct picture snapshot_picture(const struct snapshot *s)
{
	return (struct picture){
		.graph = s->answer->graph,
		.title = s->workload->name,
		.caption = s->workload->host,
		.unit = snapshot_unit(s),
		.period_ns = s->type->cpu ? s->type->period : 0,
	};
}

static int snapshot_svg(const struct snapshot *s, struct buf *out)
{
	struct picture p = snapshot_picture(s);

	return render_svg(&p, out);
}

static int snapshot_collapsed(const struct snapshot *s, struct buf *out)
{
	struct picture p = snapshot_picture(s);

	return render_collapsed(&p, out);
}

static int snapshot_speedscope(const struct snapshot *s, struct buf *out)
{
	struct picture p = snapshot_picture(s);

	return render_speedscope(&p, out);
}

static const struct recording_limits snapshot_limits = {
	.request = {.request_bytes = SNAPSHOT_MEMORY, .memory_bytes = SNAPSHOT_MEMORY, .depth = UINT16_MAX},
	.entries = 1u << 26,
	.bytes = SNAPSHOT_MEMORY,
	.total = INT64_MAX,
	.frames = UINT32_MAX,
};

/* A request of the tree, read as any request is: the renderers write what its samples lead to, and no more. */
static int snapshot_record(const struct snapshot *s, render_recording_fn *render, struct buf *out)
{
	_cleanup_(recording_freep) struct recording *r = NULL;
	_cleanup_(buf_done) struct buf request = {0};
	int e = tree_otlp(s, &request);

	if (!e)
		e = recording_new(&snapshot_limits, &r);
	if (!e)
		e = recording_read(r, request.data, request.len);
	return e < 0 ? e : render(r, SNAPSHOT_MEMORY, out);
}

static int snapshot_otlp(const struct snapshot *s, struct buf *out)
{
	return snapshot_record(s, render_otlp, out);
}

static int snapshot_pprof(const struct snapshot *s, struct buf *out)
{
	return snapshot_record(s, render_pprof, out);
}

static const struct snapshot_format snapshot_formats[] = {
	{"pprof", ".pb.gz", "application/octet-stream", snapshot_pprof},
	{"speedscope", ".speedscope.json", "application/json", snapshot_speedscope},
	{"collapsed", ".collapsed", "text/plain; charset=utf-8", snapshot_collapsed},
	{"otlp", ".otlp", "application/x-protobuf", snapshot_otlp},
	{"svg", ".svg", "image/svg+xml", snapshot_svg},
};

const struct snapshot_format *snapshot_format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(snapshot_formats); i++)
		if (strcmp(snapshot_formats[i].name, name) == 0)
			return &snapshot_formats[i];
	return NULL;
}
