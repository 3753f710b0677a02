/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CoreCLR, the virtual machine of .NET: compiled methods lie on the native
 * stack, those that the JIT compiler made in memory, those that were compiled
 * before (ReadyToRun) in the assemblies' files. Both have unwind information in
 * the form of Windows, which is exact at each instruction.
 * The way to it begins at the table that libcoreclr exports for debuggers
 * (g_dacTable; dotnet/runtime, src/coreclr/inc/dacvars.h). Offsets are by version
 * (struct dotnet_row).
 *
 * Private to dotnet*.c. struct dotnet is what attach found; it passes from the
 * decoder to the engine as the params of struct runtime_attached.
 * Units: offsets in bytes, addresses as in the process.
 */
#ifndef OTP_RUNTIME_DOTNET_H
#define OTP_RUNTIME_DOTNET_H

#include "runtime/runtime.h"

struct dotnet {
	uint64_t code_map; /* the top level of ExecutionManager's map of code */
	uint64_t helpers;  /* the table of those that compiled code calls */
	uint64_t row;	   /* index in dotnet_rows */
	uint64_t hijack, hijack_form; /* dotnet_hijack.c's; 0: it was not found */
};
_Static_assert(sizeof(struct dotnet) <= RUNTIME_PARAMS * sizeof(uint64_t), "it passes as params");

struct dotnet_row {
	uint16_t major;
	uint16_t module_base;	 /* of a Module: its image; 0: by its PEAssembly */
	uint16_t module_file;	 /* of a Module: its PEAssembly */
	uint16_t module_name;	 /* of a Module: its assembly's name */
	uint16_t module_r2r;	 /* of a Module: its ReadyToRunInfo */
	uint16_t r2r_methods;	 /* of a ReadyToRunInfo: the buckets of methods by entry point */
	uint16_t dynamic_name;	 /* of a DynamicMethodDesc */
	uint16_t patchpoint_locals; /* of a PatchpointInfo: their number, 24 bytes before its end but for them */
	bool bounds_packed;	 /* places of bytecode, as bits */
	bool module_may_be_moved; /* a generic type's Module may lie behind its MethodTable */
};
extern const struct dotnet_row dotnet_rows[];

/* What a region is: how its frames are left. */
enum dotnet_kind {
	DOTNET_METHOD, /* by unwind information */
	DOTNET_STUB,   /* no frame: it jumps on; what it has pushed above its caller's return address has the word 0 */
	DOTNET_HIJACKED, /* the byte before the stub that stops threads: what returns to that has lost its return address */
	DOTNET_HIJACK, /* that stub, by the words of a method; its bytes up to the worker's return are a prologue */
};

/*
 * Words of a DOTNET_METHOD region: the head; the codes by which a frame is left, two a word, the first in the low half; then
 * the places where frames are taken down.
 */
enum dotnet_word {
	DOTNET_HEAD, /* offset of the region in its function << 32 | bytes of the prologue << 8 | codes */
	DOTNET_CODES,
	DOTNET_EPILOGUES = DOTNET_CODES + 6, /* offset of the pops << 32 | a bit for each of 2 bytes << 8 | which is of rbp, from 1 << 4 | their number */
};
#define DOTNET_CODES_MAX     12
#define DOTNET_EPILOGUES_MAX (RUNTIME_CODE_WORDS - DOTNET_EPILOGUES)

/* A code: value in units of 8 bytes << 12 | what << 8 | offset behind the prologue's instruction that did it. */
enum dotnet_unwind {
	DOTNET_PUSHED,	   /* a register */
	DOTNET_PUSHED_RBP,
	DOTNET_ALLOCATED,  /* value */
	DOTNET_FRAMED,	   /* rbp is value above the stack pointer */
	DOTNET_SAVED_RBP,  /* at value above the frame's end */
};
#define DOTNET_VALUE_MAX ((1u << 20) - 1)

static inline const struct dotnet *dotnet_of(const struct runtime_attached *a)
{
	return (const void *)a->param;
}

static inline const struct dotnet_row *dotnet_row(const struct dotnet *d)
{
	return &dotnet_rows[d->row];
}

/* dotnet_attach.c */
int dotnet_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		  char why[RUNTIME_WHY_MAX]);

