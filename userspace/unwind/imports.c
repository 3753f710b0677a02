// SPDX-License-Identifier: Apache-2.0
#include "unwind/imports.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"

#define CHUNK	   128
#define CHUNK_WORK 8 /* of what *left counts: names that are read */
#define NAME_BYTES 128
#define ALIASES	  8 /* names of one function */

/* A file's dynamic symbols, read in order. */
struct symbols {
	struct binary *b;
	const struct binary_section *table, *names;
	uint64_t at, count;
	uint32_t *left; /* the work that may be done */
	Elf64_Sym chunk[CHUNK];
	size_t next, len;
};

static bool symbols_begin(struct symbols *s, struct binary *b, uint32_t *left)
{
	*s = (struct symbols){
		.b = b,
		.table = binary_section(b, ".dynsym"),
		.names = binary_section(b, ".dynstr"),
		.left = left,
	};
	if (!s->table || !s->names || s->table->type != SHT_DYNSYM || s->names->type != SHT_STRTAB || !b->is_64)
		return false;
	s->count = MIN(s->table->size / sizeof(Elf64_Sym), (uint64_t)IMPORTS_SYMBOLS);
	return true;
}

/* NULL: there are no more, or no more may be read. */
static const Elf64_Sym *symbols_next(struct symbols *s)
{
	ssize_t n;

	if (s->next < s->len)
		return &s->chunk[s->next++];
	if (s->at >= s->count || !*s->left)
		return NULL;
	*s->left -= MIN(*s->left, (uint32_t)CHUNK_WORK);
	n = binary_read(s->b, s->table->offset + s->at * sizeof(Elf64_Sym), s->chunk,
			(size_t)MIN(s->count - s->at, (uint64_t)CHUNK) * sizeof(Elf64_Sym));
	if (n < (ssize_t)sizeof(Elf64_Sym))
		return NULL;
	s->len = (size_t)n / sizeof(Elf64_Sym);
	s->at += s->len;
	s->next = 1;
	return &s->chunk[0];
}

/* The name with its end, up to NAME_BYTES bytes; longer ones are cut, and compared as far as they go. */
static bool symbols_name(struct symbols *s, const Elf64_Sym *sym, char ret[NAME_BYTES])
{
	uint64_t len;

	if (!sym->st_name || sym->st_name >= s->names->size)
		return false;
	*s->left -= MIN(*s->left, 1u);
	len = MIN(s->names->size - sym->st_name, (uint64_t)NAME_BYTES - 1);
	memset(ret, 0, NAME_BYTES);
	return binary_read(s->b, s->names->offset + sym->st_name, ret, (size_t)len) > 0 && *ret;
}

/* Up to max names, ALIASES at most. */
static unsigned imports_names(struct binary *of, uint64_t function, unsigned max, char names[ALIASES][NAME_BYTES],
			      uint32_t *left)
{
	const Elf64_Sym *sym;
	struct symbols s;
	unsigned n = 0;

	if (!symbols_begin(&s, of, left))
		return 0;
	while (n < max && (sym = symbols_next(&s)))
		if (sym->st_shndx != SHN_UNDEF && sym->st_value == function && symbols_name(&s, sym, names[n]))
			n++;
	return n;
}

static bool imports_look(struct binary *from, struct binary *of, uint64_t function, uint32_t *left)
{
	char names[ALIASES][NAME_BYTES], name[NAME_BYTES];
	const unsigned nr = imports_names(of, function, from ? ALIASES : 1, names, left);
	const Elf64_Sym *sym;
	struct symbols s;

	if (!from)
		return nr;
	if (!nr || !symbols_begin(&s, from, left))
		return false;
	while ((sym = symbols_next(&s))) {
		if (sym->st_shndx != SHN_UNDEF || !symbols_name(&s, sym, name))
			continue;
		for (unsigned i = 0; i < nr; i++)
			if (strncmp(name, names[i], NAME_BYTES) == 0)
				return true;
	}
	return false;
}

/* from NULL: any file. */
static bool imports_ask(struct imports *m, struct binary *from, struct binary *of, uint64_t function, uint32_t *left)
{
	const uint32_t id = from ? from->id : 0;
	const size_t slot = (size_t)((function >> 4) * 31 + id * 7 + of->id) % IMPORTS_CACHED;
	bool answer;

	if (m->cached[slot].from == id && m->cached[slot].of == of->id && m->cached[slot].function == function)
		return m->cached[slot].answer;
	answer = imports_look(from, of, function, left);
	if (!*left)
		return false;
	m->cached[slot].answer = answer;
	m->cached[slot].from = id;
	m->cached[slot].of = of->id;
	m->cached[slot].function = function;
	return answer;
}

bool imports_function(struct imports *m, struct binary *from, struct binary *of, uint64_t function, uint32_t *left)
{
	return imports_ask(m, from, of, function, left);
}

bool imports_is_exported(struct imports *m, struct binary *of, uint64_t function, uint32_t *left)
{
	return imports_ask(m, NULL, of, function, left);
}
