/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HotSpot, the virtual machine of OpenJDK: interpreted and compiled Java lies on
 * the native stack. Offsets come from the tables that libjvm exports for
 * debuggers (gHotSpotVMStructs, gHotSpotVMTypes; OpenJDK, vmStructs.cpp); what
 * these lack, the layout of interpreter frames and of compressed numbers, is by
 * version (frame_x86.hpp, unsigned5.hpp).
 *
 * Private to hotspot*.c. struct hotspot is what attach found; it passes from the
 * decoder to the engine as the params of struct runtime_attached.
 * Units: offsets in bytes, addresses as in the process.
 */
#ifndef OTP_RUNTIME_HOTSPOT_H
#define OTP_RUNTIME_HOTSPOT_H

#include "runtime/runtime.h"

/*
 * Fields of the tables: X(name, "type", "field", how)
 *   OFFSET: of the field; ADDRESS: of a static; either may be missing with MAYBE.
 */
#define HOTSPOT_FIELDS(X)                                                          \
	X(memory_low, "VirtualSpace", "_low", 0)                                   \
	X(memory_high, "VirtualSpace", "_high", 0)                                 \
	X(heap_memory, "CodeHeap", "_memory", 0)                                   \
	X(heap_segmap, "CodeHeap", "_segmap", 0)                                   \
	X(heap_shift, "CodeHeap", "_log2_segment_size", 0)                         \
	X(block_used, "HeapBlock::Header", "_used", 0)                             \
	X(array_data, "GrowableArray<int>", "_data", 0)                            \
	X(queue_buffer, "StubQueue", "_stub_buffer", 0)                            \
	X(queue_begin, "StubQueue", "_queue_begin", 0)                             \
	X(queue_end, "StubQueue", "_queue_end", 0)                                 \
	X(codelet_size, "InterpreterCodelet", "_size", 0)                          \
	X(codelet_text, "InterpreterCodelet", "_description", 0)                   \
	X(blob_name, "CodeBlob", "_name", 0)                                       \
	X(blob_size, "CodeBlob", "_size", 0)                                       \
	X(blob_complete, "CodeBlob", "_frame_complete_offset", 0)                  \
	X(blob_frame, "CodeBlob", "_frame_size", 0)                                \
	X(blob_code_begin, "CodeBlob", "_code_begin", HOTSPOT_MAYBE)               \
	X(blob_code_offset, "CodeBlob", "_code_offset", HOTSPOT_MAYBE)             \
	X(blob_relocation_size, "CodeBlob", "_relocation_size", HOTSPOT_MAYBE)     \
	X(blob_mutable, "CodeBlob", "_mutable_data", HOTSPOT_MAYBE)                \
	X(blob_data_offset, "CodeBlob", "_data_offset", HOTSPOT_MAYBE)             \
	X(compiled_method, "CompiledMethod", "_method", HOTSPOT_MAYBE)             \
	X(compiled_scopes, "CompiledMethod", "_scopes_data_begin", HOTSPOT_MAYBE)  \
	X(nmethod_method, "nmethod", "_method", HOTSPOT_MAYBE)                     \
	X(nmethod_scopes, "nmethod", "_scopes_data_offset", HOTSPOT_MAYBE)         \
	X(nmethod_pcs, "nmethod", "_scopes_pcs_offset", 0)                         \
	X(nmethod_dependencies, "nmethod", "_dependencies_offset", HOTSPOT_MAYBE)  \
	X(nmethod_metadata, "nmethod", "_metadata_offset", HOTSPOT_MAYBE)          \
	X(nmethod_immutable, "nmethod", "_immutable_data", HOTSPOT_MAYBE)          \
	X(nmethod_id, "nmethod", "_compile_id", 0)                                 \
	X(nmethod_bci, "nmethod", "_entry_bci", 0)                                 \
	X(nmethod_original, "nmethod", "_orig_pc_offset", HOTSPOT_MAYBE)           \
	X(nmethod_deopt, "nmethod", "_deopt_handler_offset", HOTSPOT_MAYBE)        \
	X(nmethod_deopt_8, "nmethod", "_deoptimize_offset", HOTSPOT_MAYBE)         \
	X(nmethod_deopt_26, "nmethod", "_deopt_handler_entry_offset", HOTSPOT_MAYBE) \
	X(compiled_deopt, "CompiledMethod", "_deopt_handler_begin", HOTSPOT_MAYBE) \
	X(method_const, "Method", "_constMethod", 0)                               \
	X(const_constants, "ConstMethod", "_constants", 0)                         \
	X(const_code_size, "ConstMethod", "_code_size", 0)                         \
	X(const_name, "ConstMethod", "_name_index", 0)                             \
	X(const_signature, "ConstMethod", "_signature_index", 0)                   \
	X(const_flags, "ConstMethod", "_flags", HOTSPOT_MAYBE)                     \
	X(const_flags_21, "ConstMethod", "_flags._flags", HOTSPOT_MAYBE)           \
	X(pool_cache, "ConstantPool", "_cache", 0)                                 \
	X(pool_holder, "ConstantPool", "_pool_holder", 0)                          \
	X(pool_length, "ConstantPool", "_length", 0)                               \
	X(pool_file, "ConstantPool", "_source_file_name_index", HOTSPOT_MAYBE)     \
	X(klass_file, "InstanceKlass", "_source_file_name_index", HOTSPOT_MAYBE)   \
	X(klass_name, "Klass", "_name", 0)                                         \
	X(symbol_length, "Symbol", "_length", 0)                                   \
	X(symbol_body, "Symbol", "_body[0]", 0)                                    \
	X(heap_collections, "CollectedHeap", "_total_collections", HOTSPOT_MAYBE)  \
	X(thread_anchor, "JavaThread", "_anchor", HOTSPOT_MAYBE)                   \
	X(anchor_sp, "JavaFrameAnchor", "_last_Java_sp", HOTSPOT_MAYBE)

