// SPDX-License-Identifier: Apache-2.0
/*
 * The function that covers an address, from an ELF symbol table.
 *
 * A symbol with a size wins where it covers the address, the innermost first.
 * One without (assembly) reaches to the next symbol, within its section, unless
 * it only marks a place in a function that has a size. Of several names for one
 * function the preferred one wins: exported before local, then fewer leading
 * underscores, then strong before weak.
 */
#include <elf.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbol/naming.h"
#include "symbol/resolver.h"

/* Symbols that a lookup may read, backwards from the address. */
#define WALK_MAX 64

struct candidate {
	bool found;
	bool sized;
	uint64_t start;
	uint32_t rank; /* lower wins */
	char name[ELF_NAME_MAX];
};

static bool elfsym_same_code_section(const struct binary *b, uint64_t a, uint64_t c)
{
	for (uint32_t i = 0; i < b->nr_sections; i++) {
		const struct binary_section *s = &b->sections[i];

		if ((s->flags & SHF_EXECINSTR) && a - s->addr < s->size)
			return c - s->addr < s->size;
	}
	return false;
}

static bool elfsym_covers(const struct elf_sym *s, uint64_t vaddr)
{
	return s->size && vaddr - s->value < s->size;
}

static bool elfsym_is_label(struct binary *b, const struct elf_table *x, const struct elf_sym *s)
{
	char name[ELF_NAME_MAX];

	return s->type == STT_NOTYPE && elf_name_read(b, &x->source, s->name, name) == 0 && name_is_label(name, true);
}

static void elfsym_consider(struct binary *b, const struct elf_table *x, const struct elf_sym *s,
			    struct candidate *best)
{
	struct name_traits traits = {.local = s->bind == STB_LOCAL, .weak = s->bind == STB_WEAK,
				     .untyped = s->type == STT_NOTYPE};
	char name[ELF_NAME_MAX];
	uint32_t rank;

	if (elf_name_read(b, &x->source, s->name, name) < 0 || name_is_label(name, traits.untyped))
		return;
	rank = name_rank(&traits, name);
	if (best->found && best->sized >= (s->size > 0) && (best->sized > (s->size > 0) || best->rank <= rank))
		return;
	best->found = true;
	best->sized = s->size > 0;
	best->start = s->value;
	best->rank = rank;
	strcpy(best->name, name);
}

/* Number of entries that start at or below vaddr. */
static uint32_t elfsym_entries_below(const struct elf_table *x, uint64_t vaddr)
{
	return ARRAY_COUNT_WHILE(x->count, i, elf_entry_start(x, i) <= vaddr);
}

static void elfsym_search(struct binary *b, const struct elf_table *x, uint64_t vaddr, struct candidate *best)
{
	uint32_t i = elfsym_entries_below(x, vaddr), stop = i > WALK_MAX ? i - WALK_MAX : 0;
	uint64_t nearest = UINT64_MAX; /* start of the highest symbol that is a name */
	bool marks = false; /* it is within a function that has a size */
	struct elf_sym s;

	while (i-- > stop) {
		uint64_t start = elf_entry_start(x, i);

		if (best->found && best->sized && start != best->start)
			return;
		/* The file may have changed since the table was built. */
		if (elf_sym_read(b, &x->source, elf_entry_number(x, i), &s) < 0 || s.value != start)
			continue;
		if (nearest == UINT64_MAX && !elfsym_is_label(b, x, &s))
			nearest = start;
		marks |= elfsym_covers(&s, nearest);
		if (elfsym_covers(&s, vaddr) ||
		    (!s.size && !x->thinned && start == nearest && elfsym_same_code_section(b, start, vaddr)))
			elfsym_consider(b, x, &s, best);
	}
	best->found &= best->sized || !marks;
}

static int elfsym_find_in(struct symbol_sources *all, struct binary *b, enum elf_table_kind kind, uint64_t vaddr,
			  struct symbol_result *ret)
{
	const struct elf_table *x = elf_table_get(&all->elf, b, kind);
	struct candidate best = {.found = false};

	if (!x || !binary_is_code(b, vaddr))
		return -ENOENT;
	elfsym_search(b, x, vaddr, &best);
	return best.found ? symbol_result_set(all, ret, best.name, "") : -ENOENT;
}

static int elfsym_find_symtab(struct symbol_sources *all, struct binary *b, uint64_t vaddr, struct symbol_result *ret)
{
	return elfsym_find_in(all, b, ELF_SYMTAB, vaddr, ret);
}

static int elfsym_find_dynsym(struct symbol_sources *all, struct binary *b, uint64_t vaddr, struct symbol_result *ret)
{
	return elfsym_find_in(all, b, ELF_DYNSYM, vaddr, ret);
}

const struct resolver resolver_symtab = {.name = "symtab", .find = elfsym_find_symtab};
const struct resolver resolver_dynsym = {.name = "dynsym", .find = elfsym_find_dynsym};
