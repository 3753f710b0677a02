/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtimes whose frames lie on the heap, on stacks that threads left, or on the
 * native stack in code without unwind tables: one ops table for each, in a file
 * of its own. Three moments:
 *   - The engine meets a file that defines one of a runtime's markers
 *     (runtime_of_file), and asks for a decoder of the process that maps it.
 *   - In the decoder, attach finds version and root in file and memory, and makes
 *     the plan by which the sampler copies frames (kmod/uapi/otprof_walk.h);
 *     decode turns keys of frames into functions, later.
 *   - In the engine, frame says what the copied words of one frame mean.
 * Those whose frames lie on the native stack have no frame, and no plan but for
 * their epoch, or to copy a stack; CPython, whose loop may be called by code that
 * it made, has frames of both kinds. Their decoder says which code is at an
 * address (code), and the engine steps out of that code by the sample's registers
 * and stack (step); see runtime/code.h.
 * A new version of a runtime is a row of its tables, with the source of its
 * numbers; a new runtime is a file and a line in runtime_list.
 *
 * Called by the engine and by decoders, one thread each; also by replay, and
 * by tests and tools that walk with process_vm_readv. attach and decode read
 * hostile memory: they are bounded by their struct memory, and what they return
 * by the sizes here. frame is pure.
 * Units: addresses are those of the process; texts are UTF-8 or anything else,
 * and are cleaned where they become strings of the engine.
 */
#ifndef OTP_RUNTIME_RUNTIME_H
#define OTP_RUNTIME_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/frame_kind.h"
#include "kmod/uapi/otprof.h"
#include "kmod/uapi/otprof_walk.h"
#include "process/binary.h"
#include "runtime/code.h"
#include "runtime/frame.h"
#include "runtime/memory.h"

#define RUNTIME_VERSION_MAX 32
#define RUNTIME_PARAMS	    32
#define RUNTIME_LOOPS	    8
#define RUNTIME_NAME_MAX    512
#define RUNTIME_PATH_MAX    1024
#define RUNTIME_LINES_MAX   4096 /* rows of one function's line table: more are cut */
#define RUNTIME_WHY_MAX	    128
#define RUNTIME_SEEN	    96 /* words */
#define RUNTIME_LABELS	    10 /* of a sample: more are left out */
#define RUNTIME_LABEL_KEY   32 /* bytes of its key, with a NUL: a longer one is left out */
#define RUNTIME_LABEL_VALUE 64 /* likewise: a longer one is cut */

/*
 * Words that may be addresses of data, from registers and stack of a sample in which the runtime's file was met: where a
 * runtime keeps its state is sometimes known to its callers only. Before them, what a former decoder has found.
 */
struct runtime_seen {
	uint32_t nr, reserved;
	uint64_t word[RUNTIME_SEEN];
};

/* A runtime's file in a process. */
struct runtime_file {
	struct binary *binary; /* borrowed */
	uint64_t bias;	       /* address in the process less vaddr in the file */
	const struct runtime_seen *seen; /* borrowed; NULL: nothing was seen */
	uint64_t thread;       /* thread pointer of a thread that was sampled; 0: none is known */
};

/* How the loop enters code that the runtime has compiled, which has no unwind tables. */
enum runtime_compiled {
	RUNTIME_NOT_COMPILED, /* never, or it is not known how */
	RUNTIME_CALLED,	      /* by a call in any function of the loop */
	RUNTIME_JUMPED,	      /* by a jump from the first one, whose frame it shares */
	RUNTIME_COMPILED_NR
};

/*
 * What attach found. Plain data without pointers: it passes from the decoder,
 * which hostile memory may have taken over, to the engine, which checks it
 * (runtime_attached_sound).
 */
struct runtime_attached {
	uint32_t runtime; /* index in runtime_list */
	char version[RUNTIME_VERSION_MAX]; /* "3.11.2" */
	struct otp_walk walk;
	struct otp_walk more; /* a second walk, for context, if no other runtime needs its place; OTP_WALK_NONE: none */
	uint64_t param[RUNTIME_PARAMS]; /* the runtime's own, between its attach, decode and frame */
	/* A pc in each of the functions that run interpreted code: native frames in them stand for interpreted ones. */
	uint64_t loop[RUNTIME_LOOPS];
	uint32_t nr_loops;
	uint16_t compiled; /* enum runtime_compiled */
	uint16_t compiled_is_shared; /* such code lies in shared memory: other generated code is not the runtime's */
	/* Code without tables in the runtime's own file, for which code and step stand too; it may be mapped a second time. */
	uint64_t code_start, code_end; /* 0: none */
	uint64_t code_vaddr;	       /* of code_start, in the file */
	uint64_t code_has_tables;      /* but they are wrong: step goes before them */
	/*
	 * A pc in the function that resumes a coroutine, from whatever stack: beyond it native frames are of whoever resumed
	 * it. 0: not known, or there is none. Frames that a coroutine had when it last yielded have no loop any more.
	 */
	uint64_t resume;
	uint64_t unseen; /* 1: the walk may miss coroutines that run, whose loops are on the native stack all the same */
};