/* Sizes of types: X(name, "type") */
#define HOTSPOT_SIZES(X)                       \
	X(block_bytes, "HeapBlock")            \
	X(const_bytes, "ConstMethod")          \
	X(pool_bytes, "ConstantPool")

#define HOTSPOT_GC_GIVES_UP_CODE 20 /* the version that has no sweeper any more */
#define HOTSPOT_SHORT_FIELDS 23 /* the version whose blobs have fields of 16 bits */

#define HOTSPOT_OPENJ9 "J9_CreateJavaVM" /* a function of another virtual machine */

#define HOTSPOT_MAYBE 1
#define HOTSPOT_NONE  UINT16_MAX /* of an offset */

struct hotspot {
	uint64_t low, high; /* of all code */
	uint64_t heaps;	    /* the array of code heaps; 8: the only heap */
	uint64_t interpreter; /* its queue of codelets */
	uint64_t call_return; /* where Java that native code called returns to */
	uint64_t stubs; /* the list of hand-written code's names; 0: not found */
	uint64_t perf, collected; /* the memory of its counters, and of its collector; 0: none */
	uint64_t epoch_at;  /* a counter that rises before a method's memory is another's; 0: none is known */
	uint64_t epoch;	    /* when it was attached */
	uint64_t code_epoch_at; /* a counter that rises before compiled code is given up; 0: none is known */
	uint64_t code_epoch;	/* when it was attached */
	uint64_t redefined_at; /* a counter that rises before a class is redefined; 0: none is known */
	uint64_t barrier; /* where frames of virtual threads return whose callers are in the heap; 0: these are not known */
	uint16_t version;   /* 8, 11, ... */
	uint16_t epoch_bytes; /* of the counter: 4 or 8 */
	uint16_t chunk_pc, chunk_bottom, chunk_owner; /* fields of a StackChunk */
	uint16_t code_may_go; /* not 0: within an epoch of code too, but for what a sample of it has met */
#define X(name, type, field, how) uint16_t name;
	HOTSPOT_FIELDS(X)
#undef X
#define X(name, type) uint16_t name;
	HOTSPOT_SIZES(X)
#undef X
};
_Static_assert(sizeof(struct hotspot) <= RUNTIME_PARAMS * sizeof(uint64_t), "it passes as params");

/* What a region is: how its frames are left. */
enum hotspot_kind {
	HOTSPOT_COMPILED,    /* a frame of fixed size: nmethods and stubs that call the virtual machine */
	HOTSPOT_INTERPRETER, /* a codelet of the interpreter */
	HOTSPOT_ENTRY,	     /* one that begins a method: its frame may not be there yet */
	HOTSPOT_ADAPTER,     /* between compiled and interpreted callers and callees: on the way in */
	HOTSPOT_STUB,	     /* hand-written: a frame pointer, or no frame at all */
	HOTSPOT_UPCALL,      /* as STUB; native code calls it, and it calls Java */
	HOTSPOT_SUBTYPE,     /* as STUB; the caller has pushed two words for it (c1_LIRAssembler_x86.cpp, slow_subtype_check) */
	HOTSPOT_BARRIER,     /* as STUB: to which a virtual thread returns while its callers are in the heap */
	HOTSPOT_YIELD,	     /* as COMPILED: what a virtual thread waits in; its callers are being put into the heap */
};

