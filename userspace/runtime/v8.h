/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8, the virtual machine of Node.js: JavaScript lies on the native stack, with
 * frame pointers. Offsets come from the constants that node exports for
 * debuggers (v8dbg_*; V8, tools/gen-postmortem-metadata.py); what these lack is
 * by version (struct v8_row). Objects move: an address that a sample holds is
 * believed only as far as other words of the same frame agree with what lies
 * there later.
 *
 * Private to v8*.c. struct v8 is what attach found; it passes from the decoder to
 * the engine as the params of struct runtime_attached.
 * Units: offsets in bytes from an object's begin, addresses as in the process.
 */
#ifndef OTP_RUNTIME_V8_H
#define OTP_RUNTIME_V8_H

#include "runtime/runtime.h"

/* X(member, "symbol behind v8dbg_") */
#define V8_CONSTANTS(X)                                                          \
	X(map_type, "class_Map__instance_type__uint16_t")                        \
	X(function_shared, "class_JSFunction__shared__SharedFunctionInfo")       \
	X(shared_token, "class_SharedFunctionInfo__raw_function_token_offset__int16_t") \
	X(script_name, "class_Script__name__Object")                             \
	X(script_source, "class_Script__source__Object")                         \
	X(string_length, "class_String__length__int32_t")                        \
	X(string_bytes, "class_SeqOneByteString__chars__char")                   \
	X(cons_first, "class_ConsString__first__String")                         \
	X(cons_second, "class_ConsString__second__String")                       \
	X(thin_actual, "class_ThinString__actual__String")                       \
	X(sliced_parent, "class_SlicedString__parent__String")                   \
	X(sliced_offset, "class_SlicedString__offset__SMI")                      \
	X(external_resource, "class_ExternalString__resource__Object")           \
	X(bytecode_data, "class_BytecodeArray__data__uintptr_t")                 \
	X(array_length, "class_FixedArrayBase__length__SMI")                     \
	X(array_data, "class_FixedArray__data__uintptr_t")                       \
	X(type_shared, "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE")     \
	X(type_scope, "type_ScopeInfo__SCOPE_INFO_TYPE")                         \
	X(type_script, "type_Script__SCRIPT_TYPE")                               \
	X(type_bytecode, "type_BytecodeArray__BYTECODE_ARRAY_TYPE")              \
	X(type_interpreter_data, "type_InterpreterData__INTERPRETER_DATA_TYPE")  \
	X(type_code, "type_Code__CODE_TYPE")                                     \
	X(type_bytes, "type_ByteArray__BYTE_ARRAY_TYPE")                         \
	X(type_function, "type_JSFunction__JS_FUNCTION_TYPE")                    \
	X(first_nonstring, "FirstNonstringType")                                 \
	X(representation_mask, "StringRepresentationMask")                       \
	X(encoding_mask, "StringEncodingMask")                                   \
	X(one_byte, "OneByteStringTag")

/*
 * Builtins to whose begin frames may return that a deoptimization has made in place of optimized ones: they go on in
 * the interpreter, or in the rest of a builtin (V8, deoptimizer.cc; builtins.h, IsInterpreterTrampolineBuiltin).
 */
#define V8_RESUMED 8
extern const struct v8_resumed { const char *symbol; bool interprets; } v8_resumed[V8_RESUMED];

/* As a file says, or as is known of a version whose files do not. */
struct v8_constants {
#define X(member, symbol) uint16_t member;
	V8_CONSTANTS(X)
#undef X
};

struct v8 {
	uint64_t builtins, builtins_end; /* code that the file brings along */
	uint64_t trampoline; /* of it, the function whose frames are those of interpreted code */
	uint64_t trampoline_end;
	uint64_t prologue;  /* what makes the frame of baseline code */
	uint64_t leave;	    /* what takes it down */
	uint64_t setup;	    /* what makes the frame of code of WebAssembly that counts its calls; 0: there is none */
	uint64_t handlers;  /* the first function that runs a bytecode: all behind do */
	uint64_t wasm;	    /* a pointer to what manages code of WebAssembly; 0: where it lies is not known */
	uint64_t isolate_builtins; /* of an Isolate: a pointer to the builtins that it runs; 0: not known */
	uint64_t isolate;   /* whose counters each sample has; 0: those of the thread's own */
	uint64_t epoch;	    /* when it was attached, of the only isolate; 0: there were others, or it is not known */
	uint64_t isolate_epoch; /* of an Isolate: collections of the whole heap; then, of any kind; 0: not known */
	uint64_t has_epochs; /* not 0: walks copy the counters of a heap */
	uint64_t names;	    /* a table of what each builtin is called, where no symbols tell; 0: these do */
	uint64_t layout;		  /* where in the code each builtin lies: offset and length, of 32 bits each */
	uint32_t layout_nr;
	uint32_t resumed[V8_RESUMED]; /* of v8_resumed, from builtins; 0: there is none */
	uint16_t layout_stride;
	uint16_t row;			  /* index in v8_rows */
	union {
		struct v8_constants constants;
		struct {
#define X(member, symbol) uint16_t member;
			V8_CONSTANTS(X)
#undef X
		};
	};
};
_Static_assert(sizeof(struct v8) <= RUNTIME_PARAMS * sizeof(uint64_t), "it passes as params");

