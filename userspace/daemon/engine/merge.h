/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging of native and interpreted frames into one stack, for any runtime.
 *
 * An interpreter's loop is a native function. Each time that it was entered from
 * native code it runs a segment of interpreted frames, whose outermost one is
 * marked (RUNTIME_ENTRY). So the n-th entry of the loop on the native stack stands
 * for the n-th segment, and native frames between two entries are what a function
 * of the one called, and what called the other.
 *
 * Coroutines are laid one by one where both halves tell of them: by the function
 * that resumes them, and by RUNTIME_STACK. Frames that one had when it last
 * yielded have no loop any more: they are with the outermost loop that it has now.
 * Where the walk does not see each of them, the main thread's frames are laid beyond
 * all that resumes, or none at all.
 *
 * Called by the pipeline for each sample with interpreted frames; pure.
 * Where the two halves do not fit, both are kept, and a marker says so. One entry
 * or one segment too many fits: the innermost may be on its way in or out.
 * Cost: one pass over both, and one to count.
 */
#ifndef OTP_DAEMON_ENGINE_MERGE_H
#define OTP_DAEMON_ENGINE_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "kmod/uapi/otprof_walk.h"

/* A native frame: in no loop, or in the function fn of the runtime's loop. */
struct merge_native {
	uint8_t runtime; /* index of a merge_runtime + 1; 0: no loop */
	uint8_t function;
	bool wraps; /* it calls the loop that is the next inner frame, and is no loop itself */
	uint8_t resumes; /* in no loop: it has resumed a coroutine of this merge_runtime, as its index + 1; 0: of none */
};

struct merge_runtime {
	const uint16_t *flags; /* enum runtime_frame_flags of each frame, innermost first */
	uint32_t nr;
	bool whole; /* the walk reached its end */
	bool unseen; /* coroutines may run of which it saw nothing (runtime_attached) */
};

struct merge_in {
	const struct merge_native *native; /* innermost first */
	uint32_t nr_native;
	bool native_whole; /* it ends at a root */
	bool keep_loops;   /* loops stay, beneath their segment */
	struct merge_runtime runtime[OTP_WALK_PLANS]; /* zeros: no frames were copied, whatever native frames say */
};

enum merge_kind {
	MERGE_NATIVE,
	MERGE_CUT,    /* the native stack ends here, but not at a root */
	MERGE_MISFIT, /* what follows has no place in the native stack, or beside another runtime's frames */
	MERGE_SHORT,  /* the walk ended amid a segment: its outer frames are missing */
	MERGE_RUNTIME /* + index of the runtime */
};

struct merge_frame {
	uint32_t kind;
	uint32_t index; /* of the frame in its array; markers: 0 */
};

/* Room for every frame, and the markers. */
#define MERGE_MAX(nr_native, nr_runtime) ((nr_native) + (nr_runtime) + 2 * OTP_WALK_PLANS + 1)

/* Returns the number of frames in to, innermost first; ret_misfit: whether one of the runtimes did not fit. */
uint32_t merge(const struct merge_in *in, struct merge_frame *to, bool *ret_misfit);

#endif
