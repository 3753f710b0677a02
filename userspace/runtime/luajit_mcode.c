// SPDX-License-Identifier: Apache-2.0
/*
 * Where in a trace's machine code its part of the stack is not the whole one. It
 * is taken at the head: by a side trace, only what the trace before has less
 * (LuaJIT 2.1, lj_asm.c, asm_head_side); and given back before the jump at the
 * tail (lj_asm_x86.h, asm_tail_fixup). Nothing else moves the stack pointer.
 */
#include "base/cleanup.h"
#include "runtime/luajit_trace.h"
#include "runtime/x86_scan.h"

#define SCAN_MAX (64u << 10)

/* Of an instruction that ends at an offset; n: what it adds to the stack pointer. */
static void luajit_mcode_take(struct runtime_code *c, int64_t n, uint32_t end)
{
	uint64_t *bytes = &c->word[LUAJIT_WORD_TAIL_BYTES], *at = &c->word[LUAJIT_WORD_TAIL];

	if (n < 0) {
		n = -n;
		bytes = &c->word[LUAJIT_WORD_HEAD_BYTES];
		at = &c->word[LUAJIT_WORD_HEAD];
	}
	if (*at || (uint64_t)n > c->word[LUAJIT_WORD_ADJUST])
		return;
	*bytes = (uint64_t)n;
	*at = end;
}

static bool luajit_mcode_insn(void *code, const struct x86_insn *i, uint32_t end)
{
	if (i->kind == INSN_SP_ADD && i->n)
		luajit_mcode_take(code, i->n, end);
	return true;
}

void luajit_mcode_read(struct memory *m, uint64_t mcode, uint32_t size, struct runtime_code *c)
{
	x86_scan(m, mcode, 0, MIN(size, SCAN_MAX), luajit_mcode_insn, c);
}

uint64_t luajit_mcode_adjust(const struct runtime_code *c, uint64_t offset)
{
	uint64_t adjust = c->word[LUAJIT_WORD_ADJUST];

	if (offset < c->word[LUAJIT_WORD_HEAD])
		return adjust - c->word[LUAJIT_WORD_HEAD_BYTES];
	if (c->word[LUAJIT_WORD_TAIL] && offset >= c->word[LUAJIT_WORD_TAIL])
		return adjust - c->word[LUAJIT_WORD_TAIL_BYTES];
	return adjust;
}
