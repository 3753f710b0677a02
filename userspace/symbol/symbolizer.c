// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbol/cache.h"
#include "symbol/naming.h"
#include "symbol/resolver.h"
#include "symbol/symbol.h"

#define DEFAULT_CACHED      32768
#define DEFAULT_TABLE_BYTES (12u << 20)
#define FALLBACK_MAX        512

/* In order; the first result counts. An address that no resolver names is path+0xoffset. */
static const struct resolver *const chain[] = {
	&resolver_index,
	&resolver_symtab,
	&resolver_dynsym,
	&resolver_plt,
};

struct symbolizer {
	struct symbol_cache cache;
	struct symbol_sources sources;
	struct symbol_stats stats;
	int (*function_start)(struct binary *b, uint64_t vaddr, uint64_t *ret); /* may be NULL */
	struct str *no_memory; /* a name that is available without memory */
};

int symbolizer_new(const struct symbol_limits *limits, struct symbolizer **ret)
{
	struct symbolizer *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->no_memory = str_get_c("[no memory]");
	if (!s->no_memory) {
		free(s);
		return -ENOMEM;
	}
	symbol_cache_init(&s->cache, limits->cached ? limits->cached : DEFAULT_CACHED);
	s->function_start = limits->function_start;
	s->sources.elf.limit = limits->table_bytes ? limits->table_bytes : DEFAULT_TABLE_BYTES;
	s->sources.show_clones = limits->show_clones;
	debug_indexes_init(&s->sources.debug, limits);
	*ret = s;
	return 0;
}

struct symbolizer *symbolizer_free(struct symbolizer *s)
{
	if (s) {
		symbol_cache_done(&s->cache);
		debug_indexes_done(&s->sources.debug);
		elf_tables_done(&s->sources.elf);
		str_put(s->no_memory);
		free(s);
	}
	return NULL;
}

void symbolizer_limit(struct symbolizer *s, size_t cached_bytes, size_t table_bytes)
{
	symbol_cache_limit(&s->cache, cached_bytes);
	elf_tables_limit(&s->sources.elf, table_bytes);
}

void symbol_line_copy(struct symbol_line *to, const struct symbol_line *from)
{
	*to = *from;
	str_ref(to->name);
	str_ref(to->file);
}

void symbol_line_done(struct symbol_line *l)
{
	str_put(l->name);
	str_put(l->file);
	*l = (struct symbol_line){0};
}

void symbol_result_done(struct symbol_result *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		symbol_line_done(&r->lines[i]);
	r->count = 0;
}

static void symbolizer_set_one_line(struct symbol_result *ret, struct str *name)
{
	ret->count = 1;
	ret->lines[0] = (struct symbol_line){.name = name};
}

int symbol_result_set(const struct symbol_sources *all, struct symbol_result *ret, const char *linker_name,
		      const char *suffix)
{
	struct str *name;
	int r = name_make(linker_name, suffix, all->show_clones, &name);

	if (r < 0)
		return r;
	symbolizer_set_one_line(ret, name);
	return 0;
}

static const char *symbolizer_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static uint64_t symbolizer_function_start(const struct symbolizer *s, struct binary *b, uint64_t vaddr, bool *ret_known)
{
	uint64_t start;

	*ret_known = b && b->is_elf && s->function_start && s->function_start(b, vaddr, &start) == 0;
	return *ret_known ? start : vaddr;
}

static void symbolizer_set_fallback(struct symbolizer *s, struct binary *b, const char *path, uint64_t vaddr,
				    struct symbol_result *ret)
{
	uint64_t at = symbolizer_function_start(s, b, vaddr, &ret->function_start);
	char text[FALLBACK_MAX];
	struct str *name;

	snprintf(text, sizeof(text), "%.400s+0x%llx", *path ? symbolizer_base_name(path) : "[unknown]",
		 (unsigned long long)at);
	name = str_get_c(text);
	symbolizer_set_one_line(ret, name ? name : str_ref(s->no_memory));
	ret->resolver = NULL;
}

static bool symbolizer_resolve(struct symbolizer *s, struct binary *b, uint64_t vaddr, struct symbol_result *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(chain); i++) {
		ret->resolver = chain[i]->name;
		if (chain[i]->find(&s->sources, b, vaddr, ret) < 0)
			continue;
		return true;
	}
	return false;
}

/* A file's names change with its index, and again with a better one. */
static uint32_t symbolizer_cache_id(const struct binary *b)
{
	uint32_t made = debug_index_made(b);

	return b->id | (made ? 1 + (made - 1) % 15 : 0) << 28;
}

bool symbol_want(struct symbolizer *s, struct binary *b, const struct symbol_asker *asker)
{
	return b->is_elf && debug_index_want(&s->sources.debug, b, asker);
}

bool symbol_waits(const struct symbolizer *s, uint64_t now_ns)
{
	return debug_indexes_wait(&s->sources.debug, now_ns);
}

void symbol_set_fetch(struct symbolizer *s, const uint8_t *htlhash, uint32_t fetch, bool again)
{
	debug_indexes_set_fetch(&s->sources.debug, htlhash, fetch, again);
}

void symbol_state(const struct symbolizer *s, const struct binary *b, struct symbol_state *ret)
{
	*ret = (struct symbol_state){0};
	debug_index_state(&s->sources.debug, b, ret);
	for (uint32_t i = 0; i < b->nr_sections; i++) {
		ret->symtab |= b->sections[i].type == SHT_SYMTAB;
		ret->dynsym |= b->sections[i].type == SHT_DYNSYM;
	}
	ret->own_dwarf = binary_section(b, ".debug_info") != NULL;
}

void symbol_find(struct symbolizer *s, struct binary *b, const char *path, uint64_t vaddr,
		 struct symbol_result *ret)
{
	ret->function_start = false;
	if (b && symbol_cache_find(&s->cache, symbolizer_cache_id(b), vaddr, ret)) {
		s->stats.cache_hits++;
	} else {
		if (!b || !b->is_elf || !symbolizer_resolve(s, b, vaddr, ret))
			symbolizer_set_fallback(s, b, b ? str_c(b->path) : path ? path : "", vaddr, ret);
		if (b)
			symbol_cache_put(&s->cache, symbolizer_cache_id(b), vaddr, ret);
	}
}

void symbolizer_stats(const struct symbolizer *s, struct symbol_stats *ret)
{
	*ret = s->stats;
	ret->table_bytes = s->sources.elf.bytes;
	ret->tables_evicted = s->sources.elf.evicted;
}
