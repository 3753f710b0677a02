/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that a program makes while it runs, from what the program
 * writes of it: /tmp/perf-PID.map (one line "START SIZE NAME" a function), or
 * a jitdump (jit-PID.dump). Both grow; both are what their program says, and
 * name that program's own code only.
 *
 * Called by the engine, one thread. Memory holds where functions and their
 * names lie (32 bytes each, JIT_FUNCTIONS_MAX in all); names, files and lines are read
 * from the file when an address is looked up, and kept for the addresses met
 * last. Of two functions at one address the later one counts.
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
#define JIT_READ_MAX	   (8u << 20) /* bytes looked at in one go */

enum jit_kind { JIT_PERF_MAP, JIT_DUMP };

struct jit_map;
/* Takes fd, also on failure. -EIO: no regular file; -EBADMSG: no jitdump; -ENOMEM. */
int jit_map_new(int fd, enum jit_kind kind, struct jit_map **ret);
struct jit_map *jit_map_free(struct jit_map *m); /* NULL */

/* Reads what was added since. True: there was something. */
bool jit_map_refresh(struct jit_map *m);
/* Function, file and line of an address (ret: owned by the caller). -ENOENT: none is known, -ENOMEM. */
int jit_map_find(struct jit_map *m, uint64_t pc, struct symbol_line *ret);
uint32_t jit_map_functions(const struct jit_map *m);

#endif
