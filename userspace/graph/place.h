/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place in a program as frames of a call tree: one for the function that
 * was compiled there, one for each that was inlined into it.
 *
 * Called by code that adds stacks to a tree, one thread. Texts are borrowed for
 * the call and clean (base/utf8.h). Names are strings of the tree already,
 * because one long text may be the name of a million places.
 * Errors: -E2BIG, a bound of the tree; -ENOMEM.
 */
#ifndef OTP_GRAPH_PLACE_H
#define OTP_GRAPH_PLACE_H

#include <stddef.h>

#include "base/buf.h"
#include "graph/tree.h"

struct place {
	const char *file; /* "": unknown */
	size_t file_len;
	uint32_t module; /* the file as a string of the tree */
	uint64_t address;
	enum frame_kind kind;
	size_t lines; /* number of functions here */
	/* The name of line i, innermost inlined first, as a string of the tree; that of "": unknown. 0 or an error. */
	int (*name)(void *ctx, size_t i, uint32_t *ret);
	void *ctx;
};

struct place_frame {
	uint32_t function; /* of the tree */
	uint32_t inlined;
};

#define PLACE_NAMELESS 256

/* Makes a name for a place without one: file and address. Reads the end of the file's name only. */
void place_nameless(const char *file, size_t len, uint64_t address, char ret[PLACE_NAMELESS]);
/* Appends its frames, outermost first: at least one. */
int place_add_frames(const struct place *p, struct tree *t, struct buf *out);
/* Descends from *node by n frames, adding nodes as needed. */
int place_descend(struct tree *t, const struct place_frame *frames, size_t n, uint32_t *node);

#endif