/* Words of a region: HOTSPOT_COMPILED. */
enum hotspot_word {
	HOTSPOT_FRAME,	/* bytes of the frame, the return address included */
	HOTSPOT_PUSHED, /* offset from which on the frame pointer is pushed, before the frame is made; 0: never */
	HOTSPOT_MADE,	/* offset from which on the frame is made */
	HOTSPOT_SAVED,	/* offset from which on it holds the caller's frame pointer */
	/* Half a word each: the offset of the handler to which a frame returns that is to be given up, 0: none is known; how far
	 * above the stack pointer it keeps where it returned to before. */
	HOTSPOT_GIVEN_UP,
	HOTSPOT_RANGES, /* hotspot_ranges.c's; the ranges themselves are in more */
};

/*
 * hotspot_ranges.c: where the stack pointer is elsewhere than beneath the frame. From an offset up to another one so many
 * words lie beneath it (hotspot_pushed.c). 0: the frame is taken down, from the pop of the frame pointer at the first one
 * to behind the return.
 */
struct hotspot_range {
	uint32_t from, end, words;
	bool arguments; /* what is called there takes the last HOTSPOT_ARGUMENTS away, as the callee's kind tells */
	bool left;	/* of 0 words: the frame pointer is the caller's already */
};
#define HOTSPOT_ARGUMENTS     2u  /* of HOTSPOT_SUBTYPE, which alone has any on the stack */
#define HOTSPOT_RANGE_WORDS   (1u << 16) /* more are not known: */
#define HOTSPOT_RANGE_UNKNOWN (HOTSPOT_RANGE_WORDS + 1)
#define HOTSPOT_RANGE_COPIED  (HOTSPOT_RANGE_WORDS + 2) /* rcx is what the stack pointer is where there are none */
#define HOTSPOT_RANGE_KEPT    (HOTSPOT_RANGE_WORDS + 3) /* the word at the stack pointer is what it is where there are none */

/*
 * A region has room for half of RUNTIME_CODE_MORE, of 16 KiB each. From the first one on for which there is none, they are
 * untold.
 */
void hotspot_range_add(struct runtime_code_made *made, const struct hotspot_range *r);
/* Not all ranges from the offset on are told. exact: but return addresses lie in none of them. */
void hotspot_range_untold(struct runtime_code *c, uint32_t from, bool exact);
/* Whether hotspot_range_untold was never called with exact. */
bool hotspot_ranges_are_told(const struct runtime_code *c);
/*
 * The range of an offset, which is a thread's own pc (exact) or in the call before a return address. 1; 0: in none, the frame
 * is all that there is; -ENOENT: not known.
 */
int hotspot_range_at(const struct runtime_code *c, const uint32_t *more, uint64_t offset, bool exact,
		     struct hotspot_range *ret);

/*
 * hotspot_depth.c: words of a region that is hand-written code, HOTSPOT_STUB, whose first byte is where it is entered.
 * read leaves them 0 where the code cannot be read. at: -ENOENT, where nothing is known.
 */
struct hotspot_depth {
	uint32_t depth; /* bytes up to the caller's stack pointer */
	uint32_t saved; /* below that, the caller's frame pointer; 0: in its register */
	bool by_fp;	/* only the frame pointer leads there */
	bool by_kept;	/* likewise, but it lies at saved, above the stack pointer */
};
void hotspot_depth_read(struct memory *m, struct runtime_code *c);
int hotspot_depth_at(const struct runtime_code *c, uint64_t pc, struct hotspot_depth *ret);

/* Slots of an interpreted frame, from the frame pointer. */
struct hotspot_slots {
	int16_t sender_sp, method, cache, bcp;
};
const struct hotspot_slots *hotspot_slots(uint16_t version);

static inline const struct hotspot *hotspot_of(const struct runtime_attached *a)
{
	return (const void *)a->param;
}

/* hotspot_attach.c */
int hotspot_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		   char why[RUNTIME_WHY_MAX]);

/*
 * hotspot_epoch.c: the counters by which a sample and what is read later are compared. attach finds them, with the plan that
 * copies them into each sample. An epoch is never 0 but where it is not known.
 */
