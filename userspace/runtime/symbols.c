// SPDX-License-Identifier: Apache-2.0
/*
 * Symbols of a runtime's file by name: the dynamic table by its GNU hash, else
 * from end to end, then the static table from end to end.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/runtime.h"

#define NAME_MAX_BYTES 128
#define SYMBOLS_MAX    (1u << 20) /* of a table that is read from end to end */
#define CHAIN_MAX      (1u << 16)
#define BATCH	       256

struct gnu_hash { uint32_t nr_buckets, first, bloom_words, bloom_shift; };

struct symbol_table {
	struct binary *binary;
	const struct binary_section *symbols, *strings;
};

static bool table_open(struct binary *b, uint32_t type, struct symbol_table *ret)
{
	for (uint32_t i = 0; i < b->nr_sections; i++) {
		const struct binary_section *s = &b->sections[i];

		if (s->type != type || s->link >= b->nr_sections || s->entsize != sizeof(Elf64_Sym))
			continue;
		*ret = (struct symbol_table){.binary = b, .symbols = s, .strings = &b->sections[s->link]};
		return true;
	}
	return false;
}

static bool table_is_named(const struct symbol_table *t, const Elf64_Sym *s, const char *name, size_t len)
{
	char text[NAME_MAX_BYTES];

	if (len >= sizeof(text) || s->st_name >= t->strings->size || s->st_shndx == SHN_UNDEF)
		return false;
	return binary_read(t->binary, t->strings->offset + s->st_name, text, len + 1) == (ssize_t)len + 1 &&
	       memcmp(text, name, len + 1) == 0;
}

static int table_take(const Elf64_Sym *s, struct runtime_symbol *ret)
{
	*ret = (struct runtime_symbol){.value = s->st_value, .size = s->st_size, .type = ELF64_ST_TYPE(s->st_info)};
	return 0;
}

static bool table_read(const struct symbol_table *t, uint64_t i, Elf64_Sym *ret)
{
	return i < t->symbols->size / sizeof(*ret) &&
	       binary_read(t->binary, t->symbols->offset + i * sizeof(*ret), ret, sizeof(*ret)) == sizeof(*ret);
}

static uint32_t gnu_hash_of(const char *name)
{
	uint32_t h = 5381;

	while (*name)
		h = h * 33 + (uint8_t)*name++;
	return h;
}

static bool gnu_word(struct binary *b, const struct binary_section *s, uint64_t at, uint32_t *ret)
{
	return at + sizeof(*ret) <= s->size && binary_read(b, s->offset + at, ret, sizeof(*ret)) == sizeof(*ret);
}

/* Through the chain of symbols that share a bucket. */
static int gnu_chain(const struct symbol_table *t, const struct binary_section *s, const struct gnu_hash *g, uint32_t i,
		     const char *name, struct runtime_symbol *ret)
{
	uint64_t chains = sizeof(*g) + 8ULL * g->bloom_words + 4ULL * g->nr_buckets;
	uint32_t hash = gnu_hash_of(name), have;
	Elf64_Sym sym;

	for (uint32_t n = 0; i >= g->first && n < CHAIN_MAX; n++, i++) {
		if (!gnu_word(t->binary, s, chains + 4ULL * (i - g->first), &have))
			return -ENOENT;
		if ((have | 1) == (hash | 1) && table_read(t, i, &sym) && table_is_named(t, &sym, name, strlen(name)))
			return table_take(&sym, ret);
		if (have & 1)
			return -ENOENT;
	}
	return -ENOENT;
}

static int gnu_find(const struct symbol_table *t, const struct binary_section *s, const char *name,
		    struct runtime_symbol *ret)
{
	struct gnu_hash g;
	uint32_t i;

	if (s->size < sizeof(g) || binary_read(t->binary, s->offset, &g, sizeof(g)) != sizeof(g) || !g.nr_buckets ||
	    !gnu_word(t->binary, s, sizeof(g) + 8ULL * g.bloom_words + 4ULL * (gnu_hash_of(name) % g.nr_buckets), &i) || !i)
		return -ENOENT;
	return gnu_chain(t, s, &g, i, name, ret);
}

static int table_scan_batch(const struct symbol_table *t, uint64_t from, const char *name, struct runtime_symbol *ret)
{
	Elf64_Sym sym[BATCH];
	size_t len = strlen(name);
	ssize_t n = binary_read(t->binary, t->symbols->offset + from * sizeof(*sym), sym, sizeof(sym));

	if (n < (ssize_t)sizeof(*sym))
		return -EIO;
	for (uint64_t i = 0; i < (size_t)n / sizeof(*sym) && from + i < t->symbols->size / sizeof(*sym); i++)
		if (table_is_named(t, &sym[i], name, len))
			return table_take(&sym[i], ret);
	return -ENOENT;
}

static int table_scan(const struct symbol_table *t, const char *name, struct runtime_symbol *ret)
{
	uint64_t nr = MIN(t->symbols->size / sizeof(Elf64_Sym), (uint64_t)SYMBOLS_MAX);
	int r = -ENOENT;

	for (uint64_t i = 0; i < nr && r == -ENOENT; i += BATCH)
		r = table_scan_batch(t, i, name, ret);
	return r < 0 ? -ENOENT : 0;
}

static int symbol_dynamic(struct binary *b, const char *name, struct runtime_symbol *ret)
{
	const struct binary_section *hash = binary_section(b, ".gnu.hash");
	struct symbol_table t;

	if (!table_open(b, SHT_DYNSYM, &t))
		return -ENOENT;
	return hash ? gnu_find(&t, hash, name, ret) : table_scan(&t, name, ret);
}

static int symbol_static(struct binary *b, const char *name, struct runtime_symbol *ret)
{
	struct symbol_table t;

	return table_open(b, SHT_SYMTAB, &t) ? table_scan(&t, name, ret) : -ENOENT;
}

int runtime_symbol(struct binary *b, const char *name, struct runtime_symbol *ret)
{
	if (!b->is_elf || !b->is_64)
		return -ENOENT;
	return symbol_dynamic(b, name, ret) == 0 ? 0 : symbol_static(b, name, ret);
}

/* A file without dynamic symbols is a static program, which exports nothing: only there the static table is read. */
static bool file_defines(struct binary *b, const char *name)
{
	struct symbol_table t;
	struct runtime_symbol s;

	if (table_open(b, SHT_DYNSYM, &t))
		return symbol_dynamic(b, name, &s) == 0;
	return symbol_static(b, name, &s) == 0;
}

int runtime_of_file(struct binary *b)
{
	if (!b->is_elf || !b->is_64)
		return -ENOENT;
	for (int i = 0; runtime_list[i]; i++) {
		for (const char *const *marker = runtime_list[i]->markers; *marker; marker++)
			if (file_defines(b, *marker))
				return i;
		if (runtime_list[i]->holds && runtime_list[i]->holds(b))
			return i;
	}
	return -ENOENT;
}
