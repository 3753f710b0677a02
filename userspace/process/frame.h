/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One frame of a stack, of any kind: native and kernel code, identified by an
 * address that is resolved later, or code that names itself (interpreted, or
 * made at run time), identified by function, file and line.
 *
 * Made by the unwinder and by sources of names for generated code, assembled
 * by the engine, counted by profile/. Plain data, one thread.
 * Ownership: a frame's pointers are borrowed, from the space of its process or
 * from the source of its name, until the sample is counted.
 */
#ifndef OTP_PROCESS_FRAME_H
#define OTP_PROCESS_FRAME_H

#include <stdint.h>

#include "base/frame_kind.h"
#include "base/strpool.h"

struct mapping;

enum frame_flags {
	FRAME_CALLER = 1, /* pc is a return address: the call lies before it */
	FRAME_SIGNAL = 2, /* a signal trampoline */
	FRAME_NAMED = 4,  /* function and file are known, in place of an address */
	FRAME_CREATOR = 8, /* no caller: pc follows the call that began the coroutine, and its name says so */
};

/*
 * How a frame was found where no table covers it: a guess, and counted as such.
 *   X(NAME, "name")
 */
#define FRAME_GUESSES(X)                                                                        \
	X(FRAME_POINTER, "frame_pointer") /* the saved frame pointer, where there is no table */ \
	X(EPILOGUE, "epilogue")           /* the callee's code, read on to its return, or from its begin */ \
	X(SCAN, "scan")                   /* a known root's frame, or a runtime's loop, searched for on the stack */ \
	X(SEARCH, "search")               /* what called generated code, searched for on the stack */

enum frame_guess {
	FRAME_SURE,
#define X(NAME, name) FRAME_BY_##NAME,
	FRAME_GUESSES(X)
#undef X
	FRAME_GUESS_NR
};

const char *frame_guess_name(uint32_t guess); /* NULL: FRAME_SURE, and past the end */

struct frame {
	uint8_t kind;     /* enum frame_kind */
	uint8_t flags;    /* enum frame_flags */
	uint8_t guess;    /* enum frame_guess */
	uint8_t named_by; /* FRAME_NAMED: enum name_source */
	uint32_t line, column; /* FRAME_NAMED: where execution is; 0: unknown */
	uint32_t start_line;   /* FRAME_NAMED: of the function; 0: unknown */
	union {
		struct { /* FRAME_NAMED */
			struct str *function; /* never NULL */
			struct str *file;     /* NULL: unknown */
		};
		struct { /* an address: KIND_KERNEL, KIND_NATIVE */
			uint64_t pc;
			const struct mapping *map; /* NULL: the kernel's, or no mapping covers it */
		};
		uint32_t marker; /* KIND_MARKER: why the stack ends here, enum unwind_end of unwind/unwind.h or FRAME_MARKER_EMPTY */
	};
};

#endif
