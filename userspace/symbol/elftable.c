// SPDX-License-Identifier: Apache-2.0
#include "symbol/elftable.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"

#define CHUNK_SYMS 1024
#define SIZE_CLASSES 65 /* 0, then by the highest bit */

/* The binary's slot. */
struct elf_symbols {
	struct elf_tables *all;
	struct elf_symbols *prev, *next;
	struct binary *binary; /* borrowed: it outlives its slot */
	size_t bytes;
	struct elf_table table[ELF_TABLE_NR];
};

static const uint32_t table_type[ELF_TABLE_NR] = {
	[ELF_SYMTAB] = SHT_SYMTAB,
	[ELF_DYNSYM] = SHT_DYNSYM,
};

static void elf_list_remove(struct elf_symbols *e)
{
	*(e->prev ? &e->prev->next : &e->all->first) = e->next;
	*(e->next ? &e->next->prev : &e->all->last) = e->prev;
}

static void elf_list_add_first(struct elf_symbols *e)
{
	e->prev = NULL;
	e->next = e->all->first;
	*(e->next ? &e->next->prev : &e->all->last) = e;
	e->all->first = e;
}

/* Called when the binary is freed, and by eviction. */
static void elf_symbols_free(void *slot)
{
	struct elf_symbols *e = slot;

	if (!e)
		return;
	elf_list_remove(e);
	e->all->bytes -= e->bytes;
	for (int i = 0; i < ELF_TABLE_NR; i++)
		free(e->table[i].entries);
	free(e);
}

static void elf_symbols_drop(struct elf_symbols *e)
{
	e->binary->slot[BINARY_SLOT_SYMBOLS] = NULL;
	e->binary->slot_free[BINARY_SLOT_SYMBOLS] = NULL;
	elf_symbols_free(e);
}

static struct elf_symbols *elf_symbols_get(struct elf_tables *all, struct binary *b)
{
	struct elf_symbols *e = b->slot[BINARY_SLOT_SYMBOLS];

	if (e) {
		elf_list_remove(e);
		elf_list_add_first(e);
		return e;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->all = all;
	e->binary = b;
	e->bytes = sizeof(*e);
	all->bytes += e->bytes;
	elf_list_add_first(e);
	b->slot[BINARY_SLOT_SYMBOLS] = e;
	b->slot_free[BINARY_SLOT_SYMBOLS] = elf_symbols_free;
	return e;
}

void elf_tables_done(struct elf_tables *all)
{
	while (all->first)
		elf_symbols_drop(all->first);
}

static void elf_tables_evict(struct elf_tables *all)
{
	while (all->bytes > all->limit && all->last != all->first) {
		elf_symbols_drop(all->last);
		all->evicted++;
	}
}

void elf_tables_limit(struct elf_tables *all, size_t bytes)
{
	all->limit = bytes;
	elf_tables_evict(all);
}

/* Assembly often has symbols without a type; one in code may be a function, unless it is an absolute number. */
static bool elf_is_function(const struct binary *b, const struct elf_sym *s)
{
	if (s->shndx == SHN_UNDEF || !s->name || (s->shndx == SHN_ABS && s->type == STT_NOTYPE))
		return false;
	if (s->type != STT_FUNC && s->type != STT_GNU_IFUNC && s->type != STT_NOTYPE)
		return false;
	return binary_is_code(b, s->value);
}

static unsigned elf_size_class(uint64_t size)
{
	return size ? 64 - (unsigned)__builtin_clzll(size) : 0;
}

static uint64_t elf_code_base(const struct binary *b)
{
	uint64_t base = UINT64_MAX;

	for (uint32_t i = 0; i < b->nr_segments; i++)
		if (b->segments[i].flags & PF_X)
			base = MIN(base, b->segments[i].vaddr);
	return base;
}

struct elf_build {
	struct binary *b;
	struct elf_table *x;
	uint64_t classes[SIZE_CLASSES]; /* functions by size */
	unsigned smallest;              /* smallest class that is kept */
	uint32_t room;
	struct elf_sym syms[CHUNK_SYMS];
	uint8_t raw[CHUNK_SYMS * sizeof(Elf64_Sym)];
};

static void elf_build_count(struct elf_build *w, const struct elf_sym *s, uint64_t number)
{
	w->classes[elf_size_class(s->size)]++;
}

static void elf_build_add(struct elf_build *w, const struct elf_sym *s, uint64_t number)
{
	struct elf_table *x = w->x;

	if (elf_size_class(s->size) >= w->smallest && x->count < w->room)
		x->entries[x->count++] = (s->value - x->base) << 32 | number;
}

static int elf_each_function(struct elf_build *w, void (*take)(struct elf_build *, const struct elf_sym *, uint64_t))
{
	struct elf_table *x = w->x;
	uint64_t number = 0;
	int n;

	for (; number < ELF_SYMBOLS_MAX; number += (uint64_t)n) {
		n = elf_syms_read(w->b, &x->source, number, w->raw, sizeof(w->raw), w->syms, CHUNK_SYMS);
		if (n <= 0)
			return n;
		for (int i = 0; i < n; i++)
			if (elf_is_function(w->b, &w->syms[i]) && w->syms[i].value - x->base <= UINT32_MAX)
				take(w, &w->syms[i], number + (uint64_t)i);
	}
	return 0;
}

/* Small functions are left out first: they are sampled least. */
static uint32_t elf_table_choose_room(struct elf_build *w, uint64_t max)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < SIZE_CLASSES; i++)
		total += w->classes[i];
	for (w->smallest = 0; total > max && w->smallest < SIZE_CLASSES; w->smallest++)
		total -= w->classes[w->smallest];
	w->x->thinned = w->smallest > 0;
	return (uint32_t)total;
}

static int elf_entry_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int elf_table_build(struct elf_tables *all, struct binary *b, struct elf_table *x)
{
	_cleanup_(freep) struct elf_build *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->b = b;
	w->x = x;
	x->base = elf_code_base(b);
	r = elf_each_function(w, elf_build_count);
	if (r < 0)
		return r;
	w->room = elf_table_choose_room(w, all->limit / 2 / sizeof(*x->entries));
	if (!w->room)
		return 0;
	x->entries = calloc(w->room, sizeof(*x->entries));
	if (!x->entries)
		return -ENOMEM;
	r = elf_each_function(w, elf_build_add);
	qsort(x->entries, x->count, sizeof(*x->entries), elf_entry_compare);
	return r;
}

const struct elf_table *elf_table_get(struct elf_tables *all, struct binary *b, enum elf_table_kind kind)
{
	struct elf_symbols *e = elf_symbols_get(all, b);
	struct elf_table *x;

	if (!e)
		return NULL;
	x = &e->table[kind];
	if (!x->built) {
		/* A failure is final: a file that cannot be read is not read again for each frame. */
		x->built = true;
		if (elf_source_find(b, table_type[kind], &x->source) == 0)
			elf_table_build(all, b, x);
		e->bytes += x->count * sizeof(*x->entries);
		all->bytes += x->count * sizeof(*x->entries);
		elf_tables_evict(all);
	}
	return x->count ? x : NULL;
}
