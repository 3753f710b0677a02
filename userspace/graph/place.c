// SPDX-License-Identifier: Apache-2.0
#include "graph/place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define PLACE_FILE_SHOWN 200

void place_nameless(const char *file, uint64_t address, char ret[PLACE_NAMELESS])
{
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
	char shown[PLACE_FILE_SHOWN + 1];

	shown[utf8_clean(shown, PLACE_FILE_SHOWN, base, strlen(base))] = '\0';
	snprintf(ret, PLACE_NAMELESS, "%s+0x%" PRIx64, *shown ? shown : "unknown", address);
}

static int place_add_name(const struct place *p, const char *name, struct tree *t, uint32_t *ret)
{
	char text[PLACE_NAMELESS];

	if (!*name)
		place_nameless(p->file, p->address, text);
	return tree_add_string(t, *name ? name : text, ret);
}

static int place_add_frame(const struct place *p, struct tree *t, const char *name, bool inlined, struct buf *out)
{
	struct tree_function f = {.kind = p->kind};
	struct place_frame frame = {.inlined = inlined};
	int r = place_add_name(p, name, t, &f.name);

	if (!r)
		r = tree_add_string(t, p->file, &f.module);
	if (!r)
		r = tree_add_function(t, &f, &frame.function);
	if (r < 0)
		return r;
	buf_add(out, &frame, sizeof(frame));
	return out->failed ? -ENOMEM : 0;
}

int place_add_frames(const struct place *p, struct tree *t, struct buf *out)
{
	size_t i = p->lines;
	int r = 0;

	if (!i)
		return place_add_frame(p, t, "", false, out);
	/* The last line is the function that was compiled, those before it were inlined. */
	while (!r && i--)
		r = place_add_frame(p, t, p->name(p->ctx, i), i + 1 < p->lines, out);
	return r;
}

int place_descend(struct tree *t, const struct place_frame *frames, size_t n, uint32_t *node)
{
	size_t i;
	int r = 0;

	for (i = 0; !r && i < n; i++)
		r = tree_add_node(t, *node, frames[i].function, frames[i].inlined, node);
	return r;
}
