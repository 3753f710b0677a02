/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that a runtime made or brings along, whose frames lie on the native
 * stack: which functions run where in it, and how its frames are left. No table
 * of a file says so; the runtime's own memory does.
 *
 * The decoder answers for a whole region, which the engine keeps: to step out
 * of a frame then takes the region and the sample's registers and stack words.
 * Called by decoders, the engine, replay and tests, one thread each; plain data.
 * A region comes from hostile memory, perhaps by way of a decoder that was taken
 * over: runtime_code_sound bounds it, and what step computes from it, the
 * unwinder checks as it does any table's row.
 * What is there later may be other code. A region's identity tells: equal words
 * in two answers mean that the code was there in all the time between them.
 */
#ifndef OTP_RUNTIME_CODE_H
#define OTP_RUNTIME_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/frame.h"

#define RUNTIME_CODE_NAME      96
#define RUNTIME_CODE_WORDS     16
#define RUNTIME_CODE_IDENTITY  3
#define RUNTIME_CODE_FUNCTIONS 256
#define RUNTIME_CODE_NODES     2048
#define RUNTIME_CODE_ROWS      3072
#define RUNTIME_CODE_MORE      2048
#define RUNTIME_CODE_BYTES     (64ULL << 20) /* from start to end */
#define RUNTIME_CODE_DEPTH     64	     /* frames at one place: those further out are cut */
#define RUNTIME_NO_NODE	       UINT32_MAX

/* A function at a place of it, and what it was inlined into there. */
struct runtime_code_node {
	uint16_t function; /* index in functions */
	uint16_t outer;	   /* index of the node around it + 1, smaller than its own index + 1; 0: none */
	uint32_t position; /* as of struct runtime_frame */
};

/* From this offset to that of the next row, this node runs. */
struct runtime_code_row {
	uint32_t offset;
	uint32_t node; /* RUNTIME_NO_NODE: not known */
};

enum runtime_code_flags {
	RUNTIME_CODE_FLEETING = 1, /* other code may be in its place soon: it holds between two readings only */
	RUNTIME_CODE_OF_EPOCH = 2, /* nothing else is in its place before its epoch ends: it holds for that, however long */
	RUNTIME_CODE_LASTS = 4, /* part of a file that stays mapped: nothing else is ever in its place */
	RUNTIME_CODE_RECURS = 8, /* of two epochs, code of equal words may have been gone in between */
	RUNTIME_CODE_MAY_GO = 16, /* within an epoch too, unless a sample of it has met the code */
	RUNTIME_CODE_IS_NATIVE = 32, /* its name is what symbols of the runtime's file would tell, if it had them */
};

struct runtime_code {
	uint64_t start, end;
	uint64_t identity[RUNTIME_CODE_IDENTITY];
	uint64_t epoch; /* when it was read (struct runtime_ops); 0: of a runtime without one */
	uint64_t stamp; /* likewise */
	uint32_t kind;			    /* the runtime's own, for step */
	uint32_t flags;			    /* enum runtime_code_flags */
	uint64_t word[RUNTIME_CODE_WORDS]; /* the runtime's own, for step */
	char name[RUNTIME_CODE_NAME];	    /* where no function runs: what it is, as "[call_stub]"; "": nothing to say */
	uint32_t nr_functions, nr_nodes, nr_rows, nr_more;
	uint64_t copy_of; /* of a copy of code of a file: where that begins, whose symbols name it; 0: it is none */
};

/* Half a word, the lower one first: for a runtime that needs more than words. They are zeros until they are set, once. */
static inline uint32_t runtime_code_half(const struct runtime_code *c, uint32_t i)
{
	return (uint32_t)(c->word[i / 2] >> i % 2 * 32);
}

static inline void runtime_code_set_half(struct runtime_code *c, uint32_t i, uint32_t half)
{
	c->word[i / 2] |= (uint64_t)half << i % 2 * 32;
}

