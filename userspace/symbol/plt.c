// SPDX-License-Identifier: Apache-2.0
/*
 * Names of PLT stubs, as name@plt. A stub jumps through a slot of the GOT; the
 * relocation that fills the slot names the function. The slot is read from the
 * stub's own code, so the order in which a linker lays out stubs does not
 * matter.
 *
 * Stub layouts: x86-64 psABI section 5.2 and binutils 2.40 (elf_x86_64_*plt*),
 * aarch64 sysvabi64 and binutils 2.40 (elfnn_aarch64_*plt*).
 */
#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbol/resolver.h"

#define STUB_MAX      32
#define RELOCS_MAX    (1u << 18)
#define RELOC_CHUNK   128
#define NO_INDEX      UINT64_MAX

/* What a stub says of itself: the slot it jumps through, or the number of its relocation. */
struct stub {
	uint64_t slot;
	uint64_t index;
};

static const struct binary_section *plt_section(const struct binary *b, uint64_t vaddr)
{
	for (uint32_t i = 0; i < b->nr_sections; i++) {
		const struct binary_section *s = &b->sections[i];

		if ((strncmp(s->name, ".plt", 4) == 0 || strcmp(s->name, ".iplt") == 0) &&
		    (s->flags & SHF_EXECINSTR) && vaddr - s->addr < s->size)
			return s;
	}
	return NULL;
}

static int32_t read_s32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static int stub_x86_64(struct binary *b, const struct binary_section *plt, uint64_t vaddr, struct stub *ret)
{
	uint64_t entry = plt->entsize == 8 || plt->entsize == 32 ? plt->entsize : 16;
	uint64_t start = vaddr - (vaddr - plt->addr) % entry;
	uint8_t code[STUB_MAX];
	ssize_t n = binary_read_vaddr(b, start, code, entry);

	if (n < 6)
		return -ENOENT;
	/* push of the link map: the common first stub, which has no name. */
	if (code[0] == 0xff && code[1] == 0x35)
		return -ENOENT;
	for (ssize_t i = 0; i + 6 <= n; i++) {
		if (code[i] != 0xff || code[i + 1] != 0x25) /* jmp *disp(%rip) */
			continue;
		ret->slot = start + (uint64_t)i + 6 + (uint64_t)(int64_t)read_s32(code + i + 2);
		return 0;
	}
	for (ssize_t i = 0; i + 5 <= n && i <= 4; i += 4) {
		if (code[i] != 0x68) /* push imm32, behind an endbr64 or not */
			continue;
		ret->index = (uint32_t)read_s32(code + i + 1);
		return 0;
	}
	return -ENOENT;
}

static bool is_adrp_x16(uint32_t word)
{
	return (word & 0x9f00001f) == 0x90000010;
}

static bool is_ldr_x17_x16(uint32_t word)
{
	return (word & 0xffc003ff) == 0xf9400211;
}

static uint64_t slot_arm64(uint64_t at, uint32_t adrp, uint32_t ldr)
{
	int64_t page = (int64_t)((uint64_t)(adrp >> 5 & 0x7ffff) << 45) >> 43 | (adrp >> 29 & 3);

	return (at & ~0xfffULL) + (uint64_t)page * 4096 + (uint64_t)(ldr >> 10 & 0xfff) * 8;
}

/* [bti c] adrp ldr add [autia1716] br: look back from the address for the pair. */
static int stub_arm64(struct binary *b, const struct binary_section *plt, uint64_t vaddr, struct stub *ret)
{
	uint64_t at = vaddr & ~3ULL;
	uint32_t word[2];

	for (int back = -1; back < 5; back++) {
		uint64_t try = at - (uint64_t)(int64_t)(back * 4);

		if (try - plt->addr >= plt->size || binary_read_vaddr(b, try, word, sizeof(word)) != sizeof(word))
			continue;
		if (!is_adrp_x16(word[0]) || !is_ldr_x17_x16(word[1]))
			continue;
		ret->slot = slot_arm64(try, word[0], word[1]);
		return 0;
	}
	return -ENOENT;
}