/* The words of one walked frame, as the plan keeps them. Borrowed. */
struct runtime_words {
	uint64_t address;
	uint32_t missing; /* bit i: sub i */
	uint32_t count;
	const uint64_t *word; /* kept words of the frame, then of sub 0, and so on */
	const uint64_t *root; /* kept words of the root */
	uint32_t nr_root;
	uint32_t index; /* 0: the innermost frame */
	uint32_t nr_outer; /* frames further out, their words at word + (count + 1) * i, each behind its address */
	bool compiled; /* the thread runs code that the runtime has compiled, which writes its place to memory rarely */
	bool last;	/* the outermost frame of a whole walk */
	uint32_t position; /* of the innermost frame, if the thread runs compiled code that tells it (RUNTIME_WALKED); 0: not known */
	const struct otp_regs *regs; /* of the sample; NULL: none */
	uint32_t arch;
};

struct runtime_line {
	uint32_t position; /* the first one of this line; rows are sorted by it */
	uint32_t line;	   /* 0: none */
};

/* X(NAME, "name"): what became of a file that lies beside the program's, when lines were sought in it. */
#define RUNTIME_LINE_FILES(X)          \
	X(NOT_SOUGHT, "not_sought")    \
	X(READ, "read")                \
	X(MISSING, "missing")          \
	X(OTHER_BUILD, "other_build")  \
	X(REFUSED, "refused")          \
	X(TOO_LARGE, "too_large")      \
	X(BROKEN, "broken")            \
	X(NO_ANSWER, "no_answer")      \
	X(TOO_MANY, "too_many")
enum runtime_line_file {
#define X(NAME, name) RUNTIME_LINES_##NAME,
	RUNTIME_LINE_FILES(X)
#undef X
	RUNTIME_LINE_FILES_NR
};
const char *runtime_line_file_name(uint32_t i); /* of enum runtime_line_file; NULL past the end */

/* A function, as decode found it. */
struct runtime_function {
	char name[RUNTIME_NAME_MAX];
	char file[RUNTIME_PATH_MAX]; /* "": unknown */
	uint32_t start_line;	     /* 0: unknown */
	uint32_t nr_lines;
	uint64_t epoch; /* of a frame that is HINTED: when it was read (struct runtime_ops); 0: not known */
	/* Positions count a file's characters, and those of rows are where lines begin: what is between is the column. */
	bool has_columns;
	/* The first row is where it begins, and the last one its end: a frame whose position is elsewhere is another function's. */
	bool is_bounded;
	uint32_t line_file; /* enum runtime_line_file: of the file that this function was the first to need */
	struct runtime_line lines[RUNTIME_LINES_MAX];
};

/* Where a stack that a walk copied (OTP_WALK_STACK) goes on. */
struct runtime_stack {
	uint64_t pc, sp; /* pc 0: unknown; unwinding may get there by the thread's registers */
	uint64_t id;	 /* what functions that leave a stack keep of it in their frame on the other one */
	uint64_t low;	 /* its lower end; 0: not known */
	bool stand_in;	 /* pc is in a function that stands for the one that left: not a frame of its own */
};

/* What the second walk has copied. Borrowed. */
struct runtime_copied {
	const uint64_t *root; /* kept words of the root */
	uint32_t nr_root;
	const uint64_t *frames; /* of each its address, with bits of missing subs, then its words */
	uint32_t nr_frames, frame_words;
	bool cut; /* there are more frames */
};

/*
 * Frames that a coroutine left in the heap and will return to. Each part of them has blocks of its own, and leads to the
 * next; the last one leads to a frame of the thread's own stack.
 */
