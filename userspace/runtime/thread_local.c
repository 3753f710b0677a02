// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_local.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/thread_key.h"

#define HEADERS_MAX 64u
#define BLOCK_MAX   (1u << 24)
#define ALIGN_MAX   4096u
#define RELOCATIONS_MAX (1u << 20)
#define RELOCATED_SYMBOLS_MAX 1024
#define RELOCATIONS_AT_ONCE 256u

/* The block's header; whether the file is a program: a library asks for no interpreter. */
static int thread_local_header(struct binary *b, Elf64_Phdr *ret, bool *ret_program)
{
	bool found = false, program = b->type == ET_EXEC;
	Elf64_Ehdr head;
	Elf64_Phdr p = {0};

	if (!b->is_elf || !b->is_64 || binary_read(b, 0, &head, sizeof(head)) != sizeof(head))
		return -ENOTSUP;
	for (uint32_t i = 0; i < MIN((uint32_t)head.e_phnum, HEADERS_MAX); i++) {
		if (binary_read(b, head.e_phoff + i * sizeof(p), &p, sizeof(p)) != sizeof(p))
			return -ENOTSUP;
		program |= p.p_type == PT_INTERP;
		if (p.p_type != PT_TLS)
			continue;
		*ret = p;
		found = true;
	}
	*ret_program = program;
	return found ? 0 : -ENOTSUP;
}

static bool thread_local_is_sound(const Elf64_Phdr *p)
{
	return p->p_align && p->p_align <= ALIGN_MAX && !(p->p_align & (p->p_align - 1)) && p->p_vaddr % p->p_align == 0 &&
	       p->p_memsz <= BLOCK_MAX;
}

/* --- libraries --- */

/*
 * Whether this relocation is for the number of the library itself: for all of its block, or for this variable. *left: how
 * many symbols may be read to tell; a library has a few.
 */
static bool thread_local_is_own(struct binary *b, const Elf64_Rela *r, uint64_t variable, uint32_t *left)
{
	const struct binary_section *symbols = binary_section(b, ".dynsym");
	const uint64_t at = ELF64_R_SYM(r->r_info) * sizeof(Elf64_Sym);
	Elf64_Sym s;

	if (ELF64_R_TYPE(r->r_info) != R_X86_64_DTPMOD64)
		return false;
	if (!at)
		return true;
	return symbols && *left && (*left)-- && at + sizeof(s) <= symbols->size &&
	       binary_read(b, symbols->offset + at, &s, sizeof(s)) == sizeof(s) &&
	       ELF64_ST_TYPE(s.st_info) == STT_TLS && s.st_shndx != SHN_UNDEF && s.st_value == variable;
}

/* Where the loader writes the library's number, as in the file. */
static int thread_local_number_at(struct binary *b, uint64_t variable, uint64_t *ret)
{
	const struct binary_section *s = binary_section(b, ".rela.dyn");
	uint64_t nr = s ? MIN(s->size / sizeof(Elf64_Rela), (uint64_t)RELOCATIONS_MAX) : 0;
	uint32_t symbols_left = RELOCATED_SYMBOLS_MAX;
	Elf64_Rela r[RELOCATIONS_AT_ONCE];

	for (uint64_t i = 0; i < nr; i += RELOCATIONS_AT_ONCE) {
		size_t n = (size_t)MIN(nr - i, (uint64_t)RELOCATIONS_AT_ONCE);

		if (binary_read(b, s->offset + i * sizeof(*r), r, n * sizeof(*r)) != (ssize_t)(n * sizeof(*r)))
			return -ENOTSUP;
		for (size_t k = 0; k < n; k++)
			if (thread_local_is_own(b, &r[k], variable, &symbols_left)) {
				*ret = r[k].r_offset;
				return 0;
			}
	}
	return -ENOTSUP;
}

static int thread_local_of_library(const struct runtime_file *file, struct memory *m, uint64_t variable, struct otp_walk *to)
{
	uint64_t at, number;
	int err = thread_local_number_at(file->binary, variable, &at);

	if (!err)
		err = memory_u64(m, file->bias + at, &number) ? -ENOTSUP : thread_block_chain(file, number, to);
	if (!err)
		to->chain[to->nr_chain++] = (int32_t)variable;
	return err;
}

int thread_local_chain(const struct runtime_file *file, struct memory *m, const char *name, struct otp_walk *to)
{
	struct runtime_symbol s;
	Elf64_Phdr p = {0};
	bool program;

	if (file->binary->machine != EM_X86_64 || thread_local_header(file->binary, &p, &program) || !thread_local_is_sound(&p))
		return -ENOTSUP;
	if (runtime_symbol(file->binary, name, &s) || s.type != STT_TLS || s.value > p.p_memsz)
		return -ENOENT;
	if (!program)
		return thread_local_of_library(file, m, s.value, to);
	to->start = OTP_WALK_TLS;
	to->base = s.value - ALIGN_UP(p.p_memsz, p.p_align);
	to->chain[to->nr_chain++] = 0;
	return 0;
}
