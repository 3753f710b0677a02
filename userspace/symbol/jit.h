/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that a program makes while it runs, from a file that the
 * program writes: /tmp/perf-PID.map (one line "START SIZE NAME" a function), or
 * a jitdump (jit-PID.dump). Both grow. Both are hostile input, and name code of
 * their own program only.
 *
 * Called by the engine, one thread. Memory holds the places of functions and of
 * their names (32 bytes each, JIT_FUNCTIONS_MAX in all); names, files and lines
 * are read from the file when an address is looked up, and cached for the
 * latest addresses. Of two functions at one address the later one counts.
 * Formats: Linux, tools/perf/Documentation/jit-interface.txt and
 * jitdump-specification.txt.
 */
#ifndef OTP_SYMBOL_JIT_H
#define OTP_SYMBOL_JIT_H

#include <stdbool.h>
#include <stdint.h>

#include "symbol/symbol.h"

#define JIT_FUNCTIONS_MAX  131072 /* of one file */
#define JIT_FILE_MAX	   (256u << 20)
#define JIT_READ_MAX	   (8u << 20) /* bytes read by one jit_map_refresh */
#define JIT_FILE_NAME_MAX  512 /* bytes of a file's name, which is cut there */

enum jit_kind { JIT_PERF_MAP, JIT_DUMP, JIT_KIND_NR };

struct jit_map;
/* Takes fd over, also on failure. -EIO: not a regular file; -EBADMSG: not a jitdump; -ENOMEM. */
int jit_map_new(int fd, enum jit_kind kind, struct jit_map **ret);
struct jit_map *jit_map_free(struct jit_map *m); /* NULL */

/* Reads what was added to the file since. True: something was. */
bool jit_map_refresh(struct jit_map *m);
/* Function, file and line of an address (ret: owned by the caller). -ENOENT: no function there, -ENOMEM. */
int jit_map_find(struct jit_map *m, uint64_t pc, struct symbol_line *ret);
uint32_t jit_map_functions(const struct jit_map *m);

#endif