#define RUNTIME_PARTS 8
struct runtime_part {
	uint64_t pc, sp, fp; /* of its innermost frame; fp 0: not known */
	uint32_t first, nr;  /* of the frames in struct runtime_copied */
};
struct runtime_frozen {
	uint32_t nr, reserved;
	struct runtime_part part[RUNTIME_PARTS]; /* innermost first */
	uint64_t low, high;	   /* where on its stack the thread returns to them: from low to high */
	uint64_t back_pc, back_sp; /* the frame that the outermost one returns to; 0: not all parts are here */
};

struct runtime_label {
	char key[RUNTIME_LABEL_KEY];
	char value[RUNTIME_LABEL_VALUE];
	bool is_name; /* in the program's code: there may be more of them than of values that are made as it runs */
};

/* What a sample has besides its frames, by the coroutine that it is of. */
struct runtime_context {
	uint64_t creator; /* a return address, of the call that began the coroutine; 0: unknown */
	struct runtime_frame named; /* decode's name for it is one more label, of the key ops->named; key 0: none */
	uint32_t nr_labels;
	uint32_t labels_left; /* out: too many, too long a key, memory that could not be read */
	struct runtime_label label[RUNTIME_LABELS];
};

/* What the words that a walk's root copied with a sample say. a, root: borrowed. */
typedef uint64_t runtime_epoch_fn(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root);

struct runtime_ops {
	const char *name; /* "cpython", as the frame kind's type */
	const char *label; /* "Python" */
	enum frame_kind kind;
	/* Dynamic or static symbols: a file that defines any of these may hold the runtime. NULL-terminated. */
	const char *const *markers;
	/* Likewise, of a runtime that no symbol tells of; may be NULL. */
	bool (*holds)(struct binary *b);
	/*
	 * Decoder. 0; -EAGAIN: the runtime has not started yet, ask again later; -ENOTSUP: a version or build that is not
	 * known, why says which; -ENOENT: the file does not hold it; others: memory could not be read.
	 */
	int (*attach)(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		      char why[RUNTIME_WHY_MAX]);
	/*
	 * What attach has found holds as long as the process: a later decoder of it is told, in place of seeking it again. For
	 * runtimes for which that takes long.
	 */
	bool found_lasts;
	/*
	 * Decoder. key and cookie as frame gave them. 0; -ESTALE: another object is there now; -EBUSY: it took too long, and
	 * takes less the next time; -EFAULT, -E2BIG, -EBADMSG.
	 */
	int (*decode)(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		      struct runtime_function *ret);
	/* Engine. 0; -EBADMSG: the words are not those of a frame, and the walk ends before it. NULL: nothing is walked. */
	int (*frame)(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret);
	/*
	 * Engine, of a runtime whose frames are native code, with a walk that copies stacks; decode and frame are NULL then.
	 * The root's words, and behind them the saved stack pointer. 0; -ENOENT: no stack was copied.
	 */
	int (*stack)(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root, struct runtime_stack *ret);
	/*
	 * Engine, pure, of a runtime whose second walk copies CHUNKS; may be NULL. ret is zeros before. 0; -ENOENT: there are no
	 * frames in the heap; -EBADMSG: what was copied does not agree.
	 */
	int (*frozen)(const struct runtime_attached *a, const struct runtime_copied *w, struct runtime_frozen *ret);

	/* Engine, pure; of a runtime with a second walk. ret is zeros before. NULL: it has none. */
	void (*context)(const struct runtime_attached *a, const struct runtime_copied *w, struct runtime_context *ret);
	const char *named; /* the key of the label that context names by decode; may be NULL */
	/* Engine, pure. Whether pc is where a coroutine ends, whose creator is what led there. With a context that has any. */
	bool (*is_end)(const struct runtime_attached *a, uint64_t pc);

	/* For frames on the native stack; NULL: it has none. */

	/*
	 * Engine, of a runtime whose walk copies a counter that rises before what lies at an address is of another function;
	 * may be NULL. The root's words of a sample; nr_root 0: of one from before the walk was set. 0: there is no such
	 * counter, or it could not be read; 1 is the first epoch. It is the last cookie of a frame and the epoch of a region:
	 * where it differs, decode answers -ESTALE. A process may have several heaps, each with a counter of its own, in the lower half: the upper half
	 * says of which heap it is (runtime_epoch_heap).
	 */
	runtime_epoch_fn *epoch;

	/*
	 * Likewise, one that rises before code at an address may be other code, where that happens more often: it is the epoch
	 * of regions then. NULL: epoch is.
	 */
	runtime_epoch_fn *code_epoch;

