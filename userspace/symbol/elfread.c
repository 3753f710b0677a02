// SPDX-License-Identifier: Apache-2.0
/* Reads symbol tables from the file: the table's place, one symbol, one name. */
#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbol/elftable.h"

/* Bytes of the first read of a name: most names are short, others take a second read. */
#define NAME_FIRST 128

static size_t elf_sym_size(bool is_64)
{
	return is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

int elf_source_find(const struct binary *b, uint32_t section_type, struct elf_source *ret)
{
	const struct binary_section *sec = NULL, *str;

	for (uint32_t i = 0; i < b->nr_sections && !sec; i++)
		if (b->sections[i].type == section_type)
			sec = &b->sections[i];
	if (!sec || sec->link >= b->nr_sections || sec->entsize != elf_sym_size(b->is_64))
		return -ENOENT;
	str = &b->sections[sec->link];
	if (str->type != SHT_STRTAB || sec->offset > b->size || str->offset > b->size)
		return -ENOENT;
	*ret = (struct elf_source){
		.offset = sec->offset,
		.count = MIN(sec->size, b->size - sec->offset) / sec->entsize,
		.str_offset = str->offset,
		.str_size = MIN(str->size, b->size - str->offset),
		.is_64 = b->is_64,
	};
	return 0;
}

static struct elf_sym elf_sym_from_64(const void *p)
{
	Elf64_Sym s;

	memcpy(&s, p, sizeof(s));
	return (struct elf_sym){.value = s.st_value, .size = s.st_size, .name = s.st_name,
				.shndx = s.st_shndx, .type = ELF64_ST_TYPE(s.st_info),
				.bind = ELF64_ST_BIND(s.st_info)};
}

static struct elf_sym elf_sym_from_32(const void *p)
{
	Elf32_Sym s;

	memcpy(&s, p, sizeof(s));
	return (struct elf_sym){.value = s.st_value, .size = s.st_size, .name = s.st_name,
				.shndx = s.st_shndx, .type = ELF32_ST_TYPE(s.st_info),
				.bind = ELF32_ST_BIND(s.st_info)};
}

int elf_syms_read(struct binary *b, const struct elf_source *src, uint64_t first, void *scratch,
		  size_t scratch_len, struct elf_sym *ret, uint32_t max)
{
	size_t size = elf_sym_size(src->is_64);
	uint64_t n = first < src->count ? MIN(src->count - first, MIN(max, scratch_len / size)) : 0;
	ssize_t got;

	if (!n)
		return 0;
	got = binary_read(b, src->offset + first * size, scratch, n * size);
	if (got < 0)
		return (int)got;
	n = (size_t)got / size;
	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = (const uint8_t *)scratch + i * size;

		ret[i] = src->is_64 ? elf_sym_from_64(p) : elf_sym_from_32(p);
	}
	return (int)n;
}

int elf_sym_read(struct binary *b, const struct elf_source *src, uint64_t number, struct elf_sym *ret)
{
	uint8_t raw[sizeof(Elf64_Sym)];
	int r = elf_syms_read(b, src, number, raw, sizeof(raw), ret, 1);

	return r < 0 ? r : r == 1 ? 0 : -ENOENT;
}

int elf_name_read(struct binary *b, const struct elf_source *src, uint32_t name, char to[ELF_NAME_MAX])
{
	static const size_t reads[] = {NAME_FIRST, ELF_NAME_MAX - 1};

	if (!name || name >= src->str_size)
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(reads); i++) {
		size_t want = MIN(reads[i], src->str_size - name);
		ssize_t got = binary_read(b, src->str_offset + name, to, want);

		if (got < 0)
			return (int)got;
		to[got] = '\0';
		if (memchr(to, '\0', (size_t)got) || (size_t)got < reads[i])
			break;
	}
	return *to ? 0 : -ENOENT;
}
