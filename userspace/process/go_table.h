/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table that Go's linker writes into every program for the runtime
 * (.gopclntab): functions, and for each address the depth of the stack, the
 * file, the line and the inlined call. It is loaded, so it is there in stripped
 * programs too, and names are as the program's own tracebacks have them.
 *
 * Called by unwind/ on a cache miss and by symbol/ in the process that makes an
 * index; one thread each. Everything in it is hostile.
 * Formats: those of Go 1.2 (read from Go 1.13 on), 1.16, 1.18 and 1.20, which
 * is Go 1.27's; little endian, 64 bits. Sources: Go's src/runtime/symtab.go,
 * symtabinl.go, and src/cmd/link/internal/ld/pcln.go of Go 1.15 to 1.27.
 * Lifetime: a file's table, or that it has none, is kept in its binary
 * (BINARY_SLOT_GO). Strings are copied to the caller.
 * Cost: to find the table in a file that is not Go's, a look at its section
 * names; in one of Go's whose table has no section of its own, a search of at
 * most GO_SEARCH_MAX bytes, once. A function is found by binary search; a value
 * at an address is decoded from the function's start on, GO_STEPS_MAX at most.
 * Failure: -ENOENT nothing there, -EBADMSG broken, -ENOMEM.
 */
#ifndef OTP_PROCESS_GO_TABLE_H
#define OTP_PROCESS_GO_TABLE_H

#include "process/binary.h"

#define GO_FUNCTIONS_MAX (4u << 20)
#define GO_STEPS_MAX	 (1u << 16)
#define GO_SEARCH_MAX	 (64u << 20)
#define GO_NAME_MAX	 4096 /* with its NUL; longer ones are cut */
#define GO_INLINED_MAX	 64   /* calls inlined into each other */

enum go_format { GO_1_2, GO_1_16, GO_1_18, GO_1_20, GO_FORMAT_NR };

/* Addresses are the file's own. */
struct go_table {
	struct binary *binary; /* borrowed: it holds the table */
	enum go_format format;
	uint8_t quantum;       /* code addresses are multiples of it */
	uint32_t count;	       /* functions */
	uint64_t at, end;      /* of the table; end is that of the segment */
	uint64_t text;	       /* function addresses count from here; 0: they are absolute */
	uint64_t data;	       /* inline trees count from here; 0: they are absolute, or unknown */
	uint64_t module;       /* the runtime's struct moduledata; 0: not found */
	uint64_t names, units, files, values, functions; /* parts of the table */
};

enum go_flags { GO_TOP_FRAME = 1, GO_WRITES_SP = 2 }; /* written since Go 1.17 */

struct go_function {
	uint64_t start, end;
	uint32_t name;		/* for go_name */
	uint32_t sp, file, line; /* tables of values by address, for go_value and go_steps; 0: none */
	uint32_t inlined;	/* likewise: the innermost inlined call, below 0: none */
	uint64_t tree;		/* of inlined calls; 0: none */
	uint32_t unit;
	uint32_t start_line;	/* 0: unknown */
	uint8_t id;		/* not 0: one that the runtime knows; numbers differ by version */
	uint8_t flags;		/* enum go_flags */
};

/* Borrowed until the binary ends; NULL: not a program of Go's, or one whose table cannot be read. */
const struct go_table *go_table_get(struct binary *b);

int go_function_at(const struct go_table *t, uint32_t number, struct go_function *ret);
int go_function_find(const struct go_table *t, uint64_t vaddr, struct go_function *ret);

/* A walk over one of a function's tables of values. Each step is a range of addresses with one value. */
struct go_steps {
	const struct go_table *table; /* borrowed */
	uint64_t pos;
	uint64_t start, end; /* of the step */
	int64_t value;
	uint64_t stop;
	uint32_t count;
	uint32_t window_len, window_pos;
	uint8_t window[64];
};

void go_steps_init(struct go_steps *s, const struct go_table *t, const struct go_function *f, uint32_t values);
/* 1: a step; 0: the end; -EBADMSG. */
int go_steps_next(struct go_steps *s);
/* The value at vaddr. */
int go_value(const struct go_table *t, const struct go_function *f, uint32_t values, uint64_t vaddr, int64_t *ret);

int go_name(const struct go_table *t, uint32_t name, char to[GO_NAME_MAX]);
/* Of a value of f->file. */
int go_file(const struct go_table *t, const struct go_function *f, int64_t number, char to[GO_NAME_MAX]);

struct go_inlined {
	uint32_t name;
	uint32_t start_line; /* 0: unknown */
	uint64_t call;	     /* an address that has the call's file and line, and inlined call around it */
};

/* A call of f->tree. -EBADMSG also where the tree does not look like one. */
int go_inlined_at(const struct go_table *t, const struct go_function *f, int64_t number, struct go_inlined *ret);

/* Finds out where the inline trees of the formats since Go 1.18 are; until then, f->tree is 0 in them. */
int go_table_find_trees(struct binary *b);

#endif
