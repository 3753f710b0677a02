// SPDX-License-Identifier: Apache-2.0
/*
 * Symbols of a runtime's file by name: the dynamic table by its GNU hash, else
 * from end to end, then the static table from end to end.
 *
 * From end to end: once through the strings for where the names lie, in order,
 * and once through the symbols for who has such a name. Where each symbol's name
 * would be looked at, a file could have the engine read at random for minutes.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/runtime.h"

#define NAME_MAX_BYTES 128
#define SYMBOLS_MAX    (1u << 20)  /* of a table that is read from end to end: 24 MiB */
#define STRINGS_MAX    (16u << 20) /* bytes, likewise */
#define CHAIN_MAX      1024
#define BATCH	       256
#define BLOCK	       32768
#define NAMES_MAX      32
#define PLACES_MAX     64 /* of names in the strings: some end others, too */

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

/* --- from end to end --- */

struct sought {
	const char *const *names;
	size_t len[NAMES_MAX];
	uint32_t nr; /* names */
	struct {
		uint32_t at; /* in the strings */
		uint32_t name;
	} place[PLACES_MAX];
	uint32_t nr_places;
};

static void sought_init(struct sought *s, const char *const *names, uint32_t nr)
{
	*s = (struct sought){.names = names, .nr = MIN(nr, (uint32_t)NAMES_MAX)};
	for (uint32_t i = 0; i < s->nr; i++)
		s->len[i] = strlen(names[i]);
}

/* A string of the table, before its NUL at this offset: linkers let one name be the end of another. */
static void sought_look(struct sought *s, const char *text, size_t len, uint64_t end)
{
	for (uint32_t i = 0; i < s->nr && s->nr_places < PLACES_MAX; i++)
		if (len >= s->len[i] && !memcmp(text + len - s->len[i], s->names[i], s->len[i])) {
			s->place[s->nr_places].at = (uint32_t)(end - s->len[i]);
			s->place[s->nr_places++].name = i;
		}
}

/* The strings of a block that end in it; returns how many bytes they take. What does not end is no name of ours. */
static size_t sought_look_block(struct sought *s, const char *block, size_t len, uint64_t offset)
{
	size_t from = 0;
	const char *end;

	while ((end = memchr(block + from, '\0', len - from))) {
		size_t to = (size_t)(end - block);

		sought_look(s, block + from, to - from, offset + to);
		from = to + 1;
	}
	return from ? from : len;
}

static void sought_find_places(struct sought *s, const struct symbol_table *t)
{
	uint64_t size = MIN(t->strings->size, (uint64_t)STRINGS_MAX), at = 0;
	char block[BLOCK];

	while (at < size) {
		ssize_t n = binary_read(t->binary, t->strings->offset + at, block, MIN(sizeof(block), size - at));

		if (n <= 0)
			return;
		at += sought_look_block(s, block, (size_t)n, at);
	}
}

/* Which name the symbol has that is defined; the number of names: none. */
static uint32_t sought_name_of(const struct sought *s, const Elf64_Sym *sym)
{
	for (uint32_t i = 0; i < s->nr_places; i++)
		if (s->place[i].at == sym->st_name && sym->st_shndx != SHN_UNDEF)
			return s->place[i].name;
	return s->nr;
}

/* A batch of symbols: a name before the best one so far becomes it. */
static uint32_t sought_scan(const struct sought *s, const Elf64_Sym *sym, size_t nr, uint32_t best,
			    struct runtime_symbol *ret)
{
	for (size_t i = 0; i < nr; i++) {
		uint32_t name = sought_name_of(s, &sym[i]);

		if (name < best) {
			best = name;
			table_take(&sym[i], ret);
		}
	}
	return best;
}

/* Of the names, the first that the table defines: its index, -ENOENT. */
static int table_scan(const struct symbol_table *t, const char *const *names, uint32_t nr_names,
		      struct runtime_symbol *ret)
{
	uint64_t nr = MIN(t->symbols->size / sizeof(Elf64_Sym), (uint64_t)SYMBOLS_MAX);
	Elf64_Sym sym[BATCH];
	struct sought s;
	uint32_t best;

	sought_init(&s, names, nr_names);
	sought_find_places(&s, t);
	best = s.nr;
	for (uint64_t i = 0; i < nr && s.nr_places && best; i += BATCH) {
		size_t want = MIN(nr - i, (uint64_t)BATCH) * sizeof(*sym);

		if (binary_read(t->binary, t->symbols->offset + i * sizeof(*sym), sym, want) != (ssize_t)want)
			break;
		best = sought_scan(&s, sym, want / sizeof(*sym), best, ret);
	}
	return best < s.nr ? (int)best : -ENOENT;
}