/* Instructions that say how a frame of optimized code becomes those of unoptimized code. */
struct v8_translation {
	uint8_t nr, operands[48]; /* of each */
	uint8_t begin[2], frame[2]; /* what begins a translation; an interpreted frame: bytecode, function's literal, ... */
	uint8_t repeat; /* instructions of the translation before; 0: there is none */
	bool signed_opcodes;
};

/* Offsets by which code of WebAssembly is found. */
struct v8_wasm_row {
	uint16_t spaces;   /* of the code manager: its map of code spaces, at the root; 0: not known, and no code is */
	uint16_t wrappers; /* likewise, of wrappers that belong to no module; 0: all belong to one */
	uint16_t isolates; /* likewise, of the list of isolates */
	uint8_t isolate_key; /* of an entry of that list: the isolate */
	uint16_t scripts;  /* of what is kept of an isolate: the list of its modules' scripts */
	uint16_t codes, fresh, wire; /* of a module: its map of code, at the root; what is not in that yet; its bytes */
	uint8_t size, index, flags; /* of a WasmCode */
	uint8_t metadata; /* likewise, where its source positions are, and what is inlined; 0: nothing ever is */
};

#define V8_NO_SCOPE UINT8_MAX

/* What the constants lack, by version. */
struct v8_row {
	uint8_t major, minor;
	bool hidden; /* of programs that tell nothing of their V8: what follows, and constants */
	uint32_t isolate_heap; /* of an Isolate: its Heap */
	uint32_t isolate_builtins; /* likewise, a pointer to the builtins that it runs */
	const struct v8_constants *constants;
	/* Offsets. */
	uint16_t shared_data, shared_name, shared_script, shared_literal;
	uint8_t debug_script; /* of a DebugInfo, which may be in the place of a function's script; 0: it never is */
	uint16_t script_id, script_line, script_functions, script_url, bytecode_positions, interpreter_bytecodes;
	uint16_t scope_flags, scope_locals, scope_names; /* of a ScopeInfo; where its variable part begins */
	uint16_t scope_positions; /* 0: behind its variable part */
	uint8_t scope_module; /* the type of a scope that begins with a number more: a module's, or V8_NO_SCOPE */
	uint32_t scope_empty; /* a flag; 0: nothing says so */
	bool scope_raw;	      /* its flags are no small integer */
	uint16_t stream_code; /* of an InstructionStream: its Code; 0: it is the Code */
	uint16_t stream_start; /* its instructions */
	uint16_t code_interpreted; /* of a Code: its bytecodes (baseline), or its deoptimization data (optimized) */
	uint16_t code_positions;   /* its source positions (optimized) */
	uint16_t code_start, code_flags, code_size;
	uint8_t deopt_literals, deopt_id, deopt_shared, deopt_inlining; /* indices of deoptimization data */
	uint8_t shared_wrapped;	     /* there, the function is behind an object, at this offset; 0: it is not */
	uint16_t type_trusted_bytes; /* arrays of bytes outside of the sandbox, if there is one */
	uint32_t isolate_scripts; /* of an Isolate: the list of its scripts */
	uint16_t isolate_thread; /* likewise, the number of the thread that is in it */
	uint16_t heap_epoch;	 /* of a Heap, a part of an Isolate: how often the whole of it was collected */
	uint16_t heap_isolate;	 /* likewise, the Isolate */
	uint8_t kind_builtin, kind_baseline, kind_maglev, kind_optimized, kind_mask; /* of a Code's flags */
	bool raw_lengths; /* of arrays: numbers of 32 bits, no small integers */
	uint8_t list_length, list_data; /* of a WeakArrayList */
	struct v8_wasm_row wasm;
	struct v8_translation translation;
};
#define V8_ROWS 12
extern const struct v8_row v8_rows[V8_ROWS + 1]; /* the last one: the end */

