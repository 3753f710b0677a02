/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of index_build share. Used within symbol/ only.
 */
#ifndef OTP_SYMBOL_BUILD_H
#define OTP_SYMBOL_BUILD_H

#include <errno.h>

#include "process/binary.h"
#include "symbol/image.h"
#include "symbol/index_build.h"
#include "symbol/index_write.h"

struct builder {
	const struct index_job *job;
	struct binary *binary; /* the file that the index is for: where its code is */
	struct scratch scratch;
	struct index_writer *out;
	struct sorter *functions; /* key: start; v: length, node, depth, order */
	struct sorter *symbols;	  /* key: start; v: length, rank, name, order */
	struct sorter *lines;	  /* key: start; v: file, line, order */
	uint32_t order;		  /* number of the next record */
	uint32_t flags;
};

/* A record beyond the sorter's bound is dropped and the index marked as cut; other errors end the build. */
static inline int builder_put(struct builder *b, struct sorter *s, const struct sort_record *r)
{
	int err = sorter_add(s, r);

	if (err == -ENOSPC)
		b->flags |= INDEX_CUT;
	return err == -ENOSPC ? 0 : err;
}

/* [start, start + len) lies in one executable segment; nothing lies at 0. */
bool builder_is_code(const struct builder *b, uint64_t start, uint64_t len);

/* Tables named kind (SHT_SYMTAB, SHT_DYNSYM); true in ret_any if there was a function. */
int build_symbols(struct builder *b, const struct image *m, uint32_t kind, bool *ret_any);

/* The debug information in m, with what dwz took out of it in alt (NULL: none). */
int build_dwarf(struct builder *b, const struct image *m, const struct image *alt);

/* What Go's linker wrote for the runtime. -ENOENT: no program of Go's. */
int build_go(struct builder *b);

/* Separate files. 0: ret is open and matches by build-id or CRC; -ENOENT. */
int debug_file_open(struct builder *b, const struct image *m, struct image *ret);
int debug_alt_open(struct builder *b, const struct image *m, struct image *ret);
/* A file by its path alone, in the host's root or in the target's. */
int debug_open_any(const struct index_job *job, const char *path, int *ret_fd);

#endif
