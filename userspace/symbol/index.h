/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address index of an ELF file: the names, inlined calls and lines of its
 * debug information, or of Go's table (process/go_table.h) where there is none,
 * sorted by address, in one compact file. Made once per
 * file by a process of its own (index_build), kept on disk, read by the engine.
 *
 * To its reader an index is hostile input like any other: every offset is
 * checked, every loop is bounded, nothing is mapped.
 *
 * Layout: the head; the heap (strings and nodes, in order of arrival); three
 * tables. A table is a directory of blocks, sorted by address, and the blocks:
 * up to INDEX_BLOCK_ROWS rows, each (address, two values), as differences to
 * the row before in LEB128. A row holds up to the next one; a first value of 0
 * marks an address range without information.
 *   functions: node of the innermost function or inlined call (heap offset), 0
 *   symbols:   name (heap offset), 0
 *   lines:     source file (heap offset), line
 * A node is five ULEB128: distance back to the parent node (0: none), name,
 * source file of the call, line of the call, line of the function's beginning.
 * Parents lie before their children, so every chain ends.
 */
#ifndef OTP_SYMBOL_INDEX_H
#define OTP_SYMBOL_INDEX_H

#include <stdint.h>

#include "process/binary.h"
#include "symbol/symbol.h"

#define INDEX_MAGIC	  "OTPSYM01"
#define INDEX_BLOCK_ROWS  64
#define INDEX_BLOCK_MAX	  (INDEX_BLOCK_ROWS * 20)
#define INDEX_STRING_MAX  4096 /* with its NUL; longer ones are cut */
#define INDEX_HEAD_BYTES  4096
#define INDEX_FILE_MAX	  (1ull << 30)

enum index_table_kind { INDEX_FUNCTIONS, INDEX_SYMBOLS, INDEX_LINES, INDEX_TABLE_NR };

enum index_flags {
	INDEX_HAS_DWARF = 1,   /* functions and lines come from debug information */
	INDEX_HAS_SYMBOLS = 2, /* of a .symtab: the file's own, or of its debug file */
	INDEX_CUT = 4,	       /* a bound was reached: something is missing */
	INDEX_HAS_PACKED = 16, /* symbols of .gnu_debugdata */
	INDEX_HAS_FETCHED = 32, /* some of it was downloaded */
	INDEX_SPLIT_MISSING = 8, /* parts of the debug information were not found */
	INDEX_HAS_GO = 64,     /* functions and lines come from Go's own table */
};

/* Of the file that the index is for. */
struct index_identity {
	uint64_t size, dev, ino, ctime_ns;
	uint8_t htlhash[16];
	uint8_t build_id[BINARY_BUILD_ID_MAX];
	uint8_t build_id_len;
	uint8_t reserved[3];
};

struct index_table {
	uint64_t dir_offset, data_offset, data_bytes, rows;
	uint32_t blocks, reserved;
};

struct index_block {
	uint64_t addr; /* of its first row */
	uint32_t offset;
	uint16_t bytes, rows;
};

struct index_head {
	char magic[8];
	uint32_t version, flags;
	uint64_t file_bytes;
	struct index_identity of;
	uint64_t heap_offset, heap_bytes;
	struct index_table table[INDEX_TABLE_NR];
	uint32_t reserved, crc; /* CRC-32 of all before it */
};

#define INDEX_VERSION 1 /* of the layout */
#define INDEX_MAKER   4 /* of the contents: indexes kept from an earlier version are made anew */

_Static_assert(sizeof(struct index_block) == 16, "directory entries");
_Static_assert(sizeof(struct index_identity) == 72 && sizeof(struct index_head) == 240, "no padding");

/* --- reading: the engine --- */

struct index {
	struct binary *file; /* the index itself; owned */
	struct index_head head;
};

void index_identity_of(const struct binary *b, struct index_identity *ret);

/* Takes file over, also on failure. -EBADMSG: broken; -ESTALE: of another file. */
int index_open(struct binary *file, const struct binary *of, struct index **ret);
struct index *index_free(struct index *x); /* NULL */

struct index_options {
	bool inlines, lines;
	bool show_clones; /* foo.cold and the like keep their suffix */
};

/* 0: ret is filled, owned by the caller; -ENOENT: no information; -EBADMSG: the index is broken there. */
int index_find(struct index *x, uint64_t vaddr, const struct index_options *o, struct symbol_result *ret);

#endif
