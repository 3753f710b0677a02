// SPDX-License-Identifier: Apache-2.0
/*
 * The file format of speedscope.app: a list of frames, and a stack of their
 * numbers with a weight for each node with a value of its own. A comparison
 * is two profiles of one file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "render/picture.h"

static void speedscope_text(struct buf *out, const char *s)
{
	buf_add_str(out, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			buf_add_str(out, "\\");
		buf_add(out, s, 1);
	}
	buf_add_str(out, "\"");
}

/* Frame n is function n of the tree. */
static void speedscope_frames(const struct tree *t, struct buf *out)
{
	buf_add_str(out, "\"shared\":{\"frames\":[");
	for (uint32_t i = 0; i < t->functions.count && !out->failed; i++) {
		const struct tree_function *f = tree_function(t, i);

		buf_add_str(out, i ? ",{\"name\":" : "{\"name\":");
		speedscope_text(out, tree_string(t, f->name));
		if (f->module) {
			buf_add_str(out, ",\"file\":");
			speedscope_text(out, tree_string(t, f->module));
		}
		buf_add_str(out, "}");
	}
	buf_add_str(out, "]}");
}

/* Outermost first; path has room for the deepest stack. */
static void speedscope_stack(const struct tree *t, uint32_t node, uint32_t *path, struct buf *out)
{
	uint32_t depth = t->nodes[node].depth;

	for (uint32_t i = depth; i-- > 0; node = t->nodes[node].parent)
		path[i] = t->nodes[node].function;
	buf_add_str(out, "[");
	for (uint32_t i = 0; i < depth; i++)
		buf_printf(out, i ? ",%u" : "%u", path[i]);
	buf_add_str(out, "]");
}

static void speedscope_stacks(const struct tree *t, const struct values *v, uint32_t *path, struct buf *out)
{
	const char *comma = "";

	buf_add_str(out, ",\"samples\":[");
	for (uint32_t i = 0; i != TREE_NONE && !out->failed; i = tree_next(t, i)) {
		if (!v->self[i])
			continue;
		buf_add_str(out, comma);
		comma = ",";
		speedscope_stack(t, i, path, out);
	}
	buf_add_str(out, "]");
}

static void speedscope_weights(const struct tree *t, const struct values *v, uint64_t period, struct buf *out)
{
	const char *comma = "";

	buf_add_str(out, ",\"weights\":[");
	for (uint32_t i = 0; i != TREE_NONE && !out->failed; i = tree_next(t, i)) {
		if (!v->self[i])
			continue;
		buf_printf(out, "%s%" PRIu64, comma, v->self[i] * period);
		comma = ",";
	}
	buf_add_str(out, "]");
}

static void speedscope_profile(const struct picture *p, const struct values *v, const char *name, uint32_t *path,
			       struct buf *out)
{
	uint64_t period = p->period_ns > 0 ? (uint64_t)p->period_ns : 1;
	const char *unit = p->period_ns > 0 ? "nanoseconds" : "none";

	buf_add_str(out, "{\"type\":\"sampled\",\"name\":");
	speedscope_text(out, name);
	buf_printf(out, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64, unit, v->total[0] * period);
	speedscope_stacks(p->graph->tree, v, path, out);
	speedscope_weights(p->graph->tree, v, period, out);
	buf_add_str(out, "}");
}

int render_speedscope(const struct picture *p, struct buf *out)
{
	_cleanup_(freep) uint32_t *path = calloc(p->graph->tree->depth + 1, sizeof(*path));

	if (!path)
		return -ENOMEM;
	buf_add_str(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",");
	buf_add_str(out, "\"exporter\":\"otprof\",\"name\":");
	speedscope_text(out, p->title);
	buf_add_str(out, ",");
	speedscope_frames(p->graph->tree, out);
	buf_add_str(out, ",\"profiles\":[");
	speedscope_profile(p, &p->graph->now, p->title, path, out);
	if (p->graph->compared) {
		buf_add_str(out, ",");
		speedscope_profile(p, &p->graph->before, "before", path, out);
	}
	buf_add_str(out, "]}\n");
	return out->failed ? -E2BIG : 0;
}
