// SPDX-License-Identifier: Apache-2.0
/*
 * Where in a trace's machine code its part of the stack is not the whole one. It
 * is taken at the head: by a side trace, only what the trace before has less
 * (LuaJIT 2.1, lj_asm.c, asm_head_side); and given back before the jump at the
 * tail (lj_asm_x86.h, asm_tail_fixup). Nothing else moves the stack pointer.
 */
#include "base/cleanup.h"
#include "runtime/luajit_trace.h"
#include "unwind/x86_insn.h"

#define PIECE	 4096u
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

/* Whole instructions of a piece; the bytes of it that they are. */
static uint32_t luajit_mcode_scan(struct runtime_code *c, const uint8_t *code, uint32_t len, uint32_t offset, bool last)
{
	struct x86_insn insn;
	uint32_t at = 0;

	while (at < len && (last || len - at >= X86_INSN_MAX)) {
		if (x86_decode(code + at, len - at, &insn) || !insn.len) {
			at++;
			continue;
		}
		at += insn.len;
		if (insn.kind == INSN_SP_ADD && insn.n)
			luajit_mcode_take(c, insn.n, offset + at);
	}
	return at;
}

void luajit_mcode_read(struct memory *m, uint64_t mcode, uint32_t size, struct runtime_code *c)
{
	uint8_t bytes[PIECE];
	uint32_t from = 0;

	size = MIN(size, SCAN_MAX);
	while (from < size) {
		uint32_t len = MIN(size - from, PIECE);

		if (memory_read(m, mcode + from, bytes, len))
			return;
		from += luajit_mcode_scan(c, bytes, len, from, from + len == size);
	}
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
