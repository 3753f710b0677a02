/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BEAM, the virtual machine of Erlang and Elixir. With its JIT compiler, the
 * native stack pointer is that of the Erlang process while code of a module runs;
 * the interpreter has that in a register (beam_loop.c). Return addresses are the
 * only words there whose two low bits are zero.
 *
 * Private to beam*.c. struct beam is what attach found; it passes from the
 * decoder to the engine as the params of struct runtime_attached.
 * Where members of module headers lie is found by their content, which no
 * version hides; what has no such shape is as in OTP 25 (erts/emulator/beam:
 * code_ix.h, beam_code.h, beam_ranges.c, index.h, atom.h).
 */
#ifndef OTP_RUNTIME_BEAM_H
#define OTP_RUNTIME_BEAM_H

#include "runtime/runtime.h"

#define BEAM_EXITS  2
#define BEAM_SLOTS  1024 /* words of a frame: as many as an instruction can name */
/*
 * Bytes by which the stack may be longer than the process has it. Of the samples of a process that compiles, 0.6 % are in C
 * code whose caller is not in the copy with 256, 0.4 % with 1024, 0.25 % with these.
 */
#define BEAM_GROWN  2048

/* Struct ErtsCodeInfo, which lies before each function's code. */
#define BEAM_INFO_MFA	16
#define BEAM_INFO_BYTES 40

enum beam_kind {
	BEAM_FUNCTION,
	BEAM_SHARED, /* what all modules call: parts of instructions, and the ways in and out */
	BEAM_LOOP,   /* the interpreter */
	BEAM_DIRTY,  /* what dirty schedulers run: C code, which calls C code for a process */
};
#define BEAM_PLACE_WORD	   0 /* of the interpreter's regions: where it has the place, and the stack pointer (beam_flow.h) */
#define BEAM_STACK_WORD	   1
#define BEAM_TOP_KEPT_WORD 2
#define BEAM_NO_PLACE	   8 /* an address of no code */
#define BEAM_TOP_KEPT	   1 /* is added to a place, which is one of words: as top_kept of struct beam_flow_run */
#define BEAM_DIRTY_NAME	 "erts_dirty_process_main"
#define BEAM_SHARED_NAME "[shared code of BEAM]"

/*
 * To call C code, compiled code leaves the Erlang process' stack, whose pointer is then in the process, or else in rbp; with
 * frame pointers, in the process always.
 * Of a region, the words are the offsets, two in each, of instructions that fetch it from the process again,
 * and behind these, where frames begin (beam_frame.c).
 */
#define BEAM_MARKS	  (2 * BEAM_CHOICE_WORD) /* as many as the words hold */
#define BEAM_CHOICE_WORD  (RUNTIME_CODE_WORDS - 2) /* 1 more than the offset of where a process was chosen; 0: none */
/* BEAM_CROWDED_FETCHES: there are more such instructions than fit. Upper half: from which offset on frames do not; or 0. */
#define BEAM_CROWDED_WORD (RUNTIME_CODE_WORDS - 1)
#define BEAM_CROWDED_FETCHES 1

/* struct ranges: modules sorted by address. There is one for each code index, and one index is in force. */
#define BEAM_INDEXES 3
struct beam_ranges { uint64_t modules, n, allocated, middle; };
struct beam_module { uint64_t start, end; }; /* Range: the code of one module, its header first */

/* What a walk needs, by version of ERTS. */
struct beam_row {
	uint32_t erts;	  /* the version's first number; 0: the end */
	int16_t process;  /* in a scheduler, the current process */
	int16_t stop, heap, end; /* in a process: its stack pointer, and the bounds of heap and stack */
	int16_t reds;	  /* in a process: the reductions that it has made before it last waited */
	int16_t md5;	  /* in a module's header, from its checksum to its functions */
	int16_t registered, dictionary, initial; /* its name (struct reg_proc), its dictionary, the function that it began with */
};
extern const struct beam_row beam_rows[];
#define BEAM_TO_HEAP_END 8 /* before stop: where the heap ends, as the process has noted it */

