/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRuby: what attach, decode and frame share. Control frames lie in an array on
 * the VM stack of an execution context (EC), of which each native thread holds
 * the running one in thread-local storage (3.0 on) or reaches it through its
 * thread object (2.7). A frame leads to its iseq, or for C functions to its
 * method entry; blocks reach the method entry through their environments.
 *
 * Called within runtime/ruby/ only. Contexts: as runtime/runtime.h has them.
 * Bounds: those of struct memory, and of each loop, named where it is.
 */
#ifndef OTP_RUNTIME_RUBY_RUBY_H
#define OTP_RUNTIME_RUBY_RUBY_H

#include "runtime/runtime.h"

/* Numbers that differ between versions. Offsets in bytes. */
struct ruby_layout {
	uint16_t version; /* 301: 3.1 */
	uint8_t frame;	  /* sizeof(rb_control_frame_t) */
	uint8_t ec_thread;
	uint8_t thread_vm, thread_ec;
	uint8_t thread_native; /* to rb_native_thread; 0: thread_id is in the thread itself */
	uint8_t thread_id;     /* pthread_t */
	uint8_t vm_main_thread;
	uint8_t insns_info, parent_iseq, local_iseq;
	uint8_t insn;	       /* sizeof(struct iseq_insn_info_entry) */
	bool line_is_fixnum;   /* location.first_lineno */
	uint8_t text;	       /* of an embedded string */
	uint8_t embedded_mask; /* of an embedded array's length */
	uint8_t last_op;       /* tLAST_OP_ID */
	uint8_t singleton;     /* bit of RBasic.flags */
	uint8_t class_ext;     /* where a class's rb_classext_t, or the pointer to it, lies */
	uint8_t class_path, class_attached; /* in rb_classext_t; 0: instance variables of the class */
	uint16_t vm_shapes;    /* shape_list: instance variables of classes go by shapes; 0: an st_table */
};

/* The version from which on backtraces name the method's class, and rescue and ensure by their method. */
#define RUBY_LABELS_BY_OWNER 304

/* NULL: a version that is not known. version as in the row. */
const struct ruby_layout *ruby_layout_find(uint32_t version);

/* The same in all versions that are known: vm_core.h, iseq.h, method.h, imemo.h. */
enum ruby_offsets {
	RUBY_EC_STACK = 0,
	RUBY_EC_STACK_SIZE = 8, /* in words */
	RUBY_EC_FRAME = 16,
	RUBY_ISEQ_BODY = 16,
	RUBY_BODY_SIZE = 4,
	RUBY_BODY_ENCODED = 8,
	RUBY_BODY_PATH = 64,
	RUBY_BODY_LABEL = 80,
	RUBY_BODY_FIRST_LINE = 88,
	RUBY_ENTRY_CLASS = 8, /* defined_class; of an svar: cref_or_me */
	RUBY_ENTRY_DEFINITION = 16,
	RUBY_ENTRY_OWNER = 32,
	RUBY_DEFINITION_ISEQ = 8,
	RUBY_DEFINITION_ID = 32, /* original_id */
};

enum ruby_values {
	RUBY_T_MASK = 0x1f,
	RUBY_T_CLASS = 0x02,
	RUBY_T_MODULE = 0x03,
	RUBY_T_STRING = 0x05,
	RUBY_T_ARRAY = 0x07,
	RUBY_T_IMEMO = 0x1a,
	RUBY_NOEMBED = 1 << 13, /* of a string; of an array: embedded */
	RUBY_IMEMO_SHIFT = 12,
	RUBY_IMEMO_SVAR = 2,
	RUBY_IMEMO_ENTRY = 6,
	RUBY_IMEMO_ISEQ = 7,
};

enum ruby_frame_flags {
	RUBY_FRAME_MAGIC = 0x7fff0001,
	RUBY_FRAME_CFUNC = 0x55550001,
	RUBY_FRAME_RESCUE = 0x78880001,
	RUBY_FRAME_DUMMY = 0x79990001,
	RUBY_FRAME_FINISH = 0x20, /* vm_exec returns to native code behind it */
	RUBY_ENV_LOCAL = 0x02,
};

enum ruby_iseq_type {
	RUBY_ISEQ_METHOD = 1,
	RUBY_ISEQ_RESCUE = 4,
	RUBY_ISEQ_ENSURE = 5,
	RUBY_ISEQ_EVAL = 6,
};

