/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small ELF file in memory that defines symbols, and nothing else but bytes
 * of code: one segment, addresses equal to offsets. Symbols stand in a static
 * table; needed, if any, is a library that the file names in .dynamic.
 */
#ifndef OTP_TESTS_SYMBOLS_ELF_H
#define OTP_TESTS_SYMBOLS_ELF_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "process/binary.h"

#define SYMBOLS_ELF_MAX	 8
#define SYMBOLS_ELF_CODE 0x800 /* address of its 64 bytes of code */

struct symbols_elf {
	Elf64_Ehdr head;
	Elf64_Phdr segment;
	Elf64_Shdr section[7]; /* none, .symtab, .strtab, .dynamic, .dynstr; .dynsym, .rela.dyn, if there is a slot */
	Elf64_Sym symbol[SYMBOLS_ELF_MAX];
	Elf64_Dyn dynamic[2];
	Elf64_Rela slot;
	char text[512];
	uint8_t room[SYMBOLS_ELF_CODE - 64 - 56 - 7 * 64 - SYMBOLS_ELF_MAX * 24 - 32 - 24 - 512];
	uint8_t code[64];
	uint32_t used, nr;
};

static inline uint32_t symbols_elf_text(struct symbols_elf *e, const char *text)
{
	uint32_t at = e->used;

	memcpy(e->text + at, text, strlen(text) + 1);
	e->used += (uint32_t)strlen(text) + 1;
	return at;
}

static inline void symbols_elf_section(struct symbols_elf *e, int i, const char *name, uint32_t type, uint64_t offset,
				       uint64_t size, uint64_t entsize)
{
	e->section[i] = (Elf64_Shdr){.sh_name = symbols_elf_text(e, name), .sh_type = type, .sh_addr = offset,
				     .sh_offset = offset, .sh_size = size, .sh_entsize = entsize, .sh_link = 2};
}

static inline void symbols_elf_init(struct symbols_elf *e, uint16_t machine)
{
	*e = (struct symbols_elf){.used = 1};
	e->head = (Elf64_Ehdr){.e_type = ET_DYN, .e_machine = machine, .e_version = EV_CURRENT, .e_ehsize = sizeof(e->head),
			       .e_phoff = offsetof(struct symbols_elf, segment), .e_phentsize = sizeof(e->segment), .e_phnum = 1,
			       .e_shoff = offsetof(struct symbols_elf, section), .e_shentsize = sizeof(e->section[0]),
			       .e_shnum = 5, .e_shstrndx = 2,
			       .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}};
	e->segment = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = sizeof(*e), .p_memsz = sizeof(*e)};
	symbols_elf_section(e, 1, ".symtab", SHT_SYMTAB, offsetof(struct symbols_elf, symbol), sizeof(e->symbol), sizeof(Elf64_Sym));
	symbols_elf_section(e, 2, ".strtab", SHT_STRTAB, offsetof(struct symbols_elf, text), sizeof(e->text), 0);
	symbols_elf_section(e, 3, ".dynamic", SHT_DYNAMIC, offsetof(struct symbols_elf, dynamic), sizeof(e->dynamic), sizeof(Elf64_Dyn));
	symbols_elf_section(e, 4, ".dynstr", SHT_STRTAB, offsetof(struct symbols_elf, text), sizeof(e->text), 0);
}

static inline void symbols_elf_add(struct symbols_elf *e, const char *name, uint64_t value)
{
	e->symbol[e->nr++] = (Elf64_Sym){.st_name = symbols_elf_text(e, name), .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
					 .st_shndx = 1, .st_value = value, .st_size = 8};
}

static inline void symbols_elf_need(struct symbols_elf *e, const char *library)
{
	e->dynamic[0] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = symbols_elf_text(e, library)};
}

/* The symbol that was added last is also reached by a pointer there, as a library's own variable is. */
static inline void symbols_elf_slot(struct symbols_elf *e, uint32_t type, uint64_t slot)
{
	symbols_elf_section(e, 5, ".dynsym", SHT_DYNSYM, offsetof(struct symbols_elf, symbol), sizeof(e->symbol), sizeof(Elf64_Sym));
	symbols_elf_section(e, 6, ".rela.dyn", SHT_RELA, offsetof(struct symbols_elf, slot), sizeof(e->slot), sizeof(e->slot));
	e->head.e_shnum = 7;
	e->slot = (Elf64_Rela){.r_offset = slot, .r_info = ELF64_R_INFO(e->nr - 1, type)};
}

static inline struct binary *symbols_elf_open(const struct symbols_elf *e)
{
	struct binary *b = NULL;

	binary_open_memory(e, sizeof(*e), "/usr/lib/runtime", &b);
	return b;
}

#endif
