// SPDX-License-Identifier: Apache-2.0
/* Input: code, read as it lies in a file of which nothing else is known. */
#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/lib/tiny_elf.h"
#include "unwind/epilogue.h"
#include "unwind/prologue.h"
#include "unwind/x86_insn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_on(uint16_t machine, const struct epilogue_arch *arch, const uint8_t *data, size_t size)
{
	static struct tiny tiny;
	struct binary *b;
	struct row row;

	tiny_init(&tiny, machine, 0);
	memset(tiny.image + TINY_CODE, 0xcc, TINY_SIZE - TINY_CODE);
	memcpy(tiny.image + TINY_CODE, data, MIN(size, (size_t)(TINY_SIZE - TINY_CODE)));
	b = tiny_open(&tiny);
	if (!b)
		abort();
	if (epilogue_find(arch, b, TINY_CODE, size % 2, &row) == 0 && row.cfa_kind == CFA_NONE)
		abort();
	if (arch->tells_writes && prologue_find(arch, b, TINY_CODE + size / 2, size % 2, &row) == 0 && row.cfa_n < 8)
		abort();
	binary_put(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct x86_insn insn;

	if (x86_decode(data, size, &insn) == 0 && (!insn.len || insn.len > size || insn.len > X86_INSN_MAX))
		abort();
	read_on(EM_X86_64, &epilogue_x86_64, data, size);
	read_on(EM_AARCH64, &epilogue_arm64, data, size);
	return 0;
}