/* What a region is: how its frames are left, and where their function is. */
enum v8_kind {
	V8_BUILTIN,    /* a frame pointer, or no frame at all */
	V8_STUB,       /* the same, and its frames have a marker, where those of JavaScript have a context */
	V8_TRAMPOLINE, /* interpreted code, by the words of its frame */
	V8_HANDLER,    /* runs a bytecode: what it does, the interpreted function does */
	V8_PROLOGUE,   /* makes a frame of baseline code, or of WebAssembly's */
	V8_BASELINE,   /* as interpreted code, compiled without optimization */
	V8_OPTIMIZED,  /* by the region's nodes */
	V8_WITHOUT_DATA, /* optimized, without data that tell what is inlined: by its frame's function */
	V8_REGEXP,     /* a regular expression: begins with a jump to its end, where its frame is made */
	V8_WASM,       /* WebAssembly, and wrappers around it; as a stub's, its frames have a marker */
};

/*
 * Numbers of a region (more): events, sorted: an offset << 8 | from there on, how deep the return address lies in words above
 * the stack pointer, or V8_FRAMED. Where there is no room, the last one is V8_UNTOLD.
 */
#define V8_FRAMED   0xffu /* it is above the frame pointer */
#define V8_UNTOLD   0xfeu
#define V8_IN_REG   0xe0u /* | register, as DWARF counts them: it is there */

static inline const struct v8 *v8_of(const struct runtime_attached *a)
{
	return (const void *)a->param;
}

static inline const struct v8_row *v8_row(const struct v8 *v)
{
	return &v8_rows[v->row < V8_ROWS ? v->row : V8_ROWS];
}

#define V8_FIRST_BUILTIN "DeoptimizationEntry_Eager" /* the name of number 0, in all versions (builtins-definitions.h) */
#define V8_LAYOUT_AT 24 /* of a blob's data, behind three hashes (V8, embedded-data.h) */
#define V8_ISOLATE_SELF 8 /* an Isolate points to itself (StackGuard::isolate_), in all versions */

/* v8_attach.c */
int v8_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
	      char why[RUNTIME_WHY_MAX]);

/*
 * v8_unnamed.c: builtins of a file without symbols. Sets of v where they lie. -ENOTSUP: it exports nothing that tells;
 * -EAGAIN: V8 has not begun yet.
 */
int v8_unnamed_blob(const struct runtime_file *file, struct memory *m, struct v8 *v, uint64_t *ret_data);
/*
 * With the layout: where their names are, and those that v tells of. -ENOTSUP: one that must be there is not, or the names
 * are not those of the layout. Cost: where no function tells where names are, the file's data are read, 2 MiB at most.
 */
int v8_unnamed_find(const struct runtime_file *file, struct memory *m, struct v8 *v);
/* As its symbol would be. -ENOENT: there are no names; -EBADMSG: what is there is none; others as memory_read. */
int v8_unnamed_name(const struct v8 *v, struct memory *m, uint32_t number, char to[RUNTIME_CODE_NAME]);

/*
 * v8_hidden.c: V8 in a program that has neither symbols nor exports of it. holds: whether one may be in the file, by
 * functions that all such programs export. look: what its constants show; -ENOENT: there is none. blob: as
 * v8_unnamed_blob, and the names. isolates: sets of v what has the list of isolates; -EAGAIN: there is none yet.
 */
#define V8_HIDDEN_VERSION 32u
struct v8_hidden {
	char version[V8_HIDDEN_VERSION];
	uint64_t layout, name; /* addresses in the file: of builtins' places, of the first one's name; 0: not met */
};
bool v8_hidden_holds(struct binary *b);
int v8_hidden_look(struct binary *b, struct v8_hidden *ret);
int v8_hidden_blob(const struct runtime_file *file, const struct v8_hidden *h, struct v8 *v, uint64_t *ret_data);
int v8_hidden_isolates(const struct runtime_file *file, struct memory *m, struct v8 *v);

/*
 * v8_epoch.c: the counters by which a sample and what is read later are compared. The begin of the walk that copies them, to
 * a thread's isolate; OTP_WALK_NONE: where that is kept is not known. attach makes the rest; -EAGAIN: there is no isolate yet.
 */
