/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From registers and stack bytes to a list of return addresses.
 *
 * Called by the engine once per sample, one thread. Works on copies only:
 * registers, stack bytes and file pages; nothing here touches another process.
 * Every loop is bounded by UNWIND_FRAMES_MAX and by the bytes that were copied.
 * A stack that is cut ends with the reason (enum unwind_end), so it never looks
 * complete.
 * Rules are cached by (binary, address), bounded by struct unwind_limits.
 * Cost: a cached step is a hash lookup and a few loads, 50 ns or so.
 */
#ifndef OTP_UNWIND_UNWIND_H
#define OTP_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "kmod/uapi/otprof.h"
#include "process/frame.h"
#include "process/space.h"

#define UNWIND_FRAMES_MAX 4096

/*
 * How a stack ended. The first ones are true roots. The text is the name of
 * the marker frame and of the metric.
 *   X(NAME, "name", "marker")  marker NULL: a true root
 */
#define UNWIND_ENDS(X)                                                                     \
	X(ROOT, "root", NULL)                     /* return address undefined in CFI */    \
	X(ROOT_LISTED, "root_listed", NULL)       /* an entry point without such CFI */    \
	X(NO_USER, "no_user", NULL)               /* kernel thread or worker: kernel only */ \
	X(SHORT, "short", "[cut: stack deeper than its copy]")                             \
	X(UNREADABLE, "unreadable", "[cut: stack not readable]")                           \
	X(CHUNK_LOST, "chunk_lost", "[cut: stack chunk lost]")                             \
	X(NO_RULE, "no_rule", "[cut: no unwind rule]")                                     \
	X(NO_FILE, "no_file", "[cut: file not readable]")                                  \
	X(UNMAPPED, "unmapped", "[cut: address not mapped]")                               \
	X(BAD_CFI, "bad_cfi", "[cut: unwind table broken]")                                \
	X(LOOP, "loop", "[cut: stack pointer did not advance]")                            \
	X(DEPTH, "depth", "[cut: too many frames]")                                        \
	X(EXEC, "exec", "[cut: inside exec]")                                              \
	X(COMPAT, "compat", "[cut: 32-bit code]")                                          \
	X(REGISTER, "register", "[cut: register unknown]")                                 \
	X(SWITCHED, "switched", "[cut: the callers are on another stack]")

enum unwind_end {
#define X(NAME, name, marker) UNWIND_##NAME,
	UNWIND_ENDS(X)
#undef X
	UNWIND_END_NR
};

/* A marker frame states how the stack ended, or that it is empty: receivers drop samples without a frame. */
#define FRAME_MARKER_EMPTY UNWIND_END_NR
/* Interpreted frames follow whose place in the native stack is not known. */
#define FRAME_MARKER_MISFIT (UNWIND_END_NR + 1)
/* Interpreted frames further out were not copied: there are too many, or their memory could not be read. */
#define FRAME_MARKER_SHORT (UNWIND_END_NR + 2)

const char *unwind_end_name(enum unwind_end end);
/* The text of a marker frame, an end or a FRAME_MARKER_; NULL for a true root. */
const char *unwind_marker(uint32_t marker);
static inline bool unwind_end_is_root(enum unwind_end end)
{
	return end <= UNWIND_NO_USER;
}

/* A function, by its addresses, that enters code which the process' runtime generated. */
struct unwind_gate {
	uint64_t start, end;
	bool jumps;  /* that code runs in the function's own frame; else it was called */
	bool shared; /* it lies in shared memory: other generated code is not the runtime's */
};

/*
 * A stack that the thread left, and returns to, as a coroutine's: its copied bytes, and where it goes on. Functions that
 * leave stacks are known by their rows (row.h).
 */
struct unwind_record {
	uint64_t at, fp, pc; /* the caller's frame pointer lies at at, the return address behind it */
};

struct unwind_other {
	uint64_t addr;
	const uint8_t *bytes; /* borrowed for the call */
	uint32_t len;
	uint64_t far_addr; /* its outermost bytes, which follow the others; behind these in memory */
	uint32_t far_len;  /* 0: there are none apart */
	const struct unwind_record *records; /* beyond them all, frame records alone, in their order; borrowed for the call */
	uint32_t nr_records;
	uint64_t pc, sp; /* pc 0: only by the thread's registers */
	uint64_t id;	 /* kept in frames of functions that prove which stack they left */
	bool stand_in;	 /* pc is in a function that stands for the one that left: not a frame */
	bool cut;	 /* it goes on beyond the copy, or between its two parts */
};

/*
 * Frames of the thread that lie in the heap until it returns to them, in parts of which each leads to the next. A step out
 * of code says where they begin and end (UNWIND_CODE_FROZEN).
 */
#define UNWIND_PARTS 8
struct unwind_part {
	uint64_t addr;
	const uint8_t *bytes; /* borrowed for the call */
	uint32_t len;
	uint64_t pc, sp, fp; /* of its innermost frame; fp 0: not known */
};
struct unwind_frozen {
	uint32_t nr; /* at least one */
	struct unwind_part part[UNWIND_PARTS]; /* innermost first */
	uint64_t low, high;	   /* where the thread's stack pointer is when it returns to them */
	uint64_t back_pc, back_sp; /* the frame of the thread's own stack that the outermost one returns to; pc 0: there is more */
};

/*
 * Code without tables that a runtime describes (runtime/code.h): asked for each
 * frame in generated code. It loads words of the stack by load alone, so that
 * they count as needed.
 */