	/*
	 * Likewise, a counter that rises more often: whenever anything is moved. That of frames that are RUNTIME_MOVED. NULL: there
	 * are none.
	 */
	runtime_epoch_fn *moved;

	/*
	 * Engine, pure, of a runtime whose walk copies a word that changes before code at an address may be other code, and may
	 * change at other times too; may be NULL. Where a sample and a reading of code have the same stamp, nothing was
	 * replaced in between; different ones say nothing. The root's words of a sample. 0: it is not known.
	 */
	runtime_epoch_fn *stamp;

	/*
	 * The file's name, by which it is found in a process before any frame of it was met; may be NULL. So is lib, this name and
	 * .so with any version: the library that a distribution makes of a program.
	 */
	const char *library;
	bool knows_all; /* generated code of which code knows nothing is not the runtime's */
	bool names_last; /* decode's name for a key and cookies is always the same, whatever lies there by now */
	bool moves; /* functions are moved in memory, and others lie there then: their names hold as long as regions do */
	/*
	 * Decoder. The region around pc; of ret, code is zeros before. 0; -ENOENT: none of this runtime; -EALREADY: the
	 * code whose identity ret->known is; others as of decode. What contradicts itself, because it was read while it was
	 * being made, decode_code refuses.
	 */
	int (*code)(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret);
	uint64_t registers; /* bit per register: what step reads beside those of pc, stack and frame */
	/*
	 * Engine, pure. ret is zeros before. 0; -EFAULT: as load answered; -ENOENT: no such step, and it is guessed at; -ENODATA:
	 * nothing tells who the caller is, and the stack ends.
	 */
	int (*step)(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
		    struct runtime_step *ret);
	/*
	 * Engine, pure; may be NULL. Whether code at pc, known or not, has something else in the frame pointer's register. Where
	 * step does not lead on then, the stack ends.
	 */
	bool (*lacks_fp)(const struct runtime_attached *a, uint64_t pc);
	/*
	 * Any code that was generated may leave the frame pointer's register to its caller, whose record would be found in place
	 * of its own: likewise.
	 */
	bool leaves_fp;
};

extern const struct runtime_ops runtime_cpython, runtime_ruby, runtime_php, runtime_perl, runtime_hotspot, runtime_go,
	runtime_v8, runtime_beam, runtime_dotnet, runtime_luajit, runtime_puclua;
extern const struct runtime_ops *const runtime_list[]; /* NULL-terminated */
#define RUNTIMES_MAX 16

/*
 * Decoders: where a line begins, by position. One that goes on is not added again; the last row that there is room for says
 * that what follows is not known. false: there is no room for more.
 */
bool runtime_add_line(struct runtime_function *f, uint32_t position, uint32_t line);

const char *runtime_walk_end_name(uint32_t end); /* of enum otp_walk_end; NULL past the end */
/*
 * The index in runtime_list whose markers the file defines; -ENOENT. Cost: a few reads of its hash table; of a static
 * program, one pass through 40 MiB of symbols and names at most.
 */
int runtime_of_file(struct binary *b);
/* Whether the words of a hostile decoder are within every bound. */
bool runtime_attached_sound(const struct runtime_attached *a);

/* A symbol of the file, by its dynamic table, else its static one. -ENOENT. */
struct runtime_symbol {
	uint64_t value, size; /* as in the file; an offset in the thread-local block for STT_TLS */
	uint8_t type;	      /* STT_* */
};
int runtime_symbol(struct binary *b, const char *name, struct runtime_symbol *ret);
bool runtime_exports(struct binary *b, const char *name); /* by the dynamic table alone: a few reads of its hash table */
/* Several of the static table at once, at most 32; value 0: it is not there. */
void runtime_static_symbols(struct binary *b, const char *const *names, uint32_t nr, struct runtime_symbol *ret);
/* Its address in the process. -ENOENT. */
int runtime_address(const struct runtime_file *file, const char *name, uint64_t *ret);

/*
 * Adds a function that runs interpreted code, by its symbol, and the rare code of it that lies elsewhere (NAME.cold). Cost:
 * its code is read once.
 */
void runtime_add_loop(const struct runtime_file *file, const char *name, struct runtime_attached *ret);
/* Likewise, by where it lies in the file. */
void runtime_add_loop_at(const struct runtime_file *file, uint64_t vaddr, uint64_t size, struct runtime_attached *ret);

#endif
