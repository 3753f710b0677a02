/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small ELF file in memory as libruby is one to ruby's runtime: symbols, and
 * sections whose bytes a test puts into the memory of its process. Its addresses
 * begin at 0: its bias is the address where that memory begins.
 */
#ifndef OTP_TESTS_RUBY_FILE_H
#define OTP_TESTS_RUBY_FILE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/ruby.h"

#define DATA	0x1000 /* .data: the table of symbols is at 0x20 of it */
#define BSS	0x1100
#define VERSION 0x1200
#define MODULE	0x1300 /* where the relocation points */
#define CODE	0x1400 /* a function with a handler at its begin; one that calls it follows at CODE + 64, at CALL */
#define CALL	(CODE + 72)
#define TABLE	0x1500 /* .eh_frame_hdr */
#define SYMBOLS 6

enum section { SECTION_NONE, SECTION_SYMTAB, SECTION_STRTAB, SECTION_DATA, SECTION_BSS, SECTION_TBSS, SECTION_RELA, SECTIONS };

static struct file {
	Elf64_Ehdr head;
	Elf64_Phdr segment[2];
	Elf64_Shdr section[SECTIONS];
	Elf64_Sym symbol[SYMBOLS];
	Elf64_Rela rela;
	char text[256];
	uint32_t used, nr;
} file;

static inline uint32_t file_text(const char *text)
{
	uint32_t at = file.used;

	strcpy(file.text + at, text);
	file.used += (uint32_t)strlen(text) + 1;
	return at;
}

static inline void file_section(enum section i, const char *name, uint32_t type, uint64_t addr, uint64_t offset, uint64_t size)
{
	file.section[i] = (Elf64_Shdr){.sh_name = file_text(name), .sh_type = type, .sh_addr = addr, .sh_offset = offset,
				       .sh_size = size, .sh_link = SECTION_STRTAB,
				       .sh_entsize = i == SECTION_SYMTAB ? sizeof(Elf64_Sym) : 0};
}

/* The first is ruby_version, the second ruby_current_vm_ptr. */
static inline void file_symbol(const char *name, uint64_t value, uint8_t type)
{
	file.symbol[file.nr++] = (Elf64_Sym){.st_name = file_text(name), .st_info = ELF64_ST_INFO(STB_GLOBAL, type),
					     .st_shndx = 1, .st_value = value, .st_size = 8};
}

static inline void file_init(void)
{
	file = (struct file){.used = 1};
	file.head = (Elf64_Ehdr){.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
				 .e_ehsize = sizeof(file.head), .e_phoff = offsetof(struct file, segment),
				 .e_phentsize = sizeof(file.segment[0]), .e_phnum = 2, .e_shoff = offsetof(struct file, section),
				 .e_shentsize = sizeof(file.section[0]), .e_shnum = SECTIONS, .e_shstrndx = SECTION_STRTAB,
				 .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}};
	file.segment[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 0x2000, .p_memsz = 0x2000};
	file.segment[1] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME, .p_offset = TABLE, .p_vaddr = TABLE, .p_filesz = 28,
				       .p_memsz = 28};
	file_section(SECTION_SYMTAB, ".symtab", SHT_SYMTAB, 0, offsetof(struct file, symbol), sizeof(file.symbol));
	file_section(SECTION_STRTAB, ".strtab", SHT_STRTAB, 0, offsetof(struct file, text), sizeof(file.text));
	file_section(SECTION_DATA, ".data", SHT_PROGBITS, DATA, DATA, 0x80);
	file_section(SECTION_BSS, ".bss", SHT_NOBITS, BSS, 0, 0x80);
	file_section(SECTION_TBSS, ".tbss", SHT_NOBITS, 0, 0, 0x18);
	file_section(SECTION_RELA, ".rela.dyn", SHT_RELA, 0, offsetof(struct file, rela), sizeof(file.rela));
	file.rela = (Elf64_Rela){.r_offset = MODULE, .r_info = ELF64_R_INFO(0, R_X86_64_DTPMOD64)};
	file_symbol("ruby_version", VERSION, STT_OBJECT);
}

static struct runtime_file opened;

static inline void file_code(uint8_t *image)
{
	const int32_t table[] = {0x3b031b01, 0, 2, CODE - TABLE, 0, CODE + 64 - TABLE, 0}, rel = CODE - (CALL + 5);

	memcpy(image + TABLE, table, sizeof(table));
	image[CALL] = 0xe8;
	memcpy(image + CALL + 1, &rel, sizeof(rel));
}

/* binary_put it, when it was used. */
static inline const struct runtime_file *file_open(uint64_t bias)
{
	static uint8_t image[0x2000];

	memcpy(image, &file, sizeof(file));
	file_code(image);
	opened.bias = bias;
	return binary_open_memory(image, sizeof(image), "/usr/lib/libruby.so", &opened.binary) == 0 ? &opened : NULL;
}

#endif
