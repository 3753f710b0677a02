/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of Go's runtime share: go.c finds goroutines and their stacks,
 * go_context.c who created them and their labels. Only these include it.
 */
#ifndef OTP_RUNTIME_GO_H
#define OTP_RUNTIME_GO_H

#include "process/go_table.h"
#include "runtime/runtime.h"

enum go_labels { GO_LABELS_NONE, GO_LABELS_MAP, GO_LABELS_LIST };

/* param */
enum {
	GO_SWITCH, GO_SWITCH_END, /* systemstack_switch, which stands for the function that left the stack */
	GO_EXIT, GO_EXIT_END,	  /* goexit, to which a goroutine's first function returns */
	GO_LABELS,		  /* enum go_labels */
	GO_BEGINS,		  /* of each function that creates the main goroutine, its start and end */
	GO_BEGINS_END = GO_BEGINS + 6,
};

struct go_attaching {
	const struct runtime_file *file;
	struct memory *m;
	const struct go_table *table;
	struct go_function systemstack, systemstack_switch, nanotime, goexit, created, set_labels;
	struct go_function begins[(GO_BEGINS_END - GO_BEGINS) / 2]; /* rt0_go, newproc, and the wrapper by which that is called */
	uint32_t nr_begins;
	struct otp_walk *walk;
	char *why;
};

/* --- the code of functions --- */

#define GO_CODE_MAX 192

struct go_code {
	uint64_t vaddr;
	uint32_t len;
	uint8_t byte[GO_CODE_MAX];
};

void go_code_read(struct binary *b, const struct go_function *f, struct go_code *ret);
int32_t go_code_s32(const struct go_code *c, uint32_t at);
/* Where these bytes stand, from an offset on, with room for more behind them; -1: nowhere. */
int64_t go_code_find(const struct go_code *c, uint32_t from, const uint8_t *bytes, uint32_t len, uint32_t more);

#define GO_FIND(c, from, more, ...) \
	go_code_find(c, from, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), more)

/* --- go_context.c --- */

/* After the first walk and the version are found. What is not found leaves ret->more NONE, or without labels. */
void go_attach_context(const struct go_attaching *g, struct runtime_attached *ret);
void go_context(const struct runtime_attached *a, const struct runtime_copied *w, struct runtime_context *ret);
bool go_is_end(const struct runtime_attached *a, uint64_t pc);

#endif