/* Each name's symbol. */
static void table_scan_all(const struct symbol_table *t, const char *const *names, uint32_t nr_names,
			   struct runtime_symbol *ret)
{
	uint64_t nr = MIN(t->symbols->size / sizeof(Elf64_Sym), (uint64_t)SYMBOLS_MAX);
	Elf64_Sym sym[BATCH];
	struct sought s;

	sought_init(&s, names, nr_names);
	sought_find_places(&s, t);
	for (uint64_t i = 0; i < nr && s.nr_places; i += BATCH) {
		size_t want = MIN(nr - i, (uint64_t)BATCH) * sizeof(*sym);

		if (binary_read(t->binary, t->symbols->offset + i * sizeof(*sym), sym, want) != (ssize_t)want)
			return;
		for (size_t k = 0; k < want / sizeof(*sym); k++) {
			uint32_t name = sought_name_of(&s, &sym[k]);

			if (name < s.nr)
				table_take(&sym[k], &ret[name]);
		}
	}
}

/* --- tables of a file --- */

/* Of the names, the first that is exported: its index, -ENOENT. */
static int symbols_dynamic(struct binary *b, const char *const *names, uint32_t nr, struct runtime_symbol *ret)
{
	const struct binary_section *hash = binary_section(b, ".gnu.hash");
	struct symbol_table t;

	if (!table_open(b, SHT_DYNSYM, &t))
		return -ENOENT;
	if (!hash)
		return table_scan(&t, names, nr, ret);
	for (uint32_t i = 0; i < nr; i++)
		if (gnu_find(&t, hash, names[i], ret) == 0)
			return (int)i;
	return -ENOENT;
}

static int symbols_static(struct binary *b, const char *const *names, uint32_t nr, struct runtime_symbol *ret)
{
	struct symbol_table t;

	return table_open(b, SHT_SYMTAB, &t) ? table_scan(&t, names, nr, ret) : -ENOENT;
}

int runtime_symbol(struct binary *b, const char *name, struct runtime_symbol *ret)
{
	if (!b->is_elf || !b->is_64)
		return -ENOENT;
	if (symbols_dynamic(b, &name, 1, ret) == 0 || symbols_static(b, &name, 1, ret) == 0)
		return 0;
	return -ENOENT;
}

bool runtime_exports(struct binary *b, const char *name)
{
	struct runtime_symbol s;

	return b->is_elf && b->is_64 && symbols_dynamic(b, &name, 1, &s) == 0;
}

void runtime_static_symbols(struct binary *b, const char *const *names, uint32_t nr, struct runtime_symbol *ret)
{
	struct symbol_table t;

	memset(ret, 0, nr * sizeof(*ret));
	if (b->is_elf && b->is_64 && table_open(b, SHT_SYMTAB, &t))
		table_scan_all(&t, names, nr, ret);
}

int runtime_address(const struct runtime_file *file, const char *name, uint64_t *ret)
{
	struct runtime_symbol s;
	int err = runtime_symbol(file->binary, name, &s);

	if (!err)
		*ret = file->bias + s.value;
	return err;
}

/* The markers of all runtimes, in their order, and whose each is. */
static uint32_t markers_of_all(const char *names[NAMES_MAX], uint8_t runtime[NAMES_MAX])
{
	uint32_t nr = 0;

	for (uint8_t i = 0; runtime_list[i]; i++)
		for (const char *const *marker = runtime_list[i]->markers; *marker && nr < NAMES_MAX; marker++) {
			runtime[nr] = i;
			names[nr++] = *marker;
		}
	return nr;
}

/* A file without dynamic symbols is a static program, which exports nothing: only there the static table is read. */
int runtime_of_file(struct binary *b)
{
	const char *names[NAMES_MAX];
	uint8_t runtime[NAMES_MAX];
	struct symbol_table t;
	struct runtime_symbol s;
	uint32_t nr = markers_of_all(names, runtime);
	int found;

	if (!b->is_elf || !b->is_64)
		return -ENOENT;
	found = table_open(b, SHT_DYNSYM, &t) ? symbols_dynamic(b, names, nr, &s) : symbols_static(b, names, nr, &s);
	if (found >= 0)
		return runtime[found];
	for (int i = 0; runtime_list[i]; i++)
		if (runtime_list[i]->holds && runtime_list[i]->holds(b))
			return i;
	return -ENOENT;
}
