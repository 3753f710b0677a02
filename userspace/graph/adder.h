/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds stacks of a recording to a call tree: each location becomes frames once,
 * each stack a path of nodes.
 *
 * Called by graph.c, which merges recordings, and by stores that keep a tree for
 * each workload; one thread per adder. Embedded: adder_init, adder_done; both are
 * needed even where adder_init fails. Tree and recording are borrowed, and
 * neither is replaced while the adder lives: it remembers numbers of both.
 * Errors: -E2BIG, a bound of the tree, or more frames than max_frames; -ENOMEM.
 * Cost: 8 bytes for each location, 4 for each string of the recording.
 */
#ifndef OTP_GRAPH_ADDER_H
#define OTP_GRAPH_ADDER_H

#include "base/buf.h"
#include "graph/tree.h"
#include "recording/recording.h"

struct adder {
	struct tree *tree;
	const struct recording *rec;
	struct adder_run *runs; /* owned, by location */
	struct buf frames;      /* struct place_frame[] */
	uint32_t *strings;      /* owned, by string: its number in the tree + 1, 0: none yet */
	uint64_t left;          /* frames that may still be followed */
	/* NULL, or called once for each function of a location that is new here, with its number in the tree. */
	int (*placed)(void *ctx, uint32_t function, const struct rec_function *f);
	void *ctx;
};

int adder_init(struct adder *a, struct tree *t, const struct recording *rec, uint64_t max_frames);
void adder_done(struct adder *a);
/* The path of a stack below *node, which becomes its innermost node; where it fails, the last one that was reached. */
int adder_descend(struct adder *a, uint32_t stack, uint32_t *node);

#endif
