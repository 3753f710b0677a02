// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/tiny_elf.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"

static const char names[] = "\0.eh_frame\0.shstrtab";

#define SECTIONS_AT 0x200
#define NAMES_AT 0x300

static void put(struct tiny *t, uint32_t at, uint64_t v, unsigned size)
{
	memcpy(t->image + at, &v, size);
}

static void headers(struct tiny *t, uint16_t machine, unsigned flags)
{
	Elf64_Ehdr *e = (void *)t->image;
	Elf64_Phdr *p = (void *)(t->image + sizeof(*e));

	memcpy(e->e_ident, ELFMAG, SELFMAG);
	e->e_ident[EI_CLASS] = ELFCLASS64;
	e->e_ident[EI_DATA] = ELFDATA2LSB;
	e->e_ident[EI_VERSION] = EV_CURRENT;
	e->e_type = ET_DYN;
	e->e_machine = machine;
	e->e_version = EV_CURRENT;
	e->e_ehsize = sizeof(*e);
	e->e_phentsize = sizeof(*p);
	e->e_phoff = sizeof(*e);
	e->e_phnum = flags & TINY_NO_HDR ? 1 : 2;
	p[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = TINY_SIZE, .p_memsz = TINY_SIZE};
	p[1] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME,
			    .p_flags = PF_R,
			    .p_offset = TINY_HDR,
			    .p_vaddr = TINY_HDR,
			    .p_filesz = 0x400,
			    .p_memsz = 0x400};
}

static void sections(struct tiny *t)
{
	Elf64_Ehdr *e = (void *)t->image;
	Elf64_Shdr *s = (void *)(t->image + SECTIONS_AT);

	e->e_shoff = SECTIONS_AT;
	e->e_shentsize = sizeof(*s);
	e->e_shnum = 3;
	e->e_shstrndx = 2;
	s[1] = (Elf64_Shdr){.sh_name = 1,
			    .sh_type = SHT_PROGBITS,
			    .sh_flags = SHF_ALLOC,
			    .sh_addr = TINY_EH,
			    .sh_offset = TINY_EH,
			    .sh_size = TINY_CODE - TINY_EH};
	s[2] = (Elf64_Shdr){.sh_name = 11, .sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = sizeof(names)};
	memcpy(t->image + NAMES_AT, names, sizeof(names));
}

void tiny_init(struct tiny *t, uint16_t machine, unsigned flags)
{
	memset(t, 0, sizeof(*t));
	headers(t, machine, flags);
	if (!(flags & TINY_NO_SECTIONS))
		sections(t);
	put(t, TINY_HDR, 0x3b031b01, 4); /* version 1; pcrel sdata4, udata4, datarel sdata4 */
	put(t, TINY_HDR + 4, TINY_EH - (TINY_HDR + 4), 4);
}

static void entry(struct tiny *t, uint32_t id, const uint8_t *body, size_t len)
{
	uint32_t at = TINY_EH + (uint32_t)t->eh_len;
	uint32_t padded = (uint32_t)ALIGN_UP(len + 4, (size_t)8) + 4;

	put(t, at, padded, 4);
	put(t, at + 4, id, 4);
	memcpy(t->image + at + 8, body, len);
	t->eh_len += padded + 4;
}

void tiny_cie(struct tiny *t, const char *augmentation, int8_t data_align, uint8_t ra, const void *insn, size_t len)
{
	uint8_t body[256] = {1};
	size_t n = 1 + strlen(augmentation) + 1;

	t->cie = TINY_EH + (uint32_t)t->eh_len;
	memcpy(body + 1, augmentation, strlen(augmentation));
	body[n++] = 1;
	body[n++] = (uint8_t)data_align & 0x7f;
	body[n++] = ra;
	body[n++] = 1;
	body[n++] = 0x1b; /* pcrel sdata4 */
	memcpy(body + n, insn, len);
	entry(t, 0, body, n + len);
}

void tiny_fde(struct tiny *t, uint32_t start, uint32_t len, const void *insn, size_t insn_len)
{
	uint32_t at = TINY_EH + (uint32_t)t->eh_len, pair = TINY_HDR + 12 + 8 * t->nr;
	uint8_t body[512] = {0};
	uint32_t delta = start - (at + 8);

	memcpy(body, &delta, 4);
	memcpy(body + 4, &len, 4);
	memcpy(body + 9, insn, insn_len);
	entry(t, at + 4 - t->cie, body, 9 + insn_len);
	put(t, pair, start - TINY_HDR, 4);
	put(t, pair + 4, at - TINY_HDR, 4);
	put(t, TINY_HDR + 8, ++t->nr, 4);
}

void tiny_section(struct tiny *t, const char *name, uint64_t flags, const void *bytes, size_t len)
{
	Elf64_Shdr *s = (void *)(t->image + SECTIONS_AT);
	char *text = (char *)t->image + NAMES_AT;

	if (len > TINY_CODE - TINY_EH)
		abort();
	sections(t);
	snprintf(text + 1, 32, "%s", name);
	memcpy(text + 40, ".shstrtab", sizeof(".shstrtab"));
	memcpy(t->image + TINY_EH, bytes, len);
	s[1].sh_flags = flags;
	s[1].sh_addr = 0;
	s[1].sh_size = len;
	s[2].sh_name = 40;
	s[2].sh_size = 64;
}

struct binary *tiny_open(const struct tiny *t)
{
	struct binary *b = NULL;

	return binary_open_memory(t->image, sizeof(t->image), "tiny", &b) < 0 ? NULL : b;
}

static void add(struct space **s, uint64_t start, uint64_t end, uint64_t offset, uint8_t kind, struct binary *b)
{
	struct mapped_file *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->refs = 1;
	f->kind = kind;
	f->state = MAPPED_READY;
	f->path = str_get_c("tiny");
	f->binary = b ? binary_ref(b) : NULL;
	if (space_map(s, start, end, offset, f) < 0)
		abort();
	mapped_file_put(f);
}

struct space *tiny_space(struct binary *b, uint64_t base)
{
	struct space *s = space_new();

	add(&s, base + TINY_CODE, base + TINY_SIZE, TINY_CODE, MAPPED_FILE, b);
	return s;
}

void tiny_add_anon(struct space **s, uint64_t start, uint64_t end)
{
	add(s, start, end, 0, MAPPED_ANON, NULL);
}