/* As the decoder makes it. */
struct runtime_code_made {
	struct runtime_code code;
	uint64_t known[RUNTIME_CODE_IDENTITY]; /* of the code that the engine has for the place; zeros: none */
	uint64_t known_epoch;
	uint32_t heap; /* of the sample for which it is asked (struct runtime_ops); 0: not known */
	struct runtime_frame functions[RUNTIME_CODE_FUNCTIONS]; /* key and cookies */
	struct runtime_code_node nodes[RUNTIME_CODE_NODES];
	struct runtime_code_row rows[RUNTIME_CODE_ROWS]; /* sorted by offset */
	uint32_t more[RUNTIME_CODE_MORE]; /* the runtime's own, for step: what words have no room for */
};

/* A frame in a region, whose caller is sought. */
struct runtime_place {
	uint64_t pc;	     /* in the region */
	uint64_t moved;	     /* what was added to it where it ran: the runtime's file is mapped a second time */
	bool exact;	     /* the registers are this frame's own: pc is not a return address */
	uint16_t arch;	     /* enum otp_arch */
	uint64_t valid;	     /* bit per register */
	const uint64_t *reg; /* DWARF numbering */
	const uint32_t *more; /* of the region, as it counts; borrowed */
	uint64_t left_sp;    /* where the stack goes on that the thread left (struct runtime_stack); 0: none was copied */
	uint64_t left_low;   /* its lower end; 0: not known */
	bool left_none;	     /* the walk says that the thread has left none */
	bool leads_to_heap;  /* the copied frames in the heap may be this frame's callers (struct runtime_frozen) */
	bool in_heap;	     /* it is one of these */
	int (*load)(void *ctx, uint64_t addr, uint64_t *ret); /* a word of the copied stack: 0, -EFAULT */
	void *ctx;
};

enum runtime_step_flags {
	RUNTIME_STEP_FP = 1,	/* fp is known */
	RUNTIME_STEP_ROOT = 2,	/* there is no caller */
	RUNTIME_STEP_SAME = 4,	/* registers that calls preserve are the caller's */
	RUNTIME_STEP_WRAPS = 8, /* the frame only calls the loop that interprets a walked frame: it shows nothing of its own */
	RUNTIME_STEP_INNER = 16, /* the frame is called by the loop that interprets a walked frame, and shows nothing of its own */
	RUNTIME_STEP_FROZEN = 32, /* the caller is in the heap, or back on the thread's stack from there: struct runtime_frozen */
	RUNTIME_STEP_MOVES = 64, /* what is in the heap is being changed: it is not these frames' callers */
	RUNTIME_STEP_LEFT_OUT = 128, /* frames in the heap are not shown: this one stands for them */
	/* pc is in code that an interpreter reads, or in compiled code that may be gone: unwinding goes on where neither is known */
	RUNTIME_STEP_DATA = 256,
	RUNTIME_STEP_LOOP = 512, /* the frame is that of the interpreter, and shows nothing of its own */
};

/* Its caller's registers. */
struct runtime_step {
	uint64_t pc, sp, fp;
	uint64_t cfa; /* above the frame: must rise from frame to frame; mostly sp */
	uint32_t flags, reserved;
	uint64_t place; /* in its region, where the frame's own pc was replaced: what runs there; 0: it was not */
	struct runtime_frame own; /* key not 0: what runs in the frame, where its words tell it, as an interpreter's do */
};

/* Whether a region is within every bound, and every index in its array. The arrays are those that it counts. */
bool runtime_code_sound(const struct runtime_code *c, const struct runtime_code_node *nodes,
			const struct runtime_code_row *rows);
/* The innermost node at pc, RUNTIME_NO_NODE: not known. A return address stands for the call before it. */
uint32_t runtime_code_node_at(const struct runtime_code *c, const struct runtime_code_row *rows, uint64_t pc, bool caller);

/* Bytes of a region with its functions, nodes, rows and more, one after the other. */
size_t runtime_code_len(const struct runtime_code *c);

/* For decoders: add what is not there yet. The index; -E2BIG: there is no room. */
int runtime_code_add_function(struct runtime_code_made *c, const struct runtime_frame *f);
int runtime_code_add_node(struct runtime_code_made *c, uint32_t function, uint32_t outer, uint32_t position);
int runtime_code_add_row(struct runtime_code_made *c, uint32_t offset, uint32_t node);
int runtime_code_add_more(struct runtime_code_made *c, uint32_t more); /* always; 0, -E2BIG */

#endif
