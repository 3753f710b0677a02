/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perl: what its parts share. A thread's interpreter has a list of "stackinfos",
 * each an array of contexts (PERL_CONTEXT): subs, evals, loops and blocks that
 * were entered. A context holds the COP (the statement) from which it was entered,
 * so the line of a sub is found in the next inner one that entered a function; the
 * innermost function's is interpreter.curcop.
 *
 * A COP is identified by its address, its line and its sequence number, which
 * grows while Perl compiles; a sub by its CV, the first op of its body, and its GV
 * (or, for subs that were never looked up by name, the shared string of its name).
 *
 * Called by the parts of the Perl runtime and its tests.
 */
#ifndef OTP_RUNTIME_PERL_H
#define OTP_RUNTIME_PERL_H

#include "runtime/runtime.h"

/* Offsets that differ between versions, in bytes. */
struct perl_layout {
	uint32_t version; /* 36: Perl 5.36 */
	uint16_t curcop, curstackinfo, runops, main_start; /* of the interpreter, where there are threads */
	uint16_t context;    /* sizeof(PERL_CONTEXT) */
	uint16_t context_cv; /* blk_sub.cv, blk_format.cv */
	uint16_t stash_aux;  /* struct xpvhv_aux in the body of a hash; 0: behind its array */
	uint16_t nextstate;  /* OP_NEXTSTATE; OP_DBSTATE is the next one */
};

const struct perl_layout *perl_layout_of(uint32_t version); /* NULL: not known */

/* The same in every version, on 64 bits. */
enum perl_offsets {
	PERL_SI_CXSTACK = 8,
	PERL_SI_PREV = 16,
	PERL_SI_CXIX = 32, /* and si_cxmax */
	PERL_CX_TYPE = 0,
	PERL_CX_OLDCOP = 16,
	PERL_CX_RETOP = 48,
	PERL_OP_TYPE = 32, /* of PERL_OP_TYPE_MASK; then flags, and the line of a COP */
	PERL_COP_FILE = 48, /* char * with threads, else GV * of "_<FILE" */
	PERL_COP_HINTS = 56, /* and cop_seq */
	PERL_SV_BODY = 0,
	PERL_SV_FLAGS = 12,
	PERL_SV_U = 16, /* a GV's GP, a hash's array */
	PERL_CV_STASH = 32,
	PERL_CV_START = 40,
	PERL_CV_GV = 56,
	PERL_CV_FLAGS = 92, /* xcv_outside_seq is before it */
	PERL_GV_HEK = 32,
	PERL_GV_STASH = 40,
	PERL_GP_CV = 16,
	PERL_HV_MAX = 24,
	PERL_AUX_COUNT = 28,
	PERL_HEK_LEN = 4,
	PERL_HEK_TEXT = 8,
};

#define PERL_OP_TYPE_MASK 0x1ff
/* Of a COP's PERL_LINE: the compiler's own, by which BEGIN blocks are called. It has a line, but no file, and changes. */
#define PERL_IS_COMPILERS(line) (!((line) & PERL_OP_TYPE_MASK))

enum perl_sv_types { PERL_SVT_GV = 9, PERL_SVT_HV = 12, PERL_SVT_CV = 13, PERL_SVT_FORMAT = 14 };
#define PERL_SVF_OOK 0x02000000u /* a hash with a struct xpvhv_aux */
#define PERL_CVF_NAMED	 0x8000u /* the name is a shared string, not a GV */
#define PERL_CVF_LEXICAL 0x10000u /* my sub: without a package */

enum perl_params {
	PERL_VERSION,
	PERL_THREADS,	 /* the build has them */
	PERL_MAIN_START, /* address of PL_main_start */
	PERL_PARAMS,
};

/* Words of a walked frame, in the order of the plan. */
enum perl_word {
	PERL_TYPE,   /* blku_type, in the lowest byte */
	PERL_OLDCOP,
	PERL_RETOP,
	PERL_CV,
	PERL_LINE,   /* of the COP: type, flags, line */
	PERL_SEQ,    /* of the COP: hints, cop_seq */
	PERL_START,  /* of the CV */
	PERL_GV,
	PERL_FLAGS,  /* of the CV, above xcv_outside_seq */
	PERL_WORDS,
};

enum perl_subs { PERL_SUB_COP, PERL_SUB_HEAD, PERL_SUB_BODY, PERL_SUBS };

/* Types of contexts, the lowest four bits of blku_type. */
enum perl_context_type {
	PERL_CX_NULL = 0, /* the block of a sort */
	PERL_CX_BLOCK = 2,
	PERL_CX_SUB = 9,
	PERL_CX_FORMAT = 10,
	PERL_CX_EVAL = 11,
	PERL_CX_DEFER = 13,
};
/* Those of functions: in others, the words of cv and of what is behind it are counters, or were never written. */
#define PERL_KINDS (1u << PERL_CX_SUB | 1u << PERL_CX_FORMAT | 1u << PERL_CX_EVAL)

/* What a function is: the lowest bits of its key; above them is an address, or nothing. */
enum perl_kind {
	PERL_FUNCTION = 1, /* CV; the first two cookies: first op, GV or name */
	PERL_MAIN = 2,
	PERL_EVAL = 3, /* of a string */
	PERL_REQUIRE = 4,
};
#define PERL_KIND(key)	  ((key) & 7)
#define PERL_ADDRESS(key) ((key) & ~(uint64_t)7)

/*
 * The other cookies are the COP that a function is at: its address, in a sub with
 * PERL_COOKIE_NAMED; then line and sequence, where they came with the sample. The
 * innermost function's did not: its line is read with the function.
 */
enum perl_cookies { PERL_COOKIE_COP = 2, PERL_COOKIE_LINE, PERL_COOKIE_SEQ };
#define PERL_COOKIE_NAMED 1u

int perl_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
		char why[RUNTIME_WHY_MAX]);
int perl_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
		struct runtime_function *ret);
int perl_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret);

#endif