struct unwind_code_frame {
	uint32_t index; /* of the frame in the stack */
	uint16_t arch;
	uint64_t pc;
	bool exact; /* pc is not a return address */
	bool leads_to_heap; /* its callers may be those in the heap (struct unwind_frozen) */
	bool in_heap;	    /* it is one of them */
	bool data;  /* the last step led to code that is interpreted */
	uint64_t valid;
	const uint64_t *reg;
	int (*load)(void *ctx, uint64_t addr, uint64_t *ret); /* 0, -EFAULT */
	void *ctx;
};

enum unwind_code_flags {
	UNWIND_CODE_FP = 1,
	UNWIND_CODE_ROOT = 2,
	UNWIND_CODE_SAME = 4,
	UNWIND_CODE_FROZEN = 8, /* the caller is in the heap, or back on the stack from there */
	UNWIND_CODE_MOVES = 16, /* what is in the heap is being changed */
	UNWIND_CODE_LEFT_OUT = 32, /* frames in the heap are not shown */
	UNWIND_CODE_DATA = 64, /* pc is in code that is data: of an interpreter */
};

struct unwind_code_step { /* the caller's registers */
	uint64_t pc, sp, fp, cfa;
	uint32_t flags; /* fp is known; there is no caller; what calls preserve is the caller's; of frames in the heap */
};

#define UNWIND_OVER_MAX 2
struct unwind_over { uint64_t start, end; };

struct unwind_code {
	/*
	 * 0; -ENOENT: unknown code, which is guessed at; -ENODATA: code without frame pointers whose caller is not known, where
	 * the stack ends; -EFAULT: as load answered; -EAGAIN: not known yet, not with final.
	 * *ret_wait: the mapping whose file is needed first, else NULL.
	 */
	int (*step)(void *ctx, const struct unwind_code_frame *f, bool final, struct unwind_code_step *ret,
		    const struct mapping **ret_wait);
	void *ctx;
	bool owns; /* a runtime of this process makes code: what it does not know may be its own all the same */
	struct unwind_over over[UNWIND_OVER_MAX]; /* code of files whose tables are wrong: step goes before them */
	uint32_t nr_over;
};

struct unwind_input {
	uint16_t arch; /* enum otp_arch */
	const struct space *space;
	uint64_t valid;      /* bit per register */
	const uint64_t *reg; /* DWARF numbering, as in struct otp_regs */
	uint64_t stack_addr;
	const uint8_t *stack; /* borrowed for the call */
	uint32_t stack_len;
	uint64_t base_addr;  /* a second copy: the outermost bytes of the thread's own stack */
	const uint8_t *base; /* borrowed for the call; NULL: none */
	uint32_t base_len;
	uint64_t stack_end;  /* of the thread's own stack; 0: unknown */
	const struct unwind_gate *gates; /* borrowed for the call; NULL: none */
	uint32_t nr_gates;
	const struct unwind_other *other; /* borrowed for the call; NULL: none */
	const struct unwind_frozen *frozen; /* likewise */
	bool chunk_lost;     /* a chunk that continues the copy was lost */
	bool short_read;     /* the copy ends where memory did */
	bool holes;          /* pages of it were not there: they are zeros */
	const struct unwind_code *code; /* borrowed for the call; NULL: generated code is guessed at */
};

struct unwind_stack {
	uint32_t count;
	enum unwind_end end;
	uint32_t stack_used;   /* bytes above stack_addr that were needed */
	uint32_t stack_read;   /* of these, up to the deepest that was copied */
	uint32_t base_used;    /* bytes below the end of the base that were read */
	uint64_t fail_pc;      /* where it was cut */
	bool heap_followed;    /* it leads through frames in the heap */
	bool heap_left_out;    /* it has frames in the heap that are not shown */
	bool code_pending;     /* -EAGAIN: code that a runtime describes is not known yet */
	uint64_t fail_addr;    /* cut because the stack bytes at this address are missing; else 0 */
	bool fail_in_other;    /* these would be of the stack that was left: no copy of the thread's own has them */
	uint32_t guessed[FRAME_GUESS_NR]; /* frames by how they were guessed */
	struct frame frames[UNWIND_FRAMES_MAX]; /* innermost first, KIND_NATIVE */
};

/* A stack without frames that ends so. The frames' memory stays as it is. */
void unwind_stack_clear(struct unwind_stack *out, enum unwind_end end);

struct unwind_limits {
	uint32_t rules; /* cached rules, default 32768 */
};

struct unwind_stats {
	uint64_t cache_hits, cache_misses, ends[UNWIND_END_NR];
};

struct unwinder;
int unwinder_new(const struct unwind_limits *limits, struct unwinder **ret);
struct unwinder *unwinder_free(struct unwinder *u); /* NULL */

/*
 * 0: out is filled (also when cut). -EAGAIN: the file of *ret_wait, a mapping of
 * the space, is NEW or OPENING and needed first; or, with *ret_wait NULL, a
 * runtime's code is not known yet (out->code_pending), or no mapping covers
 * out->fail_pc. With final set it never returns -EAGAIN but cuts
 * there.
 */
int unwind_user(struct unwinder *u, const struct unwind_input *in, bool final,
		struct unwind_stack *out, const struct mapping **ret_wait);

/* Where the function around vaddr begins, by the unwind tables. -ENOENT: none covers it; -EBADMSG. */
int unwind_function_start(struct binary *b, uint64_t vaddr, uint64_t *ret);

void unwinder_stats(const struct unwinder *u, struct unwind_stats *ret);

#endif
