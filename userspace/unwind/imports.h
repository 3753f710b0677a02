/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether one file calls a function of another one by its name: the name is
 * among the undefined symbols of the first, and defined in the second at the
 * function's address.
 *
 * Called by search.c, one thread; answers are cached by both files and the
 * address. Bounds: IMPORTS_SYMBOLS of either table; a name that lies behind them
 * is not found. Cost: a cached answer is a load; else the two tables are read, and
 * *left is lowered by 1 for a name and for 16 symbols whose names do not matter:
 * where nothing is left, the answer is no, and not cached. A table of
 * IMPORTS_SYMBOLS takes half of a stack's work (cursor.h), of which all stacks
 * together have a share (search_budget.h).
 */
#ifndef OTP_UNWIND_IMPORTS_H
#define OTP_UNWIND_IMPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "process/binary.h"

#define IMPORTS_CACHED	256
#define IMPORTS_SYMBOLS 524288 /* libtensorflow_cc has 446,000 */

struct imports {
	struct {
		uint64_t function;
		uint32_t from, of; /* ids of the files; from 0: any, of 0: the entry is unused */
		bool answer;
	} cached[IMPORTS_CACHED];
};

/* Whether the file defines the function by a name that others may use, and it itself by its linkage table. */
bool imports_is_exported(struct imports *m, struct binary *of, uint64_t function, uint32_t *left);
bool imports_function(struct imports *m, struct binary *from, struct binary *of, uint64_t function, uint32_t *left);

#endif
