/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a source of names must provide, and what sources share. A new source
 * is a file that defines one struct resolver, and its line in chain.c.
 * Used within symbol/ only.
 */
#ifndef OTP_SYMBOL_RESOLVER_H
#define OTP_SYMBOL_RESOLVER_H

#include "symbol/elfindex.h"
#include "symbol/symbol.h"

struct resolver {
	const char *name;
	/*
	 * b is an ELF file, vaddr in its terms. 0: ret is filled, owned by the
	 * caller. Negative errno: no name here (-ENOENT), or none to be had.
	 */
	int (*find)(struct elf_indexes *indexes, struct binary *b, uint64_t vaddr, struct symbol_result *ret);
};

extern const struct resolver resolver_symtab; /* .symtab */
extern const struct resolver resolver_dynsym; /* .dynsym */
extern const struct resolver resolver_plt;    /* name@plt, from stubs and relocations */

/*
 * One line, from the linker's name: version cut, demangled, then suffix.
 * -ENOENT for an empty name, -ENOMEM.
 */
int symbol_result_set(struct symbol_result *ret, const char *linker_name, const char *suffix);

#endif