void hotspot_epoch_attach(const struct runtime_file *file, struct memory *m, struct hotspot *h, struct otp_walk *walk);
/* 0; -EFAULT. The first one is of methods alone. */
int hotspot_epoch_now(const struct hotspot *h, struct memory *m, uint64_t *ret);
int hotspot_epochs_now(const struct hotspot *h, struct memory *m, uint64_t *ret_methods, uint64_t *ret_code);
/* Of a sample, by the root's words of its walk; none: as when it was attached. */
uint64_t hotspot_epoch(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root);
/* Likewise, for compiled code: regions. */
uint64_t hotspot_code_epoch(const struct runtime_attached *a, const uint64_t *root, uint32_t nr_root);

/*
 * hotspot_frozen.c: frames of virtual threads in the heap. attach finds the plan that copies them, and of h what else is to
 * be known; NONE: they stay unknown. -EAGAIN: the virtual machine has not got that far.
 */
#define HOTSPOT_FROZEN_MAX (1u << 20) /* words: what is saved of less is a distance */
int hotspot_frozen_attach(const struct runtime_file *file, struct memory *m, struct hotspot *h, struct otp_walk *ret);
int hotspot_frozen(const struct runtime_attached *a, const struct runtime_copied *w, struct runtime_frozen *ret);

/* hotspot_number.c: numbers as HotSpot compresses them. */
struct hotspot_numbers {
	struct memory *memory;
	uint64_t at;
	uint16_t version;
	uint32_t nr, used; /* bytes read ahead */
	uint64_t from;	   /* where they are from */
	uint8_t ahead[64];
};
void hotspot_numbers_at(struct hotspot_numbers *n, struct memory *m, uint16_t version, uint64_t at);
int hotspot_byte(struct hotspot_numbers *n, uint8_t *ret); /* 0; -EFAULT, -E2BIG */
int hotspot_unsigned(struct hotspot_numbers *n, uint32_t *ret);
int hotspot_signed(struct hotspot_numbers *n, int32_t *ret);

/* hotspot_method.c: a method, while it is read. */
struct hotspot_method {
	uint64_t address, constant, pool, cache;
	uint64_t code; /* of bytecodes */
	uint16_t code_size, name, signature;
	bool has_lines;
};
/* 0; -EBADMSG: it is not a method; others as memory_read. */
int hotspot_method_read(const struct hotspot *h, struct memory *m, uint64_t address, struct hotspot_method *ret);
bool hotspot_method_is(const struct hotspot *h, struct memory *m, const struct hotspot_method *method, const char *class,
		       const char *name);
/* The position of a bytecode in it; a method has at most 64 KiB of them. */
uint32_t hotspot_position(const struct hotspot_method *method, int32_t bci);
int hotspot_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		   struct runtime_function *ret);

/* hotspot_bytecode.c: a bytecode of the method's innermost loop; false: there is none, or they lie beside each other. */
bool hotspot_loop(const struct hotspot *h, struct memory *m, const struct hotspot_method *method, int32_t *ret_bci);

/* hotspot_code.c: which region lies at an address. */
int hotspot_code(const struct runtime_attached *a, struct memory *m, uint64_t pc, struct runtime_code_made *ret);

/* hotspot_stub.c: narrows a blob of hand-written code to the stub at pc in it, with its name; whether there is one. */
bool hotspot_stub(const struct hotspot *h, struct memory *m, uint64_t pc, struct runtime_code *c);

/*
 * hotspot_nmethod.c: a compiled method at blob, whose frame of so many bytes is complete from an offset on. frame 0: it has
 * none, as native methods that go on to another method.
 */
int hotspot_nmethod(const struct hotspot *h, struct memory *m, uint64_t blob, bool native, uint64_t complete,
		    uint64_t frame, struct runtime_code_made *ret);

/* hotspot_prologue.c: fills the words of a HOTSPOT_COMPILED region by its instructions. */
void hotspot_frame_words(struct memory *m, uint64_t code, uint64_t complete, uint64_t frame, struct runtime_code_made *ret);
/*
 * Likewise, of a blob whose frame is said to be never safe (codeBlob.hpp, SingletonBlob): its callees' callers are known, and
 * a thread's own pc where the frame is made at once, until it is taken down.
 */
void hotspot_frame_words_of_callers(struct memory *m, uint64_t code, uint64_t frame, struct runtime_code_made *ret);

/* hotspot_step.c */
int hotspot_step(const struct runtime_attached *a, const struct runtime_code *c, const struct runtime_place *at,
		 struct runtime_step *ret);
/*
 * Compiled code leaves the register to an interpreted frame further out, whose record would be found in place of its own
 * (c1_FrameMap_x86.cpp does not allocate it), or has a value in it.
 */
bool hotspot_lacks_fp(const struct runtime_attached *a, uint64_t pc);

#endif
