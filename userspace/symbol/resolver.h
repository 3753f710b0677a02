/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of a resolver (a source of names), and what resolvers share. A
 * new one is a file that defines a struct resolver, and its line in symbolizer.c.
 * Used within symbol/ only.
 */
#ifndef OTP_SYMBOL_RESOLVER_H
#define OTP_SYMBOL_RESOLVER_H

#include "symbol/debug.h"
#include "symbol/elftable.h"
#include "symbol/symbol.h"

/* Shared by the resolvers of a symbolizer. */
struct symbol_sources {
	struct elf_tables elf;
	struct debug_indexes debug;
	bool show_clones;
};

struct resolver {
	const char *name;
	/*
	 * b is an ELF file, vaddr its own address. 0: ret is filled, owned by the
	 * caller. Negative errno: no name here (-ENOENT), or it cannot be read.
	 */
	int (*find)(struct symbol_sources *all, struct binary *b, uint64_t vaddr, struct symbol_result *ret);
};

extern const struct resolver resolver_index;  /* the address index, of debug information */
extern const struct resolver resolver_symtab; /* .symtab */
extern const struct resolver resolver_dynsym; /* .dynsym */
extern const struct resolver resolver_plt;    /* name@plt, from stubs and relocations */

/* Fills ret with one line: the linker's name (naming.h), then suffix. -ENOENT for an empty name, -ENOMEM. */
int symbol_result_set(const struct symbol_sources *all, struct symbol_result *ret, const char *linker_name,
		      const char *suffix);

#endif
