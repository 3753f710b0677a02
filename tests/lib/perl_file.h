/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that defines the symbols of a Perl, in the order of perl_file_symbols:
 * the i-th has the address PERL_FILE_DATA + 16 * i. One segment, addresses equal
 * to offsets; needed is a library that it names in .dynamic.
 */
#ifndef OTP_TESTS_PERL_FILE_H
#define OTP_TESTS_PERL_FILE_H

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "process/binary.h"

#define PERL_FILE_DATA 0x1000

enum perl_file_symbol {
	S_RUNOPS_STANDARD, S_RUNOPS_DEBUG, S_REVISION, S_VERSION, S_SUBVERSION,
	S_GLOBALS, /* here a build without threads begins to differ */
	S_CURINTERP = S_GLOBALS, S_THR_KEY, S_WITH_THREADS,
	S_CURSTACKINFO = S_GLOBALS, S_CURCOP, S_MAIN_START, S_RUNOPS, S_WITHOUT,
};

static const char *const perl_file_symbols[2][S_WITHOUT] = {
	{"Perl_runops_standard", "Perl_runops_debug", "PL_revision", "PL_version", "PL_subversion",
	 "PL_curstackinfo", "PL_curcop", "PL_main_start", "PL_runops"},
	{"Perl_runops_standard", "Perl_runops_debug", "PL_revision", "PL_version", "PL_subversion",
	 "PL_curinterp", "PL_thr_key"},
};

struct perl_file {
	Elf64_Ehdr head;
	Elf64_Phdr segment;
	Elf64_Shdr section[5]; /* none, .symtab, .strtab, .dynamic, .dynstr (the same as .strtab) */
	Elf64_Sym symbol[S_WITHOUT + 1];
	Elf64_Dyn dynamic[2];
	char text[512];
	uint8_t room[PERL_FILE_DATA];
};

static inline uint32_t perl_file_text(struct perl_file *f, uint32_t *used, const char *text)
{
	uint32_t at = *used;

	memcpy(f->text + at, text, strlen(text) + 1);
	*used += (uint32_t)strlen(text) + 1;
	return at;
}

static inline void perl_file_sections(struct perl_file *f, uint32_t *used)
{
	static const char *const names[] = {".symtab", ".strtab", ".dynamic", ".dynstr"};
	static const uint32_t types[] = {SHT_SYMTAB, SHT_STRTAB, SHT_DYNAMIC, SHT_STRTAB};
	const size_t offset[] = {offsetof(struct perl_file, symbol), offsetof(struct perl_file, text),
				 offsetof(struct perl_file, dynamic), offsetof(struct perl_file, text)};
	const size_t size[] = {sizeof(f->symbol), sizeof(f->text), sizeof(f->dynamic), sizeof(f->text)};
	const size_t entry[] = {sizeof(*f->symbol), 0, sizeof(*f->dynamic), 0};

	for (int i = 0; i < 4; i++)
		f->section[i + 1] = (Elf64_Shdr){.sh_name = perl_file_text(f, used, names[i]), .sh_type = types[i],
						 .sh_addr = offset[i], .sh_offset = offset[i], .sh_size = size[i],
						 .sh_entsize = entry[i], .sh_link = 2};
}

static inline struct binary *perl_file(bool threads, uint16_t machine, const char *needed)
{
	static struct perl_file f;
	struct binary *b = NULL;
	uint32_t used = 1;

	f = (struct perl_file){0};
	f.head = (Elf64_Ehdr){.e_type = ET_DYN, .e_machine = machine, .e_version = EV_CURRENT, .e_ehsize = sizeof(f.head),
			      .e_phoff = offsetof(struct perl_file, segment), .e_phentsize = sizeof(f.segment), .e_phnum = 1,
			      .e_shoff = offsetof(struct perl_file, section), .e_shentsize = sizeof(f.section[0]),
			      .e_shnum = 5, .e_shstrndx = 2,
			      .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}};
	f.segment = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = sizeof(f), .p_memsz = sizeof(f)};
	perl_file_sections(&f, &used);
	for (uint32_t i = 0; i < S_WITHOUT && perl_file_symbols[threads][i]; i++)
		f.symbol[i + 1] = (Elf64_Sym){.st_name = perl_file_text(&f, &used, perl_file_symbols[threads][i]),
					      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_shndx = 1,
					      .st_value = PERL_FILE_DATA + 16 * i, .st_size = 8};
	f.dynamic[0] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = perl_file_text(&f, &used, needed)};
	binary_open_memory(&f, sizeof(f), "/usr/bin/perl", &b);
	return b;
}

#endif
