// SPDX-License-Identifier: Apache-2.0
#include "unwind/prologue.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "unwind/code_follow.h"

#define NONE	  UINT16_MAX
#define DEPTH_MAX (1 << 24)
#define ALIGNED	  16 /* functions, and the stack at a call: System V ABI, AMD64 supplement, section 3.2.2 */
#define CHUNK	  4096
#define BEHIND	  8 /* bytes of the next chunk that tell how a function begins */

/* Where control comes to, with so much of the stack between the stack pointer and where that was before the call. */
struct block {
	int64_t depth;
	int64_t copy_depth; /* likewise of copy, a register that was made from the stack pointer; INSN_NO_REG: none */
	uint64_t written;   /* bit per register that may not be the caller's any more */
	uint16_t next;
	uint8_t copy;
	bool behind_call;
};

struct forward {
	struct code_window window;
	struct code_blocks seen;
	uint64_t vaddr;	 /* that is looked for */
	bool called;	 /* a call returns to it */
	int64_t found;	 /* the depth there; 0: not reached */
	uint64_t written; /* likewise, as of a block */
	unsigned insns;	 /* decoded */
	uint16_t todo;
	int64_t pushed[OTP_REGS_MAX]; /* by the first instructions: the depth at which a register lies */
	struct block blocks[CODE_BLOCKS];
};

static void prologue_add(struct forward *w, uint64_t at, const struct block *state, bool behind_call)
{
	const int number = code_blocks_add(&w->seen, at);

	if (number < 0)
		return;
	w->blocks[number] = *state;
	w->blocks[number].behind_call = behind_call;
	w->blocks[number].next = w->todo;
	w->todo = (uint16_t)number;
}

/* The first instructions of a function save what is its caller's. */
static void prologue_push(struct forward *w, const struct block *b, const struct insn *i, bool first)
{
	if (first && i->n == 8 && i->reg < OTP_REGS_MAX && !w->pushed[i->reg])
		w->pushed[i->reg] = b->depth;
}

/* What was pushed first, and is taken back from there, is the caller's again. */
static void prologue_written(const struct forward *w, struct block *b, const struct insn *i)
{
	const uint64_t writes = insn_writes(i, w->window.arch->fp);

	if (b->copy != INSN_NO_REG && writes & 1ULL << b->copy)
		b->copy = INSN_NO_REG;
	b->written |= writes;
	if (i->kind == INSN_POP && i->reg < OTP_REGS_MAX && w->pushed[i->reg] == b->depth)
		b->written &= ~(1ULL << i->reg);
}

/* false: the stack pointer is not known any more. */
static bool prologue_apply(struct forward *w, struct block *b, const struct insn *i, bool first)
{
	prologue_written(w, b, i);
	switch (i->kind) {
	case INSN_PUSH:
		b->depth += i->n;
		prologue_push(w, b, i, first);
		break;
	case INSN_POP:
		b->depth -= i->n;
		break;
	case INSN_SP_ADD:
		b->depth -= i->n;
		break;
	case INSN_SP_COPY:
		b->copy = i->reg;
		b->copy_depth = b->depth - i->n;
		break;
	case INSN_SP_SET:
		if (i->reg != b->copy)
			return false;
		b->depth = b->copy_depth - i->n;
		break;
	case INSN_SP_LOAD:
	case INSN_SP_LOST:
	case INSN_LEAVE:
		return false;
	default:
		break;
	}
	return b->depth >= 8 && b->depth < DEPTH_MAX;
}

/* A call that never comes back was the last instruction of the function before; what a call returns to is not the next one. */
static bool prologue_is_next_function(const struct forward *w, const struct block *b, uint64_t at, const struct insn *i)
{
	if (!b->behind_call || at % ALIGNED || (w->called && at == w->vaddr))
		return false;
	return i->kind == INSN_PUSH || (i->kind == INSN_SP_ADD && i->n < 0);
}

/* A call leaves of the registers only those that are preserved; of them the frame pointer is enough. */
static void prologue_add_behind_call(struct forward *w, const struct block *b, uint64_t at)
{
	struct block behind = *b;

	if (behind.copy != w->window.arch->fp)
		behind.copy = INSN_NO_REG;
	prologue_add(w, at, &behind, true);
}

/* Where control goes on behind a block's last instruction, which ends at at; false: it was none. */
static bool prologue_end_block(struct forward *w, const struct block *b, uint64_t at, const struct insn *i)
{
	switch (i->kind) {
	case INSN_RET:
	case INSN_END:
		return true;
	case INSN_JUMP:
		prologue_add(w, at + (uint64_t)i->n, b, false);
		return true;
	case INSN_BRANCH:
		prologue_add(w, at + (uint64_t)i->n, b, false);
		prologue_add(w, at, b, false);
		return true;
	case INSN_CALL:
		prologue_add_behind_call(w, b, at);
		return true;
	default:
		return false;
	}
}

static void prologue_read_block(struct forward *w, uint64_t at, struct block b, bool first)
{
	struct insn i;
	int err;

	for (; w->insns++ < PROLOGUE_INSNS; at += i.len) {
		err = code_window_insn(&w->window, at, &i);
		if (!err && prologue_is_next_function(w, &b, at, &i))
			return;
		if (at == w->vaddr) {
			w->found = b.depth;
			w->written = b.written;
		}
		if (at == w->vaddr || err)
			return;
		if (!prologue_apply(w, &b, &i, first) || prologue_end_block(w, &b, at + i.len, &i))
			return;
	}
}

