/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LuaJIT 2.1 with 64-bit references (LJ_GC64), which x86-64 has by default since
 * 2022: what its parts share. Frames lie on a stack of slots (struct lua_State),
 * each slot 8 bytes: below a frame's base are its function and its link, an
 * address in the caller's bytecode, or a distance with the frame's type. In
 * machine code of traces (GCtrace), frames are written only where the trace is
 * left: a snapshot of the trace has those that are missing.
 *
 * Called by the parts of the runtime and its tests.
 * Offsets: src/lj_obj.h, lj_frame.h, lj_jit.h, vm_x64.dasc of LuaJIT v2.1 (2022
 * to 2026, and OpenResty's luajit2 of those years); those in struct global_State
 * and GG_State, which differ, are found by what lies there.
 */
#ifndef OTP_RUNTIME_LUAJIT_H
#define OTP_RUNTIME_LUAJIT_H

#include "runtime/runtime.h"

enum luajit_offsets {
	LUAJIT_GCT = 9, /* type of an object: enum luajit_types */
	/* struct lua_State */
	LUAJIT_L_GLREF = 16,
	LUAJIT_L_BASE = 32,
	LUAJIT_L_LIMIT = 48,
	LUAJIT_L_STACK = 56,
	LUAJIT_L_C_FRAME = 80,
	LUAJIT_L_BYTES = 96,	 /* struct global_State follows that of the main thread */
	LUAJIT_L_BYTES_MAX = 112, /* OpenResty's has two more members */
	/* a C frame of the interpreter, from its stack pointer */
	LUAJIT_C_L = 16,
	LUAJIT_C_PC = 24,
	LUAJIT_C_PREV = 32,
	LUAJIT_C_BACK = 72,
	LUAJIT_C_BYTES = 80,
	LUAJIT_C_TRACE = 16, /* more, while a trace runs */
	/* GCfunc */
	LUAJIT_FN_HEAD = 8, /* gct, ffid */
	LUAJIT_FN_PC = 32,
	/* GCproto; bytecode follows it */
	LUAJIT_PT_HEAD = 8,
	LUAJIT_PT_SIZEBC = 12,
	LUAJIT_PT_K = 32,
	LUAJIT_PT_SIZEKGC = 48,
	LUAJIT_PT_CHUNKNAME = 64,
	LUAJIT_PT_FIRSTLINE = 72,
	LUAJIT_PT_NUMLINE = 76,
	LUAJIT_PT_LINEINFO = 80,
	LUAJIT_PT_UVINFO = 88,
	LUAJIT_PT_VARINFO = 96,
	LUAJIT_PT_BYTES = 104,
	/* GCstr */
	LUAJIT_STR_HEAD = 8, /* gct; above it sid, the string's number, which no other one has */
	LUAJIT_STR_LEN = 20,
	LUAJIT_STR_BYTES = 24,
};

enum luajit_types { LUAJIT_STRING = 4, LUAJIT_THREAD = 6, LUAJIT_PROTO = 7, LUAJIT_FUNCTION = 8, LUAJIT_TRACE = 9 };

/* Types of frames, in the lowest bits of a link (lj_frame.h). */
enum luajit_frame_type {
	LUAJIT_FRAME_LUA = 0,
	LUAJIT_FRAME_C = 1,
	LUAJIT_FRAME_CONT = 2,
	LUAJIT_FRAME_VARG = 3,
	LUAJIT_FRAME_PROTECTED = 4, /* with C: called by lua_cpcall; with CONT, VARG: pcall's */
};

#define LUAJIT_BC_BYTES 4
#define LUAJIT_BC_MAX	(1u << 26) /* of a prototype: lj_bc.h */

#define LUAJIT_ENTERS	   4u
#define LUAJIT_ENTER_BYTES 10u

enum luajit_params {
	LUAJIT_PARAM_GLOBAL,	/* address of struct global_State */
	LUAJIT_PARAM_VM,	/* the interpreter's code */
	LUAJIT_PARAM_VM_BYTES,
	LUAJIT_PARAM_VM_EXIT,	/* in it, where traces are left, up to _END: its frame is larger than its table says */
	LUAJIT_PARAM_VM_EXIT_END, /* behind it, up to INTERP_END: the stack pointer is not the C frame's yet */
	LUAJIT_PARAM_VM_INTERP_END,
	LUAJIT_PARAM_VM_MATH,	/* likewise, functions that it and traces call: they have no frame */
	LUAJIT_PARAM_VM_MATH_END,
	LUAJIT_PARAM_VM_JFUNC,	/* likewise, the way into a trace, which takes some of its stack first */
	LUAJIT_PARAM_VM_JFUNC_END,
	LUAJIT_PARAM_VM_LEAVE,	/* likewise, the epilogue */
	LUAJIT_PARAM_VM_LEAVE_END,
	LUAJIT_PARAM_VM_ENTER,	/* likewise, prologues of LUAJIT_ENTER_BYTES each; 0: there are fewer */
	LUAJIT_PARAM_DISPATCH = LUAJIT_PARAM_VM_ENTER + LUAJIT_ENTERS, /* offset of the dispatch table, from struct global_State */
	LUAJIT_PARAM_PRNG,	/* likewise, of what luajit_stamp.c reads; 0: there is none */
	LUAJIT_PARAMS,
};
_Static_assert(LUAJIT_PARAMS <= RUNTIME_PARAMS, "they pass as params");

/* Words of a walked frame, in the order of the plan. */
enum luajit_word {
	LUAJIT_CONTPC, /* of a continuation's frame: the caller's place */
	LUAJIT_FN,
	LUAJIT_LINK,
	LUAJIT_HEAD,   /* of the function */
	LUAJIT_PC,     /* its bytecode, if it is Lua's */
	LUAJIT_SIZE,   /* of the prototype: its head, with the number of instructions */
	LUAJIT_CHUNK,
	LUAJIT_LINES,
	LUAJIT_CHUNK_HEAD, /* of the chunk's name */
	LUAJIT_WORDS,
};
enum luajit_root_word { LUAJIT_ROOT_PRNG, LUAJIT_ROOT_AT, LUAJIT_ROOT_PLACE, LUAJIT_ROOT_C_FRAME, LUAJIT_ROOT_WORDS };

/*
 * A function is known by its prototype's address; the cookies are what must be found there again, and where its name
 * is found: the main function of a script, with the prototypes of all others below it, and the place of the call.
 */
enum luajit_cookie {
	LUAJIT_COOKIE_SIZE,  /* number of instructions, and the first line above it */
	LUAJIT_COOKIE_CHUNK, /* its name's address, and its number above it (luajit_cookie_chunk) */
	LUAJIT_COOKIE_MAIN,  /* prototype of the outermost function; 0: not known */
	LUAJIT_COOKIE_CALL,  /* behind the instruction that called it (luajit_cookie_call); 0: not known */
	LUAJIT_COOKIE_CALLER,
};

/* A place in a caller, with what tells later whether its prototype is still that one: how many instructions it has. */
#define LUAJIT_CALL_BITS 48
static inline uint64_t luajit_cookie_call(uint64_t pc, uint32_t sizebc)
{
	return (pc & ((1ULL << LUAJIT_CALL_BITS) - 1)) | (uint64_t)sizebc << LUAJIT_CALL_BITS;
}

/* Where a chunk is collected, another one and its name may lie in its place, with equal sizes. */
static inline uint64_t luajit_cookie_chunk(uint64_t chunkname, uint64_t head)
{
	return chunkname ^ (head & ~0xffffffffULL);
}

static inline uint64_t luajit_cookie_size(uint32_t sizebc, uint32_t firstline)
{
	return sizebc | (uint64_t)firstline << 32;
}

/* GCproto, as far as it is read. */
struct luajit_proto {
	uint64_t at, k, chunkname, chunk_head, lineinfo, uvinfo, varinfo;
	uint32_t sizebc, sizekgc, firstline, numline;
	uint8_t sizeuv;
};

/* luajit_attach.c */
int luajit_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		  char why[RUNTIME_WHY_MAX]);

