/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flow of control in compiled code of HotSpot. The compilers write down only at calls and polls (marks) which method
 * runs. Whose the instructions between them are, the marks tell that control comes to next, on whatever way, and came by
 * last.
 *
 * Basic blocks begin where jumps lead to, behind jumps, and behind marks. Those loops count that control cannot go round in
 * without coming by a mark: what lies in one is of what is in it, wherever else it may lead.
 *
 * Private to hotspot*.c. Called by decoders. Bounded by FLOW_*: of larger code there are no blocks, and what lies behind
 * FLOW_BYTES is where control leaves to. Units: bytes from the start of the code.
 * Cost: an instruction is decoded once; of each block, those up to the next marks are gone through.
 */
#ifndef OTP_RUNTIME_HOTSPOT_FLOW_H
#define OTP_RUNTIME_HOTSPOT_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/hotspot_pushed.h"
#include "runtime/memory.h"

#define FLOW_BYTES (128u << 10)
#define FLOW_JUMPS 8192
#define FLOW_BLOCKS 20480
#define FLOW_LOOPS 256
#define FLOW_FOUND 64
#define FLOW_NONE  UINT32_MAX

/* The instruction at an offset, or the call before it, is at a place that is known: node is the caller's. */
struct flow_mark { uint32_t offset, node; };
struct flow_jump { uint32_t end, target; bool always; }; /* target FLOW_NONE: out of the code, or not known */
struct flow_edge { uint32_t from, next; };		 /* next edge to the same block; FLOW_NONE: it is the last */

struct flow_block {
	uint32_t begin;
	uint32_t next, jump; /* blocks that control goes on to; FLOW_NONE */
	uint32_t mark;	     /* index of the one at its end; FLOW_NONE */
	uint32_t edge;	     /* the first that leads to it; FLOW_NONE: none does */
	uint32_t loop;	     /* the innermost that counts; FLOW_NONE */
	bool leaves;	     /* control may go on to elsewhere */
};

struct flow_loop {
	uint32_t head, size; /* in blocks */
	uint64_t in[FLOW_BLOCKS / 64];
};

/* Marks without order, but that ahead the first is that of the way without jumps, if any is. */
struct flow_found {
	uint32_t nr;
	uint32_t mark[FLOW_FOUND]; /* indexes */
	bool open;   /* on some way there is none, or there were too many */
	bool cycles; /* ahead: on some way it is the block itself that comes next */
};

struct hotspot_flow {
	uint64_t steps; /* that are left */
	uint32_t nr_jumps, nr_marks, nr_blocks, nr_loops;
	uint32_t end; /* of the last block */
	const struct flow_mark *marks; /* borrowed from read on */
	struct hotspot_pushed *pushed; /* borrowed: is shown each instruction; NULL: none is */
	struct flow_jump jump[FLOW_JUMPS];
	struct flow_block block[FLOW_BLOCKS];
	struct flow_edge edge[2 * FLOW_BLOCKS];
	struct flow_loop loop[FLOW_LOOPS];
	uint32_t nr_edges, turn, seen[FLOW_BLOCKS], stack[FLOW_BLOCKS]; /* of walks */
};

/*
 * From an offset at which an instruction begins, up to size. Marks are sorted by offset, from that on; none is at the same
 * place as another one.
 */
void hotspot_flow_read(struct hotspot_flow *f, struct memory *m, uint64_t code, uint32_t from, uint64_t size,
		       const struct flow_mark *marks, uint32_t nr_marks);
/* Of a block without a mark. */
void hotspot_flow_ahead(struct hotspot_flow *f, uint32_t block, struct flow_found *ret);
void hotspot_flow_behind(struct hotspot_flow *f, uint32_t block, struct flow_found *ret);
/* What the caller does with what was found counts against the same bound: where nothing is left, all is open. */
void hotspot_flow_charge(struct hotspot_flow *f, uint64_t steps);
/* The mark to which a block leads without any jump; FLOW_NONE. */
uint32_t hotspot_flow_straight(const struct hotspot_flow *f, uint32_t block);

#endif
