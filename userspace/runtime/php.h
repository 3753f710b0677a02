/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PHP: what its parts share. A frame is a struct zend_execute_data; they form a
 * list from executor_globals.current_execute_data on. Each names its function (a
 * struct zend_op_array, or a shorter zend_internal_function) and the opline that
 * it runs, an element of the function's opcodes, whose line is read later.
 *
 * A request without opcache frees functions at its end, and the next one finds
 * other functions at the same addresses; a closure's is freed with the closure.
 * So a function's cookies hold, besides pointers, the hash of its file's name, its
 * lines, and those of its class.
 *
 * Called by the parts of the PHP runtime and its tests.
 */
#ifndef OTP_RUNTIME_PHP_H
#define OTP_RUNTIME_PHP_H

#include "runtime/runtime.h"

#define PHP_OPCODES_MAX 65536u /* of one function: those behind have no line */
#define PHP_OP_BYTES	32u    /* sizeof(zend_op) */
#define PHP_OP_LINE	24u

/* Offsets that differ between versions, in bytes. */
struct php_layout {
	uint32_t api;	       /* ZEND_MODULE_API_NO, of every zend_module_entry */
	const char *version;   /* major and minor */
	uint16_t current;      /* executor_globals.current_execute_data */
	uint16_t before_throw; /* executor_globals.opline_before_exception */
	uint16_t last;	       /* zend_op_array.last: how many opcodes */
	uint16_t opcodes;
	uint16_t filename;     /* line_start and line_end follow it */
	uint16_t class_lines;  /* zend_class_entry.info.user.line_start, line_end; of an internal class, a pointer */
};

enum php_param { PHP_LAYOUT, PHP_PARAMS };

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
	PHP_LINES,	 /* line_start, line_end */
	PHP_FILE_HASH,	 /* of the file's name */
	PHP_CLASS_LINES,
	PHP_WORDS,
};

enum php_function_type { PHP_INTERNAL = 1, PHP_USER = 2, PHP_EVAL = 4 };

/* What a frame's pointers lead to, in the order of the plan. */
enum php_sub { PHP_SUB_FUNCTION, PHP_SUB_LINES, PHP_SUB_FILE, PHP_SUB_CLASS, PHP_SUBS };

/*
 * The key of a function: its address, and in other bits what only the frame
 * knows. Pages that the process has not touched for long may be out of a
 * sampler's reach: what a sub should have copied from there is no part of the
 * cookies.
 */
#define PHP_KEY_INCLUDED     1u /* a file's code, run by include, require or eval rather than as the main script */
#define PHP_KEY_DELEGATE     2u /* no function: see php_frame_without_function */
#define PHP_KEY_MISSING(key) ((uint32_t)((key) >> 56)) /* bits of enum php_sub */
#define PHP_KEY_ADDRESS	     (OTP_WALK_ADDRESS & ~(uint64_t)7)

const struct php_layout *php_layout_of_api(uint32_t api);   /* NULL: not known */
const struct php_layout *php_layout_at(uint64_t index);	    /* NULL: no such row */
uint64_t php_layout_index(const struct php_layout *l);

void php_plan(const struct php_layout *l, struct otp_walk *ret); /* all but its start */
/* The chain to executor_globals in the storage of the thread. */
int php_plan_threads(const struct runtime_file *file, struct memory *m, const struct php_layout *l, struct otp_walk *w,
		     char why[RUNTIME_WHY_MAX]);

/* word: PHP_WORDS of them */
enum php_function_type php_function_type(const uint64_t *word);
uint32_t php_function_last(const struct php_layout *l, const uint64_t *word);
void php_function_cookies(const struct php_layout *l, const uint64_t *word, uint32_t missing,
			  uint64_t ret[RUNTIME_COOKIES]);

int php_attach(const struct runtime_file *file, struct memory *m, struct runtime_attached *ret,
	       char why[RUNTIME_WHY_MAX]);
int php_frame(const struct runtime_attached *a, const struct runtime_words *w, struct runtime_frame *ret);
int php_decode(const struct runtime_attached *a, struct memory *m, const struct runtime_frame *f,
	       struct runtime_function *ret);

#endif