void v8_epoch_chain(const struct v8 *v, const struct runtime_file *file, struct memory *m, struct otp_walk *ret);
int v8_epoch_attach(struct v8 *v, struct memory *m, struct otp_walk *walk);
/* Where an isolate has its counters. 0: not known. */
uint64_t v8_epoch_find(const struct v8 *v, const struct runtime_file *file, struct memory *m);
/* Zeros: not known. Those of a heap (struct runtime_ops), which may have ended; heap 0: of the only one. */
struct v8_epochs { uint64_t epoch, moved, isolate; };
int v8_epochs_now(const struct v8 *v, struct memory *m, uint32_t heap, struct v8_epochs *ret);
/* How far behind the file's builtins those lie that have pc, by the isolate's pointer to them. -ENOENT: none of its. */
int v8_isolate_copy(const struct v8 *v, struct memory *m, uint64_t pc, uint64_t *ret);
uint64_t v8_epoch(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root);
uint64_t v8_moved(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root);

/* v8_object.c: objects by their tagged addresses. */
bool v8_is_object(uint64_t word);
int v8_field(struct memory *m, uint64_t object, uint32_t offset, uint64_t *ret);
int v8_smi(struct memory *m, uint64_t object, uint32_t offset, int32_t *ret); /* -EBADMSG: it is not a number */
int v8_length(const struct v8 *v, struct memory *m, uint64_t object, uint32_t offset, int32_t *ret); /* of an array: likewise */
/* The type of an object, by its map. */
int v8_type(const struct v8 *v, struct memory *m, uint64_t object, uint16_t *ret);
bool v8_is(const struct v8 *v, struct memory *m, uint64_t object, uint16_t type);
/* Where an object lies now that may have been copied to another place a moment ago. */
int v8_forward(struct memory *m, uint64_t object, uint64_t *ret);

/* v8_string.c */
bool v8_is_string(const struct v8 *v, struct memory *m, uint64_t object);
int v8_string(const struct v8 *v, struct memory *m, uint64_t object, char *to, size_t size); /* as UTF-8 */
/* Characters of a flat string in memory; len in characters. -EBADMSG: it is none. */
struct v8_flat { uint64_t at; uint32_t len; bool wide; };
int v8_flat(const struct v8 *v, struct memory *m, uint64_t object, struct v8_flat *ret);

/* v8_function.c */
struct v8_shared {
	uint64_t address, name, script;
	uint64_t bytecodes; /* 0: none */
	uint64_t identity;  /* script's id << 32 | function's number in it */
};
int v8_shared_read(const struct v8 *v, struct memory *m, uint64_t address, struct v8_shared *ret);
/* Where in its script the function begins; -1: unknown. */
int32_t v8_shared_start(const struct v8 *v, struct memory *m, const struct v8_shared *s);
/* The name of a script, or of the file that its URL tells; "": it has none. */
void v8_script_file(const struct v8 *v, struct memory *m, uint64_t script, char to[RUNTIME_PATH_MAX]);
int v8_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
	      struct runtime_function *ret);

/* v8_scripts.c: the function of bytecodes, by the lists of an isolate. -ESTALE: it was not found. */
int v8_scripts_find(const struct v8 *v, struct memory *m, uint64_t isolate, uint64_t bytecodes, struct v8_shared *ret);

/* v8_bytes.c: a span of memory, byte after byte. */
struct v8_bytes {
	struct memory *memory;
	uint64_t at, end; /* of what is not read yet */
	uint8_t bytes[4096];
	uint32_t nr, used;
};
void v8_bytes_open(struct v8_bytes *b, struct memory *m, uint64_t at, uint64_t end);
int v8_bytes_next(struct v8_bytes *b, uint8_t *ret); /* 0; -ENOENT: there are no more; others as memory_read */
/* LEB128, of as many bits at most; -EBADMSG: it has more. */
int v8_bytes_number(struct v8_bytes *b, unsigned bits, uint64_t *ret);
int v8_bytes_skip(struct v8_bytes *b, uint64_t nr);
static inline uint64_t v8_bytes_at(const struct v8_bytes *b) /* the address of the next one */
{
	return b->at - (b->nr - b->used);
}

