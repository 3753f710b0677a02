// SPDX-License-Identifier: Apache-2.0
/*
 * Where a variable of PHP lies. A program that embeds libphp may hold the copy
 * that counts: the dynamic linker makes it where the program refers to the
 * variable (a copy relocation), and the library reaches it as others do, by a
 * pointer in its global offset table.
 */
#include <elf.h>
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/php.h"

#define RELOCATIONS_MAX (1u << 18)
#define BATCH		128u

struct php_table {
	struct binary *binary;
	const struct binary_section *relocations, *symbols;
	uint64_t value; /* of the symbol that is sought */
	uint32_t type;	/* of relocations that hold a symbol's address */
};

static bool table_is_wanted(const struct php_table *t, const Elf64_Rela *r)
{
	uint64_t at = ELF64_R_SYM(r->r_info) * sizeof(Elf64_Sym);
	Elf64_Sym s;

	return ELF64_R_TYPE(r->r_info) == t->type && at < t->symbols->size &&
	       binary_read(t->binary, t->symbols->offset + at, &s, sizeof(s)) == sizeof(s) &&
	       s.st_shndx != SHN_UNDEF && s.st_value == t->value;
}

/* The relocation's place. */
static int table_find_batch(const struct php_table *t, uint64_t from, uint64_t nr, uint64_t *ret)
{
	Elf64_Rela r[BATCH];
	size_t len = MIN(nr - from, (uint64_t)BATCH) * sizeof(*r);

	if (binary_read(t->binary, t->relocations->offset + from * sizeof(*r), r, len) != (ssize_t)len)
		return -EIO;
	for (size_t i = 0; i < len / sizeof(*r); i++) {
		if (!table_is_wanted(t, &r[i]))
			continue;
		*ret = r[i].r_offset;
		return 0;
	}
	return -ENOENT;
}

static int table_find(const struct php_table *t, uint64_t *ret)
{
	uint64_t nr = MIN(t->relocations->size / sizeof(Elf64_Rela), (uint64_t)RELOCATIONS_MAX);
	int r = -ENOENT;

	for (uint64_t i = 0; i < nr && r == -ENOENT; i += BATCH)
		r = table_find_batch(t, i, nr, ret);
	return r;
}

static int slot_find(struct binary *b, uint64_t value, uint64_t *ret)
{
	struct php_table t = {.binary = b, .relocations = binary_section(b, ".rela.dyn"), .value = value,
			      .symbols = binary_section(b, ".dynsym"),
			      .type = b->machine == EM_AARCH64 ? R_AARCH64_GLOB_DAT : R_X86_64_GLOB_DAT};

	return t.relocations && t.symbols ? table_find(&t, ret) : -ENOENT;
}

int php_address(const struct runtime_file *file, struct memory *m, const char *name, uint64_t *ret)
{
	struct runtime_symbol s;
	uint64_t slot;
	int r = runtime_symbol(file->binary, name, &s);

	if (r < 0)
		return r;
	if (slot_find(file->binary, s.value, &slot) == 0)
		return memory_u64(m, file->bias + slot, ret);
	*ret = file->bias + s.value;
	return 0;
}
