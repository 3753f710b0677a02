/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line number table of DWARF 2 to 5 (.debug_line): its files, and its rows
 * one after the other. libdw would keep all rows of all units in memory until
 * the file is closed, some 100 bytes a row; here none is kept.
 *
 * Used by index_build. Every read is bounded by the table; a malformed table
 * ends at the error (-EBADMSG), and the rows before it count.
 */
#ifndef OTP_SYMBOL_LINES_H
#define OTP_SYMBOL_LINES_H

#include "symbol/image.h"
#include "symbol/index_write.h"

struct line_sections {
	struct image_part line, line_str, str;
};

struct line_file {
	const char *name; /* in the image */
	uint64_t dir;
	uint32_t string; /* place in the heap of the whole path; UINT32_MAX: not added yet */
};

struct line_table {
	const char *comp_dir; /* borrowed; may be NULL */
	uint16_t version;
	uint8_t min_inst, line_range, opcode_base;
	int8_t line_base;
	const uint8_t *lengths;	      /* of the standard opcodes, from 1 */
	const uint8_t *program, *end;
	const char **dirs;	      /* owned */
	struct line_file *files;      /* owned */
	uint32_t nr_dirs, cap_dirs, nr_files, cap_files;
};

int line_table_open(const struct line_sections *from, uint64_t offset, const char *comp_dir, struct line_table *ret);
void line_table_done(struct line_table *t);

/* Place in the heap of a file's whole path, by the file's number in the table; 0: unknown. */
uint32_t line_table_file(struct line_table *t, struct index_writer *w, uint64_t number);

struct line_row {
	uint64_t addr;
	uint64_t file;
	uint32_t line;
	bool end; /* of a sequence: addr is the first byte behind it */
};

typedef int line_row_fn(void *ctx, const struct line_row *row);
int line_table_run(const struct line_table *t, line_row_fn *take, void *ctx);

#endif
