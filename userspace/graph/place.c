// SPDX-License-Identifier: Apache-2.0
#include "graph/place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define PLACE_FILE_SHOWN 200
#define PLACE_FILE_READ  4096

#define PLACE_NO_NAME 0 /* the tree's first string is "" */

void place_nameless(const char *file, size_t len, uint64_t address, char ret[PLACE_NAMELESS])
{
	const char *end = file + len, *base = len > PLACE_FILE_READ ? end - PLACE_FILE_READ : file;
	const char *slash = memrchr(base, '/', (size_t)(end - base));
	char shown[PLACE_FILE_SHOWN + 1];

	base = slash ? slash + 1 : base;
	shown[utf8_clean(shown, PLACE_FILE_SHOWN, base, (size_t)(end - base))] = '\0';
	snprintf(ret, PLACE_NAMELESS, "%s+0x%" PRIx64, *shown ? shown : "unknown", address);
}

static int place_add_nameless(const struct place *p, struct tree *t, uint32_t *ret)
{
	char text[PLACE_NAMELESS];

	place_nameless(p->file, p->file_len, p->address, text);
	return tree_add_string(t, text, ret);
}

static int place_add_frame(const struct place *p, struct tree *t, uint32_t name, bool inlined, struct buf *out)
{
	struct tree_function f = {.kind = p->kind, .name = name, .module = p->module};
	struct place_frame frame = {.inlined = inlined};
	int r = name == PLACE_NO_NAME ? place_add_nameless(p, t, &f.name) : 0;

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
	uint32_t name;
	int r = 0;

	if (!i)
		return place_add_frame(p, t, PLACE_NO_NAME, false, out);
	/* The last line is the function that was compiled, those before it were inlined. */
	while (!r && i--) {
		r = p->name(p->ctx, i, &name);
		if (!r)
			r = place_add_frame(p, t, name, i + 1 < p->lines, out);
	}
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
