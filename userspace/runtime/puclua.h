/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lua of PUC-Rio, 5.1 to 5.4: what its parts share. Each call has a CallInfo, in
 * an array (5.1) or a list (from 5.2 on) of the lua_State that it is of: a main
 * thread or a coroutine. Nothing says which state runs, but each that does has
 * been entered by luaD_rawrunprotected, whose frame holds a struct lua_longjmp,
 * the state's errorJmp: a walk seeks such frames on the thread's stack
 * (OTP_WALK_CALL), and has coroutine after coroutine so, out to the main thread.
 *
 * Called by the parts of the runtime and its tests.
 * Offsets: lstate.h, lobject.h, lopcodes.h of Lua 5.1.1 to 5.4.8, on x86-64.
 */
#ifndef OTP_RUNTIME_PUCLUA_H
#define OTP_RUNTIME_PUCLUA_H

#include "base/hash.h"
#include "runtime/runtime.h"

/* Instructions that names are read from. PUCLUA_NO_OP: the version has none such. */
enum puclua_op {
	PUCLUA_MOVE,
	PUCLUA_LOADNIL,
	PUCLUA_GETUPVAL,
	PUCLUA_GETGLOBAL,
	PUCLUA_GETTABUP,
	PUCLUA_GETTABLE,
	PUCLUA_GETFIELD,
	PUCLUA_SELF,
	PUCLUA_SETGLOBAL,
	PUCLUA_SETTABUP,
	PUCLUA_SETUPVAL,
	PUCLUA_SETTABLE,
	PUCLUA_SETFIELD,
	PUCLUA_JMP,
	PUCLUA_CALL,
	PUCLUA_TAILCALL,
	PUCLUA_FORCALL, /* calls the iterator of a generic for */
	PUCLUA_CLOSURE,
	PUCLUA_OPS
};
#define PUCLUA_NO_OP 0xff

struct puclua_opcodes {
	uint8_t number[PUCLUA_OPS];
	uint64_t keep_a[2]; /* bit per number: the instruction does not write register A */
	bool is_wide; /* 5.4: opcodes of 7 bits, operands of 8, and a bit k; else 6 and 9 */
};

/* How it is known that a loop of its own runs a frame of Lua. */
enum puclua_entry {
	PUCLUA_ENTRY_IF,     /* the bit is set */
	PUCLUA_ENTRY_UNLESS, /* the bit is clear */
	PUCLUA_ENTRY_EACH,   /* each call enters the loop */
	PUCLUA_ENTRY_BY_CALL /* unless its caller is Lua's, and at a call instruction */
};

/* Offsets of one version's structures. */
struct puclua_layout {
	uint32_t from, to; /* 50402: 5.4.2 */
	const struct puclua_opcodes *op;
	uint8_t l_ci, l_jump; /* lua_State: ci, errorJmp */
	uint8_t l_base_ci;    /* 5.1: base_ci */
	uint8_t ci_bytes;     /* 5.1: of an entry of the array; else 0: a list */
	uint8_t ci_previous, ci_savedpc;
	uint8_t ci_status;	/* the word that holds callstatus, or 5.1's tailcalls */
	uint8_t status_shift;	/* its lowest bit there */
	uint16_t status_lua;	/* bit per value of the lowest four bits of callstatus: the function is Lua's; 0: all may be */
	uint8_t status_entry;	/* the bit for enum puclua_entry */
	uint8_t status_tail;	/* the bit: called by a tail call; 0: 5.1, where it is a count */
	uint8_t entry;		/* enum puclua_entry */
	uint8_t saves_pc;	/* where the loop writes its place, which is in a register else, before calls; 0: it is in memory */
	uint8_t tag_lua;	/* of a value that is a function of Lua */
	uint8_t closure_is_c;	/* 5.1: where a closure says so; else 0 */
	uint8_t closure_p;
	struct { /* Proto */
		uint8_t tag, bytes, k, code, p, lineinfo, abslineinfo, locvars, upvalues, source;
		uint8_t sizeupvalues, sizek, sizecode, sizelineinfo, sizep, sizelocvars, sizeabslineinfo;
		uint8_t linedefined, lastlinedefined, nups; /* abslineinfo: 0: none; nups: 5.1 */
	} pt;
	uint8_t upvalue_bytes; /* of an entry of upvalues */
	uint8_t string_bytes;  /* from a TString to its text */
};

/* puclua_layout.c */
const struct puclua_layout *puclua_layout_find(uint32_t version); /* NULL: not known */
const struct puclua_layout *puclua_layout_at(uint64_t index);	  /* NULL: no such row */
uint32_t puclua_layout_index(const struct puclua_layout *l);

enum puclua_params {
	PUCLUA_PARAM_LAYOUT,
	PUCLUA_PARAM_STATE, /* a lua_State that was running when it was found; 0: none was needed */
	PUCLUA_PARAM_PLACE, /* the register in which the loop keeps its place, in DWARF's numbers, and 1; 0: not known */
	PUCLUA_PARAMS
};
_Static_assert(PUCLUA_PARAMS <= RUNTIME_PARAMS, "they pass as params");

enum puclua_rows {
	PUCLUA_ROW_CI,
	PUCLUA_ROW_VALUE,
	PUCLUA_ROW_CLOSURE,
	PUCLUA_ROW_PROTO,
	PUCLUA_ROW_LAST, /* with PUCLUA_ENTRY_BY_CALL, the instructions before its place; else of the string that is its source */
	PUCLUA_ROWS
};
static inline bool puclua_row_last_is_code(const struct puclua_layout *l)
{
	return l->entry == PUCLUA_ENTRY_BY_CALL;
}
/* The words that the plan keeps of each row, as masks. */
void puclua_keep(const struct puclua_layout *l, uint16_t ret[PUCLUA_ROWS]);

