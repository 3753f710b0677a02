/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a source of names must provide, and what sources share. A new source
 * is a file that defines one struct resolver, and its line in symbolizer.c.
 * Used within symbol/ only.
 */
#ifndef OTP_SYMBOL_RESOLVER_H
#define OTP_SYMBOL_RESOLVER_H

#include "symbol/debug.h"
#include "symbol/elftable.h"
#include "symbol/symbol.h"

/* What the sources of a symbolizer share. */
struct symbol_sources {
	struct elf_tables elf;
	struct debug_indexes debug;
	bool show_clones;
};

struct resolver {
	const char *name;
	/*
	 * b is an ELF file, vaddr in its terms. 0: ret is filled, owned by the
	 * caller. Negative errno: no name here (-ENOENT), or none to be had.
	 */
	int (*find)(struct symbol_sources *all, struct binary *b, uint64_t vaddr, struct symbol_result *ret);
};

extern const struct resolver resolver_index;  /* the address index, of debug information */
extern const struct resolver resolver_symtab; /* .symtab */
extern const struct resolver resolver_dynsym; /* .dynsym */
extern const struct resolver resolver_plt;    /* name@plt, from stubs and relocations */

/* One line, from the linker's name (naming.h), with this behind it. -ENOENT for an empty name, -ENOMEM. */
int symbol_result_set(const struct symbol_sources *all, struct symbol_result *ret, const char *linker_name,
		      const char *suffix);

#endif