/* v8_positions.c: source position tables. */
struct v8_positions {
	struct v8_bytes bytes;
	int32_t offset;	  /* of bytecode, or code; -1: the function's entry, before the first one */
	int64_t position; /* as V8 packs it */
};
void v8_positions_begin(struct memory *m, uint64_t at, uint64_t len, struct v8_positions *ret);
int v8_positions_open(const struct v8 *v, struct memory *m, uint64_t table, struct v8_positions *ret);
int v8_positions_next(struct v8_positions *p); /* 0; -ENOENT: there are no more; others as memory_read */
static inline int32_t v8_position_script(int64_t packed) /* characters from the script's begin; -1: unknown */
{
	return (int32_t)((uint64_t)packed >> 1 & 0x3fffffff) - 1;
}
static inline int32_t v8_position_inlined(int64_t packed) /* -1: not inlined */
{
	return (int32_t)((uint64_t)packed >> 31 & 0xffff) - 1;
}

/* v8_places.c: where the bytecodes of functions are in their scripts. Most functions have no table of that. */
#define V8_PLACES_MAX 65536u /* rows of all: code that is optimized is far from so large */
struct v8_places {
	struct v8_positions table;
	struct v8_places_function { bool read; int32_t start; uint32_t first, nr; } function[RUNTIME_CODE_FUNCTIONS];
	struct v8_places_row { uint64_t bytecode; int32_t at, reserved; } row[V8_PLACES_MAX];
	uint32_t nr;
};
void v8_places_begin(struct v8_places *p);
/*
 * The position of a bytecode of the SharedFunctionInfo at shared, which is known by this number: where the function
 * begins if it has no table, as V8 itself says then, or if bytecode is below 0. 0: not known.
 */
uint32_t v8_places_of(struct v8_places *p, const struct v8 *v, struct memory *m, uint16_t function, uint64_t shared,
		      int32_t bytecode);

/* v8_lines.c: lines of a script. */
struct v8_lines {
	uint32_t nr;
	struct { uint32_t at, line; } row[RUNTIME_LINES_MAX]; /* lines that begin from one place to another; sorted */
};
/*
 * From the line that holds from on, as far as the question's budget and the rows reach. -E2BIG: the source is too long to count
 * so far. Cost: the first time that it is counted to there, some 20 ms for 16 MiB, beside the budget.
 */
int v8_lines_read(struct memory *m, const struct v8_flat *source, uint64_t script, uint32_t from, uint32_t to,
		  struct v8_lines *ret);
uint32_t v8_line_at(const struct v8_lines *l, uint32_t at); /* 0: before all */

/* v8_code.c */
struct v8_builtin { uint64_t start, end; uint32_t number, reserved; };
bool v8_builtin_find(const struct v8 *v, struct memory *m, uint64_t pc, struct v8_builtin *ret);
int v8_code(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret);
/* v8_safepoints.c: of code of Maglev that ends at end. */
struct v8_safepoint {
	uint32_t at;   /* a return address, from the code's begin on */
	int32_t entry; /* of the deoptimization data; below 0: none */
};
struct v8_safepoints {
	uint32_t nr, next, end;
	uint32_t place, entry, size; /* bytes of a place, of an entry's number, and of all that there is of one */
	uint8_t bytes[32u << 10];
};
int v8_safepoints_open(struct memory *m, uint64_t table, uint32_t end, struct v8_safepoints *ret);
/* 0; -ENOENT: there are no more; -E2BIG: no more are known; -EBADMSG. */
int v8_safepoints_next(struct v8_safepoints *s, struct v8_safepoint *ret);

/* v8_optimized.c: what runs where in a Code that was optimized; the region is V8_WITHOUT_DATA where nothing tells. */
int v8_optimized(const struct v8 *v, struct memory *m, uint64_t code, bool maglev, struct runtime_code_made *ret);

/* v8_wasm.c: code of WebAssembly. */
struct v8_wasm_module {
	uint64_t address, script; /* 0: not known, as of the others */
	uint64_t wire, wire_end;  /* the bytes that it was made of */
	int32_t script_id;
	uint32_t reserved;
};
struct v8_wasm_code {
	uint64_t at, start;
	uint32_t size, function;
	uint8_t flags;
	struct v8_wasm_module module;
};
/* -ENOENT: no such code is there. */
int v8_wasm_code(const struct v8 *v, struct memory *m, uint64_t pc, struct runtime_code_made *ret);
int v8_wasm_add_function(struct memory *m, const struct v8_wasm_code *c, uint32_t function,
			 struct runtime_code_made *ret);
