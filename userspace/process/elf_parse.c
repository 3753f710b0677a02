// SPDX-License-Identifier: Apache-2.0
#include "process/elf_parse.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"

#define NOTES_MAX      64
#define NOTE_BYTES_MAX 65536u

/* The fields that differ between the classes, widened. */
struct elf_head {
	uint64_t phoff, shoff;
	uint32_t phentsize, phnum, shentsize, shnum, shstrndx;
};

static bool elf_read_exact(struct binary *b, uint64_t offset, void *to, size_t len)
{
	return binary_read(b, offset, to, len) == (ssize_t)len;
}

#define TAKE_EHDR(b, h, e)                                                              \
	do {                                                                            \
		(b)->type = (e)->e_type;                                                \
		(b)->machine = (e)->e_machine;                                          \
		(b)->entry = (e)->e_entry;                                              \
		*(h) = (struct elf_head){(e)->e_phoff,	   (e)->e_shoff, (e)->e_phentsize, \
					 (e)->e_phnum,     (e)->e_shentsize,            \
					 (e)->e_shnum,     (e)->e_shstrndx};            \
	} while (0)

static bool elf_parse_head(struct binary *b, struct elf_head *h)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr e32;
		Elf64_Ehdr e64;
	} u;

	if (!elf_read_exact(b, 0, u.ident, EI_NIDENT) || memcmp(u.ident, ELFMAG, SELFMAG) != 0 ||
	    u.ident[EI_DATA] != ELFDATA2LSB || u.ident[EI_VERSION] != EV_CURRENT)
		return false;
	b->is_64 = u.ident[EI_CLASS] == ELFCLASS64;
	if (!b->is_64 && u.ident[EI_CLASS] != ELFCLASS32)
		return false;
	if (!elf_read_exact(b, 0, &u, b->is_64 ? sizeof(u.e64) : sizeof(u.e32)))
		return false;
	if (b->is_64)
		TAKE_EHDR(b, h, &u.e64);
	else
		TAKE_EHDR(b, h, &u.e32);
	return true;
}

static bool elf_read_phdr(struct binary *b, const struct elf_head *h, uint32_t i, Elf64_Phdr *ret)
{
	Elf32_Phdr p;
	uint64_t at;

	if (h->phentsize != (b->is_64 ? sizeof(*ret) : sizeof(p)) ||
	    __builtin_add_overflow(h->phoff, (uint64_t)i * h->phentsize, &at))
		return false;
	if (b->is_64)
		return elf_read_exact(b, at, ret, sizeof(*ret));
	if (!elf_read_exact(b, at, &p, sizeof(p)))
		return false;
	*ret = (Elf64_Phdr){.p_type = p.p_type, .p_flags = p.p_flags, .p_offset = p.p_offset,
			    .p_vaddr = p.p_vaddr, .p_filesz = p.p_filesz, .p_memsz = p.p_memsz,
			    .p_align = p.p_align};
	return true;
}

static bool elf_read_shdr(struct binary *b, const struct elf_head *h, uint32_t i, Elf64_Shdr *ret)
{
	Elf32_Shdr s;
	uint64_t at;

	if (!h->shoff || h->shentsize != (b->is_64 ? sizeof(*ret) : sizeof(s)) ||
	    __builtin_add_overflow(h->shoff, (uint64_t)i * h->shentsize, &at))
		return false;
	if (b->is_64)
		return elf_read_exact(b, at, ret, sizeof(*ret));
	if (!elf_read_exact(b, at, &s, sizeof(s)))
		return false;
	*ret = (Elf64_Shdr){.sh_name = s.sh_name, .sh_type = s.sh_type, .sh_flags = s.sh_flags,
			    .sh_addr = s.sh_addr, .sh_offset = s.sh_offset, .sh_size = s.sh_size,
			    .sh_link = s.sh_link, .sh_entsize = s.sh_entsize};
	return true;
}

/* Counts that do not fit the header are in the first section (System V ABI, ELF header). */
static void elf_extend_counts(struct binary *b, struct elf_head *h)
{
	Elf64_Shdr first;

	if ((h->shnum && h->shstrndx != SHN_XINDEX) || !elf_read_shdr(b, h, 0, &first))
		return;
	if (!h->shnum)
		h->shnum = (uint32_t)MIN(first.sh_size, (uint64_t)UINT32_MAX);
	if (h->shstrndx == SHN_XINDEX)
		h->shstrndx = first.sh_link;
}

/*
 * A range may lie past the end of the file (the headers of a truncated file
 * still show where its code is), but must not wrap around.
 */
static bool elf_range_is_valid(uint64_t at, uint64_t len)
{
	uint64_t end;

	return !__builtin_add_overflow(at, len, &end);
}

static void elf_add_segment(struct binary *b, const Elf64_Phdr *p)
{
	if (b->nr_segments >= BINARY_SEGMENTS_MAX || !elf_range_is_valid(p->p_vaddr, p->p_memsz) ||
	    !elf_range_is_valid(p->p_offset, p->p_filesz) || p->p_filesz > p->p_memsz)
		return;
	b->segments[b->nr_segments++] = (struct binary_segment){
		.vaddr = p->p_vaddr,
		.offset = p->p_offset,
		.filesz = p->p_filesz,
		.memsz = p->p_memsz,
		.flags = p->p_flags,
	};
}