/* dotnet_map.c: which range of code lies around an address, and which code begins before it. */
struct dotnet_range {
	uint64_t start, end;
	uint64_t section; /* the runtime's RangeSection */
	uint32_t flags;
	uint64_t module; /* of code that was compiled before; 0: none */
	uint64_t heap;	 /* of code that the JIT compiler made */
	uint64_t stubs;	 /* a list of stubs */
};
#define DOTNET_BUCKET 32u /* bytes of a heap that a nibble of its map is about (nibblemapmacros.h) */
#define DOTNET_RANGE_COLLECTED 1 /* of dynamic methods, and of assemblies that may be unloaded */
#define DOTNET_RANGE_HEAP  2
#define DOTNET_RANGE_STUBS 4
int dotnet_range_find(const struct dotnet *d, struct memory *m, uint64_t pc, struct dotnet_range *ret);
int dotnet_heap_find(struct memory *m, const struct dotnet_range *range, uint64_t pc, uint64_t *ret_start);
/* Where the next code begins that is in the heap, or the heap ends, if that is near; else a place that is. */
int dotnet_heap_next(struct memory *m, const struct dotnet_range *range, uint64_t start, uint64_t *ret);

/*
 * dotnet_stub.c: a stub around pc, of those from start to end; in a heap of methods, of a block from start to where other code
 * lies now; of a list; of none that the runtime knows the range of.
 */
#define DOTNET_NO_STUB 0
int dotnet_stub(struct memory *m, uint32_t kind, uint64_t start, uint64_t end, uint64_t pc, struct runtime_code *c);
int dotnet_stub_among(struct memory *m, uint32_t kind, uint64_t start, uint64_t end, uint64_t pc, struct runtime_code *c);
int dotnet_stubs(struct memory *m, const struct dotnet_range *range, uint64_t pc, struct runtime_code *c);
int dotnet_stub_alone(const struct dotnet *d, struct memory *m, uint64_t pc, struct runtime_code *c);

/* dotnet_thunk.c: the thunk around pc, up to its jump. -ENOENT: there is none, or pc is at none of its instructions. */
int dotnet_thunk(struct memory *m, uint64_t pc, uint64_t *ret_start, uint64_t *ret_end);

/*
 * dotnet_hijack.c: the stub that stops threads. Where in code it begins; the code that attach finds by it in the runtime's
 * file; the region around pc, -ENOENT: pc is elsewhere.
 */
bool dotnet_hijack_in(const uint8_t *code, size_t len, size_t *ret_at, uint64_t *ret_form);
void dotnet_hijack_attach(const struct runtime_file *file, struct runtime_attached *ret);
int dotnet_hijack(const struct dotnet *d, uint64_t pc, struct runtime_code *c);

/* dotnet_code.c */
int dotnet_code(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret);

/* A function, or a part of one with a frame of its own; offsets from base. */
struct dotnet_function { uint32_t begin, end, unwind; };

/* A method's code. */
struct dotnet_compiled {
	uint64_t method; /* its MethodDesc; 0: it is not known */
	uint64_t code;	 /* where it begins; its handlers of exceptions lie behind it */
	uint64_t debug;	 /* its debug information; 0: none */
	bool jitted;
};

/* dotnet_r2r.c: the function around pc, and its method. -ENOENT: there is none; it lies between *ret->begin and end. */
int dotnet_r2r_find(const struct dotnet *d, struct memory *m, const struct dotnet_range *range, uint64_t pc,
		    struct dotnet_function *ret, struct dotnet_compiled *ret_compiled);
/* dotnet_r2r_debug.c: the debug information of a function, by the image's ReadyToRunCoreInfo. 0: none. */
uint64_t dotnet_r2r_debug(struct memory *m, uint64_t core, uint64_t base, uint32_t index);

/*
 * dotnet_bounds.c: adds rows to a region that has one, whose node is unknown: positions are places in the function's
 * bytecode.
 */
#define DOTNET_NO_POSITION UINT32_MAX
void dotnet_bounds(const struct dotnet *d, struct memory *m, const struct dotnet_compiled *c, uint32_t function,
		   uint32_t unknown, struct runtime_code_made *ret);

/* dotnet_unwind.c: the region's bounds within the function, around pc, and its words. */
int dotnet_unwind(struct memory *m, uint64_t base, const struct dotnet_function *f, uint64_t pc, struct runtime_code *ret);

/* dotnet_method.c: a MethodDesc, while it is read. */
#define DOTNET_NAME_MAX 480
struct dotnet_method {
	uint64_t address, table; /* its MethodTable */
	uint32_t token;		 /* the row of the module's table of methods */
	uint32_t class;		 /* of MethodDescs */
	uint64_t identity;	 /* differs with another one in its place */
	char name[DOTNET_NAME_MAX]; /* of one that has no row; "": of one that has */
};
#define DOTNET_CLASS_DYNAMIC 7
int dotnet_method_read(const struct dotnet *d, struct memory *m, uint64_t address, struct dotnet_method *ret);
int dotnet_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		  struct runtime_function *ret);