/*
 * A function to which a traced one returns (erts/emulator/beam/jit/beam_jit_main.cpp): its code and end, in bytes beneath low,
 * and how many words at its stack pointer look like a return address, but are none.
 */
#define BEAM_TRACES 4
struct beam_trace { uint16_t code, end, words; };

struct beam {
	uint64_t ranges;	  /* the tables of modules by address, one for each code index */
	uint64_t active;	  /* where the index of the one in force is */
	uint64_t atoms;		  /* where the atoms' segments are */
	uint64_t exits[BEAM_EXITS]; /* the return addresses of a process' first function */
	uint64_t low;		  /* the code of the module that was loaded first: shared code lies beneath it */
	uint32_t text;		  /* from what an atom has for its text, to the text */
	uint32_t functions;	  /* offset of the functions in a module's header */
	uint32_t lines;		  /* likewise, of its line table; 0: no module has one */
	uint32_t row;		  /* index in beam_rows; the last one: no walk is known */
	uint64_t loop, loop_end;  /* the interpreter's code; 0: there is a compiler */
	uint64_t choice;	  /* in it: where the call that chooses the next process returns to */
	uint64_t labels, labels_end; /* addresses in it, of each kind of instruction */
	uint64_t own, own_end;	  /* instructions of no module */
	uint64_t epoch_at;	  /* a counter that rises before code is freed; 0: it is not known */
	uint64_t epoch;		  /* its value when it was found */
	uint64_t initial_call, spawner; /* atoms that processes are named by; 0: unknown */
	uint64_t purger;	  /* likewise, the name of the one that purges modules */
	uint64_t dirty, dirty_end; /* what dirty schedulers run; 0: it is not known */
	struct beam_trace trace[BEAM_TRACES];
	uint64_t framed;	  /* 1: a caller's frame pointer lies beneath each return address (beam.c) */
};
_Static_assert(sizeof(struct beam) <= RUNTIME_PARAMS * sizeof(uint64_t), "it is passed as params");

static inline const struct beam *beam_of(const struct runtime_attached *a)
{
	return (const struct beam *)a->param;
}

/* Terms (erts/emulator/beam/erl_term.h). */
#define BEAM_BOXED_TAG 2
#define BEAM_SMALL_BITS 4
#define BEAM_SMALL_TAG 0xf
#define BEAM_ATOM_BITS 6
#define BEAM_ATOM_TAG  0x0b /* of the first one: "false" (erts/emulator/beam/atom.names) */
static inline bool beam_is_atom(uint64_t term)
{
	return (term & ((1u << BEAM_ATOM_BITS) - 1)) == BEAM_ATOM_TAG;
}

static inline uint64_t beam_atom_term(uint64_t number)
{
	return number << BEAM_ATOM_BITS | BEAM_ATOM_TAG;
}

/* beam_attach.c */
int beam_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		char why[RUNTIME_WHY_MAX]);

/* beam_tables.c: in the data between both addresses: ranges, functions and lines. -EAGAIN: not there yet. */
int beam_find_tables(struct memory *m, uint64_t from, uint64_t to, struct beam *b);
/* Whether it has loaded less than any system loads at its start. */
bool beam_is_starting(const struct beam *b, struct memory *m);

/* beam_shared.c: low, active, unless it is set, exits and framed, after all else. -ENOENT: such code is not there. */
int beam_find_shared(struct memory *m, struct beam *b);

/*
 * beam_loop.c: the interpreter of a build without compiler; -ENOENT: it has one, or none that is known. Sets loop, choice,
 * own and exits. Then what attach says of it, and what its plan has besides.
 */
