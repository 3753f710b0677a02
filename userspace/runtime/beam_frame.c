// SPDX-License-Identifier: Apache-2.0
/*
 * Where compiled code begins a frame. It lowers the stack pointer by as many
 * words as the frame has (sub $n,%rsp), right beneath the return address, and
 * writes to them behind that: until then, return addresses of calls that are
 * over may lie there. All are written before the first call of a function
 * (lib/compiler/src/beam_validator.erl), thus what is in the words does not count
 * up to that, or to where control is anywhere else. Results of BIFs that need no
 * memory are written as they come (beam_ssa_codegen.erl, def_is): words are old
 * still while C code compares terms for them. Calls of that in line are on
 * another stack, rbp has the process' meanwhile; those by way of shared code have
 * their result stored by the next instruction. Of other calls some never return,
 * and what is behind them may have another frame.
 * Such an instruction is directly behind the call for a collection, as there
 * must be room (erts/emulator/beam/jit/x86/instr_common.cpp, emit_gc_test and
 * emit_allocate of OTP 24 to 29): the same bytes elsewhere do not count.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "runtime/beam.h"
#include "unwind/x86_insn.h"

#define PIECE	  4096u
#define CALL_LEN  6u
#define SUB_MAX	  7u
#define FAR_MAX	  ((1u << 17) - 1) /* bytes of a function; frames that begin later are not known */
#define WORDS_MAX 63u
#define REACH_MAX 255u

/* A mark: BEAM_FRAME | offset << 14 | words << 8 | reach: from the offset on, so many bytes. */
static uint32_t frame_offset(uint32_t mark)
{
	return mark >> 14 & FAR_MAX;
}

/* call relative, or call *relative(%rip). */
static bool frame_is_behind_call(const uint8_t *at)
{
	return at[-5] == 0xe8 || (at[-6] == 0xff && at[-5] == 0x15);
}

/* The instruction's length; 0: it begins no frame. */
static uint32_t frame_begin(const uint8_t *at, size_t len, uint32_t *ret_words)
{
	struct x86_insn insn;

	if (at[0] != 0x48 || !frame_is_behind_call(at) || x86_decode(at, len, &insn))
		return 0;
	if (insn.kind != INSN_SP_ADD || insn.n >= 0 || insn.n % 8)
		return 0;
	*ret_words = (uint32_t)MIN(-insn.n / 8, (int64_t)WORDS_MAX + 1);
	return insn.len;
}

static bool frame_goes_on(const struct x86_insn *i)
{
	return insn_keeps_stack(i->kind) || i->kind == INSN_BRANCH;
}

/* What a call left in rax is stored to a register of BEAM, x or y. */
static bool frame_stores_result(const uint8_t *code, size_t len)
{
	struct x86_insn i;

	return !x86_decode(code, len, &i) && i.kind == INSN_STORE && i.reg == X86_AX && (i.base == X86_SP || i.base == X86_BX);
}

/* Whether the frame is the same behind an instruction. aside: C code's stack is in use, as rbx leads to it. */
static bool frame_is_kept(const struct x86_insn *i, const uint8_t *behind, size_t len, bool *aside)
{
	const bool was = *aside;

	switch (i->kind) {
	case INSN_SP_SET:
		*aside = i->reg == X86_BX;
		return was ? i->reg == X86_BP && !i->n : *aside;
	case INSN_SP_LOAD:
		*aside = false;
		return was;
	case INSN_CALL:
		return was || frame_stores_result(behind, len);
	default:
		return frame_goes_on(i);
	}
}

/* Up to the end of the first instruction that control may leave for good, or that moves the process' stack pointer. */
static uint32_t frame_reach(const uint8_t *code, size_t len)
{
	struct x86_insn insn;
	bool aside = false, kept = true;
	uint32_t n = 0;

	while (kept && !x86_decode(code + n, len - n, &insn) && insn.len && n + insn.len <= REACH_MAX) {
		n += insn.len;
		kept = frame_is_kept(&insn, code + n, len - n, &aside);
	}
	return n;
}

/* False: there is no room. */
static bool frame_add(struct runtime_code *c, uint32_t offset, uint32_t words, uint32_t reach)
{
	const uint32_t mark = BEAM_FRAME | offset << 14 | words << 8 | reach;
	uint32_t i = 0;

	while (i < BEAM_MARKS && runtime_code_half(c, i))
		i++;
	if (i == BEAM_MARKS || words > WORDS_MAX || offset > FAR_MAX)
		return false;
	runtime_code_set_half(c, i, mark);
	return true;
}

/* Those that begin before until. The offset of the first one that there is no room for; 0: all fit. */
static uint32_t frames_in(const uint8_t *bytes, size_t len, size_t until, uint64_t at, struct runtime_code *c)
{
	for (size_t i = CALL_LEN; i < until; i++) {
		uint32_t words, n = frame_begin(bytes + i, len - i, &words), offset = (uint32_t)(at + i + n);

		if (n && !frame_add(c, offset, words, frame_reach(bytes + i + n, len - i - n)))
			return offset;
	}
	return 0;
}

int beam_frames(struct memory *m, struct runtime_code *c)
{
	const uint64_t len = MIN(c->end - c->start, (uint64_t)FAR_MAX);
	uint8_t bytes[PIECE];
	uint32_t more = 0;

	/* What is at the end of a piece is in the next one, with all that is behind it. */
	for (uint64_t at = 0, size, until; !more && at < len; at = at + size < len ? at + until - CALL_LEN : len) {
		size = MIN(len - at, (uint64_t)PIECE);
		if (memory_read(m, c->start + at, bytes, size))
			return -EFAULT;
		until = at + size < len ? size - SUB_MAX - REACH_MAX : size;
		more = frames_in(bytes, size, until, at, c);
	}
	if (!more && len < c->end - c->start)
		more = FAR_MAX;
	c->word[BEAM_CROWDED_WORD] |= (uint64_t)more << 32;
	return 0;
}

int beam_frame_words(const struct runtime_code *c, uint64_t pc)
{
	const uint64_t offset = pc - c->start, more = c->word[BEAM_CROWDED_WORD] >> 32;

	for (uint32_t i = 0; i < BEAM_MARKS && runtime_code_half(c, i); i++) {
		uint32_t mark = runtime_code_half(c, i);

		if (mark & BEAM_FRAME && offset - frame_offset(mark) < (mark & REACH_MAX))
			return (int)(mark >> 8 & WORDS_MAX);
	}
	return more && offset >= more ? -E2BIG : -ENOENT;
}
