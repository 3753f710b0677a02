/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookup tables of ELF symbols, sorted by address: eight bytes a function, its
 * start and the number of its symbol. Sizes and names are read from the file when a
 * lookup needs them; results are cached above.
 *
 * Used within symbol/ only. A table is kept in the binary's slot. It is freed
 * with the binary, or as the least recently used one when the tables of all
 * files together exceed the bound.
 *
 * Bounds: ELF_SYMBOLS_MAX symbols of a table are read. One table takes at
 * most half of the bound for all; of a larger one the smallest functions are
 * left out (they show as binary+0xoffset), never a wrong name.
 */
#ifndef OTP_SYMBOL_ELFTABLE_H
#define OTP_SYMBOL_ELFTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/binary.h"

#define ELF_SYMBOLS_MAX  (4u << 20)
#define ELF_NAME_MAX     4096

enum elf_table_kind { ELF_SYMTAB, ELF_DYNSYM, ELF_TABLE_NR };

/* All tables of a symbolizer. */
struct elf_tables {
	struct elf_symbols *first, *last; /* most recently used first */
	size_t bytes, limit;
	uint64_t evicted;
};

struct elf_sym {
	uint64_t value, size;
	uint32_t name;
	uint16_t shndx;
	uint8_t type, bind;
};

/* A symbol table in the file. */
struct elf_source {
	uint64_t offset, count;
	uint64_t str_offset, str_size;
	bool is_64;
};

struct elf_table {
	bool built;
	bool thinned; /* small functions are missing */
	uint64_t base;
	struct elf_source source;
	uint64_t *entries; /* start - base in the high half, symbol number in the low; sorted; owned */
	uint32_t count;
};

/* The table, built at the first call; borrowed until the next call. NULL: no such table, or no memory. */
const struct elf_table *elf_table_get(struct elf_tables *all, struct binary *b, enum elf_table_kind kind);
void elf_tables_done(struct elf_tables *all);
void elf_tables_limit(struct elf_tables *all, size_t bytes);

/* -ENOENT: the file has no such table. */
int elf_source_find(const struct binary *b, uint32_t section_type, struct elf_source *ret);
/* Symbols from first on: how many were read, at most max and what scratch holds; 0 at the end. */
int elf_syms_read(struct binary *b, const struct elf_source *src, uint64_t first, void *scratch,
		  size_t scratch_len, struct elf_sym *ret, uint32_t max);
int elf_sym_read(struct binary *b, const struct elf_source *src, uint64_t number, struct elf_sym *ret);
/* NUL-terminated, at most ELF_NAME_MAX bytes with the NUL; a longer one is cut. -ENOENT: empty. */
int elf_name_read(struct binary *b, const struct elf_source *src, uint32_t name, char to[ELF_NAME_MAX]);

static inline uint64_t elf_entry_start(const struct elf_table *x, uint32_t i)
{
	return x->base + (x->entries[i] >> 32);
}

static inline uint32_t elf_entry_number(const struct elf_table *x, uint32_t i)
{
	return (uint32_t)x->entries[i];
}

#endif
