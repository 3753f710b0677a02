// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbol/cache.h"
#include "symbol/resolver.h"
#include "symbol/symbol.h"

#define DEFAULT_CACHED      32768
#define DEFAULT_INDEX_BYTES (12u << 20)
#define FALLBACK_MAX        512

/* In order; the first answer wins. What none knows is path+0xoffset. */
static const struct resolver *const chain[] = {
	&resolver_symtab,
	&resolver_dynsym,
	&resolver_plt,
};

struct symbolizer {
	struct symbol_cache cache;
	struct elf_indexes indexes;
	struct symbol_stats stats;
	int (*function_start)(struct binary *b, uint64_t vaddr, uint64_t *ret); /* may be NULL */
	struct str *no_memory; /* a name that is always there */
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
	s->indexes.limit = limits->index_bytes ? limits->index_bytes : DEFAULT_INDEX_BYTES;
	*ret = s;
	return 0;
}

struct symbolizer *symbolizer_free(struct symbolizer *s)
{
	if (s) {
		symbol_cache_done(&s->cache);
		elf_indexes_done(&s->indexes);
		str_put(s->no_memory);
		free(s);
	}
	return NULL;
}

void symbolizer_limit(struct symbolizer *s, size_t cached_bytes, size_t index_bytes)
{
	symbol_cache_limit(&s->cache, cached_bytes);
	elf_indexes_limit(&s->indexes, index_bytes);
}

void symbol_result_done(struct symbol_result *r)
{
	for (uint32_t i = 0; i < r->count; i++) {
		str_put(r->lines[i].name);
		str_put(r->lines[i].system_name);
		str_put(r->lines[i].file);
	}
	r->count = 0;
}

static void set_one_line(struct symbol_result *ret, struct str *name, struct str *system_name)
{
	ret->count = 1;
	ret->lines[0] = (struct symbol_line){.name = name, .system_name = system_name};
}

static struct str *name_with(const char *name, const char *suffix)
{
	char text[ELF_NAME_MAX + 16];

	if (!*suffix)
		return str_get_c(name);
	snprintf(text, sizeof(text), "%.*s%s", ELF_NAME_MAX, name, suffix);
	return str_get_c(text);
}

int symbol_result_set(struct symbol_result *ret, const char *linker_name, const char *suffix)
{
	_cleanup_(freep) char *bare = NULL, *readable = NULL;
	struct str *name, *system_name = NULL;

	/* "memcpy@@GLIBC_2.14": the version is none of the name. */
	bare = strndup(linker_name, strcspn(linker_name, "@"));
	if (!bare)
		return -ENOMEM;
	if (!*bare)
		return -ENOENT;
	readable = symbol_demangle(bare);
	name = name_with(readable ? readable : bare, suffix);
	if (name && readable)
		system_name = str_get_c(bare);
	if (!name)
		return -ENOMEM;
	set_one_line(ret, name, system_name);
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void set_fallback(struct symbolizer *s, const char *path, uint64_t vaddr, struct symbol_result *ret)
{
	char text[FALLBACK_MAX];
	struct str *name;

	snprintf(text, sizeof(text), "%.400s+0x%llx", *path ? base_name(path) : "[unknown]",
		 (unsigned long long)vaddr);
	name = str_get_c(text);
	set_one_line(ret, name ? name : str_ref(s->no_memory), NULL);
	ret->resolver = NULL;
}

static uint64_t function_start(const struct symbolizer *s, struct binary *b, uint64_t vaddr)
{
	uint64_t start;

	if (b && b->is_elf && s->function_start && s->function_start(b, vaddr, &start) == 0)
		return start;
	return vaddr;
}

static bool ask_chain(struct symbolizer *s, struct binary *b, uint64_t vaddr, struct symbol_result *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(chain); i++) {
		if (chain[i]->find(&s->indexes, b, vaddr, ret) < 0)
			continue;
		ret->resolver = chain[i]->name;
		return true;
	}
	return false;
}

void symbol_find(struct symbolizer *s, struct binary *b, const char *path, uint64_t vaddr,
		 struct symbol_result *ret)
{
	s->stats.lookups++;
	if (b && symbol_cache_find(&s->cache, b->id, vaddr, ret)) {
		s->stats.cache_hits++;
	} else {
		if (!b || !b->is_elf || !ask_chain(s, b, vaddr, ret))
			set_fallback(s, b ? str_c(b->path) : path ? path : "", function_start(s, b, vaddr), ret);
		if (b)
			symbol_cache_put(&s->cache, b->id, vaddr, ret);
	}
	if (ret->resolver)
		s->stats.named++;
	else
		s->stats.unnamed++;
}

void symbolizer_stats(const struct symbolizer *s, struct symbol_stats *ret)
{
	*ret = s->stats;
	ret->index_bytes = s->indexes.bytes;
	ret->indexes_evicted = s->indexes.evicted;
}