/* runtime_attached.param */
enum ruby_param {
	RUBY_PARAM_VERSION,
	RUBY_PARAM_SYMBOLS,  /* address of the table of symbols; 0: not found, C functions have no names */
	RUBY_PARAM_CLASSPATH, RUBY_PARAM_ATTACHED, /* IDs of __classpath__ and __attached__, where they are needed */
	RUBY_PARAM_SHAPES,
};

/* Words of a walked frame, as the plan of attach keeps them. */
enum ruby_word {
	RUBY_WORD_PC,
	RUBY_WORD_ISEQ,
	RUBY_WORD_EP,
	RUBY_WORD_ENTRY, /* ep[-2]: method entry or cref, or an svar that holds it */
	RUBY_WORD_SPEC,	 /* ep[-1]: of a block the parent's ep */
	RUBY_WORD_FLAGS, /* ep[0] */
	RUBY_WORD_ENCODED, /* of the iseq's body */
	RUBY_WORD_LABEL,
	RUBY_WORD_ENTRY_FLAGS, /* of the method entry */
	RUBY_WORD_ENTRY_CLASS,
	RUBY_WORD_ENTRY_DEFINITION,
	RUBY_WORDS,
};

/* What a key is: cookie[RUBY_COOKIE_ENTRY] of an iseq is its method entry, or 0. */
enum ruby_cookie { RUBY_COOKIE_ENTRY, RUBY_COOKIE_CODE, RUBY_COOKIE_MORE };
#define RUBY_COOKIE_NATIVE 1 /* no method entry: the key itself is the one of a C function */

/* One cookie of two words. */
static inline uint64_t ruby_mix(uint64_t a, uint64_t b)
{
	return a ^ b * 0x9e3779b97f4a7c15ULL;
}

/* A process, for one question. */
struct ruby {
	const struct ruby_layout *layout;
	const struct runtime_attached *attached;
	struct memory *memory;
};

/* object.c */
static inline bool ruby_is_object(uint64_t value)
{
	return value > 0xff && value % 8 == 0;
}
int ruby_words(const struct ruby *r, uint64_t addr, uint64_t *to, size_t words);
bool ruby_is_imemo(uint64_t flags, uint32_t type);
int ruby_string(const struct ruby *r, uint64_t value, char *to, size_t size); /* cut; -EBADMSG: not a string */
int ruby_array_at(const struct ruby *r, uint64_t array, uint64_t index, uint64_t *ret);
int ruby_id_name(const struct ruby *r, uint64_t id, char *to, size_t size);
/* Whether there is a table of symbols at addr. */
bool ruby_is_symbols(const struct ruby *r, uint64_t addr);

/* class.c */
#define RUBY_IVARS_MAX 64
struct ruby_ivar { uint64_t id, value; };
/* Instance variables of a class, the first RUBY_IVARS_MAX; how many, or negative errno. */
int ruby_class_ivars(const struct ruby *r, uint64_t class, struct ruby_ivar *to);
/* "Class#" or "Class."; -ENOENT: a class without a name. */
int ruby_owner_name(const struct ruby *r, uint64_t owner, char *to, size_t size);

/* lines.c */
int ruby_lines(const struct ruby *r, const uint64_t *body, struct runtime_function *ret);

/* attach.c, decode.c, frame.c, root.c */
int ruby_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		char why[RUNTIME_WHY_MAX]);
void ruby_plan(const struct ruby_layout *l, struct otp_walk *ret); /* all but the way to the EC */
int ruby_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		struct runtime_function *ret);
int ruby_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret);

/* A living thread of the process. */
struct ruby_thread {
	uint64_t vm, thread, ec, pthread;
};
/* The main thread. -EAGAIN: there is none yet. */
int ruby_main_thread(const struct ruby *r, const struct runtime_file *file, struct ruby_thread *ret);
/* Fills in the plan's start and chain, which lead to the EC. -EAGAIN, -ENOTSUP. */
int ruby_root(const struct ruby *r, const struct runtime_file *file, const struct ruby_thread *t, struct otp_walk *ret);
/* Functions that run bytecode. -EAGAIN: none runs in this EC yet. */
int ruby_loops(const struct ruby *r, const struct runtime_file *file, uint64_t ec, struct runtime_attached *ret);

#endif