/* One note at *at, in the only layout that the kernel's own reader of build-ids accepts. */
static bool elf_parse_note(struct binary *b, const uint8_t *notes, size_t len, size_t align, size_t *at)
{
	size_t name_at = *at + sizeof(Elf64_Nhdr), desc_at, end;
	Elf64_Nhdr n;

	if (name_at > len)
		return false;
	memcpy(&n, notes + *at, sizeof(n));
	if (n.n_namesz > len || n.n_descsz > len)
		return false;
	desc_at = ALIGN_UP(name_at + n.n_namesz, align);
	end = desc_at + n.n_descsz;
	if (end > len)
		return false;
	if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == sizeof(ELF_NOTE_GNU) &&
	    !memcmp(notes + name_at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) && n.n_descsz &&
	    n.n_descsz <= BINARY_BUILD_ID_MAX) {
		memcpy(b->build_id, notes + desc_at, n.n_descsz);
		b->build_id_len = (uint8_t)n.n_descsz;
		return false;
	}
	*at = ALIGN_UP(end, align);
	return true;
}

static int elf_parse_notes(struct binary *b, uint64_t offset, uint64_t size, uint64_t align)
{
	_cleanup_(freep) uint8_t *notes = NULL;
	size_t at = 0;
	ssize_t n;

	if (b->build_id_len || !size)
		return 0;
	notes = malloc(MIN(size, (uint64_t)NOTE_BYTES_MAX));
	if (!notes)
		return -ENOMEM;
	n = binary_read(b, offset, notes, MIN(size, (uint64_t)NOTE_BYTES_MAX));
	for (int i = 0; n > 0 && i < NOTES_MAX; i++)
		if (!elf_parse_note(b, notes, (size_t)n, align == 8 ? 8 : 4, &at))
			break;
	return 0;
}

static int elf_add_phdr(struct binary *b, const Elf64_Phdr *p)
{
	switch (p->p_type) {
	case PT_LOAD:
		elf_add_segment(b, p);
		break;
	case PT_GNU_EH_FRAME:
		b->eh_frame_hdr = p->p_vaddr;
		b->eh_frame_hdr_size = p->p_memsz;
		break;
	case PT_NOTE:
		return elf_parse_notes(b, p->p_offset, p->p_filesz, p->p_align);
	}
	return 0;
}

static int elf_parse_segments(struct binary *b, const struct elf_head *h)
{
	uint32_t n = MIN(h->phnum, 4u * BINARY_SEGMENTS_MAX);
	Elf64_Phdr p;
	int r = 0;

	if (!n)
		return 0;
	b->segments = calloc(MIN(n, (uint32_t)BINARY_SEGMENTS_MAX), sizeof(*b->segments));
	if (!b->segments)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < n && elf_read_phdr(b, h, i, &p); i++)
		r = elf_add_phdr(b, &p);
	return r;
}

static void elf_section_name(struct binary *b, const Elf64_Shdr *strings, uint32_t at, char name[24])
{
	uint64_t from;
	ssize_t n;

	memset(name, 0, 24);
	if (at >= strings->sh_size || __builtin_add_overflow(strings->sh_offset, at, &from))
		return;
	n = binary_read(b, from, name, MIN((uint64_t)23, strings->sh_size - at));
	if (n < 0)
		memset(name, 0, 24);
	/* The section's name is followed by that of another one. */
	memset(name + strlen(name), 0, 24 - strlen(name));
}

static int elf_parse_sections(struct binary *b, const struct elf_head *h)
{
	uint32_t n = MIN(h->shnum, (uint32_t)BINARY_SECTIONS_MAX);
	Elf64_Shdr s, strings = {0};

	if (!n || !h->shoff)
		return 0;
	if (h->shstrndx < h->shnum && !elf_read_shdr(b, h, h->shstrndx, &strings))
		strings = (Elf64_Shdr){0};
	b->sections = calloc(n, sizeof(*b->sections));
	if (!b->sections)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && elf_read_shdr(b, h, i, &s); i++) {
		struct binary_section *to = &b->sections[b->nr_sections++];

		*to = (struct binary_section){
			.addr = s.sh_addr, .offset = s.sh_offset, .size = s.sh_size, .entsize = s.sh_entsize,
			.flags = s.sh_flags, .type = s.sh_type, .link = s.sh_link,
		};
		elf_section_name(b, &strings, s.sh_name, to->name);
		/* A range that wraps around is cleared; the entry stays, as links count entries. */
		if (!elf_range_is_valid(to->addr, to->size) || !elf_range_is_valid(to->offset, to->size))
			to->size = 0;
	}
	return 0;
}

int elf_parse(struct binary *b)
{
	const struct binary_section *note;
	struct elf_head h;
	int r;

	if (!elf_parse_head(b, &h))
		return 0;
	b->is_elf = true;
	elf_extend_counts(b, &h);
	r = elf_parse_segments(b, &h);
	if (r == 0)
		r = elf_parse_sections(b, &h);
	if (r < 0)
		return r;
	note = binary_section(b, ".note.gnu.build-id");
	return note ? elf_parse_notes(b, note->offset, note->size, 4) : 0;
}