/* dotnet_pe.c: an assembly's image in memory. */
struct dotnet_pe {
	struct memory *memory;
	uint64_t base, sections, directories, metadata;
	uint32_t nr_sections;
	bool raw; /* as the file is */
};
struct dotnet_directory { uint32_t rva, size; };
int dotnet_pe_open(struct memory *m, uint64_t base, struct dotnet_pe *ret);
int dotnet_pe_directory(const struct dotnet_pe *pe, uint32_t i, struct dotnet_directory *ret);
int dotnet_pe_address(const struct dotnet_pe *pe, uint32_t rva, uint64_t *ret);

/* dotnet_bytes.c: bytes of a blob, and numbers in it. -EBADMSG: it ends. */
struct dotnet_bytes { const uint8_t *at, *end; };
int dotnet_byte(struct dotnet_bytes *b, uint8_t *ret);
int dotnet_number(struct dotnet_bytes *b, uint32_t *ret);
int dotnet_signed(struct dotnet_bytes *b, int32_t *ret);

/*
 * dotnet_lines.c: file and lines of a method, by the portable PDB in its assembly, or beside it. -ENOENT: it has none,
 * or knows none. Sets line_file of ret where it looked for a file.
 */
int dotnet_lines(const struct dotnet_pe *pe, uint32_t row, struct runtime_function *ret);

/* dotnet_pdb.c: a portable PDB, hostile; borrows the bytes. file, lines and start_line of ret are set, all or none. */
int dotnet_pdb_lines(const uint8_t *bytes, size_t len, uint32_t row, struct runtime_function *ret);
/* Whether it is the PDB of this id, by which an assembly names its own. -ESTALE: of another build; -EBADMSG: no PDB. */
#define DOTNET_PDB_ID 20 /* a GUID and a stamp */
int dotnet_pdb_check(const uint8_t *bytes, size_t len, const uint8_t id[DOTNET_PDB_ID]);

/* dotnet_metadata.c: an assembly's tables, as its image in memory has them (ECMA-335, II.24). */
#define DOTNET_TABLES 0x2d
struct dotnet_metadata {
	struct memory *memory;
	uint64_t strings, blobs;
	uint32_t strings_size, blobs_size;
	uint32_t rows[DOTNET_TABLES];
	uint64_t table[DOTNET_TABLES];
	uint16_t row_size[DOTNET_TABLES];
	bool wide_strings, wide_guids, wide_blobs;
};
enum dotnet_table {
	DOTNET_TYPE_REF = 1, DOTNET_TYPE_DEF = 2, DOTNET_METHOD_DEF = 6, DOTNET_TYPE_SPEC = 0x1b, DOTNET_NESTED = 0x29,
	DOTNET_GENERIC = 0x2a,
};
int dotnet_metadata_open(const struct dotnet_pe *pe, struct dotnet_metadata *ret);
/* A row counts from 1, a column from 0. */
int dotnet_cell(const struct dotnet_metadata *d, uint32_t table, uint32_t row, uint32_t column, uint32_t *ret);
int dotnet_string(const struct dotnet_metadata *d, uint32_t at, char *to, size_t size);
/* At most size bytes of a blob; how many there are. */
int dotnet_blob(const struct dotnet_metadata *d, uint32_t at, uint8_t *to, uint32_t size, uint32_t *ret_len);

/* dotnet_names.c */
struct dotnet_text { char *at; size_t left; }; /* the NUL has room */
void dotnet_text(struct dotnet_text *t, const char *what);
int dotnet_method_name(const struct dotnet_metadata *d, uint32_t row, struct dotnet_text *to);

/* dotnet_signature.c: parameters of a method of the type, by its signature, as "(int, string)". */
int dotnet_signature(const struct dotnet_metadata *d, uint32_t type, uint32_t method, uint32_t blob, struct dotnet_text *to);
/* The name of the n-th generic parameter of a type or method: owner is its row << 1 | whether it is a method. */
int dotnet_generic_name(const struct dotnet_metadata *d, uint32_t owner, uint32_t n, char *to, size_t size);

/* dotnet_step.c */
int dotnet_step(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
		struct runtime_step *ret);

#endif
