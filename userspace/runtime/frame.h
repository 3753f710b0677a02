/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a frame of a runtime means: the function by key and cookies, and a place
 * in it. Made in the engine from words of a sample, or by a decoder for code that
 * it describes; turned into a name by a decoder.
 *
 * Called by the engine, decoders, replay and tests. Plain data without pointers
 * or padding: it passes between processes and is compared as bytes.
 */
#ifndef OTP_RUNTIME_FRAME_H
#define OTP_RUNTIME_FRAME_H

#include <stdint.h>

#define RUNTIME_COOKIES 5
#define RUNTIME_COOKIE_EPOCH 4 /* of a runtime with an epoch; 0: it is not known */
#define RUNTIME_EPOCH_OF_HEAP 0xffffffff00000000ULL /* bits of an epoch: the heap */
#define RUNTIME_COOKIE_HINT  2 /* of a frame that is HINTED: what the sample has, by which the function may be found */

enum runtime_frame_flags {
	RUNTIME_ENTRY = 1,  /* the loop was entered, from native code, with this frame: its callers belong to another loop */
	RUNTIME_HIDDEN = 2, /* a frame of the runtime's own bookkeeping; ENTRY counts all the same */
	RUNTIME_NATIVE = 4, /* stands for a native function that the runtime called: no loop runs it, and it has no line */
	RUNTIME_LINE = 8,   /* position is the line itself */
	RUNTIME_INNER = 16, /* the outermost frame: others of this thread, which no walk reaches, called it through native code */
	/*
	 * No frame, but a question: which code is at the address key; cookie[0] counts such questions, the others are
	 * identity and epoch of the code that was there before; position is the heap of the sample (runtime_epoch_heap).
	 */
	RUNTIME_CODE = 32,
	/*
	 * In code: the innermost frame of the walk, which is copied with what tells whose it is. Of the code's, its place in
	 * the function counts.
	 */
	RUNTIME_WALKED = 64,
	/* The outermost frame of a coroutine, or of the main thread; whoever resumed it follows (resume in runtime.h). */
	RUNTIME_STACK = 128,
	/*
	 * The function is known by its key, and found by what may be gone soon, as one of many closures: cookies HINT and EPOCH,
	 * which are the sample's, are not part of what it is, but for the heap.
	 */
	RUNTIME_HINTED = 256,
	RUNTIME_MOVED = 512, /* what it is known by may be moved within an epoch: its cookie EPOCH is by ops->moved */
	RUNTIME_BOUND = 1024, /* of a question, HINTED: the sample is of the cookie EPOCH, or of a later one */
	RUNTIME_MAIN = 2048, /* with STACK: the main thread, which nothing resumed; not each runtime can tell */
};

/* Which heap an epoch is of, where a process may have several: epochs of two heaps are not compared. */
static inline uint32_t runtime_epoch_heap(uint64_t epoch)
{
	return (uint32_t)(epoch >> 32);
}

/* What a frame means: a function by key and cookies, and a place in it. */
struct runtime_frame {
	uint64_t key; /* 0: no function, as for a HIDDEN frame */
	uint64_t cookie[RUNTIME_COOKIES];
	uint32_t position; /* looked up in the function's lines, or the line (RUNTIME_LINE); 0 there: unknown */
	uint32_t flags;	   /* enum runtime_frame_flags */
};

#endif