/* Whether the address is reached from the function's first instruction at entry. */
static bool prologue_reaches(struct forward *w, uint64_t entry)
{
	const struct block start = {.depth = 8, .copy = INSN_NO_REG};

	code_blocks_begin(&w->seen);
	w->todo = NONE;
	w->found = 0;
	memset(w->pushed, 0, sizeof(w->pushed));
	prologue_add(w, entry, &start, false);
	while (w->todo != NONE && !w->found) {
		const uint16_t n = w->todo;

		w->todo = w->blocks[n].next;
		prologue_read_block(w, w->seen.at[n], w->blocks[n], n == 0);
	}
	return w->found;
}

/* --- where functions begin --- */

/* Free Pascal's, behind a return. */
static bool prologue_is_zeros(const uint8_t *end)
{
	int n = 1;

	while (n < ALIGNED && !end[-n])
		n++;
	return n > 1 && end[-n] == 0xc3;
}

/* A trap, a return, zeros, or what does nothing, of which the longer ones are nopl or nopw n(%rax...). */
static bool prologue_is_padding(const uint8_t *end)
{
	static const struct { uint8_t back, modrm; } nops[] = {{3, 0}, {4, 0x40}, {5, 0x44}, {7, 0x80}, {8, 0x84}};

	if (end[-1] == 0xcc || end[-1] == 0x90 || end[-1] == 0xc3 || prologue_is_zeros(end))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(nops); i++)
		if (end[-nops[i].back] == 0x0f && end[1 - nops[i].back] == 0x1f && end[2 - nops[i].back] == nops[i].modrm)
			return true;
	return false;
}

/* sub $n,%rsp or lea -n(%rsp),%rbx, by which native-image asks for room before it takes it; not with the other sign. */
static bool prologue_takes_room(const uint8_t *at)
{
	static const uint8_t sub_byte[] = {0x48, 0x83, 0xec}, sub_word[] = {0x48, 0x81, 0xec}, lea_byte[] = {0x48, 0x8d, 0x5c, 0x24};

	if (!memcmp(at, sub_byte, sizeof(sub_byte)))
		return !(at[3] & 0x80);
	if (!memcmp(at, sub_word, sizeof(sub_word)))
		return !(at[6] & 0x80);
	return !memcmp(at, lea_byte, sizeof(lea_byte)) && at[4] & 0x80;
}

/* Padding lies before it, and it begins as one: push, endbr64, or it takes its frame's room. */
static bool prologue_begins_function(const uint8_t *at)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

	if (!prologue_is_padding(at))
		return false;
	if (at[0] == 0x55 || at[0] == 0x53 || (at[0] == 0x41 && at[1] >= 0x54 && at[1] <= 0x57))
		return true;
	return !memcmp(at, endbr64, sizeof(endbr64)) || prologue_takes_room(at);
}

/* The nearest such place before high, which is aligned, down to low; 0: there is none. */
static uint64_t prologue_entry_before(struct binary *b, uint64_t low, uint64_t high)
{
	uint8_t code[CHUNK + ALIGNED + BEHIND] = {0};

	for (uint64_t top = high, from; top > low; top = from) {
		const uint64_t bytes = MIN((uint64_t)CHUNK, top - low);

		from = top - bytes;
		if (binary_read_vaddr(b, from - ALIGNED, code, bytes + ALIGNED + BEHIND) < (ssize_t)(bytes + ALIGNED))
			return 0;
		for (uint64_t at = bytes; at; at -= ALIGNED)
			if (prologue_begins_function(code + at))
				return from + at - ALIGNED;
	}
	return 0;
}

/* How far back places are looked for, in the segment of the address. */
static uint64_t prologue_lowest_entry(const struct binary *b, uint64_t vaddr)
{
	for (uint32_t i = 0; i < b->nr_segments; i++) {
		const struct binary_segment *g = &b->segments[i];

		if (vaddr >= g->vaddr && vaddr - g->vaddr < g->filesz)
			return vaddr - MIN(vaddr - g->vaddr, (uint64_t)PROLOGUE_BYTES);
	}
	return vaddr;
}

static void prologue_row_at(const struct forward *w, struct row *row)
{
	memset(row, 0, sizeof(*row));
	row->flags = ROW_GUESS;
	row->cfa_kind = CFA_REG;
	row->cfa_reg = w->window.arch->sp;
	row->cfa_n = w->found;
	row->ra = w->window.arch->ra;
	row->reg[row->ra] = (struct rule){.kind = RULE_OFFSET, .n = -8};
	for (unsigned i = 0; i < OTP_REGS_MAX; i++) {
		if (i == row->cfa_reg || i == row->ra)
			continue;
		if (w->pushed[i] && w->pushed[i] <= w->found)
			row->reg[i] = (struct rule){.kind = RULE_OFFSET, .n = -w->pushed[i]};
		else if (w->written & 1ULL << i)
			row->reg[i] = (struct rule){.kind = RULE_UNDEFINED};
	}
}

int prologue_find(const struct epilogue_arch *arch, struct binary *b, uint64_t vaddr, bool called, struct row *ret)
{
	/* There is padding before it. */
	const uint64_t low = ALIGN_DOWN(prologue_lowest_entry(b, vaddr), (uint64_t)ALIGNED) + 2 * ALIGNED;
	struct forward w = {.window = {.arch = arch, .binary = b}, .vaddr = vaddr, .called = called};
	uint64_t entry = ALIGN_DOWN(vaddr - called, (uint64_t)ALIGNED) + ALIGNED; /* before it */

	for (unsigned i = 0; i < PROLOGUE_TRIES; i++) {
		entry = prologue_entry_before(b, low, entry);
		if (!entry)
			break;
		if (!prologue_reaches(&w, entry) || (called && w.found % ALIGNED))
			continue;
		prologue_row_at(&w, ret);
		return 0;
	}
	return -ENOENT;
}
