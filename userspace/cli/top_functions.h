/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a tree of the hub's API: self and total of each, and the kinds
 * that they have.
 *
 * Called by 'otprof top', one thread. Names are borrowed from the answer, so they
 * are valid as long as the caller holds it. Cost: one pass over the nodes; a sample
 * costs the depth of its stack.
 */
#ifndef OTP_CLI_TOP_FUNCTIONS_H
#define OTP_CLI_TOP_FUNCTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct top_function {
	const char *name, *module, *kind; /* borrowed from the answer; kind: as people read it */
	uint64_t self, total; /* values of samples; a stack counts once for total */
	uint32_t on_path; /* while they are added up */
};

struct top_functions {
	struct top_function *list; /* owned */
	size_t count;
};

/* What is shown of them. */
struct top_choice {
	const char *kind; /* only functions of this kind; NULL: all */
	bool by_total; /* order; else by self */
	uint32_t most; /* rows */
};

/* -ENOMEM; -EBADMSG: the answer is no tree. *ret is to be passed to top_functions_done in any case. */
int top_functions_read(const json_t *tree, struct top_functions *ret);
void top_functions_done(struct top_functions *f);
/* The kind that follows in alphabetical order, of those that the functions have; NULL stands for all, and is after the last. */
const char *top_functions_next_kind(const struct top_functions *f, const char *kind);
/* Appends a head line, and a line for each function; all: the value that shares are of. Sorts the list. */
void top_functions_table(struct top_functions *f, const struct top_choice *choice, uint64_t all, struct buf *b);

#endif
