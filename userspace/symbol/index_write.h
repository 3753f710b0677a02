/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing an address index: the heap while the input is read, then the tables
 * in order of address, then the head. Bounded memory however large the index.
 * Used by index_build, one thread. The first error is kept; finish returns it.
 */
#ifndef OTP_SYMBOL_INDEX_WRITE_H
#define OTP_SYMBOL_INDEX_WRITE_H

#include "symbol/index.h"
#include "symbol/spool.h"

#define INDEX_DIR_MAX (256ull << 20)

struct index_writer;
/* fd is borrowed. A table's directory is collected in the scratch file, INDEX_DIR_MAX bytes behind its limit. */
int index_writer_new(int fd, struct scratch *scratch, struct index_writer **ret);
struct index_writer *index_writer_free(struct index_writer *w); /* NULL */

/* Place in the heap; 0 for no string, an empty one, or after an error. Most equal strings share one place. */
uint32_t index_add_string(struct index_writer *w, const char *s, size_t len);

struct index_node {
	uint32_t parent, name, call_file;
	uint32_t call_line, start_line;
};
uint32_t index_add_node(struct index_writer *w, const struct index_node *n); /* 0 after an error */

/* The heap is complete when the first table begins. Of rows with one address the last one counts. */
void index_table_begin(struct index_writer *w, enum index_table_kind kind);
void index_add_row(struct index_writer *w, uint64_t addr, uint32_t first, uint32_t second);
int index_table_end(struct index_writer *w);

int index_writer_finish(struct index_writer *w, const struct index_identity *of, uint32_t flags);
uint64_t index_writer_rows(const struct index_writer *w, enum index_table_kind kind);

#endif
