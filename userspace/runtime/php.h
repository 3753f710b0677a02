/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PHP: what its parts share. A frame is a struct zend_execute_data; they form a
 * list from executor_globals.current_execute_data on. Each names its function (a
 * struct zend_op_array, or a shorter zend_internal_function) and the opline that
 * it runs, an element of the function's opcodes, whose line is read later.
 *
 * Functions do not live long: a closure's is freed with the closure, and a request
 * without opcache frees all at its end. What they point to lives longer: a
 * closure's copies share name, file, class and opcodes with the one that was
 * compiled. So these make key and cookies, and decode never reads a function. The
 * hashes of both names, as the sampler saw them, show whether memory holds others.
 *
 * Called by the parts of the PHP runtime and its tests.
 */
#ifndef OTP_RUNTIME_PHP_H
#define OTP_RUNTIME_PHP_H

#include "runtime/runtime.h"

#define PHP_OPCODES_MAX 65535u /* of one function: those behind have no line */
#define PHP_OP_BYTES	32u    /* sizeof(zend_op) */
#define PHP_OP_LINE	24u
#define PHP_OP_TYPES	29u /* of both operands */

/* Offsets that differ between versions, in bytes. */
struct php_layout {
	uint32_t api;	       /* ZEND_MODULE_API_NO, of every zend_module_entry */
	const char *version;   /* major and minor */
	uint16_t current;      /* executor_globals.current_execute_data */
	uint16_t before_throw; /* executor_globals.opline_before_exception */
	uint16_t last;	       /* zend_op_array.last: how many opcodes */
	uint16_t opcodes;
	uint16_t filename;     /* line_start and line_end follow it */
};

enum php_param {
	PHP_LAYOUT,
	PHP_GLOBALS,  /* executor_globals; 0: each thread has its own */
	PHP_REQUESTS, /* the process serves several, and between them all classes are freed that opcache does not keep */
	PHP_PARAMS,
};

/* Words of a walked frame, in the order of the plan. */
enum php_word {
	PHP_OPLINE,
	PHP_FUNC,
	PHP_CALL_INFO,	 /* and the number of arguments */
	PHP_TYPE,	 /* of the function, its argument flags, fn_flags */
	PHP_NAME,	 /* a zend_string, or 0 */
	PHP_SCOPE,	 /* a class, or 0 */
	PHP_LAST,	 /* and a neighbour of 4 bytes */
	PHP_OPCODES,
	PHP_FILENAME,	 /* a zend_string */
	PHP_LINES,	 /* line_start, line_end */
	PHP_FILE_HASH,	 /* of the file's name; 0 in all hashes: not known */
	PHP_NAME_HASH,
	PHP_WORDS,
};

enum php_function_type { PHP_INTERNAL = 1, PHP_USER = 2, PHP_EVAL = 4 };

/* What a frame's pointers lead to, in the order of the plan. */
enum php_sub { PHP_SUB_FUNCTION, PHP_SUB_LINES, PHP_SUB_FILE, PHP_SUB_NAME, PHP_SUBS };

/*
 * The key of a function: the address of its opcodes, or of a native one itself,
 * and in the low bits what it is.
 */
#define PHP_KEY_INCLUDED    1u /* a file's code, run by include, require or eval rather than as the main script */
#define PHP_KEY_EVAL	    2u
#define PHP_KEY_NATIVE	    4u
/*
 * A trait's method, or a closure: its file and lines do not tell its class. A
 * class of the next request may lie where this one's was, so it is named only
 * where classes stay.
 */
#define PHP_KEY_FLOATING    (1ULL << 56)
#define PHP_KEY_DELEGATE    7u /* the whole key: no function, see php_frame_without_function */
#define PHP_KEY_ADDRESS	    (OTP_WALK_ADDRESS & ~(uint64_t)7)
/* Pages that the process has not touched for long may be out of a sampler's reach: then the address of the function. */
#define PHP_FILENAME_MISSED 1u

enum php_cookie {
	PHP_COOKIE_NAME,     /* a zend_string, or 0 */
	PHP_COOKIE_CALLER = PHP_COOKIE_NAME, /* of eval's code: the caller's opline; then FILENAME is the caller's */
	PHP_COOKIE_SCOPE,    /* a class, or 0 */
	PHP_COOKIE_FILENAME, /* a zend_string, or see PHP_FILENAME_MISSED */
	PHP_COOKIE_PLACE,    /* php_place */
	PHP_COOKIE_CHECK,    /* php_check of both names */
};

const struct php_layout *php_layout_of_api(uint32_t api);   /* NULL: not known */
const struct php_layout *php_layout_at(uint64_t index);	    /* NULL: no such row */
uint64_t php_layout_index(const struct php_layout *l);

/* Of a variable, in the process. -ENOENT: the file has no such symbol. */
int php_address(const struct runtime_file *file, struct memory *m, const char *name, uint64_t *ret);
void php_plan(const struct php_layout *l, struct otp_walk *ret); /* all but its start */
/* The chain to executor_globals in the storage of the thread. */
int php_plan_threads(const struct runtime_file *file, struct memory *m, const struct php_layout *l, struct otp_walk *w,
		     char why[RUNTIME_WHY_MAX]);

/* word: PHP_WORDS of them */
enum php_function_type php_function_type(const uint64_t *word);
uint32_t php_function_last(const struct php_layout *l, const uint64_t *word);
uint64_t php_check(uint64_t file_hash, uint64_t name_hash);
/* The first line (32 bits), how many opcodes, how many lines more (16 bits each, at most). lines: first and last. */
uint64_t php_place(uint64_t lines, uint32_t opcodes);

/* A function as decode looks for it. */
struct php_function {
	const struct php_layout *layout;
	const struct runtime_frame *want;
	uint64_t globals; /* PHP_GLOBALS */
	bool requests;	  /* PHP_REQUESTS */
	uint64_t opcodes; /* or the native function */
	uint64_t filename;
	uint64_t place;
};
/* Sets ret's name and file. 0; -ESTALE: memory holds other names than those that the sampler saw. */
int php_names_read(struct memory *m, const struct php_function *f, struct runtime_function *ret);

int php_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
	       char why[RUNTIME_WHY_MAX]);
int php_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret);
int php_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
	       struct runtime_function *ret);

#endif
