/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that shows nothing of its V8 but what this looks like, as a file in memory and as a process: constants with the
 * version, the first name and the places of builtins; their code with int3 between them; a relocation for the table of names;
 * and a pointer to what has the list of isolates. Addresses are offsets, and in the process they begin at WORLD.
 *
 * Included after put, put32 and put64 of WORLD are there (tests/lib/world.h).
 */
#ifndef OTP_TESTS_V8_HIDDEN_WORLD_H
#define OTP_TESTS_V8_HIDDEN_WORLD_H

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "process/binary.h"
#include "runtime/v8.h"

#define VH_VERSION   "15.0.245.2"
#define VH_RODATA    0x1000
#define VH_NAME	     (VH_RODATA + 0x41) /* of builtin 0 */
#define VH_LAYOUT    (VH_RODATA + 0x118) /* behind three hashes */
#define VH_TEXT	     0x2040
#define VH_CODE	     0x3000
#define VH_RELOCS    0x5008
#define VH_NAMES     0x6000
#define VH_BSS	     0x7000
#define VH_BYTES     VH_BSS /* of the file */
#define VH_BSS_BYTES 0x1000
#define VH_MANAGER   (WORLD + 0x10000)
#define VH_NODE	     (WORLD + 0x14000)
#define VH_ISOLATE   (WORLD + 0x20000)
#define VH_TEXTS     (WORLD + 0x18000) /* names as the process has them */
#define VH_NR	     20
#define VH_LEN(i)    (40u + (i)) /* of a builtin: padded to 64 */
#define VH_AT(i)     (64u * (i))
#define VH_SECTIONS  7
#define VH_EXPORT    72 /* in the names of sections and symbols */

struct v8_hidden_file {
	Elf64_Ehdr head;
	Elf64_Phdr segment;
	Elf64_Shdr section[VH_SECTIONS];
	char names[96];
	Elf64_Sym symbol[2];
	uint8_t room[VH_BYTES - 64 - 56 - VH_SECTIONS * 64 - 96 - 2 * 24];
};
_Static_assert(sizeof(struct v8_hidden_file) == VH_BYTES, "offsets are addresses");

/* What must be there, and some that are not looked for. */
static inline const char *vh_name(uint32_t i)
{
	static const char *const names[] = {"DeoptimizationEntry_Eager", "InterpreterEntryTrampoline", "BaselineOutOfLinePrologue",
					    "BaselineLeaveFrame", "Abort", "WideHandler"};

	return i < sizeof(names) / sizeof(names[0]) ? names[i] : "Other";
}

static inline void vh_section(struct v8_hidden_file *f, uint32_t i, const char *name, uint32_t type, uint64_t at, uint64_t size)
{
	const uint32_t text = i * 10 + 1; /* no name is longer */

	strcpy(f->names + text, name);
	f->section[i] = (Elf64_Shdr){.sh_name = text, .sh_type = type, .sh_addr = at, .sh_offset = at, .sh_size = size};
}

static inline void vh_constants(struct v8_hidden_file *f)
{
	uint8_t *bytes = (uint8_t *)f;
	uint32_t entry[3] = {0};

	strcpy((char *)bytes + VH_RODATA + 8, VH_VERSION "-rusty");
	strcpy((char *)bytes + VH_NAME, vh_name(0));
	for (uint32_t i = 0; i < VH_NR; i++) {
		entry[0] = VH_AT(i);
		entry[1] = VH_LEN(i) > 62 ? 62 : VH_LEN(i);
		entry[2] = i < 2 ? 0 : 8 * i;
		memcpy(bytes + VH_LAYOUT + i * sizeof(entry), entry, sizeof(entry));
	}
	/* What follows: the table by which a place is found (V8, embedded-data.h, BuiltinLookupEntry). */
	memcpy(bytes + VH_LAYOUT + VH_NR * sizeof(entry), (uint32_t[]){64, 0}, 8);
}