/* A function is known by its Proto's address; cookies as LuaJIT's (luajit.h). */
enum puclua_cookie {
	PUCLUA_COOKIE_SIZE, /* number of instructions, and the first line above it */
	PUCLUA_COOKIE_SOURCE, /* puclua_cookie_source */
	PUCLUA_COOKIE_MAIN,   /* Proto of the outermost function; 0: not known */
	PUCLUA_COOKIE_CALL,   /* behind the instruction that called it (puclua_cookie_call); 0: not known */
	PUCLUA_COOKIE_CALLER,
};

#define PUCLUA_CALL_BITS 48
static inline uint64_t puclua_cookie_call(uint64_t pc, uint32_t sizecode)
{
	return (pc & ((1ULL << PUCLUA_CALL_BITS) - 1)) | (uint64_t)sizecode << PUCLUA_CALL_BITS;
}

/*
 * Where functions are collected, others may lie in their place, with equal sizes and the name of their chunk where another
 * one was: they have been made apart, so that not all that they point to lies where it lay. told: what else tells them
 * apart, the hash of the chunk's name, or k where that is not copied.
 */
static inline uint64_t puclua_cookie_source(uint64_t source, uint64_t lineinfo, uint64_t told)
{
	return hash_u64(source ^ hash_u64(lineinfo ^ hash_u64(told)));
}

static inline uint64_t puclua_cookie_size(uint32_t sizecode, uint32_t linedefined)
{
	return sizecode | (uint64_t)linedefined << 32;
}

#define PUCLUA_INSTRUCTION 4u
#define PUCLUA_CODE_MAX	   (1u << 26) /* instructions of a function that are believed */
#define PUCLUA_VALUE	   16u	      /* bytes of a TValue */
#define PUCLUA_VALUE_TAG   8u
#define PUCLUA_TAG	   8u /* of an object: its type */
#define PUCLUA_BASE_BYTES  128u /* at most, from the first CallInfo, in a main thread, to global_State behind that */

#define PUCLUA_STRING_HEAD 8u	   /* of a TString: the word whose upper half is the hash, since 5.2 */

enum puclua_types { PUCLUA_STRING = 4, PUCLUA_THREAD = 8 };

/* Proto, as far as it is read. */
struct puclua_proto {
	const struct puclua_layout *l;
	uint64_t at, k, code, p, lineinfo, abslineinfo, locvars, upvalues, source;
	uint64_t told; /* as of puclua_cookie_source */
	uint32_t sizeupvalues, sizek, sizecode, sizelineinfo, sizep, sizelocvars, sizeabslineinfo;
	uint32_t linedefined, lastlinedefined;
	uint8_t nups;
};

/* puclua_attach.c */
int puclua_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		  char why[RUNTIME_WHY_MAX]);

/* puclua_loop.c: adds luaV_execute, where its rare code is, and its register. Whether it was found. */
bool puclua_add_loop(const struct runtime_file *file, const struct puclua_layout *l, struct runtime_attached *ret);

/* puclua_functions.c: functions of a file, by their addresses there. */
#define PUCLUA_FUNCTIONS_MAX  64u
#define PUCLUA_FUNCTION_BYTES 3072u /* of one that is looked into */
struct puclua_functions {
	struct binary *binary; /* borrowed */
	uint32_t nr;
	uint64_t start[PUCLUA_FUNCTIONS_MAX], size[PUCLUA_FUNCTIONS_MAX];
};
/* Adds the function that begins there, if one does. */
void puclua_functions_add(struct puclua_functions *c, uint64_t vaddr);
/* Its code; returns its bytes, 0: it is too large. */
uint32_t puclua_functions_code(const struct puclua_functions *c, uint32_t i, uint8_t to[PUCLUA_FUNCTION_BYTES]);
/* Adds those that it calls, or jumps to, by what looks like such an instruction of x86-64. */
void puclua_functions_called_by(struct puclua_functions *c, uint32_t i);

/* puclua_call.c: the call that luaD_rawrunprotected makes. */
struct puclua_call {
	uint64_t back; /* the return address, in the file */
	int16_t kept, jump; /* from where that is on the stack: the address of L; the struct that errorJmp points to */
};
bool puclua_find_protected(struct binary *b, const struct puclua_layout *l, struct puclua_call *ret);
/* Whether each coroutine that lua_resume enters has called from there, too. */
bool puclua_call_is_resumes(struct binary *b, const struct puclua_layout *l, uint64_t resume, uint64_t back);

/* puclua_frame.c */
int puclua_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret);

/* puclua_proto.c: -ESTALE: there is none. */
int puclua_proto_read(struct memory *m, const struct puclua_layout *l, uint64_t at, struct puclua_proto *ret);
/* The line of each instruction, by its index. */
int puclua_lines(struct memory *m, const struct puclua_proto *p, struct runtime_function *ret);
/* A string; -ENOENT: there is none. */
int puclua_string(struct memory *m, const struct puclua_layout *l, uint64_t at, char *to, size_t size);

/* puclua_name.c: 0; -ENOENT: nothing names it. */
int puclua_name(struct memory *m, const struct puclua_proto *p, const struct runtime_frame *f,
		char ret[RUNTIME_NAME_MAX]);

/* puclua_decode.c */
int puclua_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		  struct runtime_function *ret);

#endif
