/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython's parts: the layout of its structures by version, the root of a
 * thread's frames, line tables, and trampolines.
 *
 * Called by this runtime's ops alone. A layout is part of what attach found: it
 * travels in its params, and may come back from a decoder that was taken over,
 * so each user checks it (cpython_layout_of).
 */
#ifndef OTP_RUNTIME_CPYTHON_H
#define OTP_RUNTIME_CPYTHON_H

#include "runtime/runtime.h"

#define CPYTHON_CODE_MAX 248 /* bytes of a code object before its instructions */
#define CPYTHON_TABLE_MAX (512u << 10)

/* How the interpreter's own state of a frame is found: which frames entered the loop. */
enum cpython_entry {
	CPYTHON_ENTRY_EVERY = 0, /* each frame has a loop of its own (to 3.10) */
	CPYTHON_ENTRY_FLAG = 1,	 /* a byte of the frame says so (3.11) */
	CPYTHON_ENTRY_SHIM = 2,	 /* a frame on the C stack, of no function, lies outside each entry (from 3.12 on) */
};

enum cpython_lines {
	CPYTHON_LNOTAB = 0,	/* to 3.9 */
	CPYTHON_LINETABLE = 1,	/* 3.10, PEP 626 */
	CPYTHON_LOCATIONS = 2,	/* from 3.11 on */
};

/* Offsets in bytes; 0 where the version has no such field, unless 0 is a possible offset. */
struct cpython_layout {
	uint16_t minor;
	uint8_t entry;	     /* enum cpython_entry */
	uint8_t lines;	     /* enum cpython_lines */
	uint8_t tag;	     /* bits of a frame's pointer to its code that are no part of it */
	uint8_t unit;	     /* bytes that one step of a frame's index counts for; 0: it has a pointer, not an index */
	uint8_t shim;	     /* owner of shims */
	uint8_t word_code, word_instr, word_owner, word_copy; /* of the kept words, for frame */
	uint8_t word_first, word_name, word_table;
	uint8_t base;	     /* the outermost frame is the thread's own, of no function, and of a shim's owner */
	uint8_t local;	     /* a thread's state is in a thread-local variable, in no slot of pthread_getspecific */
	uint16_t ob_type;
	uint16_t frame_code, frame_back, frame_instr, frame_owner, frame_copy;
	uint16_t code_first_line, code_file, code_name, code_table, code_bytes;
	uint16_t text_length, text_state, text_ascii, text_wide; /* of str: where characters begin, if ASCII or not */
	uint16_t bytes_size, bytes_data;
	uint16_t thread_next, thread_interp, thread_id, thread_frame, thread_loop, loop_frame;
	uint16_t interp_next, interp_threads;
	uint16_t runtime_head;
	uint16_t type_name, code_size, frame_size; /* tp_name of a type; tp_basicsize of code and, to 3.10, of frame */
	uint64_t code_type;  /* address of PyCode_Type */
	uint64_t image, image_end; /* addresses of the runtime's file */
	uint64_t interp_main; /* the interpreter that the program began with; 0: not known */
};
_Static_assert(sizeof(struct cpython_layout) <= RUNTIME_PARAMS * sizeof(uint64_t), "params hold a layout");

/*
 * The layout of the version in this file and process, and the version's text.
 * -ENOTSUP, why says which; -ENOENT: no Python; -EFAULT.
 */
int cpython_layout_find(const struct runtime_file *file, struct memory *m, struct cpython_layout *ret,
			char version[RUNTIME_VERSION_MAX], char why[RUNTIME_WHY_MAX]);
/* From a->param. false: out of bounds. */
bool cpython_layout_of(const struct runtime_attached *a, struct cpython_layout *ret);
void cpython_layout_keep(struct runtime_attached *a, const struct cpython_layout *l);

/*
 * The chain from a thread's pointer to its state (PyThreadState), in *walk: its
 * slot of pthread_getspecific, found by comparing what the slots of a living
 * thread hold with the state that the runtime lists for it; from 3.15 on a
 * variable, likewise compared. -EAGAIN: no thread has one yet.
 */
int cpython_root_find(const struct runtime_file *file, struct memory *m, const struct cpython_layout *l,
		      struct otp_walk *walk, char why[RUNTIME_WHY_MAX]);
/*
 * Where the variable of a thread's state is, from 3.15 on, by code and in memory:
 * a hypothesis, which cpython_local_find holds against a living thread.
 */
struct cpython_local {
	bool shared;	 /* in a block of the dynamic linker's, whose number is module; else at an offset from the pointer */
	uint32_t module; /* 0: not loaded yet */
	int32_t offset;
};
#define CPYTHON_LOCAL_CODE 64 /* bytes of the function that are looked at */
/* By code at pc; of memory, the words that the dynamic linker has written for it. -ENOTSUP: code that is not known. */
int cpython_local_decode(uint16_t machine, const uint8_t code[CPYTHON_LOCAL_CODE], uint64_t pc, struct memory *m,
			 struct cpython_local *ret);
int cpython_local_read(const struct runtime_file *file, struct memory *m, struct cpython_local *ret);
/* The chain to it, of the thread whose pthread_t is self: nr_chain and chain of walk. -ENOENT. */
int cpython_local_find(struct memory *m, uint16_t machine, const struct cpython_local *l, uint64_t self, uint64_t state,
		       struct otp_walk *walk);

/* The interpreter that was made first; 0: not found. */
uint64_t cpython_interp_main(const struct runtime_file *file, struct memory *m, const struct cpython_layout *l);
/* The thread pointer less pthread_t, of glibc. -ENOENT. */
int cpython_arm64_pointer(struct memory *m, uint64_t self, int64_t *ret);
/* The slot of one thread, whose pthread_t is self: nr_chain and chain of walk. -ENOENT. */
int cpython_slot_find(struct memory *m, uint16_t machine, uint64_t self, uint64_t state, struct otp_walk *walk);

/* The function's first line, and the rows of its lines, from its table. Pure. */
void cpython_lines_decode(enum cpython_lines kind, const uint8_t *table, size_t len, uint32_t first_line,
			  struct runtime_function *ret);

/* Trampolines of -X perf, on the native stack: runtime/code.h. */
int cpython_code(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret);
int cpython_step(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
		 struct runtime_step *ret);

int cpython_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		   struct runtime_function *ret);

#endif