static inline void vh_code(struct v8_hidden_file *f)
{
	uint8_t *bytes = (uint8_t *)f;

	memset(bytes + VH_TEXT, 0x90, VH_RELOCS - VH_TEXT);
	for (uint32_t i = 0; i < VH_NR; i++) {
		const uint32_t len = VH_LEN(i) > 62 ? 62 : VH_LEN(i);

		memset(bytes + VH_CODE + VH_AT(i) + len, 0xcc, 64 - len);
	}
}

static inline void vh_file(struct v8_hidden_file *f)
{
	const Elf64_Rela relocs[] = {
		{.r_offset = VH_NAMES + 24, .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE), .r_addend = VH_NAME + 1},
		{.r_offset = VH_NAMES, .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE), .r_addend = VH_NAME},
	};

	*f = (struct v8_hidden_file){0};
	f->head = (Elf64_Ehdr){.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_ehsize = sizeof(f->head),
			       .e_phoff = offsetof(struct v8_hidden_file, segment), .e_phentsize = sizeof(f->segment), .e_phnum = 1,
			       .e_shoff = offsetof(struct v8_hidden_file, section), .e_shentsize = sizeof(f->section[0]),
			       .e_shnum = VH_SECTIONS, .e_shstrndx = 1,
			       .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}};
	f->segment = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = VH_BYTES, .p_memsz = VH_BSS + VH_BSS_BYTES};
	vh_section(f, 1, ".names", SHT_STRTAB, offsetof(struct v8_hidden_file, names), sizeof(f->names));
	vh_section(f, 2, ".rodata", SHT_PROGBITS, VH_RODATA, VH_TEXT - VH_RODATA);
	vh_section(f, 3, ".text", SHT_PROGBITS, VH_TEXT, VH_RELOCS - VH_TEXT);
	vh_section(f, 4, ".rela.dyn", SHT_RELA, VH_RELOCS, sizeof(relocs));
	vh_section(f, 5, ".bss", SHT_NOBITS, VH_BSS, VH_BSS_BYTES);
	vh_section(f, 6, ".dynsym", SHT_DYNSYM, offsetof(struct v8_hidden_file, symbol), sizeof(f->symbol));
	f->section[6].sh_link = 1;
	f->section[6].sh_entsize = sizeof(f->symbol[0]);
	strcpy(f->names + VH_EXPORT, "napi_create_function");
	f->symbol[1] = (Elf64_Sym){.st_name = VH_EXPORT, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 3,
				   .st_value = VH_TEXT, .st_size = 8};
	vh_constants(f);
	vh_code(f);
	memcpy((uint8_t *)f + VH_RELOCS, relocs, sizeof(relocs));
}

/* An isolate is known by pointers to itself. */
static inline void vh_put_isolate(const struct v8_row *row)
{
	put64(WORLD + VH_BSS + 0x88, VH_MANAGER);
	put64(VH_MANAGER + row->wasm.isolates, VH_NODE);
	put64(VH_NODE + row->wasm.isolate_key, VH_ISOLATE);
	put64(VH_ISOLATE + V8_ISOLATE_SELF, VH_ISOLATE);
	put64(VH_ISOLATE + row->isolate_heap + row->heap_isolate, VH_ISOLATE);
	put32(VH_ISOLATE + row->isolate_thread, 1);
}

/* The process: the file, with relocations done, and what V8 has made. */
static inline void vh_put_process(const struct v8_hidden_file *f, const struct v8_row *row)
{
	put(WORLD, f, sizeof(*f));
	for (uint32_t i = 0; i < VH_NR; i++) {
		put64(WORLD + VH_NAMES + 24ULL * i, VH_TEXTS + 64ULL * i);
		put(VH_TEXTS + 64ULL * i, vh_name(i), strlen(vh_name(i)) + 1);
	}
	vh_put_isolate(row);
}

static inline struct binary *vh_open(const struct v8_hidden_file *f)
{
	struct binary *b = NULL;

	binary_open_memory(f, sizeof(*f), "/usr/bin/deno", &b);
	return b;
}

#endif