/* luajit_proto.c */
bool luajit_is_string(struct memory *m, uint64_t at);
/* -ESTALE: there is no prototype. */
int luajit_proto_read(struct memory *m, uint64_t at, struct luajit_proto *ret);
/* The line of an instruction by its index, as lj_debug_line has it; 0: unknown. */
int luajit_lines(struct memory *m, const struct luajit_proto *p, struct runtime_function *ret);
static inline uint64_t luajit_bytecode(const struct luajit_proto *p)
{
	return p->at + LUAJIT_PT_BYTES;
}
static inline bool luajit_proto_has(const struct luajit_proto *p, uint64_t pc)
{
	return pc - luajit_bytecode(p) < (uint64_t)LUAJIT_BC_BYTES * p->sizebc;
}

/* luajit_name.c: 0; -ENOENT: nothing names it. */
int luajit_name(struct memory *m, const struct luajit_proto *p, const struct runtime_frame *f, char ret[RUNTIME_NAME_MAX]);

/* luajit_decode.c */
int luajit_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		  struct runtime_function *ret);

/* luajit_frame.c */
int luajit_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret);

/* luajit_trace.c */
int luajit_code(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret);
/* luajit_stamp.c: ret->param and walk have the rest. jit_base: its offset in struct global_State. tells: its generator does. */
void luajit_stamp_attach(struct memory *m, uint64_t jit_base, bool tells, struct runtime_attached *ret);
uint64_t luajit_stamp(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root);
uint64_t luajit_stamp_now(const struct runtime_attached *a, struct memory *m); /* 0: not known */
/* luajit_step.c */
int luajit_step(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
		struct runtime_step *ret);

#endif