int v8_wasm_decode(const struct v8 *v, struct memory *m, const struct runtime_frame *f, struct runtime_function *ret);
/*
 * v8_wasm_names.c: the name of a function, by its number; -ENOENT: it has none; -EBUSY: it is not met yet, and the next question
 * goes on from there; -E2BIG: it is too far away, in a module without a script.
 */
int v8_wasm_name(struct memory *m, const struct v8_wasm_module *module, uint32_t function, char *to, size_t size);

/* v8_wasm_inlined.c: adds rows, to a region whose first node is that of the code's own function. */
int v8_wasm_inlined(const struct v8 *v, struct memory *m, const struct v8_wasm_code *code, struct runtime_code_made *ret);

/* v8_deopt.c: deoptimization data. */
#define V8_DEOPT_MAX  2048u /* places where code is left */
#define V8_EXIT_BYTES 4u    /* of a call that leaves it */
struct v8_deopt_frame { int32_t literal, bytecode; /* offset; below 0: none yet */ };
struct v8_deopt {
	const struct v8_translation *how;
	uint32_t exits;	    /* offset of what eager places jump to, one after the other */
	uint32_t eager, nr; /* of all places, so many are eager: those come first */
	uint32_t len;
	uint64_t entry[3 * V8_DEOPT_MAX];
	uint8_t bytes[128 << 10];
};
int v8_deopt_open(const struct v8 *v, struct memory *m, uint64_t data, struct v8_deopt *d);
/* Of a place that is not eager, the return address of its call. */
int v8_deopt_place(const struct v8_deopt *d, uint32_t entry, int32_t *ret);
/* From the outermost function in; how many. */
int v8_deopt_frames(const struct v8_deopt *d, uint32_t entry, struct v8_deopt_frame ret[RUNTIME_CODE_DEPTH]);

/* v8_anchors.c: instructions of which it is known what they belong to, and what follows for those between them. */
#define V8_ANCHORS_MAX ((RUNTIME_CODE_ROWS - 2) / 2)
#define V8_PATHS_MAX   1024
#define V8_NO_PATH     UINT16_MAX
/* A function where it is inlined. */
struct v8_path {
	uint16_t outer;	   /* index, smaller than its own; of the first, the code's own function, V8_NO_PATH */
	uint16_t function; /* index in the code's functions */
	int32_t call;	   /* bytecode of outer */
};
struct v8_anchor {
	uint32_t at, end;
	uint16_t path; /* V8_NO_PATH: another node, which says nothing of what is around it */
	bool calls;    /* it is a call that may leave the code */
	bool checks;   /* jumps to such a call, which is done rarely */
	uint32_t node;
	int32_t bytecode;
};
struct v8_anchors {
	uint32_t nr, nr_paths;
	bool full; /* one had no room */
	struct v8_anchor row[V8_ANCHORS_MAX];
	struct v8_path path[V8_PATHS_MAX];
};
int v8_path_add(struct v8_anchors *a, uint16_t outer, uint16_t function, int32_t call);
void v8_anchor_add(struct v8_anchors *a, const struct v8_anchor *anchor);
/* Adds those that the instructions tell: places whose path each eager exit of the code has; by calls that are there. */
void v8_anchors_scan(struct v8_anchors *a, const uint8_t *code, uint32_t len, const struct v8_anchor *exits, uint32_t nr,
		     uint32_t exits_at);
/* Sorted; with an end before the next one. */
void v8_anchors_sort(struct v8_anchors *a);
/* What runs between two: a path with its bytecode. */
struct v8_between { uint16_t path; int32_t bytecode; };
struct v8_between v8_anchors_between(const struct v8_anchors *a, const struct v8_anchor *one, const struct v8_anchor *two);
/*
 * cookie[1]: key is a SharedFunctionInfo with the identity cookie[0]; or the begin of code of WebAssembly that has the
 * function cookie[2] of its module, with the identity cookie[0]; or the bytecodes of a function, whose hint is a JSFunction;
 * else a JSFunction.
 */
#define V8_BY_SHARED	1
#define V8_BY_WASM	2
#define V8_BY_BYTECODES 3
#define V8_AT(script) ((uint32_t)(script) + 1) /* the position of a place in the script */
/* v8_prologue.c: the numbers of a region, by its instructions; where the return address is at its begin. */
void v8_events(struct memory *m, struct runtime_code_made *made, uint32_t first);

/* v8_step.c */
int v8_step(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
	    struct runtime_step *ret);

#endif
