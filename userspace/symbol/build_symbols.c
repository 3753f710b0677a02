// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "symbol/build.h"
#include "symbol/naming.h"

#define SYMBOLS_MAX (8u << 20)

static bool is_function(const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);

	/* What is absolute and has no type is a number, not a place. */
	return s->st_shndx != SHN_UNDEF && s->st_name &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && s->st_shndx != SHN_ABS));
}

/* A name is bounded by its table; a longer one than the index takes is cut there. */
static const char *name_at(const struct image_part *names, uint32_t at, size_t *ret_len)
{
	const char *s = (const char *)names->data + at;
	const char *nul;

	if (at >= names->len)
		return NULL;
	nul = memchr(s, '\0', names->len - at);
	if (!nul || nul == s)
		return NULL;
	*ret_len = MIN(strcspn(s, "@"), (size_t)INDEX_STRING_MAX - 1);
	return *ret_len ? s : NULL;
}

static int add_symbol(struct builder *b, const struct image_part *names, const Elf64_Sym *s, bool *any)
{
	struct name_traits traits = {.local = ELF64_ST_BIND(s->st_info) == STB_LOCAL,
				     .weak = ELF64_ST_BIND(s->st_info) == STB_WEAK,
				     .untyped = ELF64_ST_TYPE(s->st_info) == STT_NOTYPE};
	struct sort_record r = {.key = s->st_value};
	const char *name;
	size_t len;

	if (!is_function(s) || !builder_is_code(b, s->st_value, s->st_size))
		return 0;
	name = name_at(names, s->st_name, &len);
	if (!name || name_is_label(name, traits.untyped))
		return 0;
	r.v[0] = (uint32_t)MIN(s->st_size, (uint64_t)UINT32_MAX);
	r.v[1] = name_rank(&traits, name);
	r.v[2] = index_add_string(b->out, name, len);
	r.v[3] = b->order++;
	*any = true;
	return builder_put(b, b->symbols, &r);
}

static int add_table(struct builder *b, const struct image *m, const Elf64_Shdr *table, bool *any)
{
	struct image_part syms, names;
	Elf64_Sym s;
	int r = 0;

	if (table->sh_link >= m->nr_sections || table->sh_entsize != sizeof(s) || !image_part(m, table, &syms) ||
	    !image_part(m, &m->sections[table->sh_link], &names))
		return 0;
	for (size_t i = 0; r == 0 && i < MIN(syms.len / sizeof(s), SYMBOLS_MAX); i++) {
		memcpy(&s, syms.data + i * sizeof(s), sizeof(s));
		r = add_symbol(b, &names, &s, any);
	}
	return r;
}

int build_symbols(struct builder *b, const struct image *m, uint32_t kind, bool *ret_any)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < m->nr_sections; i++)
		if (m->sections[i].sh_type == kind)
			r = add_table(b, m, &m->sections[i], ret_any);
	return r;
}