static int stub_read(struct binary *b, const struct binary_section *plt, uint64_t vaddr, struct stub *ret)
{
	*ret = (struct stub){.index = NO_INDEX};
	switch (b->machine) {
	case EM_X86_64:
		return stub_x86_64(b, plt, vaddr, ret);
	case EM_AARCH64:
		return stub_arm64(b, plt, vaddr, ret);
	default:
		return -ENOENT;
	}
}

static int reloc_by_slot(struct binary *b, const struct binary_section *sec, uint64_t slot, Elf64_Rela *ret)
{
	Elf64_Rela chunk[RELOC_CHUNK];
	uint64_t count = MIN(sec->size / sizeof(*chunk), RELOCS_MAX);

	for (uint64_t at = 0; at < count;) {
		size_t want = MIN(count - at, RELOC_CHUNK) * sizeof(*chunk);
		ssize_t n = binary_read(b, sec->offset + at * sizeof(*chunk), chunk, want);

		if (n < (ssize_t)sizeof(*chunk))
			return -ENOENT;
		for (size_t i = 0; i < (size_t)n / sizeof(*chunk); i++) {
			if (chunk[i].r_offset != slot)
				continue;
			*ret = chunk[i];
			return 0;
		}
		at += (size_t)n / sizeof(*chunk);
	}
	return -ENOENT;
}

static int reloc_by_index(struct binary *b, const struct binary_section *sec, uint64_t index, Elf64_Rela *ret)
{
	if (index >= sec->size / sizeof(*ret))
		return -ENOENT;
	return binary_read(b, sec->offset + index * sizeof(*ret), ret, sizeof(*ret)) == sizeof(*ret) ? 0 : -ENOENT;
}

static int reloc_find(struct binary *b, const struct stub *stub, Elf64_Rela *ret)
{
	/* Lazily bound, bound at start, static: in the order of size. */
	static const char *const names[] = {".rela.plt", ".rela.iplt", ".rela.dyn"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct binary_section *sec = binary_section(b, names[i]);

		if (!sec || sec->type != SHT_RELA)
			continue;
		if (stub->index != NO_INDEX)
			return reloc_by_index(b, sec, stub->index, ret);
		if (reloc_by_slot(b, sec, stub->slot, ret) == 0)
			return 0;
	}
	return -ENOENT;
}

/* An ifunc's slot is filled by a function that has the name (glibc: memcpy). */
static int name_ifunc(struct symbol_sources *all, struct binary *b, uint64_t function, struct symbol_result *ret)
{
	struct symbol_result of = {0};
	int r = resolver_symtab.find(all, b, function, &of);

	if (r < 0)
		r = resolver_dynsym.find(all, b, function, &of);
	if (r == 0)
		r = symbol_result_set(all, ret, str_c(of.lines[0].name), "@plt");
	symbol_result_done(&of);
	return r;
}

static int find_plt(struct symbol_sources *all, struct binary *b, uint64_t vaddr, struct symbol_result *ret)
{
	const struct binary_section *plt = b->is_64 ? plt_section(b, vaddr) : NULL;
	char name[ELF_NAME_MAX];
	struct elf_source src;
	struct elf_sym sym;
	struct stub stub;
	Elf64_Rela rela;

	if (!plt || stub_read(b, plt, vaddr, &stub) < 0 || reloc_find(b, &stub, &rela) < 0)
		return -ENOENT;
	if (!ELF64_R_SYM(rela.r_info))
		return name_ifunc(all, b, (uint64_t)rela.r_addend, ret);
	if (elf_source_find(b, SHT_DYNSYM, &src) < 0 ||
	    elf_sym_read(b, &src, ELF64_R_SYM(rela.r_info), &sym) < 0 ||
	    elf_name_read(b, &src, sym.name, name) < 0)
		return -ENOENT;
	return symbol_result_set(all, ret, name, "@plt");
}

const struct resolver resolver_plt = {.name = "plt", .find = find_plt};