int beam_find_loop(const struct runtime_file *file, struct memory *m, struct beam *b);
void beam_loop_attach(const struct runtime_file *file, const struct beam *b, struct runtime_attached *ret);
void beam_loop_plan(const struct beam *b, struct otp_walk *w);
int beam_loop_code(const struct beam *b, struct memory *m, uint64_t pc, struct runtime_code_made *ret);
int beam_loop_step(const struct beam *b, const struct runtime_code *c, const struct runtime_place *at, struct runtime_step *ret);
/*
 * Of the innermost function of an interpreted stack, whether the word at its stack pointer is none of a caller: the function
 * has a frame, and is calling another one, or was just returned to. False where the interpreter's own code says so already,
 * as the place in at does (BEAM_TOP_KEPT): the word may look like that of a call, in a function that calls itself.
 */
bool beam_loop_is_own_word(const struct runtime_code *c, const struct runtime_place *at, uint64_t word);

/* beam_registered.c: the process that is registered by that name, an atom. -ENOENT: none, or the table is not known;
 * -EFAULT, -E2BIG: it cannot be read. */
int beam_registered(const struct runtime_file *file, struct memory *m, const struct beam *b, uint64_t name,
		    uint64_t *ret);

/* beam_epoch.c: whether code at an address may be of another module by now; after the walks, of which the first has it. */
void beam_epoch_attach(const struct runtime_file *file, struct memory *m, struct beam *b, struct otp_walk *walk);
int beam_epoch_now(const struct beam *b, struct memory *m, uint64_t *ret);
uint64_t beam_epoch(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root);

/* beam_code.c */
int beam_code(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret);

/* beam_fetch.c: fills the words; whether, after a call that returns to pc, the pointer is fetched from the process. */
int beam_fetches(const struct beam *b, struct memory *m, struct runtime_code *c);
bool beam_is_fetched(const struct runtime_code *c, uint64_t pc);
/* Whether the call that returns to pc chooses the next process. */
bool beam_is_choice(const struct runtime_code *c, uint64_t pc);

#define BEAM_FRAME 0x80000000u /* of a mark: it is not of a fetch. These are behind those. */

/*
 * beam_frame.c. beam_frames: adds them to the words, after the fetches. beam_frame_words: how many words are between the
 * stack pointer and the return address, where what these words hold may be anything; -ENOENT: that is not so at pc;
 * -E2BIG: it is not known.
 */
int beam_frames(struct memory *m, struct runtime_code *c);
int beam_frame_words(const struct runtime_code *c, uint64_t pc);

/* beam_lines.c: a row for each place of a function that has a line. i: the function's index in its module. */
int beam_lines(const struct beam *b, struct memory *m, const struct beam_module *of, uint32_t i,
	       struct runtime_frame *f, struct runtime_code_made *ret);

/* beam_name.c: module and function are their atoms' texts. beam_write_name: of what is registered. */
void beam_write(const char *module, const char *function, uint32_t arity, char to[RUNTIME_NAME_MAX]);
void beam_write_name(const char *atom, char to[RUNTIME_NAME_MAX]);

/*
 * beam_process.c. What context finds is a struct runtime_frame whose key is an atom, as no function's address is: a
 * registered name, or a module with function, arity and 1 as cookies. beam_attach_process: after the first walk; -EAGAIN.
 */
int beam_attach_process(struct memory *m, struct beam *b, struct runtime_attached *ret);
void beam_context(const struct runtime_attached *a, const struct runtime_copied *w, struct runtime_context *ret);
int beam_decode_process(const struct beam *b, struct memory *m, const struct runtime_frame *f, struct runtime_function *ret);

/* beam_decode.c. beam_atom: the text's length; -EBADMSG: not an atom; -EFAULT. */
#define BEAM_ATOM_MAX	 256 /* bytes of text, its NUL included */
#define BEAM_ATOM_LENGTH 24  /* in an atom: its length, and behind it the text */
int beam_find_text(struct memory *m, struct beam *b); /* of atoms: text. 0, -EAGAIN */
int beam_atom(const struct beam *b, struct memory *m, uint64_t term, char to[BEAM_ATOM_MAX]);
int beam_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		struct runtime_function *ret);

#endif
