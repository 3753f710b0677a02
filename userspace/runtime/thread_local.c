// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_local.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define HEADERS_MAX 64u
#define BLOCK_MAX   (1u << 24)
#define ALIGN_MAX   4096u

/* The block's header; whether the file is a program: a library asks for no interpreter. */
static int thread_local_header(struct binary *b, Elf64_Phdr *ret)
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
	return found && program ? 0 : -ENOTSUP;
}

static bool thread_local_is_sound(const Elf64_Phdr *p)
{
	return p->p_align && p->p_align <= ALIGN_MAX && !(p->p_align & (p->p_align - 1)) && p->p_vaddr % p->p_align == 0 &&
	       p->p_memsz <= BLOCK_MAX;
}

int thread_local_chain(const struct runtime_file *file, const char *name, struct otp_walk *to)
{
	struct runtime_symbol s;
	Elf64_Phdr p = {0};

	if (file->binary->machine != EM_X86_64 || thread_local_header(file->binary, &p) || !thread_local_is_sound(&p))
		return -ENOTSUP;
	if (runtime_symbol(file->binary, name, &s) || s.type != STT_TLS || s.value > p.p_memsz)
		return -ENOENT;
	to->start = OTP_WALK_TLS;
	to->base = s.value - ALIGN_UP(p.p_memsz, p.p_align);
	to->chain[to->nr_chain++] = 0;
	return 0;
}
